"""Charts as files."""

import json

import altair as alt
import vl_convert

from holdfast.errors import InputError

_PIXELS_A_POINT = 2


def exported(chart: alt.VConcatChart, format: str) -> bytes | str:
    """The chart as ``svg``, ``png`` or ``vega`` (the Vega-Lite specification as JSON).

    Nothing is fetched: a specification that names an address could not be drawn.

    Raises:
        InputError: the picture cannot be made, which happens where it would be too large.
    """
    spec = json.dumps(chart.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if format == "vega":
        return f"{spec}\n"
    try:
        if format == "png":
            return vl_convert.vegalite_to_png(
                spec, _version(), scale=_PIXELS_A_POINT, allowed_base_urls=[]
            )
        return vl_convert.vegalite_to_svg(spec, _version(), allowed_base_urls=[]) + "\n"
    except ValueError as error:
        # the lines after the second are the library's own trace
        reason = " ".join(str(error).splitlines()[:2])
        raise InputError(
            f"the figure cannot be drawn ({reason})",
            remedy="Draw fewer models at once",
        ) from error


def _version() -> str | None:
    """The version of Vega-Lite that the chart is written in, where it can be drawn."""
    wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return wanted if wanted in vl_convert.get_vegalite_versions() else None
