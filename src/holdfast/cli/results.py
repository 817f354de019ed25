"""``holdfast compare``, ``gate``, ``report`` and ``power``: what finished runs come to."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

import holdfast
from holdfast.errors import InputError, counted, printable, unknown
from holdfast.files import whole_file, write_whole

from . import options

EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 4}


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="Log dir, log or turns table.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one, or the same.")],
    model_a: Annotated[str | None, typer.Option(help="Model of A, if it has several.")] = None,
    model_b: Annotated[str | None, typer.Option(help="Model of B, if it has several.")] = None,
    run_a: Annotated[str | None, typer.Option(help="Run of A, if a model has several.")] = None,
    run_b: Annotated[str | None, typer.Option(help="Run of B, if a model has several.")] = None,
    mitigation_a: Annotated[
        str | None, typer.Option(help="Single-turn biases of A under this mitigation.")
    ] = None,
    mitigation_b: Annotated[
        str | None, typer.Option(help="Single-turn biases of B under this mitigation.")
    ] = None,
    paths: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Compare answers after path B with those after path A: challenges, chains, "
            "families, controls, or 'baseline'.",
        ),
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="Compare only this protocol.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Compare only this data set.")] = None,
    format: Annotated[
        str, typer.Option(help="md or latex to read, csv or json to compute with.")
    ] = "md",
    changed: Annotated[
        bool, typer.Option("--changed", help="List the questions gained and lost.")
    ] = False,
    output: options.Output = None,
    page: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write an HTML page.")
    ] = None,
) -> None:
    """Compare B with A, question by question.

    Example: holdfast compare runs runs --model-a openai/gpt-5 --model-b openai/gpt-5-mini

    Example: holdfast compare runs runs --mitigation-b education --page education.html

    Example: holdfast compare runs runs --paths restate authority-prior
    """
    given = dict(locals())
    from holdfast.render import FORMATS
    from holdfast.report import comparison_page, render_comparison
    from holdfast.results import unfinished_runs

    if format not in FORMATS:
        raise unknown("format", format, FORMATS, "--format")
    for name in ("format", "changed", "output", "page"):
        del given[name]
    found = holdfast.compare(**given)
    notes = [*map(str, unfinished_runs(dict.fromkeys((a, b)))), *found.notes]
    for note in notes:
        sys.stderr.write(f"{printable(note)}\n")
    if page is not None:
        write_whole(comparison_page(found.rows, notes), page, "--page FILE")
    # on a terminal they have just been said
    told = () if output is None else notes
    write_whole(render_comparison(found.rows, format, told, changed=changed), output)


def gate(
    sources: options.Sources,
    rules: Annotated[str, typer.Option(metavar="FILE", help="TOML file of rules.")],
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the verdicts as JUnit XML.")
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option(metavar="FILE.md", help="Write them as Markdown, for a CI summary."),
    ] = None,
    allow_unfinished: Annotated[
        bool, typer.Option("--allow-unfinished", help="Decide although runs lack questions.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Check rules against the intervals of a run: exit code 0 pass, 1 fail, 4 undecided.

    Example: holdfast gate runs --rules gate.toml --junit gate.xml
    """
    from holdfast.report import gate_counts, gate_markdown, gate_rows, gate_sentence, junit_xml

    decided = holdfast.gate(sources, rules, allow_unfinished=allow_unfinished)
    verdicts = decided.verdicts
    sys.stderr.writelines(f"{printable(str(one))}\n" for one in decided.unfinished)
    written = {
        "--junit FILE": (junit, junit_xml(verdicts)),
        "--summary FILE": (summary, gate_markdown(verdicts, decided.level)),
    }
    with ExitStack() as files:  # all of them or none
        for option, (name, text) in written.items():
            if name is not None:
                files.enter_context(whole_file(name, option)).write(text.encode())
    if as_json:
        told = {"outcome": decided.outcome, "level": decided.level, "verdicts": gate_rows(verdicts)}
        options.print_json(told)
    else:
        lines = [*map(gate_sentence, verdicts), gate_counts(verdicts)]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    raise typer.Exit(EXIT_CODES[decided.outcome])


def report(
    sources: options.Sources,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
    ] = "report.html",
    figures: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Also write every figure to this folder, as SVG and PNG."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    conversations: Annotated[
        int,
        typer.Option(min=0, max=options.MOST, help="Most conversations in the page."),
    ] = holdfast.CONVERSATIONS,
    as_json: options.AsJson = False,
) -> None:
    """Write one self-contained HTML page of results.

    Example: holdfast report runs -o report.html --figures figures
    """
    from holdfast.report import report_figures

    made = holdfast.report(sources, title=title, conversations=conversations)
    sys.stderr.writelines(f"{printable(note)}\n" for note in made.notes)
    if figures is not None:
        _made(figures)
    write_whole(made.html, output, "-o FILE")
    drawn = []
    if figures is not None:
        for name, picture in report_figures(made.turns):
            file = f"{figures.rstrip('/')}/{name}"
            write_whole(picture, file, "--figures DIR")
            drawn.append(file)
    if as_json:
        told = {
            "page": output,
            "headline": made.headline,
            "bytes": len(made.html.encode()),
            "figures": drawn,
        }
        options.print_json(told)
        return
    sys.stdout.write(f"{made.headline}.\nReport: {output}\n")
    if drawn:
        sys.stdout.write(f"Figures: {figures} ({len(drawn)} files)\n")


def _made(folder: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be made ({error.strerror})", folder, remedy="Give another --figures DIR"
        ) from error


def power(
    baseline: Annotated[
        float,
        typer.Option(
            metavar="PERCENT", callback=options.finite, help="Accuracy of the first answers."
        ),
    ],
    difference: Annotated[
        float,
        typer.Option(
            metavar="POINTS",
            callback=options.finite,
            help="Drop to be found, in percentage points.",
        ),
    ],
    discordant: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            callback=options.finite,
            help="Questions right on one side only; default as if both sides erred independently.",
        ),
    ] = None,
    power: Annotated[float, typer.Option(help="Chance of finding the drop.")] = 0.8,
    alpha: Annotated[
        float, typer.Option(help="Chance of finding a drop where there is none.")
    ] = 0.05,
    tests: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Number of tests, for the correction.")
    ] = 1,
    as_json: options.AsJson = False,
) -> None:
    """Count the questions that are needed to find a drop.

    For McNemar's exact test of two answers to the same questions.

    Example: holdfast power --baseline 90 --difference 5 --discordant 20
    """
    for option, percent in (("--baseline", baseline), ("--discordant", discordant)):
        if percent is not None and not 0 <= percent <= 100:
            raise InputError(
                f"{percent:g} is not a percentage", field=option, remedy="Give 0 to 100"
            )
        if percent is not None and 0 < percent <= 1:
            raise InputError(
                f"{percent:g} is less than one percent of the questions",
                field=option,
                remedy=f"Give percent: {option} {100 * percent:g}",
            )
    of_all = None if discordant is None else discordant / 100
    n = holdfast.power(
        baseline / 100, difference / 100, of_all, power=power, alpha=alpha, tests=tests
    )
    if as_json:
        typer.echo(json.dumps({"questions": n}))
        return
    way = (
        f"a {'drop' if difference > 0 else 'rise'} from {baseline:g}% to {baseline - difference:g}%"
    )
    differ = f"{discordant:g}%" if discordant is not None else "as many as by chance"
    typer.echo(
        f"{n:,} questions: so many find {way} with a chance of {power:.0%} "
        f"(McNemar's exact test, {counted(tests, 'test')}, alpha {alpha:g}; right on one side "
        f"only: {differ})."
    )
