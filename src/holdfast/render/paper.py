"""Print settings of figures: width, font size, title and labels for ids."""

import csv
import io
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from math import ceil
from typing import Any

import polars as pl

from holdfast.errors import InputError, unknown
from holdfast.files import named_path, text_of, toml_in
from holdfast.results.grid import short_names
from holdfast.results.phrases import PHRASES, words_of
from holdfast.results.runs import is_imported, is_simulated

Spec = dict[str, Any]

_POINTS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4}
_PIXELS_A_POINT = 96 / 72
_WIDTH = re.compile(r"(\d+(?:\.\d+)?) ?(in|cm|mm|px)")
_TYPE = 8.0
"""Default font size in points if only a width in in, cm or mm is given."""
_DRAWN_SIZE, _PADDING = 11, 4
"""Font size on a screen, and padding around a printed figure."""
_SMALLEST, _LARGEST = 4, 48
"""Range of font sizes in points."""
_PANEL, _WIDEST = 60, 2.0
"""Minimum width of a panel, and maximum factor by which a panel is widened."""
_LETTERS = 1.75
"""Letters per pixel, multiplied by the font size."""
_IDS = ("model", "technique", "family", "path", "challenge", "part", "mitigation", "arm", "dataset",
        "protocol", "axis", "depth")  # fmt: skip


@dataclass(frozen=True)
class Paper:
    """Print settings of a figure.

    Attributes:
        width: width of the picture, such as ``3.3in`` (also cm, mm, px).
        title: whether to draw title and subtitle.
        font_size: font size in points.
        labels: TOML or CSV file with labels for ids.
    """

    width: str | None = None
    title: bool = True
    font_size: float | None = None
    labels: str | None = None

    def __post_init__(self) -> None:
        """Check font size and width before anything is computed."""
        if self.font_size is not None and not _SMALLEST <= self.font_size <= _LARGEST:
            raise InputError(
                f"{self.font_size:g} points is not a legible font size",
                field="--font-size",
                remedy=f"Give {_SMALLEST} to {_LARGEST} points",
            )
        if self.width is not None and not 72 <= self._parse_width()[0] * self.scale <= 2880:
            raise InputError(
                f"'{self.width}' is not a width from 1in to 40in",
                field="--width",
                remedy="Give a number with a unit, such as 3.3in (also cm, mm, px)",
            )

    @property
    def asked(self) -> bool:
        """Whether any setting differs from the screen."""
        return self != SCREEN

    @property
    def scale(self) -> float:
        """Return points per drawing unit, which is a pixel unless the width is in in, cm or mm."""
        return 1 / _PIXELS_A_POINT if self._parse_width()[1] == "px" else 1.0

    @property
    def wide(self) -> float | None:
        """Return the width in drawing units, or None."""
        return self._parse_width()[0] if self.width else None

    @property
    def type(self) -> float | None:
        """Return the font size in drawing units, or None for the size on a screen."""
        if self.font_size is not None:
            return self.font_size / self.scale
        return _TYPE if self.wide is not None and self.scale == 1 else None

    @property
    def room(self) -> int | None:
        """Return the layout width in pixels at the font size of a screen, or None."""
        if self.wide is None:
            return None
        return int((self.wide - 2 * _PADDING) * _DRAWN_SIZE / (self.type or _DRAWN_SIZE))

    def _parse_width(self) -> tuple[float, str]:
        match = _WIDTH.fullmatch((self.width or "0px").strip().lower())
        if match is None:
            return 0.0, "px"
        return float(match[1]) * _POINTS.get(match[2], 1.0), match[2]

    def sized(self, svg: str) -> str:
        """Return the SVG with the width of the paper, and its height in the same unit."""
        if self.wide is None:
            return svg
        _, _, wide, high = map(float, svg.partition('viewBox="')[2].partition('"')[0].split())
        unit = "px" if self._parse_width()[1] == "px" else "pt"
        size = f'width="{self.wide:g}{unit}" height="{high:g}{unit}"'
        box = f'viewBox="{(wide - self.wide) / 2:g} 0 {self.wide:g} {high:g}"'
        return re.sub(
            r'width="[^"]*" height="[^"]*" viewBox="[^"]*"', f"{size} {box}", svg, count=1
        )

    def set(
        self,
        spec: Spec,
        frame: pl.DataFrame,
        turns: pl.DataFrame | None,
        measure: Callable[[Spec], float],
    ) -> Spec:
        """Return the specification of a figure with these print settings.

        Args:
            spec: Vega-Lite specification.
            frame: rows of the figure.
            turns: turns that the rows were computed from, for the known ids.
            measure: returns the width of a drawn specification.

        Raises:
            InputError: a label is for an unknown id, or the font does not fit the width.
        """
        spec = _apply_words(deepcopy(spec), frame, self._words(frame, turns))
        if not self.title:
            spec.pop("title", None)
            if warning := _warning(frame):  # an empty title would leave a blank band
                spec["title"] = {"text": warning}
        font_size = spec["config"]["axis"]["labelFontSize"]
        size: float = self.type or font_size
        _set_type(spec, size, size / font_size)
        return spec if self.wide is None else _fit(spec, self, size, size / font_size, measure)

    def _words(self, frame: pl.DataFrame, turns: pl.DataFrame | None) -> dict[str, str]:
        models = frame["model"].unique().to_list()
        short_names_by_id = {name: str(name).rpartition("/")[2] for name in models}
        # the provider stays in the label if two models share a name
        words = PHRASES | (
            short_names_by_id
            if len(set(short_names_by_id.values())) == len(short_names_by_id)
            else {}
        )
        ids = {item for rows in (frame, turns) if rows is not None for item in _ids(rows)}
        # words inside a longer label must not be replaced
        words |= {wording: wording for wording in map(words_of, ids) if " " in wording}
        if self.labels is None:
            return words
        labels_given = _load_labels(self.labels)
        for name in labels_given:
            if name not in ids | words.keys():
                raise unknown("id", name, ids | words.keys(), f"--labels {self.labels}")
        # figures already show techniques and families as words
        stands = {
            PHRASES.get(name, words_of(name)): wording for name, wording in labels_given.items()
        }
        return words | stands | labels_given


