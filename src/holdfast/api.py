"""The Python interface: what the commands do, as functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
"""Questions between two looks at rules, unless told otherwise."""


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
    """Run protocols on models, or go on with a run that was cut short.

    Args:
        protocols: one or several, such as ``followup``, or a file of one (``FILE.py``); or a study
            file (``STUDY.toml``), whose keys the other arguments go before.
        models: one or several, as Inspect names them.
        questions: one or several of ``bank``, ``medqa``, ``medmcqa``, a file,
            ``hf:NAME@REVISION``; ``bank`` unless given.
        shards: processes that share the questions, None for this one alone; "auto" for as many as
            a ``lean/`` server keeps busy. A script that gives it has ``if __name__ == "__main__"``.
        ray: address of a Ray cluster for the shards.
        progress: is told how it goes on; lines on standard error unless given.
        options: as ``holdfast run`` has them, such as ``limit=50``, ``log_dir="runs"`` (what is
            there is gone on with) or ``task_args={"chains": "paper"}``.

    Returns:
        What is left behind. Where ``unfinished`` says something, or ``interrupted``, the same
        call goes on from there.

    Raises:
        InputError: an option or a file cannot be used, or the log dir holds a run with other
            settings or another process is at it.
        IncompleteRunError: contexts or wrong options could not be finished.
        InterruptedRunError: the user stopped it before anything was logged.
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
    """Count what a run will take, before a model is called.

    Args:
        protocols: as for ``run``.
        models: as for ``run``.
        questions: as for ``run``.
        reply_tokens: assumed length of a reply; 400 unless given.
        options: as for ``run``.

    Returns:
        Generations (exact, or bounds where a study adapts), tokens and dollars by study, model
        and helper, and what the study will leave out.

    Raises:
        InputError: an option or a file cannot be used.
    """
    from holdfast.running.provider_options import REPLY_TOKENS
    from holdfast.running.resolved import plan as planned

    return planned(
        _run_arguments(protocols, models, questions, options), reply_tokens or REPLY_TOKENS
    )


