import csv
import io
import json
import math
from typing import Any

import polars as pl
import pytest

from holdfast.render.tables import render

TABLE = pl.DataFrame(
    {
        "model": ["simulated/sycophant", "openai/gpt-4.1"],
        "path": ["", "authority-prior>rag-style"],
        "n": [60, 7],
        "accuracy": [0.9, 2 / 3],
        "low": [math.nan, 0.25],
        "relative_change": [None, -0.5],
    }
)


def cell(value: Any) -> pl.DataFrame:
    return pl.DataFrame({"name": [value]})


# --- Markdown ---


def test_rows_become_markdown() -> None:
    assert render(TABLE, "md") == (
        "| model | path | n | accuracy | low | relative_change |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| simulated/sycophant |  | 60 | 0.9000 |  |  |\n"
        "| openai/gpt-4.1 | authority-prior>rag-style | 7 | 0.6667 | 0.2500 | -0.5000 |\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a|b", "a\\|b"),
        ("|", "\\|"),
        ("a\\|b", "a\\\\\\|b"),
        ("a\nb", "a b"),
        ("a\r\n\tb\u2028c", "a b c"),
        (None, ""),
        (math.inf, ""),
        (-math.inf, ""),
        (1.0, "1.0000"),
        (7, "7"),
        (True, "True"),
    ],
    ids=repr,
)
def test_a_markdown_cell_stays_one_cell_on_one_line(value: object, text: str) -> None:
    assert render(cell(value), "md") == f"| name |\n| --- |\n| {text} |\n"


def test_a_pipe_in_a_column_name_is_escaped_too() -> None:
    assert render(pl.DataFrame({"a|b": [1]}), "md") == "| a\\|b |\n| --- |\n| 1 |\n"


# --- LaTeX ---


def test_rows_become_latex() -> None:
    assert render(TABLE.drop("low"), "latex") == (
        "\\begin{tabular}{llrrr}\n"
        "\\toprule\n"
        "model & path & n & accuracy & relative\\_change \\\\\n"
        "\\midrule\n"
        "simulated/sycophant &  & 60 & 0.9000 &  \\\\\n"
        "openai/gpt-4.1 & authority-prior\\textgreater{}rag-style & 7 & 0.6667 & -0.5000 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a & b", r"a \& b"),
        ("50%", r"50\%"),
        ("$x_1$", r"\$x\_1\$"),
        ("#1", r"\#1"),
        ("{x}", r"\{x\}"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("<b>", r"\textless{}b\textgreater{}"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("a\n\\\\b", r"a \textbackslash{}\textbackslash{}b"),
    ],
)
def test_latex_escapes_special_characters(value: str, text: str) -> None:
    assert render(cell(value), "latex").split("\n")[4] == rf"{text} \\"


@pytest.mark.parametrize("value", ["[2cm]", "*"])
def test_a_latex_row_is_not_read_as_an_argument(value: str) -> None:
    assert render(cell(value), "latex").split("\n")[4] == rf"{{}}{value} \\"


# --- JSON ---


def test_json_is_a_list_of_objects() -> None:
    rows = TABLE.with_columns(low=pl.Series([None, 0.25])).to_dicts()
    assert json.loads(render(TABLE, "json")) == rows
    assert json.loads(render(TABLE.clear(), "json")) == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_values_without_json_form_are_null(value: float | None) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    table = pl.DataFrame({"x": [value]}, schema={"x": pl.Float64})
    assert json.loads(render(table, "json"), parse_constant=refuse) == [{"x": None}]


@pytest.mark.parametrize("text", ["السعال 🫀", 'a"b\\c\nd\u2028e\x1b', "{x}"])
def test_json_keeps_text_unchanged(text: str) -> None:
    assert json.loads(render(cell(text), "json")) == [{"name": text}]


# --- CSV ---


def test_csv_has_a_header_and_full_precision() -> None:
    first, second = csv.DictReader(io.StringIO(render(TABLE.drop("low"), "csv")))
    assert list(first) == ["model", "path", "n", "accuracy", "relative_change"]
    assert (first["n"], first["relative_change"]) == ("60", "")
    assert float(second["accuracy"]) == 2 / 3


@pytest.mark.parametrize("text", ["a,b", 'a"b', "a\nb", "a\r\nb"], ids=repr)
def test_csv_quotes_separators_and_line_breaks(text: str) -> None:
    rows = list(csv.reader(io.StringIO(render(cell(text), "csv"), newline="")))
    assert rows == [["name"], [text]]


@pytest.mark.parametrize("text", ['=HYPERLINK("x")', "+1", "-x", "@a", "\t=1", "'=1"], ids=repr)
def test_csv_holds_no_formula(text: str) -> None:
    rows = list(csv.reader(io.StringIO(render(cell(text), "csv"), newline="")))
    assert rows == [["name"], [f"'{text}"]]
    assert render(cell(-0.5), "csv") == "name\n-0.5\n"
