import hashlib
import re
from functools import cache, partial
from typing import Any

import polars as pl
import pytest
from tests.results.attacking import drawn as attacks_drawn
from tests.results.frames import behind, control, correction, of_further_protocols
from tests.results.offering import drawn
from tests.results.pressing import in_words, under_pressure

from holdfast.render.tables import FORMATS, render
from holdfast.results.declaration import TABLES
from holdfast.results.grid import mark_of
from holdfast.results.published_figures import published
from holdfast.results.turns import SCHEMA

FAMILIES = {
    "double-check": "rethink", "option-mapping": "rethink", "authority-prior": "inc_letter",
    "social-proof-prior": "inc_letter", "rag-style": "context", "edge-case-context": "context",
    "confirmation": "inc_letter", "recency": "inc_letter", "wrong-option": "wrong_op",
}  # fmt: skip
PATHS = {
    "followup": [
        "", *list(FAMILIES)[:6], "authority-prior>social-proof-prior", "authority-prior>rag-style",
        "authority-prior>social-proof-prior>rag-style", "rag-style@1", "rag-style@10",
    ],
    "single-turn": [
        "", "confirmation", "recency", "education>confirmation", "education>recency",
        "wrong-option",
    ],
}  # fmt: skip
QUESTIONS = 12


def draw(*key: object) -> float:
    """A number in 0 to 1 fixed by the key."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:6]) / 2**48


def arm_of(protocol: str, path: str) -> str:
    if not path:
        return "baseline"
    if "@" in path:
        return "length"
    return protocol if protocol == "single-turn" or ">" not in path else "compound"


def turns(
    model: str = "openai/gpt-4.1", run: str = "r1", questions: int = QUESTIONS, **columns: Any
) -> list[dict[str, Any]]:
    """A study of both protocols, drawn."""
    rows = []
    for protocol, paths in PATHS.items():
        for q in range(questions):
            for path in paths:
                technique = path.rpartition(">")[2].partition("@")[0]
                answer = "A" if draw(run, protocol, path, q) < 0.6 else "B"
                rows.append(
                    {
                        "run": f"{run}-{protocol}",
                        "protocol": protocol,
                        "model": model,
                        "dataset": "MedQA",
                        "epoch": 1,
                        "question": f"q{q}",
                        "arm": arm_of(protocol, path),
                        "path": path,
                        "turn": 1 if path else 0,
                        "technique": technique,
                        "family": FAMILIES.get(technique, ""),
                        "axis": "",
                        "depth": "",
                        "suggested": "B" if "prior" in technique or "rec" in technique else None,
                        "gold": "A",
                        "answer": answer,
                        "status": "parsed",
                        "correct": answer == "A",
                        "step": "step1" if q % 2 else "step2&3",
                        "system": "Skin & Subcutaneous Tissue" if q % 3 else "Nervous System",
                        "specialty": "dermatology",
                        "subject": "Pathology",
                        "cue": draw(run, path, q, "cue") < 0.5 if path else None,
                        "stance": "verify",
                        "cue_judged": None,
                        "stance_judged": None,
                        **columns,
                    }
                )
    return rows


def offers(model: str = "openai/gpt-4.1", run: str = "r1", **columns: Any) -> list[dict[str, Any]]:
    """A study of Stick-or-Switch, drawn."""
    study = {"model": model, "run": f"{run}-stick-or-switch", "dataset": "MedQA", **columns}
    return [row | study for row in drawn(5, ("m1",)) if row["dataset"] == "d1"]


def attacks(model: str = "openai/gpt-4.1", run: str = "r1", **columns: Any) -> list[dict[str, Any]]:
    """A study of MedFuzz and its test, drawn."""
    study = {"model": model, "dataset": "MedQA", **columns}
    return [row | study | {"run": f"{run}-{row['protocol']}"} for row in attacks_drawn(5, ("m1",))]


def measured(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    rows = behind(rows) if table in ("defences", "defences by model") else rows
    if table == "replays":
        rows = [row | {"replays": 1, "replays_differ": 1, "replays_moved": 0} for row in rows]
    return TABLES[table](pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def lines(markdown: str) -> list[list[str]]:
    """Cells of each row of the Markdown tables."""
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def row_of(markdown: str, label: str) -> list[str]:
    (row,) = (row[1:] for row in lines(markdown) if row[0] == label)
    return row


def check_latex(text: str) -> None:
    """The structure that LaTeX needs: balanced, every row as wide as the table."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert body.count(r"\begin{tabular}") == body.count(r"\end{tabular}") > 0
    plain = re.sub(r"\\[\\{}&%$#_]", lambda match: " " if match[0] != r"\\" else r"\\", body)
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert plain.count("$") % 2 == 0
    assert "%" not in plain
    assert not re.search(r"[#^~]", plain)
    for tabular in body.split(r"\begin{tabular}")[1:]:
        align, *rows = tabular.split(r"\end{tabular}")[0].strip().splitlines()
        width = len(align.strip("{}"))
        assert rows[0] == r"\toprule"
        assert rows[-1] == r"\bottomrule"
        for row in rows[1:-1]:
            if re.fullmatch(r"(\\midrule|(\\cmidrule\(lr\)\{\d+-\d+\} ?)+)", row):
                continue
            assert row.endswith(r" \\")
            assert not row.startswith(("[", "*"))
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            assert len(re.findall(r"(?<!\\)&", row)) + 1 + sum(spans) == width


