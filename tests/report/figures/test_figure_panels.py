"""Labels, numbers of questions and data sets of a figure."""

import polars as pl
import pytest

from holdfast.errors import InputError
from holdfast.results.charts.chart import counts, label, panels
from holdfast.results.charts.dots import around

COLUMNS = ("model", "dataset", "run", "share")


def frame(*rows: tuple[str, str, str, float | None]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def test_a_label_is_one_line_and_short() -> None:
    assert label("a\nb\u202e") == "a b\\u202e"
    assert label("x" * 44) == "x" * 44
    long = label("start" + "x" * 100 + "the end")
    assert len(long) == 44
    assert long.startswith("start")
    assert long.endswith("the end")
    assert label(None) == ""


def test_names_reserved_by_browsers_are_prefixed() -> None:
    assert label("toString") == "toString\u00a0"
    assert label("to-string") == "to-string"


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ([], ""),
        ([None], ""),
        ([60, 60, None], "n = 60 questions."),
        ([1273, 12], "n = 12 to 1,273 questions, by mark."),
    ],
)
def test_counts_are_formatted(numbers: list[int | None], sentence: str) -> None:
    assert counts(numbers, "questions") == sentence


@pytest.mark.parametrize(
    ("numbers", "axis"),
    [
        ([], (0.0, 0.1)),
        ([0.32, None], (0.0, 0.4)),
        ([-0.32, 0.1], (-0.4, 0.1)),
        ([-0.3], (-0.3, 0.0)),
        ([1.0], (0.0, 1.0)),
    ],
)
def test_an_axis_includes_its_numbers_and_zero(
    numbers: list[float | None], axis: tuple[float, float]
) -> None:
    assert around(numbers) == pytest.approx(axis)


def test_published_and_measured_data_sets_share_a_panel() -> None:
    figure = panels(
        frame(
            ("m", "medqa", "r", 0.5),
            ("P [published]", "MedQA", "paper", 0.4),
            ("P [published]", "JAMA CC", "paper", 0.3),
        )
    )
    assert {name: [row["study"] for row in rows] for name, rows in figure.rows.items()} == {
        "medqa": ["m", "P [published]"],
        "JAMA CC": ["P [published]"],
    }
    assert figure.names == ("m", "P [published]")
    assert figure.notes == ("[published], drawn lighter, as crosses: as printed in paper.",)
    assert not figure.has_simulated


def test_data_sets_differing_in_case_stay_apart() -> None:
    figure = panels(frame(("m", "a", "r", 0.5), ("m", "A", "r2", 0.4)))
    assert list(figure.rows) == ["a", "A"]


def test_non_finite_numbers_become_none() -> None:
    figure = panels(frame(("m", "d", "r", float("nan")), ("n", "d", "r", float("inf"))))
    assert [row["share"] for row in figure.every()] == [None, None]


def test_all_simulated_models_are_not_listed() -> None:
    figure = panels(frame(("simulated/a", "d", "r", 1.0), ("simulated/b", "d", "r", 1.0)))
    assert figure.notes == ()  # the title says it
    assert figure.has_simulated


def test_names_with_equal_short_forms_stay_apart() -> None:
    names = ["x" * 50 + middle + "y" * 50 for middle in ("1", "2", "3")]
    figure = panels(frame(*((name, "d", "r", 1.0) for name in names)))
    assert len(set(figure.names)) == 3


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(InputError, match="no rows"):
        panels(frame())
