"""``holdfast compare``: two models, or two settings of one, on the same questions."""

import sys
from typing import Annotated

import typer

from holdfast.errors import InputError, did_you_mean, printable

from .writing import write_whole


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="Log dir, log or turns table.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another, or the same.")],
    model_a: Annotated[str | None, typer.Option(help="Model of A, where it has several.")] = None,
    model_b: Annotated[str | None, typer.Option(help="Model of B, where it has several.")] = None,
    run_a: Annotated[str | None, typer.Option(help="Run of A, where a model has several.")] = None,
    run_b: Annotated[str | None, typer.Option(help="Run of B, where a model has several.")] = None,
    mitigation_a: Annotated[
        str | None, typer.Option(help="Single-turn biases of A under this mitigation.")
    ] = None,
    mitigation_b: Annotated[
        str | None, typer.Option(help="Single-turn biases of B under this mitigation.")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="The only protocol to compare.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The only data set to compare.")] = None,
    format: Annotated[
        str, typer.Option(help="md or latex to read, csv or json to compute with.")
    ] = "md",
    changed: Annotated[
        bool, typer.Option("--changed", help="List the questions gained and lost.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Instead of standard output."),
    ] = None,
    page: Annotated[
        str | None, typer.Option(metavar="FILE", help="Leave a page to read here (HTML).")
    ] = None,
) -> None:
    """Compare B with A, question by question.

    Example: holdfast compare runs runs --model-a openai/gpt-5 --model-b openai/gpt-5-mini

    Example: holdfast compare runs runs --mitigation-b education --page education.html
    """
    from holdfast.report import FORMATS, comparison_page, render_comparison
    from holdfast.results import Side, turns_table, unfinished_runs
    from holdfast.results import compare as compared

    if format not in FORMATS:
        raise InputError(
            f"unknown format '{format}'", field="--format", remedy=did_you_mean(format, FORMATS)
        )
    of_a = turns_table([a], text=False)
    found = compared(
        of_a,
        of_a if a == b else turns_table([b], text=False),
        Side(model_a, run_a, mitigation_a),
        Side(model_b, run_b, mitigation_b),
        protocol,
        dataset,
    )
    notes = [*map(str, unfinished_runs(dict.fromkeys((a, b)))), *found.notes]
    for note in notes:
        sys.stderr.write(f"{printable(note)}\n")
    if page is not None:
        write_whole(comparison_page(found.rows, notes), page, "--page FILE")
    # on a terminal they have just been said
    told = () if output is None else notes
    write_whole(render_comparison(found.rows, format, told, changed=changed), output)
