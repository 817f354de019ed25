"""Axes that panels share, and figures without a title."""

import json
from typing import Any

import pytest
from tests.results.frames import table
from tests.results.offering import drawn

from holdfast.render.drawing import draw, figure_parts
from holdfast.render.paper import Paper
from holdfast.results.declaration import TABLES


def parts_of(spec: Any) -> list[dict[str, Any]]:
    """Return every part of a specification that has an encoding."""
    if isinstance(spec, list):
        return [part for item in spec for part in parts_of(item)]
    if not isinstance(spec, dict):
        return []
    parts = [spec] if "encoding" in spec else []
    return parts + [part for value in spec.values() for part in parts_of(value)]


def test_hazards_are_drawn_below_the_share_of_their_turn() -> None:
    frame = TABLES["survival"](table(drawn(30, ("m1", "m2"))))
    (chart, *_) = figure_parts(frame, "survival")
    axes = [
        (part["encoding"]["x"]["scale"], "xOffset" in part["encoding"])
        for part in parts_of(chart.to_dict(validate=False))
        if part["encoding"].get("x", {}).get("title", "").startswith("Turn")
    ]
    assert {with_offset for _, with_offset in axes} == {True, False}
    assert len({json.dumps(scale["domain"]) for scale, _ in axes}) == 1
    # bands of these paddings have their middles where a scale of points has its points
    for scale, with_offset in axes:
        if with_offset:
            assert scale["paddingOuter"] == scale["paddingInner"] / 2


@pytest.mark.slow
@pytest.mark.parametrize(("model", "has_title"), [("m1", False), ("simulated/m1", True)])
def test_a_figure_without_a_title_has_no_blank_band(model: str, has_title: bool) -> None:
    rows = [row | {"model": model} for row in drawn(30, ("m1",))]
    frame = TABLES["survival"](table(rows))
    for width in (None, "7in"):
        spec = json.loads(draw(frame, "survival", "vega", paper=Paper(width=width, title=False)))
        assert ("title" in spec) is has_title
