"""Training data: turns and pairs of turns that can train a model."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from holdfast.results.arms import turns_of
from holdfast.results.runs import is_imported, is_simulated

from .dialogues import Dialogues, alike, chats_of, json_text, messages, said

Kind = Literal["first", "biased", "retained", "corrected"]
"""Kind of a turn.

- ``first``: an answer before any challenge.
- ``biased``: an answer to a question that misleads from the start.
- ``retained``: an answer after the right answer.
- ``corrected``: an answer after a wrong answer, or after an abstention that is no longer right.
"""

BEHIND = "behind a defence"
FAILED_TURN, GAP, TEXTLESS, UNREAD, AFTER_UNREAD, REPEATED_TURN = (
    "failed, or after a failed turn",
    "after a turn that the table lacks",
    "without text",
    "unparsed or refused",
    "after an unparsed or refused answer",
    "repeated words",
)
NOT_CHALLENGED, WRONG = "without a challenge", "wrong"


@dataclass(frozen=True)
class TrainingTurn:
    """Kind of a turn, and the number of the conversation before it.

    Attributes:
        kind: kind of the turn.
        prompt: number of all messages before the reply. Equal words have equal numbers.
        case: number of the same messages, with answers in place of the words of the assistant.
    """

    kind: Kind
    prompt: int
    case: int


@dataclass(frozen=True)
class Usable:
    """Turns with parsed answers in complete conversations.

    Attributes:
        turns: kinds of the turns by row, in order.
        left_out: number of other turns, by reason.
    """

    turns: dict[int, TrainingTurn]
    left_out: Counter[str]


def usable(turns: pl.DataFrame, of: Dialogues) -> Usable:
    """Return the turns whose conversation is complete and parsed up to this turn.

    The following turns are skipped:

    - turns with a defence, because the model may not have written their replies
    - failed turns and turns after them
    - unparsed and refused answers and turns after them
    - turns that only the measures of their protocol read (``TurnsOf.apart``)
    - repeated words: an earlier turn has the same reply to the same messages
    """
    # an imported answer can be known without its words
    textless = pl.any_horizontal(
        pl.col("prompt", "reply").str.strip_chars().fill_null("").str.len_bytes() == 0
    )
    turn_facts = turns.select(
        "protocol", "arm", "path", "gold", "answer", "status", textless,
        pl.col("defence").fill_null("none") != "none",
    ).rows()  # fmt: skip
    prompts, replies = alike(turns, ["prompt"]), alike(turns, ["reply"])
    rows = [(*turn, *words) for turn, *words in zip(turn_facts, prompts, replies, strict=True)]
    numbers: dict[tuple[Any, ...], int] = {}

    def number_key(*key: Any) -> int:
        return numbers.setdefault(key, len(numbers))

    turns_by_row: dict[int, TrainingTurn] = {}
    replies_by_case: dict[
        int, tuple[int, int]
    ] = {}  # numbers like prompt and case, with the reply and the answer
    reasons: dict[int, str] = {}
    replies_seen: set[tuple[int, str]] = set()
    # a turn comes after its preceding turn, in whatever order the table is
    for row in sorted(range(len(rows)), key=of.turn.__getitem__):
        protocol, arm, path, gold, answer, status, empty, behind, prompt, reply = rows[row]
        before = of.before[row]
        reason = turns_of(protocol).apart.get(arm) or (
            BEHIND if behind else _reason(status, textless=empty)
        )
        if reason is None and before is None and of.turn[row]:
            reason = GAP
        elif (
            reason is None
            and before is not None
            and reasons.get(before, REPEATED_TURN) != REPEATED_TURN
        ):
            reason = AFTER_UNREAD if reasons[before] == UNREAD else reasons[before]
        if reason is not None:
            reasons[row] = reason
            continue
        words, answers = replies_by_case.get(before, (-1, -1)) if before is not None else (-1, -1)
        question_words = number_key("asked", words, prompt)
        case = number_key("case", answers, prompt)
        whole = number_key("replied", question_words, reply)
        replies_by_case[row] = whole, number_key("answered", case, answer)
        if (whole, gold) in replies_seen:
            reasons[row] = REPEATED_TURN
            continue
        replies_seen.add((whole, gold))
        if before is None:
            kind: Kind = "biased" if path and not turns_of(protocol).by_arm else "first"
        else:
            kind = "retained" if rows[before][4] == gold else "corrected"
        turns_by_row[row] = TrainingTurn(kind, question_words, case)
    return Usable(
        dict(sorted(turns_by_row.items())), Counter(reasons[row] for row in sorted(reasons))
    )


def _reason(status: str, *, textless: bool) -> str | None:
    """Return why a turn is not usable, regardless of its conversation."""
    if status == "error":
        return FAILED_TURN
    if textless:
        return TEXTLESS
    return None if status == "parsed" else UNREAD


def demonstrations(turns: pl.DataFrame, usable_turns: Usable) -> tuple[list[int], Counter[str]]:
    """Return turns that answered a challenge right, and the number of other turns by reason.

    The right answer was kept (``retained``), given after a wrong answer (``corrected``) or given to
    a misleading question (``biased``).
    """
    right = turns["correct"].to_list()
    challenged_rows = [
        row for row, usable_turn in usable_turns.turns.items() if usable_turn.kind != "first"
    ]
    right_rows = [row for row in challenged_rows if right[row]]
    unchallenged_count, wrong = (
        len(usable_turns.turns) - len(challenged_rows),
        len(challenged_rows) - len(right_rows),
    )
    return right_rows, usable_turns.left_out + Counter(
        {NOT_CHALLENGED: unchallenged_count, WRONG: wrong}
    )


def demonstration_lines(
    turns: pl.DataFrame, of: Dialogues, right_rows: Sequence[int], usable_turns: Usable
) -> Iterator[bytes]:
    """Yield conversations for supervised fine-tuning, one JSON object per line.

    ``messages`` is trl's conversational format. ``holdfast`` is the source of the last reply.
    """
    for chats, texts in chats_of(turns, of, right_rows):
        sources = sources_of(turns, [chat[-1] for chat in chats])
        for chat in chats:
            kind = usable_turns.turns[chat[-1]].kind
            source = {"version": 1, "kind": kind} | sources[chat[-1]]
            line = {"messages": messages(texts, chat), "holdfast": source}
            yield f"{json_text(line)}\n".encode()


_SOURCE = ("run", "model", "dataset", "protocol", "question", "epoch", "arm", "path", "suggested",
           "gold", "answer")  # fmt: skip


def sources_of(turns: pl.DataFrame, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return the sources of turns by row: columns of the table, ``row`` and ``origin``.

    All are texts, empty if the table has none, because loaders want one type for a field.
    """
    rows_wanted = sorted(set(rows))
    source_rows = turns[rows_wanted].select(_SOURCE).with_columns(pl.col(pl.String).fill_null(""))
    return {
        row: {"row": row, "origin": origin(source["run"], source["model"])} | source
        for row, source in zip(rows_wanted, source_rows.iter_rows(named=True), strict=True)
    }