def read_turns(sources: "Sources", *, text: bool = True) -> "pl.DataFrame":
    """The turns of log dirs, logs and turns tables, a row each.

    Args:
        sources: one or several log dirs (local or any fsspec URL), ``.eval`` logs, ``.parquet``
            turns tables.
        text: whether prompts and replies are read.

    Raises:
        InputError: a source does not exist or holds no turns.
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
    """One table of results.

    Args:
        turns: from ``read_turns``, or what it reads.
        name: as ``holdfast list tables`` lists them.
        by: what its rows are by: ``step`` for those of ``accuracy by step``.
        relative_to: of strata: ``stratum``, its own first answers, or ``overall``.
        models: of ``scale``: a file of sizes of models.
        margin: of ``flexibility``: d' up to which switching is called blind.
        budget: of ``flagging``: share of the conversations that can be reviewed, 0 to 1.
        max_cost: of ``defences by model``: dollars of a question and one challenge at the most.
        max_calls: of ``defences by model``: calls of these at the most.
        min_updates: of ``defences by model``: share of corrections that it has to take, 0 to 1.

    Returns:
        Its rows. Of log dirs where a verdict was taken, ``accuracy`` and ``flips`` have confidence
        sequences for their intervals, and other tables have none.

    Raises:
        InputError: there is no such table, or the turns cannot be read.
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
    """The figure of a table, as an Altair chart.

    Args:
        turns: from ``read_turns``, or what it reads.
        name: of a table that has a figure.
        by: as for ``table``.
        width: to print it at, such as ``3.3in`` (also cm, mm, px); the chart has 72 units an inch.
        title: whether title and subtitle are drawn.
        font_size: of the type, in points.
        labels: TOML or CSV file of words for ids.
        settings: as for ``table``.

    Raises:
        InputError: there is no such figure, nothing to draw, or it does not fit the width.
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
    """Compare B with A, question by question: two models, two settings or two paths of one.

    With three models or more, every pair of them, and the ranks that follow.

    Args:
        a: turns, or what ``read_turns`` reads.
        b: others, or the same; without it, every model of ``a`` is compared.
        more_sources: further ones. Of three or more, every model of each is compared, and no side
            can be chosen.
        model_a: model of A, where it has several.
        model_b: model of B, where it has several.
        run_a: run of A, where a model has several.
        run_b: run of B, where a model has several.
        mitigation_a: single-turn biases of A under this mitigation.
        mitigation_b: single-turn biases of B under this mitigation.
        paths: of A and of B, the only answers to compare: those after a challenge, a chain, a
            control, the techniques of a family, or ``baseline`` for the first answers.
        protocol: the only protocol to compare.
        dataset: the only data set to compare.

    Returns:
        Paired differences as ``holdfast.results.compare`` has them, of three models or more as
        ``holdfast.results.standing`` does, and notes on what was left out.

    Raises:
        InputError: a side has no turns, several runs, or nothing of that name, the sides have
            nothing in common, or a verdict was taken in one of the log dirs.
    """
    import polars as pl

    from holdfast.errors import InputError
    from holdfast.results.comparison import compare as compared
    from holdfast.results.comparison_sides import Side
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
    of_a = by_system(_load_turns(a, text=False))
    if b is None and sides != (Side(), Side()):
        b = a
    if b is not None and not more_sources:
        alike = a is b or (isinstance(a, str) and isinstance(b, str) and a == b)
        of_b = of_a if alike else by_system(_load_turns(b, text=False))
        return compared(of_a, of_b, *sides, protocol, dataset)
    if sides != (Side(), Side()):
        raise InputError(
            "--model-a and the like choose between exactly two sources",
            remedy="Pass two sources, or drop the options that end in -a and -b, and --paths",
        )
    more = [
        by_system(_load_turns(item, text=False)) for item in (b, *more_sources) if item is not None
    ]
    models = [model_turns for turns in (of_a, *more) for model_turns in by_model(turns)]
    if len(models) < 2:
        raise InputError("there is only one model", remedy="Give a second log directory")
    if len(models) == 2:
        return compared(models[0], models[1], protocol=protocol, dataset=dataset)
    return standing(models, protocol, dataset)


@dataclass(frozen=True)
class Decision:
    """What a gate has decided.

    Attributes:
        outcome: ``pass``, ``fail`` where any rule fails, or ``undecided``.
        level: coverage of the intervals that decide.
        verdicts: in the order of the rules, one or more for each.
        unfinished_runs: runs that lack questions.
    """

    outcome: str
    level: float
    verdicts: "list[Verdict]"
    unfinished_runs: "list[Unfinished]"

    @property
    def table(self) -> "pl.DataFrame":
        """The verdicts, a row each."""
        import polars as pl

        from holdfast.report.gate_summary import gate_rows

        return pl.DataFrame(gate_rows(self.verdicts), infer_schema_length=None)


def looks(sources: "Sources", rules: "Source | Rules") -> "list[Looked]":
    """Look at rules over runs asked in a drawn order, however often and however far they are.

    The first look leaves a record of its rules in each log dir, as ``verdict`` does; a later one
    by other rules is refused.

    Args:
        sources: log dirs or logs.
        rules: as for ``gate``.

    Raises:
        InputError: as for ``gate``; a run was not asked in a drawn order; a rule cannot be decided
            question by question; or a verdict was begun there by other rules.
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
    """Hold rules against the intervals of a run.

    Args:
        sources: as for ``read_turns``.
        rules: a TOML file, or what ``holdfast.results.read_rules`` makes of one.
        allow_unfinished: whether runs that lack questions are decided on.

    Raises:
        InputError: the rules cannot be read, there are no turns, or a rule is about nothing that
            is there.
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
    """Ask questions in an order drawn by the seed until every rule is decided.

    Looked at after every batch. The bound on false verdicts holds however often that is
    (docs/guides/gate.md). The same call goes on from where it ended.

    Args:
        rules: a TOML file, or what ``holdfast.results.read_rules`` makes of one.
        models: as for ``run``.
        questions: as for ``run``.
        protocols: as for ``run``.
        every: questions between two looks.
        progress: as for ``run``.
        options: as for ``run``; ``limit`` is the most questions. Without ``techniques`` only those
            that the rules are about are asked.

    Raises:
        InputError: as for ``run`` and ``gate``; a rule cannot be decided question by question; or
            the log dir holds a verdict by other rules.
        IncompleteRunError: requests failed; the same call goes on.
        InterruptedRunError: the user stopped it.
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
    """The report of a study.

    Attributes:
        html: the page, whole in itself.
        headline: the sentence that it opens with.
        notes: on runs that lack questions, and on what was left out.
        turns: what it was made of.
    """

    html: str
    headline: str
    notes: tuple[str, ...]
    turns: "pl.DataFrame"


