"""Commands ``holdfast compare``, ``gate``, ``report`` and ``power`` for finished runs."""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

import holdfast
from holdfast.errors import InputError, counted, printable, unknown
from holdfast.files import unlinked, whole_file, write_whole

from . import options

if TYPE_CHECKING:
    from holdfast.results.sequential import Looked

EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 4}


def compare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="A [B...]",
            help="Log directories, logs or turns tables. One source compares all its models.",
        ),
    ],
    model_a: Annotated[str | None, typer.Option(help="Model of A, if A has several.")] = None,
    model_b: Annotated[str | None, typer.Option(help="Model of B, if B has several.")] = None,
    run_a: Annotated[str | None, typer.Option(help="Run of A, if the model has several.")] = None,
    run_b: Annotated[str | None, typer.Option(help="Run of B, if the model has several.")] = None,
    mitigation_a: Annotated[
        str | None, typer.Option(help="Use A's single-turn biases under this mitigation.")
    ] = None,
    mitigation_b: Annotated[
        str | None, typer.Option(help="Use B's single-turn biases under this mitigation.")
    ] = None,
    paths: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Compare answers after path A with answers after path B: challenge, chain, "
            "family, control or 'baseline'.",
        ),
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="Compare only this protocol.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Compare only this data set.")] = None,
    format: Annotated[str, typer.Option(help="Output format: md, latex, csv or json.")] = "md",
    changed: Annotated[
        bool, typer.Option("--changed", help="List the questions gained and lost.")
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="Show every challenge (three models or more).")
    ] = False,
    output: options.Output = None,
    page: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write an HTML page.")
    ] = None,
) -> None:
    """Compare models, runs or settings, question by question.

    Example: holdfast compare runs runs --model-a openai/gpt-5 --model-b openai/gpt-5-mini

    Example: holdfast compare runs/gpt-5 runs/claude runs/llama

    Example: holdfast compare runs runs --mitigation-b education --page education.html

    Example: holdfast compare runs runs --paths restate authority-prior
    """
    arguments = dict(locals())
    from holdfast.render.tables import FORMATS
    from holdfast.report.comparison_page import comparison_page, render_comparison
    from holdfast.results.turns import unfinished_runs

    if format not in FORMATS:
        raise unknown("format", format, FORMATS, "--format")
    for name in ("sources", "format", "changed", "each", "output", "page"):
        del arguments[name]
    comparison = holdfast.compare(*sources, **arguments)
    notes = [*map(str, unfinished_runs(dict.fromkeys(sources))), *comparison.notes]
    for note in notes:
        sys.stderr.write(f"{printable(note)}\n")
    if page is not None:
        write_whole(
            comparison_page(
                comparison.rows, notes, opening=comparison.opening, all_challenges=each
            ),
            page,
            "--page FILE",
        )
    # a terminal has just shown the notes on standard error
    messages = () if output is None else notes
    text = render_comparison(
        comparison.rows,
        format,
        messages,
        opening=comparison.opening,
        with_changes=changed,
        all_challenges=each,
    )
    write_whole(text, output)


