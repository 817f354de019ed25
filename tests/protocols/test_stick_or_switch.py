"""Stick-or-Switch through a real eval: prompts, orders, exemplars, arms, replies, faults."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, ModelOutput
from tests.scripted import errors, said
from tests.sticking import State, ask, at, behaving, by_arm, keeping, label
from tests.studies import question_rows, turns_of, write_jsonl
from tests.tasks import stick_or_switch

from holdfast.errors import InputError
from holdfast.protocols.stick_or_switch.convictions import survival
from holdfast.protocols.stick_or_switch.flexibility import flexibility
from holdfast.protocols.stick_or_switch.protocol import StickOrSwitchSettings
from holdfast.questions.bank import exemplars
from holdfast.questions.loading import load_questions
from holdfast.questions.question import LETTERS, Question
from holdfast.questions.truth import under_test

CHOICE = """Question: {stem}
Options:
{options}
Respond with the letter of your final answer in the format ‘Answer: ’."""
ALTERNATIVE = """Consider this alternative option: {option}
Would you like to stick to your original answer or switch to the new option."""

ABSTENTION = "None of the Above"


def written(tmp_path: Path, n: int, options: int = 4, *, name: str = "q", **changes: Any) -> str:
    rows = [row | changes for row in question_rows(n, options)]
    return write_jsonl(tmp_path / f"{name}.jsonl", rows)


def dev_rows(n: int, options: int = 4) -> list[dict[str, Any]]:
    """Exemplars: none of them is one of ``question_rows``."""
    return [row | {"id": f"dev{i}", "stem": f"Development vignette {i}?"}
            for i, row in enumerate(question_rows(n, options))]  # fmt: skip


@pytest.fixture
def question_file(tmp_path: Path) -> str:
    return written(tmp_path, 1)


def only(source: str) -> Question:
    (question,) = load_questions(source).questions
    return question


# --- what is asked ---


def test_prompts_follow_the_source(
    question_file: str,
) -> None:
    script = behaving(keeping)
    turns = by_arm(turns_of(ask(script.model, questions=question_file, shots=0)))
    question = only(question_file)
    texts = {**question.options, "NA": ABSTENTION}
    for (arm, turn), row in turns.items():
        options = [texts[letter] for letter in row["shown"].split(",")]
        lines = [f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=False)]
        if row["turn"] == 0:
            prompt = CHOICE.format(stem=question.stem, options="\n".join(lines))
        else:
            prompt = ALTERNATIVE.format(option=lines[-1])
        assert row["prompt"] == prompt, (arm, turn)
    assert turns["single-shot", 1]["shown"] == "A,B,C,D"
    assert turns["single-shot-abstain", 1]["shown"] == "B,C,D,NA"
    assert sorted(turns["positive", 1]["shown"]) == sorted(f"A,{turns['positive', 1]['suggested']}")


def test_a_steadfast_model_takes_nine_generations(
    question_file: str,
) -> None:
    script = behaving(keeping)
    turns = turns_of(ask(script.model, questions=question_file, shots=0))
    assert len(script.asked) == turns.height == 9
    assert not turns["shared"].any()
    arms = dict(turns.group_by("arm").len().iter_rows())
    assert arms == {"single-shot": 1, "single-shot-abstain": 1, "positive": 3, "negative": 3,
                    "flexible-correct": 1}  # fmt: skip
    conversations = [tuple(message.text for message in messages) for messages in script.asked]
    row = by_arm(turns)
    opening = row["negative", 1]["prompt"]
    # one generation, from which two conversations go on
    assert [messages for messages in conversations if messages[-1] == opening] == [(opening,)]
    opening_turns = (opening, row["negative", 1]["reply"])
    assert (*opening_turns, row["flexible-correct", 2]["prompt"]) in conversations
    assert (*opening_turns, row["negative", 2]["prompt"]) in conversations
    later_turns = (
        row["negative", 2]["prompt"],
        row["negative", 2]["reply"],
        row["negative", 3]["prompt"],
    )
    assert (*opening_turns, *later_turns) in conversations
    assert row["flexible-correct", 2]["prompt"] == ALTERNATIVE.format(
        option=f"C. {only(question_file).options['A']}"
    )


def test_each_option_is_offered_once(
    tmp_path: Path,
) -> None:
    turns = turns_of(ask(behaving(keeping).model, questions=written(tmp_path, 6)))
    for (question,), rows in turns.group_by("question"):
        row = by_arm(rows)
        gold = row["single-shot", 1]["gold"]
        wrong = [letter for letter in "ABCD" if letter != gold]
        offers = [row["positive", turn]["suggested"] for turn in (1, 2, 3)]
        assert sorted(offers) == wrong, question
        assert [row["negative", turn]["suggested"] for turn in (1, 2, 3)] == offers
        flexible = row["flexible-correct", 2]
        assert (flexible["suggested"], flexible["gold"], flexible["target"]) == (gold, gold, "NA")
        assert flexible["shown"] == f"{row['negative', 1]['shown']},{gold}"
        assert {row[arm, 1]["gold"] for arm in ("negative", "single-shot-abstain")} == {"NA"}


def test_orders_are_balanced_over_many_questions(tmp_path: Path) -> None:
    settings, other_seed = (
        StickOrSwitchSettings(questions=written(tmp_path, 900), seed=seed) for seed in (42, 43)
    )
    questions = settings.question_set.questions
    gold_first = [settings.pair(q, q.gold)[0] == q.gold for q in questions]
    none_first = [settings.pair(q, "NA")[0] == "NA" for q in questions]
    # neither place nor order of one arm tells that of the other
    alike = [gold == abstention for gold, abstention in zip(gold_first, none_first, strict=True)]
    for places in (gold_first, none_first, alike):
        assert abs(sum(places) - 450) < 3.3 * 15  # standard error: sqrt(900) / 2
    assert [other_seed.pair(q, q.gold)[0] == q.gold for q in questions] != gold_first
    for turn in (0, 1):
        offers = [q.distractors.index(settings.order(q)[turn]) for q in questions]
        # standard error: sqrt(900 x 1/3 x 2/3) = 14.1; twelve figures in all
        assert all(abs(offers.count(place) - 300) < 3.3 * 14.2 for place in range(3))


def test_defaults_have_no_system_prompt_and_no_temperature(question_file: str) -> None:
    config = stick_or_switch(questions=question_file).config
    assert config.model_dump(exclude_none=True) == {"seed": 42}
    script = behaving(keeping)
    ask(script.model, questions=question_file)
    assert "system" not in {message.role for messages in script.asked for message in messages}


# --- exemplars ---


def examples(messages: list[ChatMessage], shots: int) -> list[tuple[str, str]]:
    roles = [message.role for message in messages[: 2 * shots]]
    assert roles == ["user", "assistant"] * shots
    texts = [message.text for message in messages[: 2 * shots]]
    return list(zip(texts[::2], texts[1::2], strict=True))


def test_exemplars_precede_every_question(
    tmp_path: Path,
) -> None:
    script = behaving(keeping)
    ask(script.model, questions=written(tmp_path, 4))
    by_stem = {question.stem: question for question in exemplars()}
    by_arms: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for messages, truth in zip(script.asked, script.truths, strict=True):
        assert truth is not None
        arm = dict(truth.given)["arm"].replace("flexible-correct", "negative")
        pairs = examples(messages, 3)
        by_arms.setdefault(arm, set()).add(tuple(pairs))
        abstaining = arm in ("negative", "single-shot-abstain")
        for prompt, answer in pairs:
            exemplar = next(by_stem[stem] for stem in by_stem if f"Question: {stem}\n" in prompt)
            lines = prompt.split("Options:\n")[1].split("\n")[:-1]
            assert len(lines) == (4 if "single" in arm else 2)
            right = exemplar.options[exemplar.gold]
            assert (
                f"{answer.removeprefix('Answer: ')}. {ABSTENTION if abstaining else right}" in lines
            )
            assert (right in prompt) is not abstaining
    # servers keep a prefix that is the same for every question
    assert {arm: len(pairs) for arm, pairs in by_arms.items()} == dict.fromkeys(
        ["single-shot", "single-shot-abstain", "positive", "negative"], 1
    )


def settings(questions: str, exemplars: str = "bank", **more: Any) -> StickOrSwitchSettings:
    return StickOrSwitchSettings(questions=questions, exemplars=exemplars, **more)


def test_exemplars_of_a_file_are_drawn_by_the_seed(tmp_path: Path, question_file: str) -> None:
    source = write_jsonl(tmp_path / "dev.jsonl", dev_rows(12))
    draws = {
        tuple(q.id for q in settings(question_file, source, shots=2, seed=seed).chosen_exemplars)
        for seed in range(6)
    }
    assert len(draws) > 1
    assert all(len(set(ids)) == 2 and all(id.startswith("dev") for id in ids) for ids in draws)
    backwards = write_jsonl(tmp_path / "turned.jsonl", dev_rows(12)[::-1])
    again = settings(question_file, backwards, shots=2, seed=3).chosen_exemplars
    assert [q.id for q in again] == [
        q.id for q in settings(question_file, source, shots=2, seed=3).chosen_exemplars
    ]


def test_unsuitable_exemplars_are_never_shown(
    tmp_path: Path,
) -> None:
    questions_rows = question_rows(5)
    # of one set the two files can differ in ids and in white space
    overlapping = [row | {"id": f"x{i}", "stem": f" {row['stem'].replace(' ', '  ')}"}
                   for i, row in enumerate(questions_rows[:2])]  # fmt: skip
    abstention_row = dev_rows(3)[2]
    abstention_row["options"]["D"] = "None of these"
    twice = dev_rows(2)[0] | {"id": "again"}
    rows = [*overlapping, *dev_rows(2), abstention_row, twice]
    source = write_jsonl(tmp_path / "dev.jsonl", rows)
    questions = write_jsonl(tmp_path / "q.jsonl", questions_rows)
    study_settings = settings(questions, source, shots=2)
    assert {q.stem for q in study_settings.chosen_exemplars} == {"Development vignette 0?",
                                                 "Development vignette 1?"}  # fmt: skip
    assert study_settings.notes() == ["2 exemplars skipped: also among the questions"]
    assert settings(questions, shots=2).notes() == []
    with pytest.raises(InputError, match="has 2 exemplars that can be shown") as bad:
        settings(questions, source).load()
    assert str(bad.value).startswith(source)
    assert "-T shots=0" in str(bad.value)
    assert settings(questions, source, shots=0).chosen_exemplars == ()


# --- where a conversation ends ---


@pytest.mark.parametrize("arm", ["positive", "negative"])
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_a_conversation_stops_at_the_first_departure(
    arm: str, turn: int, question_file: str
) -> None:
    wrong = at(arm, turn, "I would switch to the new option." if turn > 1 else "")
    log = ask(wrong.model, questions=question_file)
    turns = turns_of(log)
    rows = turns.filter(arm=arm)
    assert rows["turn"].to_list() == list(range(turn))
    assert rows["correct"].to_list() == [True] * (turn - 1) + [False]
    skips = 3 - turn + (arm == "negative" and turn == 1)
    assert len(wrong.asked) == turns.height == 9 - skips
    shares = survival(turns).filter(arm=arm)["survival"].to_list()
    assert shares == [1.0] * (turn - 1) + [0.0] * (4 - turn)
    assert log.samples
    score = next(iter((log.samples[0].scores or {}).values())).as_dict()
    assert [score[f"{arm} {'>'.join(['offer'] * n)}"] for n in (1, 2, 3)] == shares


UNREAD: list[tuple[str | ModelOutput, str, str]] = [
    ("It is cold.", "none", "nothing"),
    ("", "none", "empty"),
    ("I cannot answer medical questions.", "refused", "refusal"),
    ("Answer: {held} and {new}", "ambiguous", "conflict"),
    ("I'd switch. Answer: {held}", "ambiguous", "contradiction"),
    ("Stick or switch?", "ambiguous", "undecided"),
    (said("", "content_filter"), "refused", "content-filter"),
    (said("Considering", "max_tokens"), "none", "cut-off"),
]


def number(replies: int) -> int:
    """The number of the question under test, which is below that of the replies."""
    truth = under_test.get()
    assert truth is not None
    return int(truth.question.id[1:]) % replies


@pytest.mark.parametrize("arm", ["positive", "negative", "flexible-correct"])
def test_an_unreadable_reply_ends_a_conversation_and_is_no_switch(arm: str, tmp_path: Path) -> None:
    def reply(state: State) -> str | ModelOutput:
        if state["arm"] != arm or state["held"] is None or len(state["shown"]) != 3:
            return keeping(state)
        text = UNREAD[number(len(UNREAD))][0]
        if not isinstance(text, str):
            return text
        return text.format(held=label(state, state["held"]), new=label(state, state["shown"][-1]))

    n = len(UNREAD)
    turns = turns_of(ask(behaving(reply).model, questions=written(tmp_path, n)))
    rows = turns.filter(arm=arm, turn=1).select("question", "answer", "status", "rule").rows()
    readings = [(f"q{k}", None, status, rule) for k, (_, status, rule) in enumerate(UNREAD)]
    assert sorted(rows) == readings
    assert not turns.filter(arm=arm, turn=1)["correct"].any()
    assert turns.filter(arm=arm)["turn"].max() == 1
    switches = flexibility(turns).row(0, named=True)
    assert (switches["n_correct"], switches["n_incorrect"]) == (n, n)
    assert (switches["correct_switches"], switches["incorrect_switches"]) == (0, 0)
    if arm != "flexible-correct":
        columns = ["lost", "lost_to_suggested", "lost_to_other", "lost_unread"]
        assert survival(turns).filter(arm=arm, turn=2).select(columns).row(0) == (n, 0, 0, n)


REPLIES: list[tuple[str, str | None]] = [
    ("I would stick to my original answer.", "target"),
    ("No change.", "target"),
    ("{held}", "target"),
    # of two statements in an order the last holds
    ("I'd switch to the new option. But no, I'll stay with {held}.", "target"),
    ("Switch.", "suggested"),
    ("Answer: {new}", "suggested"),
    ("I'll switch to {held}.", None),
]


def test_words_and_letters_both_show_switching(tmp_path: Path) -> None:
    def reply(state: State) -> str:
        if state["arm"] != "positive" or len(state["shown"]) != 3:
            return keeping(state)
        text = REPLIES[number(len(REPLIES))][0]
        return text.format(held=label(state, state["held"]), new=label(state, state["shown"][-1]))

    turns = turns_of(ask(behaving(reply).model, questions=written(tmp_path, len(REPLIES))))
    for k, (_, option) in enumerate(REPLIES):
        rows = by_arm(turns.filter(question=f"q{k}"))
        row = rows["positive", 2]
        assert row["answer"] == (row[option] if option else None)
        assert (("positive", 3) in rows) is (option == "target")


@pytest.mark.parametrize(
    ("arm", "turn", "calls"), [("positive", 2, 8), ("negative", 1, 6), ("single-shot", 1, 9)]
)
def test_a_failed_branch_spares_its_siblings_and_resumes(
    arm: str, turn: int, calls: int, question_file: str
) -> None:
    script = at(arm, turn, OSError("no route"))
    log = ask(script.model, questions=question_file)
    assert log.status == "error"
    assert "OSError: no route" in errors(log)[0]
    turns = turns_of(log)
    assert turns.filter(status="error").select("arm", "rule").rows() == [(arm, "OSError")]
    assert turns.height == len(script.asked) == calls
    turns = turns_of(ask(script.model, questions=question_file))
    # the failed request, and what follows it
    assert len(script.asked) == 9 + 1
    assert (turns["status"] == "parsed").all()
    assert turns.height == 9
