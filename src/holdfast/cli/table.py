"""Command ``holdfast table``, which prints one result table as text or as a figure."""

import sys
from typing import Annotated, Any

import typer

import holdfast
from holdfast.errors import InputError, printable, unknown
from holdfast.files import write_whole
from holdfast.registry import TABLES, ways

from . import options

WAYS = ways(TABLES)
"""Groupings of each table by table name, for the help text."""

BY = "; ".join(
    f"{name}: {', '.join(filter(None, by))}" for name, by in WAYS.items() if any(by)
)  # fmt: skip


def table(
    sources: options.Sources,
    table: Annotated[str, typer.Option(help=f"Name: {', '.join(WAYS)}.")] = "accuracy",
    by: Annotated[
        str | None, typer.Option(help=f"Grouping of the rows, if the table has several. {BY}.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="Text: md, latex, csv, json. Figure: svg, pdf, png, vega (its specification). "
            "Default: md, or an aligned table in a terminal."
        ),
    ] = None,
    compare_with: Annotated[
        str | None,
        typer.Option(
            help="Add published values: paper, paper-no-system (Table 4) or stick-or-switch."
        ),
    ] = None,
    relative_to: Annotated[
        str | None,
        typer.Option(
            help=(
                "For strata: baseline is stratum (its own first answers) or overall (appendix D.3)."
            )
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="CSV", help="For scale: model sizes (model,family,parameters,aliases)."
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(help="For flexibility: d' up to which switching counts as blind (0.5)."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="For flagging: share of conversations to review (0.1).", min=0, max=1),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="For defences by model: maximum dollars for a question and one challenge.",
            min=0,
            callback=options.finite,
        ),
    ] = None,
    max_calls: Annotated[
        float | None,
        typer.Option(
            help="For defences by model: maximum calls for a question and one challenge.",
            min=0,
            callback=options.finite,
        ),
    ] = None,
    min_updates: Annotated[
        float | None,
        typer.Option(
            help="For defences by model: minimum share of accepted corrections.", min=0, max=1
        ),
    ] = None,
    part: Annotated[int, typer.Option(help="Part to draw, if a figure has several.", min=1)] = 1,
    width: Annotated[
        str | None,
        typer.Option(help="Width of the printed figure, such as 3.3in (also cm, mm, px)."),
    ] = None,
    no_title: Annotated[bool, typer.Option("--no-title", help="Omit title and subtitle.")] = False,
    font_size: Annotated[
        float | None,
        typer.Option(help="Font size in points. Default with --width in in, cm or mm: 8."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help='TOML (id = "label") or CSV with labels for ids.'),
    ] = None,
    output: options.Output = None,
) -> None:
    """Print one result table, or draw it as a figure.

    Example: holdfast table runs --table accuracy --by step --compare-with paper --format latex

    Example: holdfast table runs --table survival --format svg -o survival.svg
    """
    from holdfast.render.drawing import FIGURE_FORMATS, check_drawable, draw
    from holdfast.render.paper import Paper
    from holdfast.render.tables import FORMATS, arranged, render
    from holdfast.results.declaration import table_named
    from holdfast.results.published_figures import compared_with_published
    from holdfast.results.records import left_out
    from holdfast.results.sequential import STOPPED_NOTE, stopped
    from holdfast.results.turns import unfinished_runs

    to_terminal = format is None and output is None and sys.stdout.isatty()
    format = format or "md"
    is_figure = format in FIGURE_FORMATS
    name = table_named(table, by, ("--table", "--by")).name
    if not is_figure and format not in FORMATS:
        raise unknown("format", format, (*FORMATS, *FIGURE_FORMATS), "--format")
    if is_figure:
        check_drawable(name, format)
    paper = Paper(width, not no_title, font_size, labels)
    if paper.asked and not is_figure:
        raise InputError(
            f"{format} is not a figure format",
            field="--format",
            remedy=f"Give one of {', '.join(FIGURE_FORMATS)}, or remove the figure options",
        )
    if format in ("png", "pdf") and output is None and sys.stdout.isatty():
        raise InputError(
            f"a {format.upper()} cannot be shown on a terminal",
            field="--format",
            remedy="Give -o FILE",
        )
    settings = _settings(
        name, relative_to=relative_to, models=models, margin=margin, budget=budget,
        max_cost=max_cost, max_calls=max_calls, min_updates=min_updates,
    )  # fmt: skip
    rows = holdfast.table(sources, table, by=by, **settings)
    notes = [*map(str, unfinished_runs(sources)), *left_out(sources)]
    for note in [*notes, STOPPED_NOTE] if stopped(sources) else notes:
        sys.stderr.write(f"{printable(note)}\n")
    if compare_with is not None:
        row_total = rows.height
        rows, note = compared_with_published(rows, name, compare_with)
        if is_figure and rows.height == row_total:
            raise InputError(note, field="--compare-with", remedy="Remove --compare-with")
        if note:
            sys.stderr.write(f"{note}\n")
    grids = arranged(rows, name) if to_terminal else None
    if grids is not None:
        from rich.console import Console

        from holdfast.render.terminal import terminal

        console = Console()
        for grid_table in terminal(grids, console.width):
            console.print(grid_table)
        return
    if not is_figure:
        write_whole(render(rows, format, name), output)
        return
    turns = holdfast.read_turns(sources, text=False) if labels else None
    write_whole(draw(rows, name, format, part, paper, turns), output)


def _settings(table: str, **values_given: Any) -> dict[str, Any]:
    """Return the settings of the measure, and refuse settings of other tables."""
    from holdfast.results.declaration import TABLES

    settings = {name: value for name, value in values_given.items() if value is not None}
    for name, value in settings.items():
        takers = [
            table_name for table_name, declaration in TABLES.items() if name in declaration.takes
        ]
        option, (meaning, values) = f"--{name.replace('_', '-')}", _SETTINGS[name]
        if table not in takers:
            alternatives = (
                f"one of {', '.join(takers)}" if len(takers) > 1 else f"--table {takers[0]}"
            )
            raise InputError(
                f"table '{table}' does not use {meaning}",
                field=option,
                remedy=f"Remove {option}, or choose {alternatives}",
            )
        if values and value not in values:
            raise unknown("baseline", value, values, option)
    return settings


_SETTINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "relative_to": ("a baseline for strata", ("stratum", "overall")),
    "models": ("model sizes", ()),
    "margin": ("a margin", ()),
    "budget": ("a budget", ()),
    "max_cost": ("a limit on dollars", ()),
    "max_calls": ("a limit on calls", ()),
    "min_updates": ("a share of corrections", ()),
}
"""Meaning of each setting, and its allowed values if they are restricted."""