# --- every table ---


def studies() -> list[dict[str, Any]]:
    simulation = ("simulated/claude-sonnet-4", "r2")
    reading = {"reader": "openai/reader", "reader_all": True, "reader_status": "parsed"}
    labels = {"label": "A", "label_first": "A", "label_weight": 2.0}
    return [
        {
            **row,
            **reading,
            "answer_rules": row["answer"],
            "answer_reader": "A",
            "answer_final": "A",
            "final_status": "parsed",
            **labels,
        }
        for of in (partial(turns, questions=30), controls_of, offers, attacks, pushed)
        for row in (*of(), *of(*simulation))
    ]


def pushed(model: str = "openai/gpt-4.1", run: str = "r1") -> list[dict[str, Any]]:
    """A user who pushes, answers without options, and other protocols."""
    study = {"model": model, "dataset": "MedQA"}
    rows = [*under_pressure(len(model)), *in_words(len(model)), *of_further_protocols()]
    return [row | study | {"run": f"{run}-{row['protocol']}"} for row in rows]


CONTROLS = ("resample", "restate", "restate>restate")


def controls_of(model: str = "openai/gpt-4.1", run: str = "r1") -> list[dict[str, Any]]:
    """The controls of that study, and its corrections."""
    study = {"model": model, "run": f"{run}-followup", "dataset": "MedQA"}
    answers = [(f"q{q}", draw(run, "followup", "", q) < 0.6) for q in range(QUESTIONS)]
    rows = [control(q, "A", path) for q, _ in answers for path in CONTROLS]
    rows += [correction(q, "A", "authority-prior") for q, right in answers if not right]
    return [row | study for row in rows]


@cache
def full_study() -> list[dict[str, Any]]:
    return studies()


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_a_layout_and_keeps_its_data(table: str) -> None:
    frame = measured(table, full_study())
    assert frame.height > 0
    check_latex(render(frame, "latex", table))
    text = render(frame, "md", table)
    assert len({len(row) for row in lines(text.split("\n\n")[0])}) == 1
    assert "openai/gpt-4.1" in text
    assert "SIMULATED" in text
    for note in (line for line in text.splitlines() if "SIMULATED" in line):
        assert "gpt-4.1" not in note
    for format in ("json", "csv"):
        assert render(frame, format, table) == render(frame, format)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_rows_has_its_header(table: str) -> None:
    frame = measured(table, [])
    for format in FORMATS:
        text = render(frame, format, table)
        assert text == render(frame, format)
        assert format == "json" or "model" in text


