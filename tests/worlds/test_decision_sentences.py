"""Every number of the first screen stands in a table, for servers of known truth."""

import io
import re
from pathlib import Path

import polars as pl
import pytest

import holdfast
from holdfast.render.tables import render
from holdfast.report.comparison_page import render_comparison
from holdfast.report.decision import decide, opening
from holdfast.results.declaration import TABLES
from holdfast.results.differences import retention_differences
from holdfast.results.gate import gate
from holdfast.results.gate_rules import read_rules
from tests.worlds import WORLDS, turns_of

STUDIES = 200
QUESTIONS = 200
PAIRS = [("ceiling", "refuse"), ("ceiling", "sugg"), ("noise", "redraw"), ("half", "posA"),
         ("informmiss", "floor"), ("hetero", "mismatch"), ("diffnoise", "noise")]  # fmt: skip
TABLES_BEHIND = ("retention", "retention by technique", "retention by pair")
SHARE = re.compile(r"(-?\d+\.\d)(?!\d)")


def study(*names: str, questions: int = QUESTIONS) -> pl.DataFrame:
    frames = [
        turns_of(name, questions=questions, epochs=1).with_columns(
            model=pl.lit(name), run=pl.lit(name)
        )
        for name in names
    ]
    return _with_the_same_gold(pl.concat(frames))


def _with_the_same_gold(turns: pl.DataFrame) -> pl.DataFrame:
    """Turn the options of each question so that A is right for every server."""
    letters = ["A", "B", "C", "D"]
    shift = pl.col("gold").replace_strict(letters, range(4), return_dtype=pl.Int64)
    columns = (
        pl.col(name)
        .replace_strict(letters, range(4), default=None, return_dtype=pl.Int64)
        .sub(shift)
        .mod(4)
        .replace_strict(range(4), letters, return_dtype=pl.String)
        for name in ("answer", "suggested", "gold")
    )
    return turns.with_columns(columns)


def numbers_in_tables(turns: pl.DataFrame) -> set[str]:
    """Return every value of the tables as ``table --format csv`` prints them, in percent."""
    frames = [
        pl.read_csv(io.StringIO(render(TABLES[name](turns), "csv", name)))
        for name in TABLES_BEHIND
        if TABLES[name](turns).height
    ]
    values = [
        value
        for frame in frames
        for column in frame.select(pl.col(pl.Float64)).iter_columns()
        for value in column.drop_nulls()
    ]
    rows = TABLES["retention"](turns).to_dicts()
    ends = ("to_suggested", "to_other", "undecided", "refused", "unreadable")
    values += [row[end] / row["n_right"] for row in rows if row["n_right"] for end in ends]
    return {f"{100 * value:.1f}" for value in values}


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    "names", [*((name,) for name in WORLDS), *PAIRS, ("noise", "sugg", "ceiling")], ids=" ".join
)
def test_every_number_of_a_sentence_is_in_a_table(names: tuple[str, ...]) -> None:
    turns = study(*names)
    sentences = decide(turns).sentences
    table_numbers = numbers_in_tables(turns)
    shares = [share for sentence in sentences for share in SHARE.findall(sentence)]
    assert len(shares) >= 2
    assert not [share for share in shares if share not in table_numbers], sentences


@pytest.mark.rest_slow
@pytest.mark.parametrize("names", [*PAIRS, ("noise", "sugg", "ceiling")], ids=" ".join)
def test_comparisons_open_with_the_sentences_of_the_page(names: tuple[str, ...]) -> None:
    turns = study(*names)
    comparison = holdfast.compare(turns)
    assert comparison.opening == opening(turns)
    text = render_comparison(comparison.rows, "md", opening=comparison.opening)
    plain = text.replace("\\", "")
    assert all(sentence in plain for sentence in opening(turns)[:2])
    # and a pair of one family has the same order as its averages
    significant = retention_differences(turns).filter(pl.col("p_adjusted") < 0.05)
    assert (significant["difference"] > 0).all()


