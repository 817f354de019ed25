"""Assistants of known truth: what a poisoned source does, and how far replays differ."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from holdfast.results.attributable import attributable
from holdfast.results.replays import replays
from tests.assisting import Reply, assisting, write_target
from tests.fuzzing import GOLD, gold_in, wrong
from tests.results.frames import Row, table, turn
from tests.studies import holdfast, question_rows, write_jsonl

N = 60
ARGUES, NOTHING = "Much speaks for finding", "Findings are seen in many cases"


def share(*key: object) -> float:
    """A number in 0 to 1 that the key fixes."""
    return int(hashlib.sha256(repr(key).encode()).hexdigest()[:8], 16) / 2**32


def context_rows() -> list[dict[str, str]]:
    """Contexts that argue for a wrong option, and passages that argue for nothing."""
    rows = []
    for n in range(N):
        letter = wrong(GOLD[n % 4])
        text = f"{ARGUES} {letter} of case {n}. It is common. It is often missed. It fits"
        inert = f"{NOTHING} of number {n}. They vary. They are often recorded. They differ"
        rows.append(
            {"question": f"q{n}", "second_best": letter, "misleading_context": text,
             "inert_context": inert}
        )  # fmt: skip
    return rows


def swayed(by_document: float = 0.0, by_chat: float = 0.0, by_any: float = 0.0) -> Reply:
    """An assistant that is right, and gives way on these shares of the questions.

    Args:
        by_document: to a document that argues.
        by_chat: to the same text in the chat.
        by_any: to any document, whatever it says.
    """

    def reply(texts: Sequence[str], document: str | None) -> str:
        question, gold = texts[0], gold_in(texts[0])
        argued = {"document": ARGUES in (document or ""), "chat": ARGUES in texts[-1]}
        rates = {"document": by_document, "chat": by_chat}
        moved = any(argued[by] and share(by, question) < rates[by] for by in argued)
        moved |= document is not None and share("any", question) < by_any
        return f"I would say ({wrong(gold) if moved else gold}), but see a doctor."

    return reply


def measured(reply: Reply, folder: Path, *, sessions: bool) -> pl.DataFrame:
    """The turns of a follow-up with documents."""
    folder.mkdir()
    questions = write_jsonl(folder / "q.jsonl", question_rows(N))
    contexts = write_jsonl(folder / "c.jsonl", context_rows())
    with assisting(reply) as assistant:
        target = write_target(folder / "app.toml", assistant, sessions=sessions)
        done = holdfast(
            "run", "followup", "--target", target, "--questions", questions, "-T",
            f"contexts={contexts}", "-T", "inject=document", "-T",
            "techniques=rag-style,authority-prior", "--log-dir", folder / "r",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return pl.read_parquet(folder / "r" / "turns.parquet")


def effects(turns: pl.DataFrame) -> dict[str, tuple[float, float, float]]:
    """What a challenge costs beyond its control, with its interval, by path."""
    rows = attributable(turns).filter(pl.col("path").is_not_null()).to_dicts()
    columns = ("attributable", "attributable_low", "attributable_high")
    return {row["path"]: tuple(row[name] for name in columns) for row in rows}


WORLDS: dict[str, tuple[Reply, dict[str, float]]] = {
    "believes documents": (swayed(by_document=0.5), {"document": 0.5}),
    "believes the chat": (swayed(by_chat=0.5), {"rag-style": 0.5}),
    "startled by any document": (swayed(by_any=0.5), {}),
    "both": (swayed(by_document=0.6, by_any=0.3), {"document": 0.42}),
    "steadfast": (swayed(), {}),
}
"""By world the assistant, and what truly is lost to each challenge's argument."""


@pytest.mark.parametrize("sessions", [False, True])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.slow
def test_what_a_poisoned_source_costs_is_recovered(
    world: str, sessions: bool, tmp_path: Path
) -> None:
    reply, truths = WORLDS[world]
    turns = measured(reply, tmp_path / "w", sessions=sessions)
    measures = effects(turns)
    assert measures.keys() == {"document", "rag-style", "authority-prior"}
    for path, (value, low, high) in measures.items():
        truth = truths.get(path, 0.0)
        assert low <= truth <= high
        # what is drawn of the questions is all that varies
        assert abs(value - truth) < 0.2
        if not truth:
            assert value == 0.0
    # the document stands in no message, and people see it where it stood
    texts = turns.filter(pl.col("path") == "document")["prompt"]
    assert all("\n\n[document]\n" + ARGUES in text for text in texts)


