"""Charts as files."""

import html
import json
import re
from typing import Any

import altair as alt
import vl_convert

from holdfast.errors import InputError

from .paper import SCREEN, Paper

_PIXELS_A_POINT = 2
_PRINT = 300
"""Pixels to an inch of a picture to be printed."""
_GROUP = re.compile(
    r'(<g class="[\w -]*") role="graphics-(?:object|symbol)" aria-roledescription="[\w -]*"'
)
"""A group as Vega describes it to those who listen, whatever is asked of it."""


def exported(chart: alt.VConcatChart, format: str) -> bytes | str:
    """The chart as ``svg``, ``pdf``, ``png`` or ``vega`` (the specification as JSON).

    Nothing is fetched: a specification that names an address could not be drawn.

    Raises:
        InputError: the picture cannot be made, which happens where it would be too large.
    """
    return picture(chart.to_dict(validate=False), format)


def width_of(spec: dict[str, Any]) -> float:
    """How wide a specification is drawn, in units of its own."""
    return float(str(picture(spec, "svg")).partition('width="')[2].partition('"')[0])


def as_element(chart: alt.VConcatChart) -> str:
    """The chart as an ``svg`` element of a page: no background, its words as its label.

    Raises:
        InputError: the picture cannot be made.
    """
    spec = chart.to_dict(validate=False)
    # what each mark is would be read out mark by mark; the label says what the picture shows
    spec["config"] |= {"background": None, "aria": False}
    title = spec["title"]
    text = title["text"] if isinstance(title["text"], str) else " ".join(title["text"])
    description = ". ".join([text, " ".join(title["subtitle"])])
    markup = str(picture(spec, "svg")).strip()
    markup = _GROUP.sub(r"\1", markup)
    name = html.escape(description)
    return markup.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)


def picture(spec: dict[str, Any], format: str, paper: Paper = SCREEN) -> bytes | str:
    """A specification as ``exported``, with the size that it is printed in."""
    is_for_people = format == "vega"  # by people
    text = json.dumps(
        spec, indent=1 if is_for_people else None, ensure_ascii=False, allow_nan=False
    )
    if is_for_people:
        return f"{text}\n"
    try:
        if format == "png" and paper.scale != 1:
            return vl_convert.vegalite_to_png(
                text, _version(), scale=_PIXELS_A_POINT, allowed_base_urls=[]
            )
        svg = vl_convert.vegalite_to_svg(text, _version(), allowed_base_urls=[]) + "\n"
        if format == "svg":
            return paper.sized(svg)
        # the converters take a length without a unit as one of the page's
        bare = re.sub(
            r'(width|height)="([\d.]+)(?:p[tx])?"',
            lambda match: f'{match[1]}="{float(match[2]) * paper.scale:g}"',
            paper.sized(svg),
            count=2,
        )
        if format == "png":
            return vl_convert.svg_to_png(bare, ppi=_PRINT)
        return vl_convert.svg_to_pdf(bare)
    except ValueError as error:
        # the lines after the second are the library's own trace
        reason = " ".join(str(error).splitlines()[:2])
        raise InputError(
            f"the figure cannot be drawn ({reason})",
            remedy="Draw fewer models at once",
        ) from error


def _version() -> str | None:
    """The version of Vega-Lite that the chart is written in, where it can be drawn."""
    version_wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return version_wanted if version_wanted in vl_convert.get_vegalite_versions() else None
