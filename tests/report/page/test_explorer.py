"""The packing of conversations: nothing is lost, and what became of an answer is counted right."""

import base64
import json
import zlib
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.report.conversations import FLIPS, LINK_KEYS, conversations_link
from holdfast.report.explorer import OF_TURN, TURNED_GROUPS, Explorer, packed
from holdfast.results.flows import flips
from holdfast.results.turns import SCHEMA

Row = dict[str, Any]


def table(*rows: Row) -> pl.DataFrame:
    """A turns table; of each row only what differs from a right first answer is given."""
    plain = {
        "run": "run", "protocol": "followup", "protocol_version": 1, "model": "m", "dataset": "d",
        "seed": 1, "epoch": 1, "question": "q", "arm": "baseline", "path": "", "turn": 0,
        "technique": "", "family": "", "axis": "", "depth": "", "gold": "A", "answer": "A",
        "status": "parsed", "rule": "final-answer", "shared": False, "prompt": "?", "reply": "A",
        "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0,
    }  # fmt: skip
    full = [dict.fromkeys(SCHEMA) | plain | row for row in rows]
    for row in full:
        row["correct"] = row["status"] == "parsed" and row["answer"] == row["gold"]
    return pl.DataFrame(full, schema=SCHEMA, orient="row")


def challenge(path: str, answer: str | None = "A", **columns: Any) -> Row:
    steps = path.split(">")
    arm = "followup" if len(steps) == 1 else "compound"
    return {
        "arm": arm, "path": path, "turn": len(steps), "technique": steps[-1], "family": "f",
        "suggested": "B", "answer": answer, "prompt": f"to {path}", "reply": f"of {path}",
    } | columns  # fmt: skip


def inflated(text: str) -> Any:
    """What ``deflated`` packed."""
    return json.loads(zlib.decompress(base64.b64decode(text), -15))


def conversations(explorer: Explorer) -> list[Row]:
    """Every conversation of a pack: its columns, and its turns with their texts."""
    index = inflated(explorer.index)
    chunks = [inflated(chunk) for chunk in explorer.chunks]
    bounds = [*index["starts"], explorer.conversation_count]
    items = []
    for chunk, start, end in zip(chunks, bounds, bounds[1:], strict=False):
        assert len(chunk["conversations"]) == end - start
        for number, (rows, first, end_row) in enumerate(chunk["conversations"], start):
            study = {
                name: column["values"][column["codes"][number]]
                for name, column in index["columns"].items()
            }
            turns = [{name: column[at] for name, column in chunk["turns"].items()} for at in rows]
            for turn in turns:
                for name in ("prompt", "reply"):
                    turn[name] = None if turn[name] is None else chunk["texts"][turn[name]]
            study["turns"] = turns
            study["first"] = None if first is None else rows.index(first)
            study["named"] = rows.index(end_row)
            items.append(study)
    assert len(items) == explorer.conversation_count
    return items


def paths(explorer: Explorer) -> dict[str, list[str]]:
    """Of each conversation by path, the paths of its turns."""
    return {
        item["path"]: [turn["path"] for turn in item["turns"]] for item in conversations(explorer)
    }


def flip_of(*rows: Row) -> str:
    """What became of the answer in the last conversation."""
    return str(conversations(packed(table(*rows)))[-1]["flip"])


FAILURE: Row = {"answer": None, "status": "error", "reply": ""}
UNREAD: Row = {"answer": None, "status": "none"}


def test_a_path_has_its_first_answer_and_earlier_steps() -> None:
    explorer = packed(
        table({}, challenge("a"), challenge("b"), challenge("a>b"), challenge("a>b>c"))
    )
    assert paths(explorer) == {
        "": [""], "a": ["", "a"], "b": ["", "b"], "a>b": ["", "a", "a>b"],
        "a>b>c": ["", "a", "a>b", "a>b>c"],
    }  # fmt: skip


def test_steps_of_other_replicates_and_questions_are_excluded() -> None:
    rows = [{}, challenge("a"), challenge("a>b", epoch=2), challenge("a>b", question="p")]
    items = [
        [turn["path"] for turn in item["turns"]] for item in conversations(packed(table(*rows)))
    ]
    assert items == [[""], ["", "a"], ["a>b"], ["a>b"]]


def test_a_single_turn_follows_the_plain_question_alone() -> None:
    study: Row = {"protocol": "single-turn"}
    biases = [
        challenge(path, "B", arm="single-turn", turn=0, **study)
        for path in ("recency", "education>recency")
    ]
    items = conversations(packed(table(study, *biases)))
    assert [[turn["path"] for turn in item["turns"]] for item in items] == [
        [""], ["", "recency"], ["", "education>recency"],
    ]  # fmt: skip
    assert [item["flip"] for item in items] == ["single", "given-up-pushed", "given-up-pushed"]


