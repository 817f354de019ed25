"""A figure set for a page of print: a width, a size of type, no title, words for ids."""

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
from holdfast.results import is_imported, is_simulated
from holdfast.results.grid import short_names
from holdfast.results.phrases import PHRASES, words_of

Spec = dict[str, Any]

_POINTS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4}
_PIXELS_A_POINT = 96 / 72
_WIDTH = re.compile(r"(\d+(?:\.\d+)?) ?(in|cm|mm|px)")
_TYPE = 8.0
"""Points of the type where only a width is given, in a unit of print."""
_DRAWN, _PADDING = 11, 4
"""Of the type on a screen, and around a printed figure."""
_SMALLEST, _LARGEST = 4, 48
"""Points of type that can be asked for."""
_PANEL, _WIDEST = 60, 2.0
"""The narrowest panel, and how much wider than drawn a panel gets, type for type."""
_LETTERS = 1.75
"""Letters to a pixel, times the size of their type."""
_IDS = ("model", "technique", "family", "path", "challenge", "part", "mitigation", "arm", "dataset",
        "protocol", "axis", "depth")  # fmt: skip


@dataclass(frozen=True)
class Paper:
    """How a figure is printed.

    Attributes:
        width: of the picture, such as ``3.3in``; also in cm, mm and px.
        title: whether title and subtitle are drawn.
        font_size: of the type, in points.
        labels: TOML or CSV file of ids and the words that stand for them.
    """

    width: str | None = None
    title: bool = True
    font_size: float | None = None
    labels: str | None = None

    def __post_init__(self) -> None:
        """Check size and width, before anything is computed."""
        if self.font_size is not None and not _SMALLEST <= self.font_size <= _LARGEST:
            raise InputError(
                f"{self.font_size:g} points cannot be read or drawn",
                field="--font-size",
                remedy=f"Give {_SMALLEST} to {_LARGEST}",
            )
        if self.width is not None and not 72 <= self._measured()[0] * self.scale <= 2880:
            raise InputError(
                f"'{self.width}' is no width of a figure",
                field="--width",
                remedy="Give 1in to 40in, such as 3.3in; cm, mm and px do as well",
            )

    @property
    def asked(self) -> bool:
        """Whether anything is to be other than on a screen."""
        return self != SCREEN

    @property
    def scale(self) -> float:
        """Points to a unit of the drawing, which is a pixel where no unit of print is given."""
        return 1 / _PIXELS_A_POINT if self._measured()[1] == "px" else 1.0

    @property
    def wide(self) -> float | None:
        """Units of the drawing that its width has."""
        return self._measured()[0] if self.width else None

    @property
    def type(self) -> float | None:
        """Units of the drawing that its type has; as drawn on a screen where nothing is asked."""
        if self.font_size is not None:
            return self.font_size / self.scale
        return _TYPE if self.wide is not None and self.scale == 1 else None

    @property
    def room(self) -> int | None:
        """Pixels that a figure is laid out for, with type of the size that a screen has."""
        if self.wide is None:
            return None
        return int((self.wide - 2 * _PADDING) * _DRAWN / (self.type or _DRAWN))

    def _measured(self) -> tuple[float, str]:
        found = _WIDTH.fullmatch((self.width or "0px").strip().lower())
        if found is None:
            return 0.0, "px"
        return float(found[1]) * _POINTS.get(found[2], 1.0), found[2]

    def sized(self, svg: str) -> str:
        """The SVG with its width, and its height in the same unit."""
        if self.wide is None:
            return svg
        _, _, wide, high = map(float, svg.partition('viewBox="')[2].partition('"')[0].split())
        unit = "px" if self._measured()[1] == "px" else "pt"
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
        """The specification of a figure as it is printed.

        Args:
            spec: of Vega-Lite.
            frame: the rows that it was drawn from.
            turns: what they were computed from, for the ids that there are.
            measure: the width of a drawn specification.

        Raises:
            InputError: an id that is nowhere, or a width that the type does not fit.
        """
        spec = _named(deepcopy(spec), frame, self._words(frame, turns))
        if not self.title:
            spec["title"] = {"text": _warning(frame)}
        drawn = spec["config"]["axis"]["labelFontSize"]
        size: float = self.type or drawn
        _typed(spec, size, size / drawn)
        return spec if self.wide is None else _fitted(spec, self, size, size / drawn, measure)

    def _words(self, frame: pl.DataFrame, turns: pl.DataFrame | None) -> dict[str, str]:
        models = frame["model"].unique().to_list()
        own = {name: str(name).rpartition("/")[2] for name in models}
        # who serves a model is said where two are of one name
        words = PHRASES | (own if len(set(own.values())) == len(own) else {})
        known = {one for rows in (frame, turns) if rows is not None for one in _ids(rows)}
        # what else they are part of is another's name
        words |= {said: said for said in map(words_of, known) if " " in said}
        if self.labels is None:
            return words
        given = _read(self.labels)
        for name in given:
            if name not in known | words.keys():
                raise unknown("id", name, known | words.keys(), f"--labels {self.labels}")
        # techniques and families stand in words of their own already
        stands = {PHRASES.get(name, words_of(name)): said for name, said in given.items()}
        return words | stands | given


