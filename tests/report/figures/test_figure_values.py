"""What each figure is drawn from: the table's own figures, each where it belongs."""

import itertools
import json
from typing import Any

import polars as pl
import pytest
from tests.results.attacking import drawn as attacks_drawn
from tests.results.frames import STUDY, Row, alone, table, turn
from tests.results.offering import flexible, held, single

from holdfast.errors import InputError
from holdfast.render.drawing import draw, figure_parts
from holdfast.results.charts.chart import chain_label
from holdfast.results.declaration import TABLES
from holdfast.results.published_figures import published

# the figures drawn of rows of Stick-or-Switch, those of what a model believed apart
OF_OFFERS = ("survival", "tax", "flexibility", "positions", "positions by winner")


@pytest.fixture(autouse=True)
def _few_questions_have_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The studies of these tests are small; what becomes of few is tested by itself."""
    monkeypatch.setattr("holdfast.results.charts.dots.FEWEST", 1)


def study(model: str = "m", dataset: str = "MedQA", run: str = "r1") -> list[Row]:
    rows = [
        single("q1", "A"), *held("q1", "AAA"), *held("q1", "NNN", "negative"),
        single("q1", "N", "single-shot-abstain"), flexible("q1", "A"),
        single("q2", "A"), *held("q2", "AC"), *held("q2", "NC", "negative"),
        single("q2", "B", "single-shot-abstain"), flexible("q2", "A"),
    ]  # fmt: skip
    return [row | {"model": model, "dataset": dataset, "run": run} for row in rows]


def marks(name: str, rows: pl.DataFrame, *more: str) -> list[dict[str, Any]]:
    """The values of the layer that each point of a figure is in, part by part and panel by panel.

    Args:
        name: of the figure.
        rows: of the table.
        more: kinds of marks beside those that show figures.
    """
    values: list[dict[str, Any]] = []
    for part in range(1, len(figure_parts(rows, name)) + 1):
        spec = json.loads(draw(rows, name, "vega", part=part))
        layers(spec, spec["datasets"], values, {"point", "rect", "line", "rule", "area", *more})
    return values


def layers(node: Any, data: dict[str, Any], values: list[dict[str, Any]], kinds: set[str]) -> None:
    if isinstance(node, list):
        for part in node:
            layers(part, data, values, kinds)
    elif isinstance(node, dict):
        mark = node.get("mark")
        if isinstance(mark, dict) and mark["type"] in kinds:
            layer_values = data[node["data"]["name"]]
            values += [datum | {"mark": mark["type"]} for datum in layer_values]
        for key, part in node.items():
            if key != "datasets":
                layers(part, data, values, kinds)


def points(name: str, rows: pl.DataFrame, mark: str = "point") -> list[dict[str, Any]]:
    return [point for point in marks(name, rows) if point["mark"] == mark]


def titles(name: str, rows: pl.DataFrame) -> str:
    return str(draw(rows, name, "vega"))


def test_survival_and_hazard_are_drawn_by_turn() -> None:
    dots = points("survival", TABLES["survival"](table(study())))
    coordinates = [(dot["x"], dot["y"]) for dot in dots]
    survival = [(1, 1.0), (2, 0.5), (3, 0.5)]
    hazard = [(1, 0.0), (2, 0.5), (3, 0.0)]
    assert coordinates == [*survival, *survival, *hazard, *hazard]
    assert dots[1]["low"] == pytest.approx(0.0945, abs=1e-4)
    assert dots[1]["high"] == pytest.approx(0.9055, abs=1e-4)


def test_a_turn_without_a_figure_breaks_the_line() -> None:
    rows = TABLES["survival"](table(study())).filter(pl.col("arm") == "positive")
    with_gap = rows.with_columns(
        pl.when(pl.col("turn") != 2).then("survival").alias("survival"),
    )
    first, last = points("survival", with_gap, "line")
    assert (first["x"], last["x"]) == (1, 3)
    assert first["piece"] != last["piece"]
    assert first["lone"]
    assert last["lone"]
    assert len({line["piece"] for line in points("survival", rows, "line")}) == 1


def test_tax_has_both_ends_and_the_difference_in_points() -> None:
    rows = TABLES["tax"](table(study()))
    dots = points("tax", rows)
    by_figure = [(dot.get("series", "tax"), dot["y"]) for dot in dots]
    assert by_figure[:4] == [
        ("baseline: all at once, or the control", 1.0),
        ("isolated, the binary choice of turn 1", 1.0),
        ("end to end, all turns", 0.5),
        ("tax", -50.0),
    ]
    assert len([figure for figure in by_figure if figure[0] == "tax"]) == rows.height
    assert dots[3]["low"] == pytest.approx(100 * rows["low"][0])
    assert dots[3]["high"] == pytest.approx(100 * rows["high"][0])


def test_flexibility_has_a_diagonal() -> None:
    rows = TABLES["flexibility"](table(study()))
    (point,) = points("flexibility", rows)
    assert (point["x"], point["y"]) == (1.0, 0.5)
    assert point["x_high"] == rows["correct_high"][0]
    assert point["low"] == rows["incorrect_low"][0]
    assert [(end["x"], end["y"]) for end in points("flexibility", rows, "line")] == [(0, 0), (1, 1)]


def test_a_model_without_a_rate_is_named_and_not_drawn() -> None:
    rows = TABLES["flexibility"](table([*study(), *study("n")]))
    half = rows.with_columns(pl.when(pl.col("model") == "m").then("correct_rate"))
    assert {dot["study"] for dot in points("flexibility", half)} == {"m"}
    assert "not drawn: n." in titles("flexibility", half)


def test_beliefs_are_drawn_with_those_before_a_switch() -> None:
    rows = [
        row | {"p_gold": 0.7, "p_suggested": 0.2, "p_answer": 0.65}
        for row in study()
        if row["arm"] == "positive"
    ]
    frame = TABLES["beliefs"](table(rows))
    dots = points("beliefs", frame)
    beliefs = {(dot["series"], dot["x"]): dot["y"] for dot in dots}
    assert beliefs["target", 1] == pytest.approx(0.7)
    assert beliefs["option offered", 2] == pytest.approx(0.2)
    assert beliefs["held answer, before a switch", 2] == pytest.approx(0.65)
    assert beliefs["held answer, kept", 3] == pytest.approx(0.65)
    assert ("held answer, kept", 1) not in beliefs


def test_models_of_unknown_size_are_named_and_not_drawn() -> None:
    rows = TABLES["scale"](table([*study("x/qwen2.5-7b"), *study("mystery")]))
    dots = points("scale", rows)
    assert {dot["x"] for dot in dots} == {7.0}
    assert {dot["series"] for dot in dots} == {"Qwen 2.5"}
    assert "Size unknown, not drawn: mystery." in titles("scale", rows)
    with pytest.raises(InputError, match=r"no model of known size.*--models CSV"):
        draw(TABLES["scale"](table(study("mystery"))), "scale", "svg")


def test_scale_has_every_printed_measure() -> None:
    rows = published("scale", "stick-or-switch")
    dots = points("scale", rows)
    rows_with_size = rows.filter(pl.col("parameters").is_not_null())
    measures = ("single_shot", "conviction", "tax", "abstention", "abstention_tax", "correct_rate",
                "incorrect_rate")  # fmt: skip
    assert len(dots) == rows_with_size.height * len(measures)
    taxes = sorted(round(100 * value, 6) for value in rows_with_size["raw_tax"])
    assert set(taxes) <= {round(dot["y"], 6) for dot in dots}


def test_positions_and_winners_have_a_point_for_each_level() -> None:
    turns = table([*study(), *study("n")])
    rows = TABLES["positions"](turns)
    assert sorted(dot["y"] for dot in points("positions", rows)) == sorted(rows["share"])
    offers = TABLES["positions by winner"](turns)
    dots = points("positions by winner", offers)
    assert sorted((dot["x"], dot["y"]) for dot in dots) == sorted(
        offers.select("index", "share").rows()
    )


# follow-up


COMPOUNDING: dict[str, Any] = {
    "model": "m", "dataset": "d", "path": "a>b", "challenges": 2, "n": 60, "correct": 30,
    "accuracy": 0.5, "low": 0.4, "high": 0.6, "baseline": 0.8, "drop": 0.375,
    "expected_accuracy": 0.4, "expected_drop": 0.5, "smaller_drop": True, "worst_part": "a",
    "worst_accuracy": 0.6, "worst_drop": 0.25, "recovered": False, "unparsed": 0, "refused": 0,
    "run": "r",
}  # fmt: skip


def test_a_chain_is_drawn_at_its_expected_and_observed_drop() -> None:
    unknown = COMPOUNDING | {"path": "a>c", "expected_drop": None}
    rows = pl.DataFrame([COMPOUNDING, unknown], schema=TABLES["chains"](table([])).schema)
    (point,) = points("chains", rows)
    assert (point["x"], point["y"], point["size"]) == (0.5, 0.375, "2")
    assert "not drawn: 1 of 2 chains" in titles("chains", rows)


def test_the_share_of_chains_below_the_diagonal_is_named_as_the_papers() -> None:
    rows = pl.DataFrame(
        [
            {"model": "m", "dataset": "d", "path": f"a>{n}", "challenges": 2, "n": 20,
             "drop": drop, "expected_drop": 0.5, "run": "r"}
            for n, drop in enumerate((0.1, 0.4, 0.49, 0.6))
        ]
    )  # fmt: skip
    title = titles("chains", rows)
    assert "smaller drop than expected, 3 of 4 chains (75%)" in title
    # the table's word is for what a test says
    assert title.count("sub-additive") == 1
    assert "which the paper calls sub-additive" in title
    below, above = (
        [mark for mark in marks("chains", rows) if mark["mark"] == "area" and mark["to"] == end]
        for end in (0.0, 0.6)
    )
    assert [(corner["x"], corner["y"]) for corner in below] == [(0.0, 0.0), (0.6, 0.6)]
    assert len(above) == 2


def test_few_replies_have_an_open_mark_and_no_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.results.charts.dots.FEWEST", 7)
    few_turns = [
        row for n in range(6) for row in (turn(f"q{n}", "A"), turn(f"q{n}", "AB"[n % 2], "push"))
    ]
    rows = TABLES["accuracy"](table(few_turns))
    assert not points("accuracy", rows, "rule")
    assert {dot["few"] for dot in points("accuracy", rows)} == {"n = 6"}
    assert "fewer than 7, too few for an interval" in titles("accuracy", rows)
    more = TABLES["accuracy"](table([*few_turns, turn("q6", "A"), turn("q6", "A", "push")]))
    assert len(points("accuracy", more, "rule")) == len(points("accuracy", more)) > 0
    assert "too few" not in titles("accuracy", more)


def test_chains_are_wrapped_and_not_cut() -> None:
    path = ">".join(["authority-prior", "social-proof-prior", "misleading-context"])
    label = chain_label(path)
    assert label == "authority-prior > social-proof-prior >\nmisleading-context"
    assert label.replace("\n", " ").replace(" > ", ">") == path


def test_a_cell_is_a_chain_less_its_part() -> None:
    rows = pl.DataFrame(
        [
            ("m", "d", "a>b", "a", 9, 0.5, 0.2, 0.3, "r"),
            ("m", "d", "a>b", "b", 9, 0.5, 0.75, -0.25, "r"),
            ("m", "d", "a>b>c", "c", 9, 0.5, None, None, "r"),
        ],
        schema=TABLES["chains by part"](table([])).schema,
        orient="row",
    )
    cells = points("chains by part", rows, "rect")
    assert [(cell["row"], cell["column"], cell["text"]) for cell in cells] == [
        ("a > b", "a", "+30"),
        ("a > b", "b", "−25"),
    ]
    assert "empty: 1 of 3 pairs" in titles("chains by part", rows)


def test_chains_are_grouped_by_their_length() -> None:
    chains = [("a>b>c", "a", 0.1), ("a>b", "a", 0.3), ("a>b>c", "c", 0.2)]
    rows = pl.DataFrame(
        [("m", "d", path, part, 9, 0.5, 0.5, by, "r") for path, part, by in chains],
        schema=TABLES["chains by part"](table([])).schema,
        orient="row",
    )
    spec = titles("chains by part", rows)
    assert spec.index("m (d), 1-turn compounding") < spec.index("m (d), 2-turn compounding")
    cells = points("chains by part", rows, "rect")
    assert [cell["text"] for cell in cells] == ["+30", "+10", "+20"]


def test_families_are_drawn_by_their_mean_change_from_the_first_answers() -> None:
    def turns_of(name: str, family: str, right: int) -> list[Row]:
        return [
            turn(f"q{n}", "AB"[n >= right], name, technique=name, family=family) for n in range(8)
        ]

    turns = table([
        *(turn(f"q{n}", "A") for n in range(8)),
        *turns_of("one", "f", 6), *turns_of("two", "f", 2), *turns_of("three", "g", 8),
    ])  # fmt: skip
    rows = TABLES["accuracy by family"](turns)
    dots = {dot["place"]: dot for dot in points("accuracy by family", rows)}
    assert {place: dot["y"] for place, dot in dots.items()} == {"f": -0.5, "g": 0.0}
    assert dots["f"]["low"] < -0.5 < dots["f"]["high"]
    paper_dots = points("accuracy by family", published("accuracy by family"))
    claude = {
        dot["place"]: dot["y"] for dot in paper_dots if dot["study"].startswith("Claude Sonnet 4")
    }
    assert claude == {
        "told a wrong letter": -0.467,
        "shown more plausible wrong options": -0.122,
        "asked to reconsider": -0.072,
        "shown a misleading text": -0.5,
    }


def strata_row(system: str, change: float | None, **columns: Any) -> dict[str, Any]:
    return {
        "protocol": "followup", "model": "m", "dataset": "d", "arm": "family-average", "path": "",
        "technique": "", "family": "context", "system": system, "n": 16, "questions": 16,
        "accuracy": 0.5, "change_low": (change or 0) - 0.1, "change_high": (change or 0) + 0.1,
        "relative_change": change, "relative_to": "stratum", "run": "r", **columns,
    }  # fmt: skip


def strata_frame(*rows: dict[str, Any]) -> pl.DataFrame:
    schema = TABLES["accuracy by system"](table([])).schema
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def test_strata_keep_the_order_of_the_table_and_show_their_intervals() -> None:
    rows = strata_frame(
        strata_row("skin", 0.05),
        strata_row("heart", -0.4),
        strata_row("brain", -0.62, questions=20),
        strata_row("brain", None, model="other"),
        strata_row("skin", -0.1, arm="followup"),
        strata_row("eye", -0.5, questions=9),
    )
    spec = json.loads(draw(rows, "accuracy by system", "vega"))
    assert [(dot["place"], dot["y"]) for dot in points("accuracy by system", rows)] == [
        ("skin", 0.05), ("heart", -0.4), ("brain", -0.62),
    ]  # fmt: skip
    bounds = [
        (interval["low"], interval["high"])
        for interval in points("accuracy by system", rows, "rule")
        if "low" in interval
    ]
    assert bounds == [pytest.approx((x - 0.1, x + 0.1)) for x in (0.05, -0.4, -0.62)]
    assert "Not drawn: 1 of fewer than 10 questions." in spec["title"]["subtitle"]
    assert "n = 16 to 20 questions, by mark." in spec["title"]["subtitle"]


@pytest.mark.parametrize(("dataset", "levels"), [("medqa", [0.766]), ("bank", [])])
def test_human_accuracy_is_drawn_where_measured(dataset: str, levels: list[float]) -> None:
    turns = table(attacks_drawn(5, ("m1",))).with_columns(dataset=pl.lit(dataset))
    rows = TABLES["attacks"](turns)
    heights = [line["y"] for line in points("attacks", rows, "rule") if "low" not in line]
    assert heights == pytest.approx(levels)
    assert ("76.6%" in str(draw(rows, "attacks", "vega"))) == bool(levels)


def test_each_technique_has_a_line_of_lengths() -> None:
    rows = pl.DataFrame(
        [
            ("m", "d", name, "context", length, 60, 30, share, share - 0.1, share + 0.1, 0.9,
             -0.4, None, None, None, None, 0, 0, 0, None, None, None, "r")
            for name, share in (("rag", 0.3), ("edge", 0.5))
            for length in (1, 10, 20)
        ],
        schema=TABLES["accuracy by length"](table([])).schema,
        orient="row",
    )  # fmt: skip
    dots = points("accuracy by length", rows)
    assert [(dot["series"], dot["x"], dot["y"]) for dot in dots[:3]] == [
        ("rag", 1, 0.3), ("rag", 10, 0.3), ("rag", 20, 0.3),
    ]  # fmt: skip
    assert {dot["series"] for dot in dots} == {"rag", "edge"}
    rules = points("accuracy by length", rows, "rule")
    assert [rule["y"] for rule in rules if "low" not in rule] == [0.9]
    assert len([rule for rule in rules if "low" in rule]) == len(dots)


def test_two_runs_of_a_model_are_two_studies() -> None:
    rows = TABLES["survival"](table([*study(run="r1"), *study(run="r2")]))
    assert {dot["study"] for dot in points("survival", rows)} == {"m (run 1)", "m (run 2)"}


@pytest.mark.parametrize("name", OF_OFFERS)
def test_axes_are_the_same_in_every_panel(name: str) -> None:
    rows = TABLES[name](table([*study(dataset="d1"), *study(dataset="d2")]))
    chart = json.loads(draw(rows, name, "vega"))
    axes: dict[str, set[str]] = {}
    scales(chart, axes)
    assert axes
    assert all(len(domains) == 1 for domains in axes.values()), axes


def scales(node: Any, axes: dict[str, set[str]]) -> None:
    if isinstance(node, list):
        for part in node:
            scales(part, axes)
    elif isinstance(node, dict):
        for channel in ("x", "y"):
            encoding = node.get("encoding", {}).get(channel, {})
            if encoding.get("type") == "quantitative":
                axes.setdefault(encoding["title"], set()).add(str(encoding["scale"]["domain"]))
        for key, part in node.items():
            if key != "datasets":
                scales(part, axes)


def challenged(model: str = "m") -> list[Row]:
    """A study of follow-ups with every kind of answer, and one of biases."""
    rows = [*STUDY, turn("q1", "A", "recheck"), turn("q2", "C", "recheck")]
    rows += [alone("q1", "A"), alone("q1", "B", "push", suggested="B")]
    rows.append(alone("q1", "A", "warning>push", suggested="B"))
    return [row | {"model": model, "run": f"r {model}"} for row in rows]


def test_all_challenges_come_first_and_biases_last() -> None:
    rows = TABLES["flips by family"](table([*challenged(), *challenged("n")]))
    dots = points("flips by family", rows.reverse())
    assert [(dot["place"], dot["study"]) for dot in dots if dot["study"] == "m"] == [
        ("any challenge", "m"), ("asked to reconsider", "m"), ("told a wrong letter", "m"),
        ("any challenge", "m"), ("told a wrong letter", "m"),
    ]  # fmt: skip
    shares = [dot["y"] for dot in points("flips by family", rows) if dot["study"] == "m"]
    assert shares == pytest.approx([2 / 6, 1 / 4, 1 / 2, 0, 0])
    over_all = rows.filter(pl.col("family").is_null(), protocol="followup", model="m")
    first = points("flips by family", rows)[0]
    assert (first["low"], first["high"]) == (over_all["low"][0], over_all["high"][0])
    assert first["text"] == "33%"


def test_a_family_named_like_the_total_stays_apart() -> None:
    rows = TABLES["flips by family"](
        table([turn("q1", "A"), turn("q1", "A", "push", family="any challenge")])
    )
    assert [dot["place"] for dot in points("flips by family", rows)] == ["any challenge"] * 2


def test_flow_bars_have_the_height_of_their_shares() -> None:
    rows = TABLES["flips by outcome"](table(challenged())).filter(path="push", protocol="followup")
    bars = points("flips by outcome", rows, "rect")
    left, right = ([bar for bar in bars if bar["x"] == x] for x in sorted({b["x"] for b in bars}))
    whole = sum(bar["to"] - bar["y"] for bar in left)
    # first answers: 4 right, 2 wrong, 1 unread; then 2 right, 2 pushed, 1 other, 2 unread
    for side, numbers in ((left, [4, 2, 1]), (right, [2, 2, 1, 2])):
        heights = [7 * (bar["to"] - bar["y"]) / whole for bar in side]
        assert heights == pytest.approx(numbers, abs=0.01)
    bands = points("flips by outcome", rows, "area")
    pieces = list(dict.fromkeys(band["piece"] for band in bands))
    assert len(pieces) == rows.filter(pl.col("n") > 0).height == 7
    for piece in pieces:
        outline = [band for band in bands if band["piece"] == piece]
        assert outline[0]["x"] == left[0]["end"]
        assert outline[-1]["x"] == right[0]["x"]
        thick = {round(band["to"] - band["y"], 1) for band in outline}
        assert len(thick) == 1
        for end, side in ((outline[0], left), (outline[-1], right)):
            assert any(b["y"] - 0.02 <= end["y"] and end["to"] <= b["to"] + 0.02 for b in side)
    kinds = [band["kind"] for band in bands[:: len(bands) // len(pieces)]]
    assert kinds == [
        "right, kept", "right, to the suggested option", "right, to another option",
        "right, to an unread reply", "wrong or unread, to right",
        "wrong or unread, not to right", "wrong or unread, not to right",
    ]  # fmt: skip


def test_flow_numbers_never_overlap() -> None:
    rows = [turn(f"q{n}", "A") for n in range(300)]
    rows += [turn(f"q{n}", "A", "push", suggested="B") for n in range(297)]
    rows += [turn(f"q{297 + n}", "BC"[n], "push", suggested="B") for n in range(2)]
    rows.append(turn("q299", None, "push", suggested="B"))
    texts = marks("flips by outcome", TABLES["flips by outcome"](table(rows)), "text")
    beside = [text for text in texts if text.get("side") == "left"]
    assert [text["text"] for text in beside] == ["297", "1", "1", "1"]
    steps = [b["y"] - a["y"] for a, b in itertools.pairwise(beside)]
    assert min(steps) >= 11


def test_biases_are_drawn_by_mitigation() -> None:
    dots = points("single-turn", TABLES["single-turn"](table(challenged())))
    shares = {(dot["place"], dot["series"]): dot["y"] for dot in dots}
    assert shares["plain question", "no mitigation"] == 1
    assert shares["push", "no mitigation"] == 0
    assert shares["push", "warning"] == 1
    assert shares["average of told a wrong letter", "warning"] == 1


def test_p_values_fall_in_bins_of_a_twentieth() -> None:
    p_values = [0.05, 0.0500001, 0.15, 0.15, 1.0, None]
    rows = pl.DataFrame(
        {"p_value": p_values, "model": "m", "dataset": "d", "run": "r"},
        schema_overrides={"p_value": pl.Float64},
    )
    bars = points("permutation", rows, "rect")
    assert [(round(bar["to"], 9), bar["y"]) for bar in bars] == [
        (0.05, 1), (0.1, 1), (0.15, 2), (1.0, 1),
    ]  # fmt: skip
    even = points("permutation", rows, "rule")
    assert [line["y"] for line in even] == [0.25]
    assert "Without a p-value, not drawn: 1." in titles("permutation", rows)


def test_the_parts_of_a_bar_add_up_to_right_answers() -> None:
    after: list[tuple[str | None, str]] = [
        *[("A", "parsed")] * 10, *[("B", "parsed")] * 3, *[("C", "parsed")] * 2,
        (None, "ambiguous"), (None, "ambiguous"), (None, "refused"), (None, "none"), (None, "none"),
    ]  # fmt: skip
    rows: list[Row] = []
    for n, (answer, status) in enumerate(after):
        challenge_turn = turn(f"q{n}", answer, "push", suggested="B") | {"status": status}
        rows += [turn(f"q{n}", "A"), challenge_turn]
    bars = [bar for bar in marks("retention", TABLES["retention"](table(rows)), "bar")
             if "kind" in bar and bar["place"] == "any challenge"]  # fmt: skip
    parts = {bar["kind"]: round(20 * (bar["end"] - bar["start"])) for bar in bars}
    assert parts == {
        "kept": 10, "changed to the suggested option": 3, "changed to another option": 2,
        "undecided": 2, "refused": 1, "unreadable": 2,
    }  # fmt: skip
    ends = sorted((bar["start"], bar["end"]) for bar in bars)
    assert (ends[0][0], ends[-1][1]) == (0, pytest.approx(1))
    # each begins where the one before it ends
    assert [end for _, end in ends[:-1]] == pytest.approx([start for start, _ in ends[1:]])


def test_a_part_has_one_colour_in_every_panel() -> None:
    rows: list[Row] = []
    for model, status in (("hedges", "ambiguous"), ("refuses", "refused")):
        for n in range(4):
            columns = {"model": model, "run": model}
            after = turn(f"q{n}", "A" if n else None, "push")
            rows += [
                turn(f"q{n}", "A") | columns,
                after | columns | ({} if n else {"status": status}),
            ]
    spec = json.loads(draw(TABLES["retention"](table(rows)), "retention", "vega"))
    scales = [
        scale
        for panel in spec["vconcat"]
        for layer in panel["layer"]
        if (scale := layer["encoding"].get("color", {}).get("scale"))
    ]
    assert len(scales) == 2
    assert scales[0] == scales[1]
    assert scales[0]["domain"] == ["kept", "undecided", "refused"]
    assert len(set(scales[0]["range"])) == 3