SCREEN = Paper()
"""Default settings, for a screen."""


def _load_labels(labels: str) -> dict[str, str]:
    """Load labels by id from a file."""
    text = text_of(named_path(labels), "Give a TOML or CSV file with ids and labels")
    if labels.lower().endswith(".csv"):
        lines = [line for line in csv.reader(io.StringIO(text)) if line]
        words_by_id: dict[str, Any] = {
            name: more[0] if len(more) == 1 else "" for name, *more in lines
        }
        words_by_id.pop("id", None)
    else:
        words_by_id = {}
        for name, value in toml_in(text, labels).items():
            words_by_id |= value if isinstance(value, dict) else {name: value}
    for name, value in words_by_id.items():
        if not isinstance(value, str) or not value.strip():
            raise InputError(
                f"'{name}' has no label",
                labels,
                remedy='Write id = "label" in TOML, or id,label in CSV',
            )
    names_taken: dict[str, str] = {}
    for name, value in words_by_id.items():
        if names_taken.setdefault(value, name) != name:
            raise InputError(
                f"'{names_taken[value]}' and '{name}' have the same label",
                labels,
                remedy="Give each id a different label",
            )
    return words_by_id


def _ids(rows: pl.DataFrame) -> Iterator[str]:
    for column in _IDS:
        for value in rows[column].unique() if column in rows.columns else ():
            if value is not None:
                yield from {str(value), *str(value).split(">")}


def _apply_words(spec: Spec, frame: pl.DataFrame, words: Mapping[str, str]) -> Spec:
    """Return the specification with labels for ids, only in visible text."""
    short = short_names(map(str, frame["model"]))
    words = {short.get(name, name): wording for name, wording in words.items()} | dict(words)
    # a label may continue on the next line
    names = "|".join(
        r"\s".join(map(re.escape, name.split(" "))) for name in sorted(words, key=len, reverse=True)
    )
    name_pattern = re.compile(rf"(?<![\w/-])(?:{names})(?![\w/-])")
    # the data, and every text that must match a value in the data
    text_fields = {"datasets", "domain", "sort", "title", "text", "values"}

    def reword(match: re.Match[str]) -> str:
        name = match[0].replace("\n", " ")
        return words[name] if words[name] != name else match[0]

    def rename(value: Any, within: bool) -> Any:
        if isinstance(value, str):
            return name_pattern.sub(reword, value) if within else value
        if isinstance(value, list | tuple):
            return [rename(item, within) for item in value]
        if isinstance(value, dict):
            return {
                name: item if name == "field" else rename(item, within or name in text_fields)
                for name, item in value.items()
            }
        return value

    renamed_spec: Spec = rename(spec, False)
    return renamed_spec


def _warning(frame: pl.DataFrame) -> str:
    """Return the mark that a figure needs even without its title, or an empty text."""
    names = list(dict.fromkeys(map(str, frame["model"])))
    short = short_names(names)
    simulated_names = [short[name] for name in names if is_simulated(name)]
    which_models = f": {', '.join(simulated_names)}" if len(simulated_names) < len(names) else ""
    warnings = [f"SIMULATED{which_models}"] if simulated_names else []
    warnings += ["IMPORTED"] if any(is_imported(str(run)) for run in frame["run"]) else []
    return "; ".join(warnings)