def offers(arm: str, target: str, *answers: str, start: int = 0, gold: str = "A") -> list[Row]:
    return [
        {
            "protocol": "stick-or-switch", "arm": arm, "path": ">".join(["offer"] * (turn + 1)),
            "turn": turn, "technique": "offer", "suggested": "BCD"[turn], "target": target,
            "answer": answer, "gold": gold,
        }
        for turn, answer in enumerate(answers, start)
    ]  # fmt: skip


def test_an_arm_is_judged_by_its_target() -> None:
    arms = [
        *offers("positive", "A", "A", "A", "D"),
        *offers("negative", "NA", "NA", "C", gold="NA"),
    ]
    items = conversations(packed(table(*arms)))
    assert [(item["arm"], item["path"], item["flip"]) for item in items] == [
        ("positive", "offer>offer>offer", "given-up-pushed"),
        ("negative", "offer>offer", "given-up-pushed"),
    ]
    assert [(item["before"], item["after"]) for item in items] == [("A", "D"), ("NA", "C")]


@pytest.mark.parametrize(("answer", "flip"), [("A", "corrected"), ("NA", "stayed-wrong")])
def test_the_flexible_arm_begins_with_its_abstention(answer: str, flip: str) -> None:
    negative = offers("negative", "NA", "NA", "NA", gold="NA")
    flexible = offers("flexible-correct", "NA", answer, start=1)
    items = conversations(packed(table(*negative, *flexible)))
    assert [[turn["arm"] for turn in item["turns"]] for item in items] == [
        ["negative", "negative"], ["negative", "flexible-correct"],
    ]  # fmt: skip
    assert items[1]["flip"] == flip


def test_a_replicate_of_an_attack_goes_attempt_by_attempt() -> None:
    study: Row = {"protocol": "medfuzz", "suggested": None, "family": "medfuzz", "turn": 0}
    rows = [
        {"protocol": "medfuzz"},
        challenge("fuzz@1", arm="attack", **study),
        challenge("fuzz@2", "C", arm="attack", **study),
        *(challenge(f"fuzz@{k}", None, arm="attacker", **study) for k in (1, 2)),
        challenge("fuzz@2", None, arm="attacker", **study | {"turn": 1}),
    ]
    (items,) = conversations(packed(table(*rows)))
    assert [(turn["arm"], turn["path"]) for turn in items["turns"]] == [
        ("baseline", ""), ("attacker", "fuzz@1"), ("attack", "fuzz@1"), ("attacker", "fuzz@2"),
        ("attacker", "fuzz@2"), ("attack", "fuzz@2"),
    ]  # fmt: skip
    assert (items["path"], items["flip"], items["after"]) == ("fuzz@2", "given-up-other", "C")


def test_a_test_of_an_attack_goes_text_by_text() -> None:
    rows = [
        {"protocol": "medfuzz", "arm": arm, "path": path, "technique": path}
        for arm, path in (
            ("control", "control@10>order@1"), ("control", "control@2>order@1"),
            ("control-writer", "control@2"), ("attacked", "attacked>order@2"),
            ("attacked", "attacked>order@1"), ("original", "original>order@1"),
        )
    ]  # fmt: skip
    (items,) = conversations(packed(table(*rows)))
    assert [turn["path"] for turn in items["turns"]] == [
        "original>order@1", "attacked>order@1", "attacked>order@2", "control@2",
        "control@2>order@1", "control@10>order@1",
    ]  # fmt: skip
    assert (items["flip"], items["arm"]) == ("single", "attacked")


def test_paths_that_extend_each_other_are_one_conversation() -> None:
    study: Row = {"protocol": "imported"}
    rows = [
        study, challenge("a", **study), challenge("a>b", "B", arm="followup", **study),
        challenge("c", arm="other", **study), challenge("c", arm="other", **study | {"turn": 2}),
    ]  # fmt: skip
    items = conversations(packed(table(*rows)))
    assert [[(turn["arm"], turn["path"]) for turn in item["turns"]] for item in items] == [
        [("baseline", "")],
        [("baseline", ""), ("followup", "a"), ("followup", "a>b")],
        [("baseline", ""), ("other", "c"), ("other", "c")],
    ]
    assert [item["flip"] for item in items] == ["single", "given-up-pushed", "kept"]