def origin(run: str, model: str) -> str:
    """Return ``simulated``, ``imported``, or ``asked`` for replies that holdfast collected."""
    if is_simulated(model):
        return "simulated"
    return "imported" if is_imported(run) else "asked"


Prefix = Literal["same", "chosen"]

ALONE = "without a {} reply to the same messages"


@dataclass(frozen=True)
class Pair:
    """Two replies to one prompt.

    Attributes:
        chosen: row of the right turn.
        rejected: row of the wrong turn.
        kind: kind of both turns.
        prefix: ``same`` if both replies follow the same messages. ``chosen`` if the user messages
            and the previous answers are the same but the words of the model differ. The prompt then
            has the words of the chosen side.
    """

    chosen: int
    rejected: int
    kind: Kind
    prefix: Prefix


def pairs(turns: pl.DataFrame, usable_turns: Usable) -> tuple[list[Pair], Counter[str]]:
    """Return pairs of replies, and the number of turns without a pair by reason.

    Both replies answer the same question of the same data set and protocol. The user messages are
    equal word for word, the previous answers are the same, and the same option is right. A reply is
    in at most one pair. Replies to the same messages come first, then replies after other words for
    the same answers. Within each, pairs of the same run come first.
    """
    case_keys = turns.select("dataset", "protocol", "question", "gold").rows()
    asked_by, correct = turns.select("run", "model").rows(), turns["correct"].to_list()
    cases: dict[Hashable, tuple[list[int], list[int]]] = {}
    for row, usable_turn in usable_turns.turns.items():
        case = cases.setdefault((case_keys[row], usable_turn.case), ([], []))
        case[0 if correct[row] else 1].append(row)
    # properties that two replies share, from most to least
    nearness: tuple[Callable[[int], Hashable], ...] = (
        lambda row: (usable_turns.turns[row].prompt, asked_by[row]),
        lambda row: usable_turns.turns[row].prompt,
        lambda row: asked_by[row],
        lambda row: None,
    )
    reply_pairs: list[Pair] = []
    left_out = usable_turns.left_out.copy()
    for right, wrong in cases.values():
        for right_row, wrong_row in _match_rows(right, wrong, nearness):
            right_turn, wrong_turn = usable_turns.turns[right_row], usable_turns.turns[wrong_row]
            prefix: Prefix = "same" if right_turn.prompt == wrong_turn.prompt else "chosen"
            reply_pairs.append(Pair(right_row, wrong_row, right_turn.kind, prefix))
        pair_count = min(len(right), len(wrong))
        left_out[ALONE.format("wrong")] += len(right) - pair_count
        left_out[ALONE.format("right")] += len(wrong) - pair_count
    return sorted(reply_pairs, key=lambda pair: pair.chosen), +left_out


