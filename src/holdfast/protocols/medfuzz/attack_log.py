"""One attack, told from attempt to attempt."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from typing import Any

import polars as pl
from rich.console import Group
from rich.rule import Rule
from rich.text import Text

from holdfast.errors import InputError, counted, printable
from holdfast.results import is_simulated

from .significance import permutation

Piece = tuple[str, bool]
"""A run of text, and whether it was added."""

_LONGEST = 5_000
"""Words up to which additions are marked: comparing takes time with their square."""


def attack_story(
    turns: pl.DataFrame,
    question: str,
    replicate: int | None = None,
    model: str | None = None,
    dataset: str | None = None,
) -> dict[str, Any]:
    """One attack as it went.

    Args:
        turns: a turns table with texts.
        question: the question's id.
        replicate: which replicate; the first whose answer turned, else the first, unless given.
        model: the model under test, where the table has several.
        dataset: the question set, where several have a question of that id.

    Returns:
        ``model``, ``dataset``, ``question``, ``replicate``, ``gold``, ``first`` (prompt, answer,
        reply), ``attempts`` (number, tries that were refused with their reasons, and for a valid
        one the prompt in ``pieces`` with what was added, ``characteristics``, answer, reply,
        which characteristics are mentioned), ``turned_at`` and, where it was tested, ``test``
        with the figures of ``permutation``.

    Raises:
        InputError: the table has no such attack, or no texts.
    """
    own = turns.filter(pl.col("protocol") == "medfuzz", pl.col("question") == question)
    if own.is_empty():
        known = turns.filter(pl.col("protocol") == "medfuzz")["question"].unique(
            maintain_order=True
        )
        raise InputError(
            f"no attack on a question '{question}'",
            field="--id",
            remedy=f"Ids are such as {', '.join(known[:3])}" if len(known) else "Run medfuzz first",
        )
    own = _of_one(own, "model", model)
    own = _of_one(own, "dataset", dataset)
    turned = own.filter(
        pl.col("arm") == "attack", pl.col("answer").is_not_null(), ~pl.col("correct")
    )
    if replicate is None:
        replicate = (turned if turned.height else own)["epoch"].sort()[0]
    own = own.filter(pl.col("epoch") == replicate)
    if own.is_empty():
        raise InputError(
            f"no replicate {replicate} of '{question}'", field="--replicate", remedy="Leave it out"
        )
    if own["prompt"].null_count() == own.height:
        raise InputError(
            "has no texts", field="LOGDIR", remedy="Give the log dir, or run without --no-text"
        )
    return _story(own, _tested(turns, own))


def _story(own: pl.DataFrame, test: dict[str, Any] | None) -> dict[str, Any]:
    rows = own.to_dicts()
    first = next(row for row in rows if row["arm"] == "baseline")
    attempts: dict[int, dict[str, Any]] = {}
    for row in rows:
        if row["arm"] not in ("attacker", "attack"):
            continue
        number = int(row["path"].rpartition("@")[2])
        attempt = attempts.setdefault(number, {"number": number, "refused": []})
        if row["arm"] == "attacker":
            if row["status"] != "parsed":
                attempt["refused"].append(row["rule"])
            continue
        attempt |= {
            "pieces": marked(first["prompt"], row["prompt"]),
            "answer": row["answer"],
            "status": row["status"],
            "reply": row["reply"],
            **{
                name: json.loads(row[name]) if row[name] else None
                for name in ("characteristics", "mentioned", "mentioned_judged")
            },
        }
        attempts[number] = attempt
    in_order = [attempts[number] for number in sorted(attempts)]
    wrong = [a["number"] for a in in_order if a.get("answer") not in (None, first["gold"])]
    return {
        **{name: first[name] for name in ("model", "dataset", "question", "gold")},
        "replicate": first["epoch"],
        "first": {name: first[name] for name in ("prompt", "answer", "reply")},
        "attempts": in_order,
        "turned_at": wrong[0] if wrong else None,
        "test": test,
    }


_NOUNS = {"model": "model", "dataset": "question set"}


def _of_one(own: pl.DataFrame, column: str, chosen: str | None) -> pl.DataFrame:
    """The rows of one model, or of one question set."""
    known = own[column].unique(maintain_order=True).to_list()
    if chosen is None and len(known) == 1:
        return own
    if chosen not in known:
        several = f"{counted(len(known), _NOUNS[column])} were attacked on it"
        raise InputError(
            several if chosen is None else f"'{chosen}' was not attacked on it",
            field=f"--{column}",
            remedy=f"Choose one of {', '.join(known)}",
        )
    return own.filter(pl.col(column) == chosen)


def _tested(turns: pl.DataFrame, own: pl.DataFrame) -> dict[str, Any] | None:
    tested = permutation(turns).join(
        own.select("question", "epoch", "run").unique(), on=["question", "epoch", "run"]
    )
    return tested.row(0, named=True) if tested.height else None


def marked(before: str, after: str) -> list[Piece]:
    """The later text in pieces, with what was added to the earlier one."""
    old, new = (re.findall(r"\S+\s*|\s+", text) for text in (before, after))
    if len(old) + len(new) > _LONGEST:
        return [(after, False)]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        ("".join(new[start:end]), tag != "equal")
        for tag, _, _, start, end in matcher.get_opcodes()
        if end > start
    ]


def attack_view(story: dict[str, Any]) -> Group:
    """A story for the terminal; additions stand between ``[+`` and ``+]``."""
    title = f"{story['model']} on {story['dataset']}: {story['question']}, "
    title += f"replicate {story['replicate']}"
    if is_simulated(story["model"]):
        title += "  [SIMULATED]"
    parts: list[Any] = [
        Rule(Text(printable(title))),
        Text(f"Right answer: {story['gold']}. First answer: {story['first']['answer']}."),
        Text(_one_block(story["first"]["reply"]), style="dim"),
    ]
    for attempt in story["attempts"]:
        parts.append(Rule(Text(f"Attempt {attempt['number']}")))
        if attempt["refused"]:
            parts.append(Text(f"Modifications that were refused: {', '.join(attempt['refused'])}"))
        if "pieces" not in attempt:
            parts.append(Text("No valid modification: the attempt is invalid."))
            continue
        parts.append(_pieces(attempt["pieces"]))
        parts.append(Text(f"Answer: {attempt['answer'] or attempt['status']}", style="bold"))
        parts.append(Text(_one_block(attempt["reply"]), style="dim"))
        parts.extend(_mentions(attempt))
    parts.append(Rule())
    turned = story["turned_at"]
    parts.append(
        Text(f"The answer flipped at attempt {turned}." if turned else "The answer did not flip.")
    )
    if story["test"]:
        parts.append(Text(_test(story["test"])))
    return Group(*parts)


def _pieces(pieces: Sequence[Piece]) -> Text:
    text = Text()
    for piece, added in pieces:
        shown = printable(piece, lines=True)
        text.append(f"[+ {shown.strip()} +] " if added else shown, "bold" if added else "")
    return text


def _mentions(attempt: dict[str, Any]) -> list[Text]:
    judged = attempt["mentioned_judged"] or [None] * len(attempt["characteristics"] or [])
    said = {True: "mentioned", False: "not mentioned", None: "not judged"}
    return [
        Text(f"  added: {printable(added)} ({said[by_rule]} by rule, {said[by_judge]} by judge)")
        for added, by_rule, by_judge in zip(
            attempt["characteristics"] or [], attempt["mentioned"] or [], judged, strict=False
        )
    ]


def _test(test: dict[str, Any]) -> str:
    if test["p_value"] is None:
        return "Tested, without a p-value: see the table 'permutation'."
    return (
        f"p(correct) {test['p0']:.3f} before, {test['pa']:.3f} under the attack; "
        f"p = {test['b']}/{test['m']} = {test['p_value']:.3f}, "
        f"(b + 1)/(M + 1) = {test['p_plus_one']:.3f}"
    )


def _one_block(text: str) -> str:
    return printable(text, lines=True).strip()