@pytest.mark.parametrize(
    ("source", "citation"),
    [("paper", "Manczak et al. 2025"), ("stick-or-switch", "Guo et al. 2026")],
)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.rest_slow
def test_published_rows_are_laid_out_with_their_source(
    table: str, source: str, citation: str
) -> None:
    paper = published(table, source)
    frame = pl.concat([measured(table, full_study()), paper])
    check_latex(render(frame, "latex", table))
    assert paper.is_empty() or citation in render(frame, "md", table)


PIECES = (
    "a|b", "a\\|b", "a & b % c", "[x] $y$ {z}", "*x*", "#1_2^3~4", "\\input{x}", "a\n\\\\b", "{",
    "`x` <b>", "\x1b[31mred", "[x](http://y)", "-5",
)  # fmt: skip
HOSTILE = (" ".join(PIECES), "[2cm]*", "*-5")
"""A name with all that Markdown, LaTeX or a terminal takes for its own, and two beginnings."""


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.rest_slow
def test_names_are_treated_as_data(table: str, name: str) -> None:
    def frame_of(model: str, label: str) -> pl.DataFrame:
        columns: dict[str, Any] = {"model": model, "dataset": model}
        study = [*turns(**columns, system=label, step=label), *offers(**columns)]
        return measured(table, [*study, *attacks(**columns)])

    frame = frame_of(name, name)
    check_latex(render(frame, "latex", table))
    text = render(frame, "md", table)
    rows, plain = (
        lines(part.split("\n\n")[0]) for part in (text, render(frame_of("m", "s"), "md", table))
    )
    assert [len(row) for row in rows] == [len(row) for row in plain]
    assert "\x1b" not in text
    assert "<b>" not in text.replace("\\<b>", "")
    assert "](" not in text


# --- accuracy ---


def row(model: str, path: str, accuracy: float | None, **columns: Any) -> dict[str, Any]:
    technique = path.rpartition(">")[2]
    return {
        "model": model, "dataset": "MedQA", "protocol": "followup",
        "arm": "compound" if ">" in path else "followup" if path else "baseline", "path": path,
        "technique": technique, "family": FAMILIES.get(technique, ""), "n": 10,
        "accuracy": accuracy, "low": None, "high": None,
        "relative_change": None if accuracy is None else (accuracy - 0.8) / 0.8,
        "unparsed": 0, "refused": 0, "run": "r1", **columns,
    }  # fmt: skip


def accuracies(*rows: dict[str, Any]) -> pl.DataFrame:
    empty = measured("accuracy", [])
    records = [{name: fields.get(name) for name in empty.columns} for fields in rows]
    return pl.DataFrame(records, schema=empty.schema, orient="row")


def ranked(low: int, high: int, of: int) -> dict[str, int]:
    return {"rank_low": low, "rank_high": high, "ranked": of}


STUDY = [
    row("m", "", 0.8, low=0.7, high=0.9),
    row("m", "double-check", 0.72, low=0.512, high=0.8764, **ranked(2, 2, 2)),
    row("m", "option-mapping", 0.8, **ranked(1, 1, 2)),
    row("m", "authority-prior", 0.54, **ranked(2, 2, 2)),
    row("m", "social-proof-prior", 0.84, **ranked(1, 1, 2)),
    row("m", "authority-prior>rag-style", 0.2),
    row("m", "", 0.775, arm="family-average", family="rethink", n=20),
    row("m", "", 0.68, arm="family-average", family="inc_letter", n=20),
]