def gate(
    sources: options.Sources,
    rules: Annotated[str, typer.Option(metavar="FILE", help="TOML file of rules.")],
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the verdicts as JUnit XML.")
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option(metavar="FILE.md", help="Write the verdicts as Markdown, for a CI summary."),
    ] = None,
    allow_unfinished: Annotated[
        bool, typer.Option("--allow-unfinished", help="Decide even if runs lack questions.")
    ] = False,
    sequential: Annotated[
        bool,
        typer.Option(
            "--sequential", help="Decide question by question; repeated looks are allowed."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Decide whether runs pass your rules: exit code 0 pass, 1 fail, 4 undecided.

    Example: holdfast gate runs --rules gate.toml --junit gate.xml
    """
    from holdfast.report.gate_summary import (
        gate_counts,
        gate_markdown,
        gate_rows,
        gate_sentence,
        junit_xml,
        looked_markdown,
    )

    if sequential:
        results = holdfast.looks(sources, rules)
        _write_verdicts(junit, summary, junit_xml(results), looked_markdown(results))
        raise typer.Exit(print_looked(results, as_json=as_json))
    decision = holdfast.gate(sources, rules, allow_unfinished=allow_unfinished)
    verdicts = decision.verdicts
    sys.stderr.writelines(f"{printable(str(source))}\n" for source in decision.unfinished_runs)
    _write_verdicts(junit, summary, junit_xml(verdicts), gate_markdown(verdicts, decision.level))
    if as_json:
        content = {
            "outcome": decision.outcome,
            "level": decision.level,
            "verdicts": gate_rows(verdicts),
        }
        options.print_json(content)
    else:
        lines = [*map(gate_sentence, verdicts), gate_counts(verdicts)]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    raise typer.Exit(EXIT_CODES[decision.outcome])


def _write_verdicts(junit: str | None, summary: str | None, xml: str, markdown: str) -> None:
    """Write both requested files, or neither if one fails."""
    outputs = {"--junit FILE": (junit, xml), "--summary FILE": (summary, markdown)}
    with ExitStack() as files:
        for option, (name, text) in outputs.items():
            if name is not None:
                files.enter_context(whole_file(name, option)).write(text.encode())


def print_looked(results: "Sequence[Looked]", *, as_json: bool, **more: Any) -> int:
    """Print sequential verdicts and return their common exit code."""
    from holdfast.report.gate_summary import looked_rows, looked_sentence
    from holdfast.results.gate import overall

    outcomes = [result.outcome for result in results]
    # a budget can end before a question is finished
    outcome = overall(results) if results else "undecided"
    if as_json:
        options.print_json({"outcome": outcome, **more, "verdicts": looked_rows(results)})
    else:
        tally = ", ".join(f"{outcomes.count(o)} {o}" for o in ("pass", "fail", "undecided"))
        lines = [*map(looked_sentence, results), f"verdict: {outcome} ({tally})"]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    return EXIT_CODES[outcome]


def report(
    sources: options.Sources,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
    ] = "report.html",
    figures: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Also write every figure to this folder, as SVG and PNG."),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Show the verdicts of these rules first (see gate)."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    conversations: Annotated[
        int,
        typer.Option(
            min=0, max=options.MOST_COUNT, help="Maximum number of conversations in the page."
        ),
    ] = holdfast.CONVERSATIONS,
    leaderboard: Annotated[
        str | None,
        typer.Option(
            metavar="SITE",
            help="Write a leaderboard to this folder: ranked models and a page for each.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Rewrite the page every ten seconds during a run.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Write one self-contained HTML page of results.

    Example: holdfast report runs -o report.html --figures figures
    """
    from holdfast.report.page import report_figures
    from holdfast.results.sequential import stopped_runs

    if leaderboard is not None:
        conflicts = {"-o": output != "report.html", "--figures": figures is not None,
                  "--rules": rules is not None, "--watch": watch}  # fmt: skip
        for option in (option for option, is_given in conflicts.items() if is_given):
            raise InputError(
                "cannot be combined with --leaderboard",
                field=option,
                remedy=f"Remove {option} or --leaderboard",
            )
        _leaderboard(sources, leaderboard, title, conversations, as_json=as_json)
        return
    if watch:
        _watch(sources, output, title, conversations)
    page = holdfast.report(sources, rules=rules, title=title, conversations=conversations)
    sys.stderr.writelines(f"{printable(note)}\n" for note in page.notes)
    if figures is not None:
        _make_folder(figures)
    write_whole(page.html, output, "-o FILE")
    figures_written = []
    if figures is not None:
        for name, picture in report_figures(page.turns, stopped_runs(sources)):
            file = f"{figures.rstrip('/')}/{name}"
            write_whole(picture, file, "--figures DIR")
            figures_written.append(file)
    if as_json:
        content = {
            "page": output,
            "headline": page.headline,
            "bytes": len(page.html.encode()),
            "figures": figures_written,
        }
        options.print_json(content)
        return
    sys.stdout.write(f"{page.headline}.\nReport: {output}\n")
    if figures_written:
        sys.stdout.write(f"Figures: {figures} ({len(figures_written)} files)\n")


def _leaderboard(
    sources: list[str], folder: str, title: str | None, conversations: int, *, as_json: bool
) -> None:
    site = holdfast.leaderboard(sources, folder, title=title, conversations=conversations)
    sys.stderr.writelines(f"Not read: {printable(source)}\n" for source in site.unread)
    if as_json:
        options.print_json({"page": site.page, "models": site.models, "unread": site.unread})
    else:
        sys.stdout.write(f"Leaderboard: {site.page} ({counted(len(site.models), 'model')})\n")


def _watch(sources: list[str], output: str, title: str | None, conversations: int) -> None:
    """Rewrite the page until no run is active in any of the log directories."""
    from holdfast.running.log_dir import at_work

    while any(at_work(source) for source in sources):
        try:
            page = holdfast.report(sources, title=title, conversations=conversations).html
        except InputError as error:  # the run has written no turn yet
            sys.stderr.write(f"{error}\n")
        else:
            without_script = f'<noscript><meta http-equiv="refresh" content="{_OFTEN}"></noscript>'
            refresh = f'<head><meta name="refresh-seconds" content="{_OFTEN}">{without_script}'
            write_whole(page.replace("<head>", refresh, 1), output, "-o FILE")
        time.sleep(_OFTEN)


_OFTEN = 10
"""Seconds between two pages of an active run."""


def _make_folder(folder: str) -> None:
    try:
        unlinked(folder, "--figures DIR").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be created ({error.strerror})", folder, remedy="Give another --figures DIR"
        ) from error


def power(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PILOT]", help="Pilot: log directory, log or turns table."),
    ] = None,
    baseline: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT", callback=options.finite, help="Accuracy of the first answers."
        ),
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            callback=options.finite,
            help="Drop to detect, in percentage points. Default: the pilot's.",
        ),
    ] = None,
    discordant: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            callback=options.finite,
            help=(
                "Percentage of questions right on one side only. Default: independent errors "
                "of both sides."
            ),
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(help="Technique or family of the pilot, compared with first answers."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model of the pilot, if the pilot has several.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Second model, to compare with the first.")
    ] = None,
    min_accuracy: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            callback=options.finite,
            help="Plan for a gate with this minimum accuracy instead.",
        ),
    ] = None,
    max_drop: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            callback=options.finite,
            help="Plan for a gate with this maximum drop instead.",
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            callback=options.finite,
            help="Correlation between epochs of a question. Default: the pilot's.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Number of questions available. Default: the pilot's.")
    ] = None,
    prices: Annotated[
        str | None, typer.Option(metavar="FILE", help="Price file, as for run, to estimate cost.")
    ] = None,
    power: Annotated[float, typer.Option(help="Power: probability of detecting the drop.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Level: probability of a false alarm.")] = 0.05,
    tests: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Number of tests to correct for.")
    ] = 1,
    audit: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT|LOGDIR",
            help="Plan labels instead: percentage that disagree, or a log directory with labels.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute how many questions you need to detect a drop or decide a gate.

    Uses McNemar's exact test. With a pilot, simulates studies from it and tests them.

    Example: holdfast power --baseline 90 --difference 5 --discordant 20

    Example: holdfast power pilot --path inc_letter --difference 5 --prices prices.json

    Example: holdfast power --baseline 70 --audit 3
    """
    percents = {
        "baseline": baseline, "discordant": discordant, "min_accuracy": min_accuracy,
        "correlation": correlation, "audit": _percent(audit),
    }  # fmt: skip
    for name, percent in percents.items():
        option = f"--{name.replace('_', '-')}"
        if percent is not None and not 0 <= percent <= 100:
            raise InputError(
                f"{percent:g} is not a percentage",
                field=option,
                remedy="Give a number from 0 to 100",
            )
        if percent is not None and 0 < percent <= 1 and option != "--audit":
            raise InputError(
                f"{percent:g} is less than one percent of the questions",
                field=option,
                remedy=f"Give a percentage, such as {option} {100 * percent:g}",
            )
    of_disagreement = percents.pop("audit")
    if audit is not None:
        _labels_needed(audit, of_disagreement, baseline, as_json=as_json)
        return
    shares = {
        name: None if percent is None else percent / 100
        for name, percent in (percents | {"difference": difference, "max_drop": max_drop}).items()
    }
    about = {"power": power, "alpha": alpha, "tests": tests}
    rules = (min_accuracy, max_drop, correlation)
    if sources or any(rule is not None for rule in rules) or baseline is None or difference is None:
        table = holdfast.designs(
            sources or None, path=path, model=model, against=against, prices=prices,
            **shares, **about,  # type: ignore[arg-type]
        )  # fmt: skip
        from holdfast.report.design_page import designs_json, designs_text

        largest = limit or table.pilot.questions or None
        if as_json:
            options.print_json(designs_json(table))
        else:
            sys.stdout.write(designs_text(table, power, largest))
        return
    n = holdfast.power(
        baseline / 100, difference / 100, shares["discordant"], power=power, alpha=alpha,
        tests=tests,
    )  # fmt: skip
    if as_json:
        typer.echo(json.dumps({"questions": n}))
        return
    way = (
        f"a {'drop' if difference > 0 else 'rise'} from {baseline:g}% to {baseline - difference:g}%"
    )
    differ = f"{discordant:g}%" if discordant is not None else "no better than chance"
    typer.echo(
        f"{n:,} questions give {power:.0%} power to detect {way} (McNemar's exact test, "
        f"{counted(tests, 'test')}, alpha {alpha:g}; right on one side only: {differ})."
    )


def _missing_option(option: str) -> InputError:
    return InputError(f"Missing option '{option}'", remedy="See 'holdfast power --help'")


_LABELS = (50, 100, 200, 400, 800)


def _percent(text: str | None) -> float | None:
    try:
        return options.finite(None if text is None else float(text.removesuffix("%")))
    except ValueError:
        return None


def _labels_needed(
    audit: str, disagreement: float | None, baseline: float | None, *, as_json: bool
) -> None:
    """Print the interval width by number of labels, for a given or a pilot's disagreement rate."""
    from holdfast.results.audit import label_widths, pilot

    if disagreement is None:
        disagreement_rates = pilot(holdfast.read_turns([audit], text=False))
        if not disagreement_rates:
            remedy = "Import a labelled sheet, or give the percentage of labels that disagree"
            raise InputError("has no human labels", audit, field="--audit", remedy=remedy)
    elif baseline is None:
        raise _missing_option("--baseline")
    else:
        name, rate = (
            f"{baseline:g}% right, {disagreement:g}% of labels disagree",
            disagreement / 100,
        )
        disagreement_rates = [(name, (baseline / 100, rate, rate))]
    content = {name: label_widths(*rates, _LABELS) for name, rates in disagreement_rates}
    if as_json:
        options.print_json([
            {"study": name, "labels": n, "width": width, "width_labels_only": alone}
            for name, widths in content.items()
            for n, (width, alone) in zip(_LABELS, widths, strict=True)
        ])  # fmt: skip
        return
    for name, widths in content.items():
        typer.echo(
            f"{printable(name)}: width of the 95% interval in percentage points, by number of "
            "labels"
        )
        for n, (width, alone) in zip(_LABELS, widths, strict=True):
            typer.echo(
                f"{n:5} labels: {100 * width:5.1f} corrected, {100 * alone:5.1f} labels alone"
            )
    typer.echo("The number of questions adds further uncertainty.")