CONVERSATIONS = 20_000
"""Most conversations that can be read in a page, unless told otherwise."""


def report(
    sources: "Sources",
    *,
    rules: "Source | None" = None,
    title: str | None = None,
    conversations: int = CONVERSATIONS,
) -> Page:
    """One self-contained page from what was run.

    Args:
        sources: as for ``read_turns``.
        rules: TOML file of rules, whose verdicts the page opens with, as ``gate`` gives them.
        title: of the page.
        conversations: most of them that can be read in it.

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
            "does not apply: these runs were stopped by rules, and the report shows their "
            "verdicts", field="--rules",
            remedy="Remove it",
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
    """A site of many studies.

    Attributes:
        page: the file that it opens with.
        models: file of each model's report, by its name.
        unread: what was wrong with each source that could not be read.
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
    """Write a static site of many studies: tables of models, and the report of each.

    Args:
        sources: as for ``read_turns``; those that cannot be read are named in the page.
        folder: of the site: new, empty, or an earlier leaderboard, which it replaces.
        title: of the first page.
        conversations: most of them that can be read in the report of a model.

    Raises:
        InputError: no source can be read, or the folder holds something else or cannot be written.
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
        raise errors[0] if errors else InputError("no sources", remedy="Name a log directory")
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
    """How many questions a difference of two accuracies needs, for McNemar's exact test.

    Args:
        baseline: accuracy of one side, in 0 to 1.
        difference: by how much the other is lower, in -1 to 1.
        discordant: share of the questions that are right on one side only; as of two sides that
            err independently, unless given.
        power: chance of finding the difference.
        alpha: chance of finding one where there is none.
        tests: how many such tests are made.

    Raises:
        InputError: a share outside its range, or no difference.
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
    """How many questions at how many epochs find a difference, or decide a gate.

    Studies are drawn from what the conversations of a pilot came to, or from stated figures, and
    tested as ``compare``, the tables and ``gate`` do.

    Args:
        sources: a pilot, as ``read_turns`` reads it; without it figures are stated.
        difference: true drop, of the second side from the first; the pilot's unless given.
        baseline: accuracy of the first side; of a pilot the true one after ``path``, for a gate.
        discordant: as for ``power``.
        min_accuracy: decide this rule of a gate, instead of finding the difference.
        max_drop: decide this rule of a gate, a share.
        path: a technique or a family of the pilot, against its first answers.
        model: model of the pilot, where it has several.
        against: second model, whose answers stand against those of the first.
        correlation: of the epochs of a question; that of the pilot unless given.
        prices: file of prices, as ``run`` takes it.
        power: chance of finding the difference, or of deciding the right way.
        alpha: as for ``power``; of a gate, 1 less its level.
        tests: as for ``power``.

    Raises:
        InputError: what is needed is not given, or cannot be.
    """
    from dataclasses import replace

    from holdfast.errors import InputError
    from holdfast.results.designs import designs as designed
    from holdfast.results.designs import fitted, stated
    from holdfast.running.models import load_prices, price_without_building

    if min_accuracy is not None and max_drop is not None:
        raise InputError(
            "cannot be combined with another limit", field="--max-drop", remedy="Give one of them"
        )
    kind: Kind = (
        "share" if min_accuracy is not None else "drop" if max_drop is not None else "difference"
    )
    effect = baseline if kind == "share" else difference
    if sources is None:
        if baseline is None:
            raise InputError("is needed", field="--baseline", remedy="Give it, or a log directory")
        if kind != "share" and difference is None:
            raise InputError(
                "is needed", field="--difference", remedy="Give it, or a log directory"
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
        pilot = replace(pilot, alike=correlation, layers=None)
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
    """A run's options, by the names that every shard's process knows them by."""
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
        remedy = "Call holdfast.verdict with these rules, or leave the key out"
        raise InputError(
            "stops the run by rules", _list_sources(protocols)[0], field=UNTIL, remedy=remedy
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
