"""Export of charts to files."""

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
"""Pixels per inch of a printed picture."""
_GROUP = re.compile(
    r'(<g class="[\w -]*") role="graphics-(?:object|symbol)" aria-roledescription="[\w -]*"'
)
"""Group that Vega describes to screen readers even if descriptions are off."""


def exported(chart: alt.VConcatChart, format: str) -> bytes | str:
    """Export the chart as ``svg``, ``pdf``, ``png`` or ``vega`` (the specification as JSON).

    Network access is off, so a specification that names an address cannot be drawn.

    Raises:
        InputError: the picture cannot be drawn, for example because it would be too large.
    """
    return picture(chart.to_dict(validate=False), format)


def width_of(spec: dict[str, Any]) -> float:
    """Return the drawn width of a specification, in its own units."""
    return float(str(picture(spec, "svg")).partition('width="')[2].partition('"')[0])


def as_element(chart: alt.VConcatChart) -> str:
    """Export the chart as an ``svg`` element without background, labelled with its title.

    Raises:
        InputError: the picture cannot be drawn.
    """
    spec = chart.to_dict(validate=False)
    # screen readers would read every mark aloud, and the label already describes the picture
    spec["config"] |= {"background": None, "aria": False}
    title = spec["title"]
    text = title["text"] if isinstance(title["text"], str) else " ".join(title["text"])
    description = ". ".join([text, " ".join(title["subtitle"])])
    markup = str(picture(spec, "svg")).strip()
    markup = _GROUP.sub(r"\1", markup)
    name = html.escape(description)
    return markup.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)


def picture(spec: dict[str, Any], format: str, paper: Paper = SCREEN) -> bytes | str:
    """Export a specification as in ``exported``, with the print size of the paper."""
    is_for_people = format == "vega"
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
        # the converters need lengths without units
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
        # the lines after the second are a trace of the library
        reason = " ".join(str(error).splitlines()[:2])
        raise InputError(
            f"the figure cannot be drawn ({reason})",
            remedy="Draw fewer models in one figure",
        ) from error


def _version() -> str | None:
    """Return the Vega-Lite version of the chart, or None if the converter lacks it."""
    version_wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return version_wanted if version_wanted in vl_convert.get_vegalite_versions() else None