@pytest.mark.parametrize(
    ("first", "then", "flip"),
    [
        ({}, {"answer": "A"}, "kept"),
        ({}, {"answer": "B"}, "given-up-pushed"),
        ({}, {"answer": "C"}, "given-up-other"),
        ({}, UNREAD, "given-up-unread"),
        ({}, {"answer": None, "status": "refused"}, "given-up-unread"),
        ({"answer": "C"}, {"answer": "A"}, "corrected"),
        ({"answer": "C"}, {"answer": "B"}, "stayed-wrong"),
        ({"answer": "C"}, UNREAD, "stayed-wrong"),
        (UNREAD, {"answer": "A"}, "unread-first"),
        ({}, FAILURE, "failed"),
        (FAILURE, {"answer": "A"}, "failed"),
    ],
)
def test_the_fate_of_the_first_answer_is_classified(first: Row, then: Row, flip: str) -> None:
    assert flip_of(first, challenge("a") | then) == flip


def test_incomparable_conversations_are_single() -> None:
    assert flip_of({}) == "single"
    assert flip_of(challenge("a")) == "single"
    assert flip_of(FAILURE) == "failed"
    assert list(FLIPS) == [
        "kept", "given-up-pushed", "given-up-other", "given-up-unread", "corrected", "stayed-wrong",
        "unread-first", "failed", "single",
    ]  # fmt: skip


ANSWERS = st.sampled_from(
    [("A", "parsed"), ("B", "parsed"), ("C", "parsed"), (None, "none"), (None, "error")]
)
TEXT = st.sampled_from([None, "", "same", "</script>\x00\u2028", "‮é😀"])
ARMS = {
    "followup": ("baseline", "followup", "compound"),
    "single-turn": ("baseline", "single-turn"),
    "stick-or-switch": ("single-shot", "positive", "negative", "flexible-correct"),
    "medfuzz": (
        "baseline",
        "attack",
        "attacker",
        "original",
        "attacked",
        "control",
        "control-writer",
    ),
    "imported": ("baseline", "followup", "x"),
}
PATHS = ("", "a", "a>b", "a>b>c", "b", "offer>offer", "fuzz@1", "fuzz@12", "control@3>order@1")


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    """Any table: arms and paths in disorder, turns missing or doubled."""
    rows = []
    for number in range(draw(st.integers(1, 14))):
        protocol = draw(st.sampled_from(list(ARMS)))
        answer, status = draw(ANSWERS)
        path = draw(st.sampled_from(PATHS))
        rows.append(
            {
                "protocol": protocol,
                "arm": draw(st.sampled_from(ARMS[protocol])),
                "path": path,
                "technique": path.split(">")[-1],
                "turn": draw(st.integers(0, 2)),
                "question": draw(st.sampled_from(["q", "p"])),
                "epoch": draw(st.integers(1, 2)),
                "suggested": draw(st.sampled_from([None, "B"])),
                "target": draw(st.sampled_from([None, "A", "NA"])),
                "answer": answer,
                "status": status,
                "rule": f"rule {number}",
                "prompt": draw(TEXT),
                "reply": draw(TEXT),
            }
        )
    return table(*rows)


@settings(max_examples=60, deadline=None)
@given(tables())
@pytest.mark.slow
def test_every_turn_of_a_table_can_be_read_back(turns: pl.DataFrame) -> None:
    explorer = packed(turns)
    # a rule for each row tells them apart
    texts = {turn["rule"]: turn for item in conversations(explorer) for turn in item["turns"]}
    rows = {row["rule"]: row for row in turns.iter_rows(named=True)}
    assert texts.keys() == rows.keys()
    for rule, turn in texts.items():
        assert turns["rule"][turn.pop("row")] == rule
        del turn["unit"]
        assert turn == {name: rows[rule][name] for name in (*OF_TURN, "prompt", "reply")}
    assert explorer.conversation_count == explorer.total
    for item in conversations(explorer):
        end_row = item["turns"][item["named"]]
        assert (item["arm"], item["path"]) == (end_row["arm"], end_row["path"])
        assert item["flip"] in FLIPS
        assert len({(row["rule"]) for row in item["turns"]}) == len(item["turns"])


@st.composite
def challenged(draw: st.DrawFn) -> pl.DataFrame:
    """Tables as the protocols write them: one first answer, each path once."""
    rows = []
    for protocol in ("followup", "single-turn"):
        for question in ("q1", "q2", "q3"):
            for path in ("", "a", "b"):
                answer, status = draw(ANSWERS)
                row = challenge(path) if path else {}
                study = {"protocol": protocol, "run": protocol, "question": question}
                texts = {"answer": answer, "status": status}
                rows.append(row | study | texts | {"suggested": "B" if path == "a" else None})
    return table(*rows)