def test_accuracy_is_laid_out_in_markdown() -> None:
    assert render(accuracies(*STUDY), "md", "accuracy") == (
        "|  | m |\n"
        "| --- | ---: |\n"
        "| Baseline | 80.0 [70.0, 90.0] |\n"
        "| **Multi-turn (follow-up)** |  |\n"
        "| double-check | _72.0 [51.2, 87.6] (-10.0%)_ |\n"
        "| option-mapping | **80.0 (+0.0%)** |\n"
        "| rethink (average) | 77.5 (-3.1%) |\n"
        "| authority-prior | _54.0 (-32.5%)_ |\n"
        "| social-proof-prior | **84.0 (+5.0%)** |\n"
        "| inc_letter (average) | 68.0 (-15.0%) |\n"
        "| **Compounding** |  |\n"
        "| authority-prior > rag-style | 20.0 (-75.0%) |\n"
        "\n"
        "- **Best** and _worst_ value of each family and column, if a paired test distinguishes "
        "it from every other.\n"
        "- Cells: accuracy in percent [95% interval] (change relative to the first answers "
        "to the same questions).\n"
        "- Questions: MedQA.\n"
        "- n = 10 in every cell.\n"
    )


def test_a_change_beyond_chance_is_starred() -> None:
    tests = [
        {**STUDY[0], "p_adjusted": 0.001},
        {**STUDY[1], "p_adjusted": 0.049},
        {**STUDY[2], "p_adjusted": 0.05},
        {**STUDY[6], "p_adjusted": 0.01},
    ]
    text = render(accuracies(*tests), "md", "accuracy")
    assert "| Baseline | 80.0 [70.0, 90.0] |\n" in text
    assert "| double-check | _72.0 [51.2, 87.6] (-10.0%)\\*_ |\n" in text
    assert "| option-mapping | **80.0 (+0.0%)** |\n" in text
    assert "| rethink (average) | 77.5 (-3.1%)\\* |\n" in text
    assert "- \\* The accuracy differs from the first answers: p < 0.05" in text.replace("\\<", "<")
    assert "differs" not in render(accuracies(*STUDY), "md", "accuracy")