SCREEN = Paper()
"""Nothing asked for."""


def _read(labels: str) -> dict[str, str]:
    """Words by id, of a file."""
    text = text_of(named_path(labels), "Give a TOML or CSV file of ids and words")
    if labels.lower().endswith(".csv"):
        lines = [line for line in csv.reader(io.StringIO(text)) if line]
        found: dict[str, Any] = {name: more[0] if len(more) == 1 else "" for name, *more in lines}
        found.pop("id", None)
    else:
        found = {}
        for name, value in toml_in(text, labels).items():
            found |= value if isinstance(value, dict) else {name: value}
    for name, value in found.items():
        if not isinstance(value, str) or not value.strip():
            raise InputError(
                f"'{name}' has no words", labels, remedy='Write id = "words", in CSV id,words'
            )
    taken: dict[str, str] = {}
    for name, value in found.items():
        if taken.setdefault(value, name) != name:
            raise InputError(
                f"'{taken[value]}' and '{name}' have the same words",
                labels,
                remedy="Give each its own, or they cannot be told apart",
            )
    return found


def _ids(rows: pl.DataFrame) -> Iterator[str]:
    for column in _IDS:
        for value in rows[column].unique() if column in rows.columns else ():
            if value is not None:
                yield from {str(value), *str(value).split(">")}


def _named(spec: Spec, frame: pl.DataFrame, words: Mapping[str, str]) -> Spec:
    """The specification with words for ids, in what is shown and nowhere else."""
    short = short_names(map(str, frame["model"]))
    words = {short.get(name, name): said for name, said in words.items()} | dict(words)
    # a label may go on in the next line
    names = "|".join(
        r"\s".join(map(re.escape, name.split(" "))) for name in sorted(words, key=len, reverse=True)
    )
    one = re.compile(rf"(?<![\w/-])(?:{names})(?![\w/-])")
    # the data under names of our own, and every text that must be the same as one of them
    shown = {"datasets", "domain", "sort", "title", "text", "values"}

    def said(found: re.Match[str]) -> str:
        name = found[0].replace("\n", " ")
        return words[name] if words[name] != name else found[0]

    def renamed(value: Any, within: bool) -> Any:
        if isinstance(value, str):
            return one.sub(said, value) if within else value
        if isinstance(value, list | tuple):
            return [renamed(item, within) for item in value]
        if isinstance(value, dict):
            return {
                name: item if name == "field" else renamed(item, within or name in shown)
                for name, item in value.items()
            }
        return value

    found: Spec = renamed(spec, False)
    return found


def _warning(frame: pl.DataFrame) -> str:
    """What must stand on a picture even without its title; empty where nothing must."""
    names = list(dict.fromkeys(map(str, frame["model"])))
    short = short_names(names)
    simulated = [short[name] for name in names if is_simulated(name)]
    some = f": {', '.join(simulated)}" if len(simulated) < len(names) else ""
    said = [f"SIMULATED{some}"] if simulated else []
    said += ["IMPORTED"] if any(is_imported(str(run)) for run in frame["run"]) else []
    return "; ".join(said)


def _parts(spec: Any) -> Iterator[Spec]:
    """Every object of a specification, its data apart."""
    for item in spec if isinstance(spec, list) else [spec]:
        if isinstance(item, dict):
            yield item
            for name, value in item.items():
                if name not in ("datasets", "data"):
                    yield from _parts(value)


