"""Python interface, with one function for each command."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, Unpack

if TYPE_CHECKING:
    import altair
    import polars as pl

    from holdfast.results.comparison import Comparison
    from holdfast.results.designs import Designs, Kind
    from holdfast.results.gate import Verdict
    from holdfast.results.gate_rules import Rules
    from holdfast.results.records import Unfinished
    from holdfast.results.sequential import Looked
    from holdfast.running.progress import Progress
    from holdfast.running.provider_options import RunOptions
    from holdfast.running.resolved import Outcome, Plan, Running
    from holdfast.running.verdict import Verdicts

    Source = str | PathLike[str]
    Sources = Source | Iterable[Source]
    Turns = Sources | pl.DataFrame


BATCH = 20
"""Default number of questions between two looks at the rules."""


def run(
    protocols: "Sources",
    models: str | Sequence[str] = (),
    questions: "Sources" = (),
    *,
    shards: int | Literal["auto"] | None = None,
    ray: str | None = None,
    progress: "Progress | None" = None,
    **options: "Unpack[RunOptions]",
) -> "Outcome":
    """Run protocols on models, or resume an interrupted run.

    Args:
        protocols: one or several protocols, such as ``followup`` or a ``FILE.py``. Alternatively
            one study file (``STUDY.toml``). The other arguments override its keys.
        models: one or several models, as Inspect names them.
        questions: one or several of ``bank``, ``medqa``, ``medmcqa``, a file or
            ``hf:NAME@REVISION``. Default: ``bank``.
        shards: number of processes that share the questions. None uses this process only. "auto"
            uses as many as keep a ``lean/`` server busy. A script that passes ``shards`` needs
            ``if __name__ == "__main__"``.
        ray: address of a Ray cluster for the shards.
        progress: progress callback. By default, lines go to standard error.
        options: options of ``holdfast run``, such as ``limit=50``, ``log_dir="runs"`` (an existing
            run there is resumed) or ``task_args={"chains": "paper"}``.

    Returns:
        The outcome. If ``unfinished`` or ``interrupted`` is set, repeat the call to resume.

    Raises:
        InputError: an option or file cannot be used, the log directory contains a run with other
            settings, or another process is using the log directory.
        IncompleteRunError: contexts or wrong options could not be finished.
        InterruptedRunError: the user stopped the run before anything was logged.
    """
    from holdfast.errors import InputError
    from holdfast.running.resolved import resolved
    from holdfast.running.shards import Sharding

    if ray and not isinstance(shards, int):
        raise InputError("needs a number of shards", field="--ray", remedy="Add --shards N")
    arguments = _run_arguments(protocols, models, questions, options)
    running = resolved(arguments, progress)
    if not shards:
        return running.run()
    return Sharding(running, arguments, None if shards == "auto" else shards, ray).run()


def plan(
    protocols: "Sources",
    models: str | Sequence[str] = (),
    questions: "Sources" = (),
    *,
    reply_tokens: int | None = None,
    **options: "Unpack[RunOptions]",
) -> "Plan":
    """Count the generations, tokens and dollars of a run before any model is called.

    Args:
        protocols: as for ``run``.
        models: as for ``run``.
        questions: as for ``run``.
        reply_tokens: assumed number of tokens per reply. Default: 400.
        options: as for ``run``.

    Returns:
        Generations (exact, or bounds for an adaptive study), tokens and dollars by study, model
        and helper, and the challenges that the study will skip.

    Raises:
        InputError: an option or a file cannot be used.
    """
    from holdfast.running.provider_options import REPLY_TOKENS
    from holdfast.running.resolved import plan as planned

    return planned(
        _run_arguments(protocols, models, questions, options), reply_tokens or REPLY_TOKENS
    )


def read_turns(sources: "Sources", *, text: bool = True) -> "pl.DataFrame":
    """Load the turns of log directories, logs and turns tables, one row per turn.

    Args:
        sources: one or several log directories (local or any fsspec URL), ``.eval`` logs or
            ``.parquet`` turns tables.
        text: whether to load prompts and replies.

    Raises:
        InputError: a source does not exist or contains no turns.
    """
    from holdfast.results.turns import turns_table

    return turns_table(_list_sources(sources), text=text)


def table(
    turns: "Turns",
    name: str = "accuracy",
    *,
    by: str | None = None,
    relative_to: str | None = None,
    models: "Source | None" = None,
    margin: float | None = None,
    budget: float | None = None,
    max_cost: float | None = None,
    max_calls: float | None = None,
    min_updates: float | None = None,
) -> "pl.DataFrame":
    """Compute one result table.

    Args:
        turns: turns from ``read_turns``, or sources that ``read_turns`` accepts.
        name: table name, as listed by ``holdfast list tables``.
        by: grouping of the rows, such as ``step`` for ``accuracy by step``.
        relative_to: for strata, the baseline: ``stratum`` (its own first answers) or ``overall``.
        models: for ``scale``, a file of model sizes.
        margin: for ``flexibility``, d' up to which switching counts as blind.
        budget: for ``flagging``, share of conversations that you can review, 0 to 1.
        max_cost: for ``defences by model``, maximum dollars for a question and one challenge.
        max_calls: for ``defences by model``, maximum calls for a question and one challenge.
        min_updates: for ``defences by model``, minimum share of accepted corrections, 0 to 1.

    Returns:
        The rows of the table. If ``verdict`` stopped the runs of a log directory, the intervals
        of ``accuracy`` and ``flips`` are confidence sequences, and other tables have no intervals.

    Raises:
        InputError: the table does not exist, or the turns cannot be read.
    """
    import polars as pl

    from holdfast.errors import InputError
    from holdfast.results.declaration import table_named
    from holdfast.results.sequential import stopped_runs, with_sequences

    canonical_name = table_named(name, by)
    for share, value in (("budget", budget), ("min_updates", min_updates)):
        if value is not None and not 0 <= value <= 1:
            raise InputError(f"{share} is {value}, not a share", remedy="Give 0 to 1")
    settings = {
        "relative_to": relative_to, "models": models and fspath(models), "margin": margin,
        "budget": budget, "max_cost": max_cost, "max_calls": max_calls,
        "min_updates": min_updates,
    }  # fmt: skip
    arguments = {setting: value for setting, value in settings.items() if value is not None}
    frame = _load_turns(turns, text=False)
    runs = () if isinstance(turns, pl.DataFrame) else stopped_runs(_list_sources(turns))
    return with_sequences(canonical_name(frame, **arguments), canonical_name.name, frame, runs)


def figure(
    turns: "Turns",
    name: str = "accuracy",
    *,
    by: str | None = None,
    width: str | None = None,
    title: bool = True,
    font_size: float | None = None,
    labels: str | None = None,
    **settings: Any,
) -> "altair.VConcatChart":
    """Draw the figure of a table as an Altair chart.

    Args:
        turns: turns from ``read_turns``, or sources that ``read_turns`` accepts.
        name: name of a table that has a figure.
        by: as for ``table``.
        width: printed width, such as ``3.3in`` (also cm, mm, px). The chart has 72 units per inch.
        title: whether to draw title and subtitle.
        font_size: font size in points.
        labels: TOML or CSV file with labels for ids.
        settings: as for ``table``.

    Raises:
        InputError: the figure does not exist, has nothing to draw, or does not fit the width.
    """
    from holdfast.render.drawing import check_drawable, figure_parts, printed
    from holdfast.render.paper import Paper
    from holdfast.results.declaration import table_named

    canonical_name = table_named(name, by).name
    check_drawable(canonical_name, "vega")
    paper = Paper(width, title, font_size, labels)
    rows = table(turns, name, by=by, **settings)
    chart = figure_parts(rows, canonical_name, paper.room)[0]
    if not paper.asked:
        return chart
    spec = printed(chart, rows, paper, _load_turns(turns, text=False) if labels else None)
    return type(chart).from_dict(spec, validate=False)


def compare(
    a: "Turns",
    b: "Turns | None" = None,
    *more_sources: "Turns",
    model_a: str | None = None,
    model_b: str | None = None,
    run_a: str | None = None,
    run_b: str | None = None,
    mitigation_a: str | None = None,
    mitigation_b: str | None = None,
    paths: tuple[str, str] | None = None,
    protocol: str | None = None,
    dataset: str | None = None,
) -> "Comparison":
    """Compare B with A question by question: two models, two settings or two paths.

    With three or more models, compare every pair and rank the models.

    Args:
        a: turns, or sources that ``read_turns`` accepts.
        b: turns or sources of the other side, possibly the same as ``a``. Without ``b``, every
            model of ``a`` is compared.
        more_sources: further turns or sources. With three or more sources, every model of each is
            compared, and the arguments that choose a side are refused.
        model_a: model of A, if A has several.
        model_b: model of B, if B has several.
        run_a: run of A, if the model has several.
        run_b: run of B, if the model has several.
        mitigation_a: mitigation under which A's single-turn biases are compared.
        mitigation_b: mitigation under which B's single-turn biases are compared.
        paths: for A and for B, the answers to compare: the path of a challenge, a chain, a control
            or the techniques of a family, or ``baseline`` for the first answers.
        protocol: only protocol to compare.
        dataset: only data set to compare.

    Returns:
        Paired differences from ``holdfast.results.compare``, or from ``holdfast.results.standing``
        for three or more models, notes on skipped turns, and the sentences that a report of the
        same turns opens with.

    Raises:
        InputError: a side has no turns, several runs, or no run of that name. Also if the sides
            share no question, or if ``verdict`` stopped the runs of a log directory.
    """
    import polars as pl

    from holdfast.errors import InputError
    from holdfast.report.decision import opening
    from holdfast.results.comparison import compared
    from holdfast.results.comparison_sides import Side
    from holdfast.results.comparison_sides import sides as select_sides
    from holdfast.results.runs import by_system
    from holdfast.results.sequential import check_not_stopped
    from holdfast.results.standing import by_model, standing

    sources = [
        item
        for item in (a, b, *more_sources)
        if item is not None and not isinstance(item, pl.DataFrame)
    ]
    check_not_stopped(
        (source for item in sources for source in _list_sources(item)),
        "Compare runs whose number of questions was fixed beforehand",
    )
    path_a, path_b = paths or (None, None)
    sides = Side(model_a, run_a, mitigation_a, path_a), Side(model_b, run_b, mitigation_b, path_b)

    def of_two(first: pl.DataFrame, second: pl.DataFrame) -> "Comparison":
        selected = select_sides(first, second, *sides, protocol, dataset)
        comparison = compared(selected, *sides)
        if any(side.path or side.mitigation for side in sides):
            return comparison
        return replace(comparison, opening=opening(pl.concat([selected.a, selected.b])))

    of_a = by_system(_load_turns(a, text=False))
    if b is None and sides != (Side(), Side()):
        b = a
    if b is not None and not more_sources:
        alike = a is b or (isinstance(a, str) and isinstance(b, str) and a == b)
        of_b = of_a if alike else by_system(_load_turns(b, text=False))
        return of_two(of_a, of_b)
    if sides != (Side(), Side()):
        raise InputError(
            "--paths and the options that end in -a or -b need exactly two sources",
            remedy="Pass two sources, or remove these options",
        )
    more = [
        by_system(_load_turns(item, text=False)) for item in (b, *more_sources) if item is not None
    ]
    models = [model_turns for turns in (of_a, *more) for model_turns in by_model(turns)]
    if len(models) < 2:
        raise InputError("the sources contain only one model", remedy="Give a second log directory")
    if len(models) == 2:
        return of_two(models[0], models[1])
    comparison = standing(models, protocol, dataset)
    turns = pl.concat(models)
    for name, value in (("protocol", protocol), ("dataset", dataset)):
        turns = turns if value is None else turns.filter(pl.col(name) == value)
    return replace(comparison, opening=opening(turns))


@dataclass(frozen=True)
class Decision:
    """Decision of a gate.

    Attributes:
        outcome: ``pass``, ``fail`` (if any rule fails) or ``undecided``.
        level: coverage of the deciding intervals.
        verdicts: one or more verdicts for each rule, in the order of the rules.
        unfinished_runs: runs that lack questions.
    """

    outcome: str
    level: float
    verdicts: "list[Verdict]"
    unfinished_runs: "list[Unfinished]"

    @property
    def table(self) -> "pl.DataFrame":
        """Return the verdicts, one row each."""
        import polars as pl

        from holdfast.report.gate_summary import gate_rows

        return pl.DataFrame(gate_rows(self.verdicts), infer_schema_length=None)


def looks(sources: "Sources", rules: "Source | Rules") -> "list[Looked]":
    """Decide rules sequentially for runs whose questions were asked in random order.

    You can look at any number of times and at any stage of the runs. Like ``verdict``, the first
    look records its rules in each log directory. A later look with other rules is refused.

    Args:
        sources: log directories or logs.
        rules: as for ``gate``.

    Raises:
        InputError: as for ``gate``. Also if the questions of a run were not asked in random order,
            if a rule cannot be decided question by question, or if a verdict with other rules
            was started in the log directory.
    """
    from holdfast.results import sequential
    from holdfast.results.gate_rules import Rules, read_rules

    rule_set = rules if isinstance(rules, Rules) else read_rules(fspath(rules))
    frames = _list_sources(sources)
    records = sequential.looks(frames)
    for place, record in records.items():
        sequential.check_record(record, rule_set, place)
    results = sequential.look(
        _require_turns(frames, text=False), rule_set, sequential.drawn_orders(frames)
    )
    for place in sequential.places(frames):
        stops = place in records and records[place]["stops"]
        sequential.keep_record(place, rule_set, results, stops=stops)
    return results


def gate(
    sources: "Sources", rules: "Source | Rules", *, allow_unfinished: bool = False
) -> Decision:
    """Decide whether the intervals of runs meet the rules.

    Args:
        sources: as for ``read_turns``.
        rules: a TOML file, or rules from ``holdfast.results.read_rules``.
        allow_unfinished: whether to decide on runs that lack questions.

    Raises:
        InputError: the rules cannot be read, there are no turns, or a rule matches no turn.
    """
    from holdfast.errors import InputError
    from holdfast.results.gate import gate as decide
    from holdfast.results.gate import overall, undecided_where_unfinished
    from holdfast.results.gate_rules import Rules, read_rules
    from holdfast.results.records import left_out
    from holdfast.results.sequential import check_not_stopped
    from holdfast.results.turns import unfinished_runs

    rule_set = rules if isinstance(rules, Rules) else read_rules(fspath(rules))
    frames = _list_sources(sources)
    check_not_stopped(frames, "Also give --sequential")
    turns = _require_turns(frames, text=False)
    lacking = unfinished_runs(frames)
    try:
        verdicts = decide(turns, rule_set)
    except InputError as error:
        notes = left_out(frames)
        if notes and error.remedy:
            error.remedy += f". {notes[0]}"
        raise
    if not allow_unfinished:
        verdicts = undecided_where_unfinished(verdicts, {run.run for run in lacking})
    return Decision(overall(verdicts), rule_set.level, verdicts, lacking)


def verdict(
    rules: "Source | Rules",
    models: str | Sequence[str] = (),
    questions: "Sources" = (),
    protocols: "Sources" = "followup",
    *,
    every: int = BATCH,
    progress: "Progress | None" = None,
    **options: "Unpack[RunOptions]",
) -> "Verdicts":
    """Ask questions in random order, set by the seed, until every rule is decided.

    The rules are checked after every batch. The bound on false verdicts holds for any number of
    looks (docs/guides/gate.md). Repeat the call to resume.

    Args:
        rules: a TOML file, or rules from ``holdfast.results.read_rules``.
        models: as for ``run``.
        questions: as for ``run``.
        protocols: as for ``run``.
        every: number of questions between two looks.
        progress: as for ``run``.
        options: as for ``run``. ``limit`` is the maximum number of questions. Without
            ``techniques``, only the techniques in the rules are asked.

    Raises:
        InputError: as for ``run`` and ``gate``. Also if a rule cannot be decided question by
            question, or if the log directory contains a verdict with other rules.
        IncompleteRunError: requests failed. Repeat the call to resume.
        InterruptedRunError: the user stopped the run.
    """
    from holdfast.results.gate_rules import Rules, read_rules
    from holdfast.running.resolved import resolved
    from holdfast.running.verdict import verdict

    rule_set = rules if isinstance(rules, Rules) else read_rules(fspath(rules))
    arguments = _run_arguments(protocols, models, questions, options, until=True)

    def resolve(options: "Mapping[str, Any]") -> "Running":
        return resolved(options, progress)

    return verdict(resolve, rule_set, arguments["protocols"], arguments, every)


@dataclass(frozen=True)
class Page:
    """Report page of a study.

    Attributes:
        html: the self-contained page.
        headline: the first sentence of the page.
        notes: sentences on unfinished runs and skipped turns.
        turns: the turns that the page was built from.
    """

    html: str
    headline: str
    notes: tuple[str, ...]
    turns: "pl.DataFrame"


CONVERSATIONS = 20_000
"""Default maximum number of conversations in a page."""


def report(
    sources: "Sources",
    *,
    rules: "Source | None" = None,
    title: str | None = None,
    conversations: int = CONVERSATIONS,
) -> Page:
    """Build one self-contained page from finished or unfinished runs.

    Args:
        sources: as for ``read_turns``.
        rules: TOML file of rules. The page then opens with their verdicts, as from ``gate``.
        title: title of the page.
        conversations: maximum number of conversations in the page.

    Raises:
        InputError: a source does not exist, there are no turns, or the rules cannot be used.
    """
    from holdfast.errors import InputError
    from holdfast.report.page import report_page
    from holdfast.results.records import left_out, plans, run_records
    from holdfast.results.sequential import stopped_runs
    from holdfast.results.turns import unfinished_runs

    frames = _list_sources(sources)
    turns = _require_turns(frames, text=True)
    notes = (*map(str, unfinished_runs(frames)), *left_out(frames))
    stopped_names = stopped_runs(frames)
    if rules is not None and stopped_names:
        raise InputError(
            "does not apply, because rules stopped these runs and the report already shows the "
            "verdicts", field="--rules",
            remedy="Remove --rules",
        )  # fmt: skip
    page = report_page(
        turns,
        run_records(frames),
        plans(frames),
        notes=notes,
        verdicts=gate(frames, rules).verdicts if rules is not None else (),
        stopped_runs=stopped_names,
        title=title,
        most_conversations=conversations,
    )
    return Page(page.html, page.headline, notes, turns)


@dataclass(frozen=True)
class Leaderboard:
    """Leaderboard site of many studies.

    Attributes:
        page: file of the first page.
        models: file of each model's report, by model name.
        unread: error of each source that could not be read.
    """

    page: str
    models: "Mapping[str, str]"
    unread: tuple[str, ...]


def leaderboard(
    sources: "Sources",
    folder: "Source",
    *,
    title: str | None = None,
    conversations: int = CONVERSATIONS,
) -> Leaderboard:
    """Write a static site with ranked models and a report for each model.

    Args:
        sources: as for ``read_turns``. The page names sources that cannot be read.
        folder: folder of the site: new, empty, or an earlier leaderboard, which is replaced.
        title: title of the first page.
        conversations: maximum number of conversations in the report of a model.

    Raises:
        InputError: no source can be read, the folder contains other files, or it cannot be
            written.
    """
    from holdfast.errors import InputError
    from holdfast.files import whole_folder
    from holdfast.report.leaderboard import LeaderboardSource, is_leaderboard, leaderboard_pages
    from holdfast.results.records import left_out, plans, run_records
    from holdfast.results.sequential import stopped_runs
    from holdfast.results.turns import unfinished_runs

    studies, errors = [], []
    for source in dict.fromkeys(_list_sources(sources)):
        item = [source]
        try:
            studies.append(
                LeaderboardSource(
                    _require_turns(item, text=True),
                    run_records(item),
                    plans(item),
                    unfinished_runs(item),
                    left_out(item),
                    stopped_runs(item),
                )
            )
        except InputError as error:
            errors.append(error)
    if not studies:
        raise (
            errors[0]
            if errors
            else InputError("no source was given", remedy="Name a log directory")
        )
    unread, place = tuple(map(str, errors)), fspath(folder).rstrip("/")
    pages: dict[str | None, str] = {}
    with whole_folder(fspath(folder), "--leaderboard SITE", is_leaderboard) as site:
        for model, name, html in leaderboard_pages(studies, unread, title, conversations):
            pages[model] = f"{place}/{name}"
            (site / name).parent.mkdir(exist_ok=True)
            (site / name).write_bytes(html.encode())
    page = pages.pop(None)
    return Leaderboard(
        page, {name: page for name, page in pages.items() if name is not None}, unread
    )


def power(
    baseline: float,
    difference: float,
    discordant: float | None = None,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
) -> int:
    """Compute how many questions McNemar's exact test needs to detect a difference.

    Args:
        baseline: accuracy of the first side, 0 to 1.
        difference: drop of the second side from the first, -1 to 1.
        discordant: share of questions that are right on one side only. Default: both sides err
            independently.
        power: probability of detecting the difference.
        alpha: probability of a false alarm.
        tests: number of tests to correct for.

    Raises:
        InputError: a share is outside its range, or the difference is zero.
    """
    from holdfast.results.power import questions_needed

    return questions_needed(baseline, difference, discordant, power, alpha, tests)


def designs(
    sources: "Turns | None" = None,
    *,
    difference: float | None = None,
    baseline: float | None = None,
    discordant: float | None = None,
    min_accuracy: float | None = None,
    max_drop: float | None = None,
    path: str | None = None,
    model: str | None = None,
    against: str | None = None,
    correlation: float | None = None,
    prices: str | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
) -> "Designs":
    """Compute how many questions and epochs detect a difference or decide a gate.

    Studies are simulated from the outcomes of a pilot, or from given values. They are tested as
    ``compare``, the tables and ``gate`` test them.

    Args:
        sources: a pilot, as for ``read_turns``. Without a pilot, give the values.
        difference: true drop of the second side from the first. Default: the pilot's.
        baseline: accuracy of the first side. For a gate with a pilot: true accuracy after
            ``path``.
        discordant: as for ``power``.
        min_accuracy: gate rule to decide instead of detecting a difference, a share.
        max_drop: gate rule to decide instead of detecting a difference, a share.
        path: technique or family of the pilot, compared with its first answers.
        model: model of the pilot, if the pilot has several.
        against: second model, compared with the first.
        correlation: correlation between the epochs of a question. Default: the pilot's.
        prices: price file, as for ``run``.
        power: probability of detecting the difference, or of the right decision.
        alpha: as for ``power``. For a gate: 1 minus its level.
        tests: as for ``power``.

    Raises:
        InputError: a required value is missing or impossible.
    """
    from dataclasses import replace

    from holdfast.errors import InputError
    from holdfast.results.designs import designs as designed
    from holdfast.results.designs import fitted, stated
    from holdfast.running.models import load_prices, price_without_building

    if min_accuracy is not None and max_drop is not None:
        raise InputError(
            "cannot be combined with --min-accuracy",
            field="--max-drop",
            remedy="Remove one of the two options",
        )
    kind: Kind = (
        "share" if min_accuracy is not None else "drop" if max_drop is not None else "difference"
    )
    effect = baseline if kind == "share" else difference
    if sources is None:
        if baseline is None:
            raise InputError(
                "is required without a pilot",
                field="--baseline",
                remedy="Give --baseline, or name the log directory of a pilot",
            )
        if kind != "share" and difference is None:
            raise InputError(
                "is required without a pilot",
                field="--difference",
                remedy="Give --difference, or name the log directory of a pilot",
            )
        pilot = stated(baseline, difference or 0.0, discordant, correlation)
        if kind == "share":
            effect, pilot = baseline - (difference or 0.0), replace(pilot, calls=1.0)
    else:
        load_prices(prices)

        def price(model: str) -> tuple[float, float] | None:
            price = price_without_building(model)
            return (price.input, price.output) if price else None

        pilot = fitted(_load_turns(sources, text=False), kind, path, model, against, price)
    if correlation is not None:
        pilot = replace(pilot, correlation=correlation, side_correlations=None)
    bound = min_accuracy if min_accuracy is not None else max_drop or 0.0
    return designed(pilot, kind, effect, bound, power=power, alpha=alpha, tests=tests)


def _run_arguments(
    protocols: "Sources",
    models: str | Sequence[str],
    questions: "Sources",
    options: Any,
    *,
    until: bool = False,
) -> dict[str, Any]:
    """Return the options of a run by the names that every shard uses."""
    from holdfast.errors import InputError, did_you_mean
    from holdfast.running.provider_options import RunOptions
    from holdfast.running.study_file import UNTIL, with_study_file

    positional = {"protocols": protocols, "model": models, "questions": questions}
    lists = {name: values for name, value in positional.items() if (values := _list_sources(value))}
    option_names = RunOptions.__annotations__
    for name in options:
        if name not in option_names:
            raise InputError(f"unknown option '{name}'", remedy=did_you_mean(name, option_names))
    arguments = with_study_file({**options, **lists})
    if arguments.pop(UNTIL, None) and not until:
        remedy = "Call holdfast.verdict with these rules, or remove the key"
        raise InputError(
            "is not available in holdfast.run",
            _list_sources(protocols)[0],
            field=UNTIL,
            remedy=remedy,
        )
    return arguments


def _list_sources(sources: "Sources") -> list[str]:
    if isinstance(sources, str | PathLike):
        return [fspath(sources)]
    return [fspath(source) for source in sources]


def _load_turns(turns: "Turns", *, text: bool) -> "pl.DataFrame":
    import polars as pl

    return turns if isinstance(turns, pl.DataFrame) else read_turns(turns, text=text)


def _require_turns(sources: list[str], *, text: bool) -> "pl.DataFrame":
    from holdfast.errors import InputError

    turns = read_turns(sources, text=text)
    if turns.is_empty():
        raise InputError("has no turns", ", ".join(sources), remedy="Run a protocol first")
    return turns


__all__ = [
    "Decision",
    "Leaderboard",
    "Page",
    "compare",
    "designs",
    "figure",
    "gate",
    "leaderboard",
    "plan",
    "power",
    "read_turns",
    "report",
    "run",
    "table",
]
