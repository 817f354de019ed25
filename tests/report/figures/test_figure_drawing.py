"""Every figure: drawn in every format, the same bytes each time, and texts that stay texts."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any
from xml.dom import minidom

import altair as alt
import polars as pl
import pytest
from jsonschema import ValidationError
from tests.results.attacking import drawn as attacks_drawn
from tests.results.frames import Row, alone, behind, control, of_further_protocols, table, turn
from tests.results.offering import drawn
from tests.results.pressing import in_words, under_pressure

from holdfast.errors import InputError
from holdfast.render.drawing import FIGURE_FORMATS, FIGURES, draw, page_svgs
from holdfast.results.charts.chart import WRAPPED_LABEL
from holdfast.results.declaration import TABLES
from holdfast.results.published_figures import compared_with_published

STRATA = {"step": "step1", "system": "heart", "specialty": "surgery", "subject": "anatomy"}
HOSTILE = (
    "<script>alert(1)</script>", "a.b[c]['d']{e} ${f}", "datum.x \\ \" '", "line\nbreak\u202e",
    "__proto__", "toString", "", "null", "12", "{{0}}", "m" * 3000,
)  # fmt: skip


def study(model: str = "vllm/Qwen2.5-7B-Instruct", dataset: str = "d1") -> list[Row]:
    """Something for every figure."""
    paths = ["", "push", "shove", "mislead", "push>shove", "push>shove>mislead", "mislead@1",
             "mislead@20"]  # fmt: skip
    rows = [
        make_row(f"q{n}", "ABC"[(n * (3 + place) // 7) % 3], path, suggested="B")
        for make_row, among in ((turn, paths), (alone, ["", "push", "shove"]))
        for place, path in enumerate(among)
        for n in range(12)
    ]
    rows.append(alone("q1", "B", "warning>push", suggested="B"))
    rows += [
        control(f"q{n}", "AC"[n % 2], path) for path in ("resample", "restate") for n in range(12)
    ]
    rows = [row | {"cue": row["question"] < "q5", "stance": "defer"} for row in rows]
    rows += [row for row in drawn(3, ("m1",)) if row["dataset"] == "d1"]
    rows += attacks_drawn(5, ("m1",))
    run = f"r {model} {dataset}"
    more = {**STRATA, "model": model, "dataset": dataset}
    others = [*under_pressure(0), *in_words(0), *of_further_protocols()]
    return [
        *(row | more | {"run": run} for row in rows),
        *(row | more | {"run": f"{run} {row['protocol']}"} for row in others),
    ]


def frame(name: str, *studies: list[Row]) -> pl.DataFrame:
    if not studies:
        return plain(name)
    rows = [row for rows in studies for row in rows]
    return TABLES[name](table(behind(rows) if name == "defences" else rows))


@cache
def plain(name: str) -> pl.DataFrame:
    return frame(name, study())


def nodes(spec: Any) -> Iterator[dict[str, Any]]:
    """Every object of a specification."""
    if isinstance(spec, dict):
        yield spec
        for part in spec.values():
            yield from nodes(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from nodes(part)


def spec_of(name: str, rows: pl.DataFrame) -> dict[str, Any]:
    text = draw(rows, name, "vega")
    spec: dict[str, Any] = json.loads(text)
    return spec


def values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [datum for part in spec["datasets"].values() for datum in part]


def heading(spec: dict[str, Any]) -> str:
    return "\n".join([spec["title"]["text"], *spec["title"]["subtitle"]])


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_comes_in_every_format(name: str) -> None:
    assert name in TABLES
    rows = frame(name)
    svg, png = draw(rows, name, "svg"), draw(rows, name, "png")
    assert isinstance(svg, str)
    root = minidom.parseString(svg).documentElement
    assert root is not None
    assert root.tagName == "svg"
    assert isinstance(png, bytes)
    assert png.startswith(b"\x89PNG")
    assert spec_of(name, rows)["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_same_rows_give_the_same_bytes(name: str) -> None:
    rows = frame(name, study(), study("simulated/steadfast"))
    formats = [format for format in FIGURE_FORMATS if format != "pdf"]
    for format in formats if name == "tax" else ("svg", "vega"):
        assert draw(rows, name, format) == draw(rows.clone(), name, format)


@pytest.mark.slow
def test_the_same_rows_give_the_same_pdf_objects() -> None:
    """The library of PDF numbers and orders the objects of a file anew each time."""

    def objects(rows: pl.DataFrame) -> list[bytes]:
        pdf = draw(rows, "tax", "pdf")
        assert isinstance(pdf, bytes)
        body = pdf.rpartition(b"\nxref")[0]
        lines = re.sub(rb"\d+ 0 (R|obj)", rb"\1", body).split(b"\n")
        return sorted(lines)

    rows = frame("tax", study(), study("simulated/steadfast"))
    assert objects(rows) == objects(rows.clone())
    assert objects(rows) != objects(frame("tax", study(), study("simulated/sycophant")))


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", FIGURES)
def test_specifications_are_valid_vega_lite(name: str) -> None:
    spec = spec_of(name, frame(name))
    assert alt.Chart.from_dict(spec, validate=True).to_dict(validate=True)["$schema"]
    with pytest.raises(ValidationError):
        alt.Chart.from_dict({**spec, "vconcat": [{"mark": "no such mark"}]}, validate=True)


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_title_says_what_is_counted_and_over_how_many(name: str) -> None:
    title = heading(spec_of(name, frame(name)))
    assert "n = " in title or "n and 95% intervals: tables" in title
    assert "95%" in title or "no interval" in title.lower()
    assert "SIMULATED" not in title


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.rest_slow
def test_simulated_models_are_named_in_title_and_subtitle(name: str) -> None:
    rows = frame(name, study(), study("simulated/gpt-4.1"))
    spec = spec_of(name, rows)
    assert "[SIMULATED]" in spec["title"]["text"]
    assert "SIMULATED, not a measurement of a model: simulated/gpt-4.1" in heading(spec)
    assert "[SIMULATED]" in str(draw(rows, name, "svg"))


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"scale"}))  # it draws no name of a model
def test_texts_are_never_interpreted(name: str) -> None:
    # a few data sets: panels take their time, whatever they are called
    datasets = [f"{text} {{.}}[d]" for text in HOSTILE[:3]]
    rows = frame(name, *(study(text, datasets[place % 3]) for place, text in enumerate(HOSTILE)))
    svg = str(draw(rows, name, "svg"))
    minidom.parseString(svg)
    assert "<script" not in svg
    spec = spec_of(name, rows)
    ours = {"study", "ink", "x", "y", "low", "high", "x_low", "x_high", "piece", "lone", "place",
            "to", "text", "series", "column", "row", "share", "size", "kind", "end",
            "side", "few", "start", "middle"}  # fmt: skip
    assert {key for datum in values(spec) for key in datum} <= ours
    for node in nodes({k: v for k, v in spec.items() if k != "datasets"}):
        assert not node.keys() & {"expr", "signal", "transform", "href", "url"}
        assert node.get("labelExpr") in (
            None,
            WRAPPED_LABEL,
        )  # ours, with nothing of the rows in it
        if isinstance(node.get("field"), str):
            assert node["field"] in ours


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_a_page_have_a_name_and_no_background(name: str) -> None:
    rows = frame(name, study(), study("simulated/<b>&\"'gpt"))
    (markup, *_) = page_svgs(rows, name, 1)
    assert markup.startswith("<svg ")
    assert page_svgs(rows.clone(), name, 1) == [markup]
    root = minidom.parseString(markup).documentElement
    assert root is not None
    assert root.getAttribute("role") == "img"
    spec = spec_of(name, rows)
    assert root.getAttribute("aria-label").startswith(spec["title"]["text"])
    for line in spec["title"]["subtitle"]:
        assert line in root.getAttribute("aria-label")
    if name != "scale":
        assert "<b>&\"'gpt" in root.getAttribute("aria-label")
    assert not [part for part in root.childNodes if part.nodeName == "rect"]
    assert "aria-roledescription" not in markup
    # what has no name of its own cannot be taken for a part of another figure of the page
    assert " id=" not in markup
    assert "<rect width" in str(draw(rows, name, "svg"))


def test_long_names_stay_apart() -> None:
    longer = [f"provider/{'very-' * 20}{end}/{'long-' * 20}model" for end in ("one", "two")]
    spec = spec_of("survival", frame("survival", *map(study, longer)))
    names = {datum["study"] for datum in values(spec) if "study" in datum}
    assert len(names) == 2
    assert max(map(len, names)) < 60


@pytest.mark.parametrize("name", FIGURES)
def test_no_rows_end_in_one_line(name: str) -> None:
    with pytest.raises(InputError, match="nothing to draw") as error:
        draw(frame(name).clear(), name, "svg")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("hole", [None, float("nan")])
def test_rows_without_a_figure_are_an_error(name: str, hole: float | None) -> None:
    rows = frame(name).with_columns(pl.col(pl.Float64).fill_nan(None) * 0 + pl.lit(hole))
    with pytest.raises(InputError, match="nothing to draw"):
        draw(rows, name, "svg")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (name, source)
        for name in ("accuracy", "accuracy by step", "accuracy by system")
        for source in ("paper",)
    ]
    + [(name, "stick-or-switch") for name in ("tax", "flexibility", "scale")],
)
def test_published_figures_are_lighter_and_have_no_intervals(name: str, source: str) -> None:
    our_rows = frame(name, study(dataset="medqa"))
    rows, _ = compared_with_published(our_rows, name, source)
    spec = spec_of(name, rows)
    marks = [mark for mark in values(spec) if "ink" in mark]
    lighter = [mark for mark in marks if mark["ink"] < 1]
    assert lighter
    assert not any("low" in mark or "x_low" in mark for mark in lighter)
    assert len([mark for mark in marks if mark["ink"] == 1]) >= 1
    assert "[published], drawn " in heading(spec)
    assert "et al. 20" in heading(spec)
    # the paper's MedQA stands in the panel of ours, and ours is not renamed for it
    text = json.dumps(spec)
    if name in ("accuracy", "tax", "flexibility", "scale"):
        assert "medqa" in text
    assert "MedQA" not in text.replace("BiasMedQA", "")


def test_a_table_without_a_figure_names_those_with_one() -> None:
    with pytest.raises(InputError, match="table 'flips' has no figure") as error:
        draw(frame("flips"), "flips", "svg")
    assert "survival" in str(error.value)
    with pytest.raises(InputError, match="Did you mean 'svg'"):
        draw(frame("survival"), "survival", "svgz")


def test_the_chart_library_is_loaded_only_to_draw() -> None:
    code = "import sys, holdfast.report; assert not {'altair', 'vl_convert'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