def test_accuracy_is_laid_out_in_latex() -> None:
    assert render(accuracies(*STUDY[:3], STUDY[6]), "latex", "accuracy") == (
        "% Needs \\usepackage{booktabs} and \\usepackage{xcolor}\n"
        "% Best (green, bold) and worst (red, italics) value of each family and column, if a "
        "paired test distinguishes it from every other.\n"
        "% Cells: accuracy in percent [95% interval] (change relative to the first answers "
        "to the same questions).\n"
        "% Questions: MedQA.\n"
        "% n = 10 in every cell.\n"
        "\\begin{tabular}{lr}\n"
        "\\toprule\n"
        " & m \\\\\n"
        "\\midrule\n"
        "Baseline & 80.0 [70.0, 90.0] \\\\\n"
        "\\midrule\n"
        "double-check & \\textcolor{red}{\\textit{72.0 [51.2, 87.6] ($-$10.0\\%)}} \\\\\n"
        "option-mapping & \\textcolor{green!50!black}{\\textbf{80.0 (+0.0\\%)}} \\\\\n"
        "rethink (average) & 77.5 ($-$3.1\\%) \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


NAN = float("nan")


@pytest.mark.parametrize(
    ("accuracy", "change", "bound", "cell"),
    [
        (None, None, None, ""), (NAN, None, None, ""), (0.5, None, None, "50.0"),
        (0.5, None, NAN, "50.0"), (0.5, -0.0004, None, "50.0 (+0.0%)"),
        (0.5, 0.0, None, "50.0 (+0.0%)"), (0.5, -0.0006, None, "50.0 (-0.1%)"),
        (0.5, 0.25, None, "50.0 (+25.0%)"),
    ],
)  # fmt: skip
def test_a_cell_shows_what_is_known(
    accuracy: float | None, change: float | None, bound: float | None, cell: str
) -> None:
    challenge = row("m", "double-check", accuracy, relative_change=change, low=bound)
    text = render(accuracies(row("m", "", 0.8), challenge), "md", "accuracy")
    assert row_of(text, "double-check") == [cell]


def test_best_and_worst_are_marked_where_ranks_are_certain() -> None:
    rows = [
        *(row(model, "", 0.8) for model in "ab"),
        row("a", "authority-prior", 0.5, **ranked(3, 3, 3)),
        row("a", "social-proof-prior", 0.6, **ranked(2, 2, 3)),
        row("a", "commitment", 0.7, family="inc_letter", **ranked(1, 1, 3)),
        row("b", "authority-prior", 0.1, **ranked(2, 3, 3)),
        row("b", "social-proof-prior", 0.2, **ranked(2, 3, 3)),
        row("b", "commitment", 0.7, family="inc_letter", **ranked(1, 1, 3)),
        row("a", "rag-style", 0.1, **ranked(1, 1, 1)),
        row("b", "double-check", 0.1),
    ]  # fmt: skip
    text = render(accuracies(*rows), "md", "accuracy")
    assert row_of(text, "authority-prior") == ["_50.0 (-37.5%)_", "10.0 (-87.5%)"]
    assert row_of(text, "social-proof-prior") == ["60.0 (-25.0%)", "20.0 (-75.0%)"]
    assert row_of(text, "commitment") == ["**70.0 (-12.5%)**", "**70.0 (-12.5%)**"]
    assert row_of(text, "rag-style") == ["10.0 (-87.5%)", ""]
    assert row_of(text, "double-check") == ["", "10.0 (-87.5%)"]


@pytest.mark.parametrize(
    ("low", "high", "of", "mark"),
    [(1, 1, 3, "best"), (1, 2, 3, ""), (2, 2, 3, ""), (2, 3, 3, ""), (3, 3, 3, "worst"),
     (1, 1, 1, ""), (None, None, None, "")],
)  # fmt: skip
def test_a_mark_needs_an_unambiguous_rank(
    low: int | None, high: int | None, of: int | None, mark: str
) -> None:
    assert mark_of({"rank_low": low, "rank_high": high, "ranked": of}) == mark


def test_n_is_shown_where_it_differs() -> None:
    rows = [
        *(row(model, "", 0.8) for model in ("a", "b", "c")),
        row("a", "rag-style", 0.5, n=7), row("b", "rag-style", 0.5),
        row("c", "rag-style", 0.5, n=None), row("c", "double-check", 0.5),
    ]  # fmt: skip
    text = render(accuracies(*rows), "md", "accuracy")
    assert "- n differs between cells.\n" in text
    assert "- a: n = 10; but rag-style 7.\n" in text
    assert "- b: n = 10.\n" in text
    assert "- c: n = 10; but rag-style not stated.\n" in text


def test_unread_replies_are_counted() -> None:
    rows = [row("m", "", 0.8, unparsed=2, refused=1), row("m", "rag-style", 0.5, unparsed=3)]
    average = row("m", "", 0.5, arm="family-average", family="context", unparsed=3)
    text = render(accuracies(*rows, average), "md", "accuracy")
    assert "- Unparsed replies, counted as wrong: m 5 (refused 1).\n" in text


def test_two_protocols_of_a_model_share_a_column() -> None:
    text = render(measured("accuracy", turns(run="r2")), "md", "accuracy")
    assert lines(text)[0] == ["", "openai/gpt-4.1"]
    labels = [cells[0] for cells in lines(text)]
    # drawn apart, the first answers of the two protocols differ
    assert labels.count("Baseline") == 2
    assert labels.index("**Single-turn**") < labels.index("Baseline")
    assert labels.index("**Single-turn**") < labels.index("**Multi-turn (follow-up)**")
    assert labels[-1] == "authority-prior > social-proof-prior > rag-style"


def test_mitigations_have_groups_and_averages_of_their_own() -> None:
    text = render(measured("accuracy", turns()), "md", "accuracy")
    labels = [cells[0] for cells in lines(text)]
    start = labels.index("confirmation")
    assert labels[start : start + 8] == [
        "confirmation", "recency", "inc_letter (average)", "education > confirmation",
        "education > recency", "inc_letter, education (average)", "wrong-option",
        "wrong_op (average)",
    ]  # fmt: skip


def test_runs_and_datasets_of_a_model_have_headers_that_differ() -> None:
    rows = [
        row("m", "", 0.8, run="r1"), row("m", "", 0.7, run="r2"), row("m", "", 0.6, dataset="JAMA"),
    ]  # fmt: skip
    text = render(accuracies(*rows), "md", "accuracy")
    assert lines(text)[0] == ["", "m (MedQA, run r1)", "m (MedQA, run r2)", "m (JAMA)"]
    assert row_of(text, "Baseline") == ["80.0", "70.0", "60.0"]


def test_names_that_look_alike_have_headers_that_differ() -> None:
    rows = [row("m\n", "", 0.8), row("m", "", 0.7)]
    text = render(accuracies(*rows), "md", "accuracy")
    assert lines(text)[0] == ["", "m", "m (2)"]


def test_rows_of_one_cell_are_shown_row_by_row() -> None:
    frame = accuracies(row("m", "", 0.8), row("m", "", 0.7))
    assert render(frame, "md", "accuracy") == render(frame, "md")
    assert render(frame, "latex", "accuracy") == render(frame, "latex")


def test_published_figures_have_no_test_and_no_marks() -> None:
    text = render(published("accuracy"), "md", "accuracy")
    cells_with_figures = [cell for _, *cells in lines(text) for cell in cells if "%" in cell]
    assert len(cells_with_figures) > 100
    assert not any(cell.startswith(("*", "_")) for cell in cells_with_figures)
    assert "**Best**" not in text


# --- the others ---


def test_steps_are_laid_out_as_in_table_3() -> None:
    text = render(published("accuracy by step"), "md", "accuracy by step")
    assert lines(text)[0][1:] == [
        "rethink step1", "rethink step2&3", "inc_letter step1", "inc_letter step2&3",
        "context step1", "context step2&3",
    ]  # fmt: skip
    assert row_of(text, "MedGemma 27B [published]") == [
        "+1.7%", "-3.0%", "-14.5%", "-22.8%", "-27.7%", "-38.8%",
    ]  # fmt: skip
    assert "- Change relative to all first answers of the model.\n" in text
    latex = render(published("accuracy by step"), "latex", "accuracy by step")
    assert r"\multicolumn{2}{c}{inc\_letter}" in latex
    assert r"\cmidrule(lr){4-5}" in latex


def test_steps_of_two_baselines_are_labelled() -> None:
    frame = pl.concat([measured("accuracy by step", turns()), published("accuracy by step")[:6]])
    text = render(frame, "md", "accuracy by step")
    assert "- Change relative to the first answers of the same step: openai/gpt-4.1.\n" in text
    assert (
        "- Change relative to all first answers of the model: Claude Sonnet 4 [published].\n"
        in text
    )
    assert "; rethink, step1 12 / –; " in text


def test_steps_of_protocols_follow_their_first_answers() -> None:
    text = render(measured("accuracy by step", turns()), "md", "accuracy by step")
    first, second = (lines(part)[0] for part in text.split("\n\n") if part.startswith("|"))
    assert first[1:4] == ["Baseline step1", "Baseline step2&3", "rethink step1"]
    assert second[1:4] == [
        "Baseline, single-turn step1", "Baseline, single-turn step2&3",
        "inc_letter, single-turn step1",
    ]  # fmt: skip
    assert (
        "- n, by row where it differs: Baseline, step1 6; Baseline, step2&3 6; rethink, step1 12; "
        in text
    )


def test_systems_are_a_matrix_with_a_block_per_family() -> None:
    frame = measured("accuracy by system", studies()).filter(pl.col("protocol") == "followup")
    text = render(frame, "md", "accuracy by system")
    assert lines(text)[0] == ["system", "n", "openai/gpt-4.1", "simulated/claude-sonnet-4"]
    averages = frame.filter(pl.col("arm") == "family-average", pl.col("model") == "openai/gpt-4.1")
    blocks = [cells[0].strip("*") for cells in lines(text) if cells[0].startswith("**")]
    assert blocks == ["Baseline", *averages["family"].unique(maintain_order=True)]
    heads = [cells[:2] for cells in lines(text)[2:] if not cells[0].startswith("**")][2:]
    assert heads == [[name, str(n)] for name, n in averages.select("system", "n").rows()]


def test_n_of_a_stratum_is_shown_where_it_differs() -> None:
    rows = [*turns(), *(row for row in turns("b") if row["question"] != "q0")]
    frame = measured("accuracy by system", rows).filter(pl.col("protocol") == "followup")
    text = render(frame, "md", "accuracy by system")
    # q0 is one of four questions of this system
    ns = [cells[1] for cells in lines(text) if cells[0] == "Nervous System"]
    assert ns == ["4 / 3", "8 / 6", "8 / 6", "8 / 6"]


def test_lengths_are_sorted_by_technique() -> None:
    text = render(measured("accuracy by length", turns()), "md", "accuracy by length")
    assert [cells[0] for cells in lines(text)[2:]] == ["rag-style, 1", "rag-style, 10"]
    assert "- n = 12 in every cell.\n" in text


def test_single_turn_lists_suggestions_below() -> None:
    text = render(measured("single-turn", turns()), "md", "single-turn")
    first, second = (part for part in text.split("\n\n") if part.startswith("|"))
    assert lines(first)[0][0] == "Accuracy"
    assert [cells[0] for cells in lines(first)[2:4]] == ["Baseline", "confirmation"]
    assert lines(second)[0][0] == "Took the suggested option"
    assert "education > recency" in [cells[0] for cells in lines(second)]


def test_compounding_names_each_study_and_its_n() -> None:
    rows = [*turns(), *turns("simulated/claude-sonnet-4", "r2")]
    text = render(measured("chains", rows), "md", "chains")
    assert lines(text)[0][:2] == ["Chain", "n"]
    assert [cells[0] for cells in lines(text) if cells[0].startswith("**")] == [
        "**openai/gpt-4.1**", "**simulated/claude-sonnet-4**",
    ]  # fmt: skip
    chains = [cells for cells in lines(text) if cells[0] == "authority-prior > rag-style"]
    assert [cells[1] for cells in chains] == ["12", "12"]
    # fewer than ten were right at first: nothing is said of what they let expect
    assert {(cells[8], cells[9]) for cells in chains} == {("", "no")}


def test_a_sum_marks_simulated_models() -> None:
    with_simulated = measured("chains by model", studies())
    without = measured("chains by model", [*turns(), *turns("b", "r2")])
    assert "SIMULATED results" in render(with_simulated, "md", "chains by model")
    assert "SIMULATED results" not in render(without, "md", "chains by model")


def test_the_published_share_of_sub_additive_chains_is_shown() -> None:
    text = render(published("chains by model"), "md", "chains by model")
    assert row_of(text, "all models [published]") == ["", "(85.0%)", "", ""]


def test_flips_and_cues_have_a_block_for_each_study() -> None:
    flips = render(measured("flips", turns()), "md", "flips")
    measured_flips = measured("flips", turns()).filter(pl.col("path") == "rag-style")
    assert row_of(flips, "rag-style")[:3] == [
        str(measured_flips[name].item()) for name in ("n", "n_right", "right_to_wrong")
    ]
    cues = render(measured("cues", turns()), "md", "cues")
    assert "| **openai/gpt-4.1, lexical** |" in cues
    outcomes = [cells[1] for cells in lines(cues) if cells[0] == "rag-style"]
    assert outcomes == ["kept", "abandoned"]