def _typed(spec: Spec, size: float, times: float) -> None:
    """Set the type; nothing is smaller than the size asked for."""
    for part in _parts(spec):
        for name, value in part.items():
            if name.endswith(("fontSize", "FontSize")) and isinstance(value, int | float):
                part[name] = round(max(size, value * times), 2)
    spec["config"]["text"] = {"fontSize": size}
    spec["config"]["header"] |= {"labelFontSize": size, "titleFontSize": size}


def _panels(spec: Any) -> Iterator[Spec]:
    return (part for part in _parts(spec) if "height" in part and "width" in part)


def _narrowest(panel: Spec, times: float) -> float:
    """How far a panel can be narrowed: one that holds words no further than these."""
    wide = panel["width"]
    words = any(
        part["mark"].get("type") == "text" and "dx" not in part["mark"]
        and "field" in part.get("encoding", {}).get("x", {})
        for part in _parts(panel) if isinstance(part.get("mark"), dict)
    )  # fmt: skip
    if words or isinstance(wide, dict):
        return times
    return min(times, _PANEL / float(wide))


def _stretched(spec: Spec, wider: float, times: float) -> Spec:
    """The panels so much wider, and as much higher as the type."""
    found = deepcopy(spec)
    for panel in _panels(found):
        factor = max(wider, _narrowest(panel, times))
        wide = panel["width"]
        for part in _parts(panel):
            place = part.get("encoding", {}).get("x", {})
            if isinstance(wide, int | float) and place.get("value", 0) > wide:
                place["value"] += wide * (factor - 1)
        for name, by in (("width", factor), ("height", times)):
            value = panel[name]
            panel[name] = {"step": value["step"] * by} if isinstance(value, dict) else value * by
    return found


def _fitted(
    spec: Spec, paper: Paper, size: float, times: float, measure: Callable[[Spec], float]
) -> Spec:
    """The specification as wide as asked for, its panels narrowed, below each other if need be."""
    wide = paper.wide or 0
    heading = spec.pop("title")
    spec["config"]["padding"] = _PADDING
    for part in _parts({**spec, "config": None}):
        if isinstance(part.get("title"), str | list) and "height" in part:
            part["title"] = _wrapped(part["title"], wide, size * 1.2)
    least = 0.0
    beside = max((part.get("columns", 1) for part in _parts(spec.get("vconcat"))), default=1)
    tries = [(columns, entries) for columns in range(beside, 0, -1) for entries in (3, 2, 1)]
    for columns, entries in tries:
        for part in _parts(spec.get("vconcat")):
            if "concat" in part:
                part["columns"] = columns
        spec["config"]["legend"]["columns"] = entries
        least = measure(_stretched(spec, 0, times))
        if least <= wide:
            break
    else:
        needed = ceil(least * paper.scale / 7.2) / 10
        raise InputError(
            f"with this type and these words the figure is {needed:.1f}in or wider",
            field="--width",
            remedy="Give a larger --width, a smaller --font-size or shorter --labels",
        )
    low, high, best = 0.0, times * _WIDEST, _stretched(spec, 0, times)
    for _ in range(7):
        middle = (low + high) / 2
        found = _stretched(spec, middle, times)
        if measure(found) <= wide:
            low, best = middle, found
        else:
            high = middle
    text = heading["text"] if isinstance(heading["text"], str) else " ".join(heading["text"])
    lines = {"text": text, "subtitle": " ".join(heading.get("subtitle", ()))}
    for narrower in (1.0, 0.85, 0.7, 0.5):
        big = heading.get("fontSize", size * 1.2)
        best["title"] = heading | {
            "text": _wrapped(lines["text"], wide * narrower, big * 1.1),
            "subtitle": _wrapped(lines["subtitle"], wide * narrower, size),
        }
        if measure(best) <= wide:
            break
    return best


def _wrapped(text: str | list[str], wide: float, size: float) -> list[str]:
    letters = max(8, int(wide * _LETTERS / size))
    lines = [text] if isinstance(text, str) else text
    return [one for line in lines for one in textwrap.wrap(line, letters)] or [""]
