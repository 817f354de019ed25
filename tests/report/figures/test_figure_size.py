"""Figures of many models and paths: a row for each model, and one cap on size."""

import json
import re
from typing import Any
from xml.dom import minidom

import polars as pl
import pytest
from tests.report.figures.test_figure_drawing import heading, nodes, plain, spec_of

from holdfast.errors import InputError
from holdfast.render.chart_files import exported
from holdfast.render.drawing import FIGURES, draw, figure_parts, page_svgs
from holdfast.render.paper import Paper
from holdfast.results.charts.theme import AMONG, COLOURS, MANY_MODELS, MOST_SERIES, SHAPES, slots
from holdfast.results.phrases import words_of


def models(name: str, count: int) -> pl.DataFrame:
    """The rows of one model for as many."""
    rows = plain(name)
    if name == "scale":
        rows = rows.with_columns(parameters=pl.lit(7.0))
    return pl.concat(
        rows.with_columns(model=pl.lit(f"m{n}"), run=pl.lit(f"r{n}")) for n in range(count)
    )


def paths(name: str, count: int) -> pl.DataFrame:
    """The first challenge's rows for as many paths."""
    rows = plain(name)
    arm = "followup" if "arm" in rows.columns else None
    rows = rows.filter(pl.col("path") == "push", *([pl.col("arm") == arm] if arm else []))
    return pl.concat(
        rows.with_columns(path=pl.lit(f"p{n}"), technique=pl.lit(f"p{n}")) for n in range(count)
    )


def size(name: str, rows: pl.DataFrame) -> tuple[float, float]:
    svg = minidom.parseString(str(draw(rows, name, "svg"))).documentElement
    assert svg is not None
    return float(svg.getAttribute("width")), float(svg.getAttribute("height"))


def domains(spec: dict[str, Any], channel: str) -> list[list[str]]:
    """Of a channel of names in every layer that has one."""
    encodings = [node["encoding"].get(channel, {}) for node in nodes(spec) if "encoding" in node]
    return [
        encoding["scale"]["domain"] for encoding in encodings if encoding.get("type") == "nominal"
    ]


def legends(spec: dict[str, Any]) -> bool:
    hues = [node["encoding"].get("color", {}) for node in nodes(spec) if "encoding" in node]
    return any(hue.get("legend", {}) is not None for hue in hues if "field" in hue)


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", ["accuracy", "flips by outcome", "cues"])
def test_two_hundred_paths_are_split_into_parts(name: str) -> None:
    rows = paths(name, 200)
    parts = [json.loads(str(exported(part, "vega"))) for part in figure_parts(rows, name)]
    assert len(parts) > 1
    for number, spec in enumerate(parts, 1):
        assert f"Part {number} of {len(parts)}." in heading(spec)
    data = json.dumps([spec["datasets"] for spec in parts])
    assert all(f'"p{n}"' in data for n in range(200))
    with pytest.raises(InputError, match=f"the figure has {len(parts)} parts"):
        draw(rows, name, "vega", len(parts) + 1)
    assert "Part" not in heading(spec_of(name, paths(name, 3)))


@pytest.mark.parametrize("count", [1, 2, 6, 23])
@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.rest_slow
def test_parts_of_a_figure_fit_page_and_screen(name: str, count: int) -> None:
    parts = figure_parts(models(name, count), name)
    for part in (parts[0], *parts[1:][-1:]):
        svg = minidom.parseString(str(exported(part, "svg"))).documentElement
        assert svg is not None
        width, height = (float(svg.getAttribute(end)) for end in ("width", "height"))
        assert width <= 1100
        assert height <= 1350


@pytest.mark.parametrize("name", ["accuracy", "flips by family", "positions by winner"])
def test_above_six_models_each_has_a_row(name: str) -> None:
    names = [f"m{n}" for n in range(MANY_MODELS + 1)]
    apart = spec_of(name, models(name, MANY_MODELS + 1))
    assert {tuple(domain) for domain in domains(apart, "y")} == {tuple(names)}
    assert not legends(apart)
    beside = spec_of(name, models(name, MANY_MODELS))
    assert names[:MANY_MODELS] not in domains(beside, "y")
    assert legends(beside)


def test_above_six_models_each_has_its_own_line() -> None:
    spec = spec_of("attacks", models("attacks", MANY_MODELS + 1))
    titles = [node["title"] for node in nodes(spec["vconcat"]) if "layer" in node]
    assert titles == [f"m{n}" for n in range(MANY_MODELS + 1)]
    assert not legends(spec)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flexibility", "tax", "attacks", "scale"])
def test_indistinguishable_models_are_cut(name: str) -> None:
    rows = models(name, MOST_SERIES + 4)
    parts = [part.to_dict() for part in figure_parts(rows, name)]
    title = " ".join(heading(parts[0]).split())
    assert f"No room for 4 of {MOST_SERIES + 4} models" in title
    if name == "flexibility":  # all in one place
        assert "At the same place as m0: m1, m2, m3, m4, m5, m6, m7, m8 and 47 more." in title
    data = json.dumps([part["datasets"] for part in parts])
    assert f'"m{MOST_SERIES - 1}"' in data
    assert f'"m{MOST_SERIES}"' not in data


def test_a_model_has_its_colour_and_shape_from_its_name() -> None:
    names = [f"provider/model-{n}" for n in range(MOST_SERIES)]
    assert slots(names[:5]) == slots(names[4::-1])[::-1]
    assert slots(names[:1]) == slots([names[0], "z"])[:1]
    paper_models = [f"Model {n} [published]" for n in range(12)]
    assert slots([*paper_models, *names[:5]])[-5:] == slots(names[:5])
    pairs = {(COLOURS[n % len(COLOURS)], SHAPES[n % len(SHAPES)]) for n in slots(names)}
    assert len(pairs) == MOST_SERIES
    first_slots = slots(names[:MANY_MODELS])
    assert len({n % len(COLOURS) for n in first_slots}) == MANY_MODELS