def _parts(spec: Any) -> Iterator[Spec]:
    """Yield every object of a specification, except its data."""
    for item in spec if isinstance(spec, list) else [spec]:
        if isinstance(item, dict):
            yield item
            for name, value in item.items():
                if name not in ("datasets", "data"):
                    yield from _parts(value)


def _set_type(spec: Spec, size: float, times: float) -> None:
    """Set the font sizes, none below the requested size."""
    for part in _parts(spec):
        for name, value in part.items():
            if name.endswith(("fontSize", "FontSize")) and isinstance(value, int | float):
                part[name] = round(max(size, value * times), 2)
    spec["config"]["text"] = {"fontSize": size}
    spec["config"]["header"] |= {"labelFontSize": size, "titleFontSize": size}


def _panels(spec: Any) -> Iterator[Spec]:
    return (part for part in _parts(spec) if "height" in part and "width" in part)


def _narrowest(panel: Spec, times: float) -> float:
    """Return the smallest scale of a panel. Panels with text cannot shrink below the text."""
    wide = panel["width"]
    words = any(
        part["mark"].get("type") == "text" and "dx" not in part["mark"]
        and "field" in part.get("encoding", {}).get("x", {})
        for part in _parts(panel) if isinstance(part.get("mark"), dict)
    )  # fmt: skip
    if words or isinstance(wide, dict):
        return times
    return min(times, _PANEL / float(wide))


def _stretch(spec: Spec, wider: float, times: float) -> Spec:
    """Scale the panels: the width by ``wider``, the height by ``times``."""
    stretched_spec = deepcopy(spec)
    for panel in _panels(stretched_spec):
        factor = max(wider, _narrowest(panel, times))
        wide = panel["width"]
        for part in _parts(panel):
            place = part.get("encoding", {}).get("x", {})
            if isinstance(wide, int | float) and place.get("value", 0) > wide:
                place["value"] += wide * (factor - 1)
        for name, by in (("width", factor), ("height", times)):
            value = panel[name]
            panel[name] = {"step": value["step"] * by} if isinstance(value, dict) else value * by
    return stretched_spec


def _fit(
    spec: Spec, paper: Paper, size: float, times: float, measure: Callable[[Spec], float]
) -> Spec:
    """Fit the specification to the width by narrowing panels, or stacking them if needed."""
    wide = paper.wide or 0
    heading = spec.pop("title", None)
    spec["config"]["padding"] = _PADDING
    for part in _parts({**spec, "config": None}):
        if isinstance(part.get("title"), str | list) and "height" in part:
            part["title"] = _wrap(part["title"], wide, size * 1.2)
    least_width = 0.0
    beside = max((part.get("columns", 1) for part in _parts(spec.get("vconcat"))), default=1)
    tries = [(columns, entries) for columns in range(beside, 0, -1) for entries in (3, 2, 1)]
    for columns, entries in tries:
        for part in _parts(spec.get("vconcat")):
            if "concat" in part:
                part["columns"] = columns
        spec["config"]["legend"]["columns"] = entries
        least_width = measure(_stretch(spec, 0, times))
        if least_width <= wide:
            break
    else:
        inches_needed = ceil(least_width * paper.scale / 7.2) / 10
        raise InputError(
            f"this font size and these labels need a width of {inches_needed:.1f}in or more",
            field="--width",
            remedy="Give a larger --width, a smaller --font-size or shorter --labels",
        )
    low, high, best = 0.0, times * _WIDEST, _stretch(spec, 0, times)
    for _ in range(7):
        middle = (low + high) / 2
        stretched_spec = _stretch(spec, middle, times)
        if measure(stretched_spec) <= wide:
            low, best = middle, stretched_spec
        else:
            high = middle
    if heading is None:
        return best
    text = heading["text"] if isinstance(heading["text"], str) else " ".join(heading["text"])
    lines = {"text": text, "subtitle": " ".join(heading.get("subtitle", ()))}
    for narrower in (1.0, 0.85, 0.7, 0.5):
        big = heading.get("fontSize", size * 1.2)
        best["title"] = heading | {
            "text": _wrap(lines["text"], wide * narrower, big * 1.1),
            "subtitle": _wrap(lines["subtitle"], wide * narrower, size),
        }
        if measure(best) <= wide:
            break
    return best


def _wrap(text: str | list[str], wide: float, size: float) -> list[str]:
    letters = max(8, int(wide * _LETTERS / size))
    lines = [text] if isinstance(text, str) else text
    return [part for line in lines for part in textwrap.wrap(line, letters)] or [""]