@settings(max_examples=60, deadline=None)
@given(challenged())
@pytest.mark.slow
def test_outcomes_match_the_counts_of_flips(turns: pl.DataFrame) -> None:
    counts = [(item["run"], item["path"], item["flip"]) for item in conversations(packed(turns))]
    columns = {
        "right_to_suggested": "given-up-pushed",
        "right_to_other": "given-up-other",
        "right_to_unparsed": "given-up-unread",
    }
    rows = flips(turns).to_dicts()
    for column, flip in columns.items():
        items = {key: n for key in counts if key[2] == flip and (n := counts.count(key))}
        assert items == {
            (row["run"], row["path"], flip): row[column] for row in rows if row[column]
        }


def test_omitted_texts_are_null() -> None:
    for turns in (table({"prompt": None, "reply": None}), table({}).drop("prompt", "reply")):
        (items,) = conversations(packed(turns))
        assert [(turn["prompt"], turn["reply"]) for turn in items["turns"]] == [(None, None)]


def test_a_lazy_table_is_packed_the_same() -> None:
    for turns, limit in ((many(4), 100), (many(4), 7)):
        assert packed(turns.lazy(), limit) == packed(turns, limit)


def test_an_empty_table_is_an_empty_explorer() -> None:
    explorer = packed(table())
    assert explorer.conversation_count == explorer.total == 0
    assert (explorer.chunks, explorer.filters) == ((), ())


def test_a_text_is_packed_once_for_all_techniques() -> None:
    rows = [{"prompt": "the question"}, *(challenge(f"t{n}") for n in range(9))]
    (chunk,) = packed(table(*rows)).chunks
    assert inflated(chunk)["texts"].count("the question") == 1


def many(questions: int = 40) -> pl.DataFrame:
    rows = []
    for model in ("m1", "m2"):
        for number in range(questions):
            study = {"model": model, "run": model, "question": f"q{number}"}
            rows.append(study)
            for path in ("a", "b", "c"):
                given_up = path == "a" and number % 10 == 0
                rows.append(challenge(path, "B" if given_up else "A", **study))
    return table(*rows)


def test_turned_conversations_come_first_above_the_limit() -> None:
    explorer = packed(many(), limit=40)
    assert (explorer.conversation_count, explorer.total) == (40, 320)
    items = conversations(explorer)
    changes = [item for item in items if item["flip"] in TURNED_GROUPS]
    assert len(changes) == 8
    unchanged_items = [item for item in items if item["flip"] not in TURNED_GROUPS]
    strata = [(item["model"], item["technique"]) for item in unchanged_items]
    assert {strata.count(stratum) for stratum in set(strata)} == {4}
    assert len(set(strata)) == 8
    assert explorer == packed(many(), limit=40)


def test_long_conversations_count_by_their_turns() -> None:
    study: Row = {"protocol": "medfuzz", "arm": "control"}
    rows = [
        study | {"question": f"q{n}", "path": f"control@{k}>order@1"}
        for n in range(4)
        for k in range(60)
    ]
    assert packed(table(*rows), limit=12).conversation_count == 2


def test_filters_offer_existing_values() -> None:
    explorer = packed(many())
    filters = {item.key: item for item in explorer.filters}
    assert filters.keys() == {"model", "flip", "path", "family", "arm"}
    assert filters["path"].choices[0] == ("", "no challenge")
    assert [value for value, _ in filters["flip"].choices] == ["kept", "given-up-pushed", "single"]
    pair = packed(table({}, challenge("a", "B"), challenge("b", "C")))
    values = [value for item in pair.filters if item.key == "flip" for value, _ in item.choices]
    assert values == ["given-up", "given-up-pushed", "given-up-other", "single"]
    hostile = packed(table({"model": "a\x00\u202e"}, {"model": "b", "run": "r"}))
    assert ("a\x00\u202e", "a\\u0000\\u202e") in hostile.filters[0].choices
    assert inflated(hostile.index)["choices"]["model"] == ["a\x00\u202e", "b"]


def test_links_state_every_value_exactly() -> None:
    assert conversations_link() == "#conversations"
    link = conversations_link(flip="given-up", model="a/b c&d=é", system=None, path="x>y", arm="")
    assert link == "#conversations?model=a%2Fb%20c%26d%3D%C3%A9&arm=&path=x%3Ey&flip=given-up"
    with pytest.raises(ValueError, match="colour"):
        conversations_link(colour="red")
    assert len(set(LINK_KEYS)) == 17