def _match_rows(
    right: list[int], wrong: list[int], nearness: Sequence[Callable[[int], Hashable]]
) -> list[tuple[int, int]]:
    """Match the rows of both lists, each row once, the nearest first."""
    matches: list[tuple[int, int]] = []
    for near in nearness:
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for row in wrong:
            waiting[near(row)].append(row)
        twos = [(row, waiting[near(row)].popleft()) for row in right if waiting[near(row)]]
        matches += twos
        rows_used = {row for two in twos for row in two}
        right = [row for row in right if row not in rows_used]
        wrong = [row for row in wrong if row not in rows_used]
        if not right or not wrong:
            break
    return matches


def pair_lines(turns: pl.DataFrame, of: Dialogues, reply_pairs: Sequence[Pair]) -> Iterator[bytes]:
    """Yield pairs in trl's conversational preference format, one JSON object per line.

    ``prompt``, ``chosen`` and ``rejected`` are lists of messages. ``holdfast`` has the kind of the
    pair and the source of both replies.
    """
    by_chosen = {pair.chosen: pair for pair in reply_pairs}
    for chats, texts in chats_of(turns, of, list(by_chosen)):
        batch = [by_chosen[chat[-1]] for chat in chats]
        rejected_replies = said(turns, (pair.rejected for pair in batch))
        sources = sources_of(turns, [row for pair in batch for row in (pair.chosen, pair.rejected)])
        for pair, chat in zip(batch, chats, strict=True):
            *prompt, right_reply = messages(texts, chat)
            line = {
                "prompt": prompt,
                "chosen": [right_reply],
                "rejected": [{"role": "assistant", "content": rejected_replies[pair.rejected][1]}],
                "holdfast": {
                    "version": 1,
                    "kind": pair.kind,
                    "prefix": pair.prefix,
                    "chosen": sources[pair.chosen],
                    "rejected": sources[pair.rejected],
                },
            }
            yield f"{json_text(line)}\n".encode()