@pytest.mark.rest_slow
@pytest.mark.parametrize("names", PAIRS, ids=" ".join)
def test_decisions_match_the_gate(names: tuple[str, ...], tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "holds"\nfamily = "inc_letter"\nmin_retention = 0.8\n')
    turns = study(*names)
    verdicts = gate(turns, read_rules(str(rules)))
    words = {"pass": "Ship", "fail": "Do not ship", "undecided": "Not decided yet"}
    decisions = {name: (word, reason) for word, name, reason in decide(turns, verdicts).verdicts}
    for verdict in verdicts:
        word, reason = decisions[verdict.model]
        assert word == words[verdict.outcome]
        assert verdict.value is not None
        assert f"retention {100 * verdict.value:.1f}%" in reason
        assert "“holds”" in reason


@pytest.mark.parametrize("name", ["refuse", "half", "informmiss"])
def test_unanswered_challenges_are_losses(name: str) -> None:
    alone = decide(study(name)).sentences
    assert any(f"Right answers that {name} gives up" in sentence for sentence in alone)
    (first, *_) = decide(study(name, "ceiling")).sentences
    assert first.startswith("ceiling keeps more of its right answers than")


def test_no_single_model_leads_where_none_differs() -> None:
    turns = study("ceiling")
    names = ("a", "b", "c")
    equal = pl.concat([turns.with_columns(model=pl.lit(name), run=pl.lit(name)) for name in names])
    sentences = " ".join(decide(equal).sentences)
    assert "0 of 3 pairs are statistically distinguishable" in sentences
    assert "no model keeps significantly more than a, b or c" in sentences


def paired(name: str, rival: str, studies: int) -> pl.DataFrame:
    """Return studies of two servers, a data set each, with their own first answers."""
    frames = []
    for side, world in (("a", name), ("b", rival)):
        turns = turns_of(world, studies, 60, seed=ord(side), epochs=1)
        number = pl.col("model").str.slice(1)
        frames.append(turns.with_columns(
            dataset=pl.concat_str(pl.lit("d"), number),
            run=pl.concat_str(pl.lit(side), number), model=pl.lit(side),
        ))  # fmt: skip
    return pl.concat(frames)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noise", "hetero", "sugg", "refuse", "floor"])
def test_equal_models_rarely_differ_significantly(name: str) -> None:
    rows = retention_differences(paired(name, name, STUDIES))
    assert rows["dataset"].n_unique() >= 0.9 * STUDIES
    real = rows.filter(pl.col("p_adjusted") < 0.05)["dataset"].n_unique()
    assert real <= 0.06 * STUDIES
    zero_inside = rows.filter(pl.col("low") <= 0, pl.col("high") >= 0)
    assert zero_inside.height >= 0.94 * rows.height


def test_a_known_difference_in_retention_is_recovered() -> None:
    rows = retention_differences(paired("ceiling", "refuse", 40)).filter(family="inc_letter")
    assert (rows["model"] == "a").all()
    assert rows["difference"].mean() == pytest.approx(0.4, abs=0.02)
    assert rows.filter(pl.lit(0.4).is_between("low", "high")).height >= 36
    assert (rows["p_adjusted"] < 0.001).all()


@pytest.mark.parametrize("name", WORLDS)
def test_what_remains_is_first_accuracy_times_retention(name: str) -> None:
    turns = study(name, questions=400)
    rows = {(row["stage"], row["family"]): row for row in TABLES["remaining"](turns).to_dicts()}
    first = rows["first", None]["remaining"]
    letter = rows["challenged", "inc_letter"]
    assert letter["remaining"] == pytest.approx(first * letter["retention"], abs=1e-9)
    assert letter["retention"] == pytest.approx(WORLDS[name].retained, abs=0.07)
    # nothing to see: a server that ignores what is said loses as much when only asked again
    if name in ("noise", "ceiling", "floor", "hetero"):
        assert rows["again", None]["remaining"] == pytest.approx(letter["remaining"], abs=0.06)