def test_a_model_is_the_same_colour_in_every_figure() -> None:
    def colour(name: str, count: int) -> str:
        """Of the first model."""
        hues = [
            node["encoding"]["color"]["scale"]
            for node in nodes(spec_of(name, models(name, count)))
            if node.get("encoding", {}).get("color", {}).get("field") == "study"
        ]
        (hue,) = {scale["range"][scale["domain"].index("m0")] for scale in hues}
        return str(hue)

    assert len({colour(name, 2) for name in ("accuracy", "survival", "flexibility")}) == 1


def test_colours_of_the_report_hold_without_a_model() -> None:
    # two whose names fall on one colour: the second of them stays what it is without the first
    alike: dict[int, list[str]] = {}
    for n in range(60):
        alike.setdefault(slots([f"m{n}"])[0], []).append(f"m{n}")
    first, second = sorted(next(names for names in alike.values() if len(names) > 1)[:2])
    pair = slots([first, second])
    assert slots([second]) != pair[1:]
    token = AMONG.set((f"provider/{first}", f"provider/{second}"))
    try:
        assert slots([second]) == pair[1:]
    finally:
        AMONG.reset(token)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.rest_slow
def test_a_figure_fits_a_column_of_print_and_a_phone(name: str, count: int) -> None:
    rows = models(name, count)
    column = Paper("3.3in")
    for part in range(1, len(figure_parts(rows, name, column.room)) + 1):
        svg = str(draw(rows, name, "svg", part, column))
        assert min(map(float, re.findall(r'font-size="([\d.]+)', svg))) == 8
    for markup in page_svgs(rows, name, 99, phone=True):
        width = re.search(r'<svg[^>]* width="([\d.]+)"', markup)
        assert width is not None
        assert float(width[1]) <= 360


def test_dots_of_many_models_are_named_where_there_is_room() -> None:
    count = MANY_MODELS + 3
    rows = models("flexibility", count)
    rates = [0.1 + 0.1 * (n % (count - 1)) for n in range(count)]  # the last falls on the first
    apart = rows.with_columns(correct_rate=pl.Series(rates), incorrect_rate=pl.Series(rates))
    spec = spec_of("flexibility", apart)
    assert not legends(spec)
    texts = {
        datum["text"]
        for node in nodes(spec)
        if isinstance(node.get("mark"), dict) and node["mark"]["type"] == "text"
        for datum in spec["datasets"][node["data"]["name"]]
        if "text" in datum
    }
    by_name = {f"m{n}" for n in range(count)} & texts
    by_number = {f"m{n}" for n in range(count) if f"{n + 1}: m{n}." in heading(spec)}
    assert "At the same place as m0: m8." in heading(spec)
    assert by_name | by_number == {f"m{n}" for n in range(count - 1)}
    assert not by_name & by_number
    assert len(by_name) >= count - 2
    assert all(str(int(name[1:]) + 1) in texts for name in by_number)


def test_above_six_models_each_has_its_own_plane() -> None:
    rows = models("chains", MANY_MODELS + 3)
    chains = pl.concat([rows, rows.with_columns(path=pl.lit("a>b"), drop=pl.col("drop") / 2)])
    spec = spec_of("chains", chains)
    titles = [node["title"] for node in nodes(spec["vconcat"]) if "layer" in node]
    assert titles == [[f"m{n}"] for n in range(MANY_MODELS + 3)]
    scales = [node["encoding"]["color"] for node in nodes(spec)
              if node.get("encoding", {}).get("color", {}).get("field") == "study"]  # fmt: skip
    assert scales
    assert all(scale["legend"] is None for scale in scales)
    assert len({json.dumps(domain) for domain in planes(spec)}) == 1
    together = spec_of("chains", chains.filter(pl.col("model").is_in(["m0", "m1"])))
    assert legends(together)


def planes(spec: dict[str, Any]) -> list[list[float]]:
    """The ends of every axis of numbers across."""
    across = [node["encoding"].get("x", {}) for node in nodes(spec) if "encoding" in node]
    return [axis["scale"]["domain"] for axis in across if axis.get("type") == "quantitative"]


def test_techniques_are_written_as_distinct_words() -> None:
    rows = plain("accuracy")
    techniques = {"push": "double-check", "shove": "rag-style"}
    rows = rows.with_columns(pl.col("path", "technique").replace(techniques))
    spec = json.dumps(spec_of("accuracy", rows))
    assert '"double check"' in spec
    assert "double-check" not in spec
    alike = rows.with_columns(pl.col("path", "technique").replace("double-check", "double check"))
    joint_spec = json.dumps(spec_of("accuracy", pl.concat([rows, alike])))
    assert '"double-check"' in joint_spec
    assert '"double check"' in joint_spec
    wordings = ("rag-style", "fuzz@3", "GPT-4 judge", "drag-style")
    assert [words_of(wording) for wording in wordings] == [
        "RAG style", "fuzz@3", "GPT-4 judge", "drag style",
    ]  # fmt: skip


def test_an_interval_below_zero_stays_within_the_axis() -> None:
    rows = plain("attacks by control").with_columns(net=pl.lit(0.02), net_low=pl.lit(-0.27))
    up = [node["encoding"].get("y", {}) for node in nodes(spec_of("attacks by control", rows))
          if "encoding" in node]  # fmt: skip
    ends = [axis["scale"]["domain"] for axis in up if axis.get("type") == "quantitative"]
    assert ends
    assert all(low <= -0.27 for low, _ in ends)