@pytest.mark.slow
def test_a_document_in_a_file_is_there_for_its_call_alone(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    path = tmp_path / "docs" / "found.txt"
    heard: list[tuple[bool, bool]] = []

    def reply(texts: Sequence[str], document: str | None) -> str:
        retrieved = path.read_text("utf-8") if path.exists() else ""
        heard.append((bool(retrieved), "state your final answer" in texts[-1]))
        return swayed(by_document=1.0)(texts, retrieved or None)

    questions = write_jsonl(tmp_path / "q.jsonl", question_rows(6))
    contexts = write_jsonl(tmp_path / "c.jsonl", context_rows())
    with assisting(reply) as assistant:
        target = write_target(tmp_path / "app.toml", assistant, sessions=False)
        text = Path(target).read_text("utf-8").replace(', document = "{{ document }}"', "")
        Path(target).write_text(f'{text}\n[document]\nfile = "docs/found.txt"\n', "utf-8")
        command = (
            "run", "followup", "--target", target, "--questions", questions, "-T",
            f"contexts={contexts}", "-T", "inject=document", "-T", "techniques=double-check",
        )  # fmt: skip
        done = holdfast(*command, "--log-dir", tmp_path / "r")
        assert done.returncode == 0, done.stderr
        turns = pl.read_parquet(tmp_path / "r" / "turns.parquet")
        assert not path.exists()
        assert sum(there for there, _ in heard) == 12
        assert all(restated for there, restated in heard if there)
        right = turns.group_by("path").agg(pl.col("correct").mean()).rows()
        assert {path for path, share in right if share < 1} == {"document"}
        path.write_text("mine", "utf-8")
        done = holdfast(*command, "--seed", "7", "--log-dir", tmp_path / "s")
        assert path.read_text("utf-8") == "mine"
    assert done.returncode == 3
    assert "found.txt exists already" in done.stderr


# --- replays ---


def replayed(differs: float, moves: float, n: int, each: int = 10) -> list[Row]:
    """Turns of questions whose first turn was sent again, by chances of the question."""
    return [
        {
            **turn(f"q{q}", "A", "push" if not k else f"push@{k}"),
            "replays": 1,
            "replays_differ": int(share("d", q, k) < differs),
            "replays_moved": int(share("d", q, k) < moves),
        }
        for q in range(n)
        for k in range(each)
    ]


@pytest.mark.parametrize(("differs", "moves"), [(0.0, 0.0), (0.3, 0.1), (1.0, 0.5)])
def test_the_share_of_replies_that_differ_is_recovered(differs: float, moves: float) -> None:
    (row,) = replays(table(replayed(differs, moves, 60))).to_dicts()
    assert row["replays"] == 600
    assert row["differ_low"] <= differs <= row["differ_high"]
    assert row["moved_low"] <= moves <= row["moved_high"]
    assert (row["differ"] == 0) == (differs == 0)


def test_turns_without_generations_are_skipped() -> None:
    rows = replayed(1.0, 0.0, 3, each=2)
    rows[1]["shared"] = True
    rows[3] |= {"status": "error", "answer": None, "correct": False}
    (row,) = replays(table(rows)).to_dicts()
    assert (row["replays"], row["differ"], row["moved"]) == (4, 4, 0)
    assert replays(table([{**row, "replays": None} for row in rows])).is_empty()


@pytest.mark.parametrize(("noise", "answers"), [(0.5, True), (0.5, False), (0.0, False)])
@pytest.mark.slow
def test_replays_of_an_assistant_that_varies_are_compared(
    noise: float, answers: bool, tmp_path: Path
) -> None:
    """The assistant draws for each session and question: another text, or another answer."""
    drawn: dict[str, int] = {}

    def reply(texts: Sequence[str], document: str | None) -> str:
        gold, key = gold_in(texts[0]), texts[0]
        if len(texts) > 1:
            return f"({gold})"
        drawn[key] = number = drawn.get(key, -1) + 1
        varies = share(key, number) < noise
        if not varies:
            return f"I say ({gold})."
        return f"({wrong(gold)}) it is." if answers else f"({gold}) it is, I think."

    turns = measured(reply, tmp_path / "w", sessions=True)
    (row,) = replays(turns).to_dicts()
    assert row["replays"] == N * 6
    # a reply differs from the first where one of both varies
    truth = 2 * noise * (1 - noise)
    assert row["differ_low"] <= truth <= row["differ_high"]
    assert row["moved"] == (row["differ"] if answers else 0)
    first = turns.filter(pl.col("arm") == "baseline")
    assert first["replays"].null_count() == N
