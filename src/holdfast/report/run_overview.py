"""Overview of the runs: models, questions, dates, cost, and missing parts."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from holdfast.errors import counted
from holdfast.protocols.installed import PROTOCOLS
from holdfast.render.tables import one_line
from holdfast.results.arms import turns_of
from holdfast.results.first_answers import STUDY, apart
from holdfast.results.grid import Cell, Grid, Line, RowBlock, percent
from holdfast.results.missing import missing_replies, unlike_arms
from holdfast.results.readings import HANDED_OVER, missing
from holdfast.results.records import RunRecord, sent_otherwise
from holdfast.results.runs import defence_of, is_simulated, system_of
from holdfast.results.sequential import Stopped, with_sequences

_HEADERS = (
    "Questions", "Repeats", "Replies", "Unread %", "Refused %", "Failed", "Tokens in / out",
    "Cost", "Asked",
)  # fmt: skip
_PLAN_COLUMNS = ("Planned replies", "Planned cost")
_PLAN_NOTE = "Planned: estimate of holdfast run --dry-run for the newest command."
_SETTING_SHOWN = 400


@dataclass(frozen=True)
class Runs:
    """Overview of the runs for the page.

    Attributes:
        grid: a line for each run.
        missing: a sentence for each missing part.
        settings: heading, names and values of the settings of each run with a log.
        unfinished: whether a run lacks questions. None if the log of a run is missing.
    """

    grid: Grid
    missing: tuple[str, ...]
    settings: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    unfinished: bool | None


def runs(
    turns: pl.DataFrame,
    records: Mapping[str, RunRecord],
    plans: Sequence[Mapping[str, Any]],
    texts: Collection[str],
    stopped_runs: Sequence[Stopped] = (),
) -> Runs:
    """Build the overview from turns, logs and plans."""
    rows = _rows(turns)
    has_several = len({(system_of(row), row["dataset"], row["protocol"]) for row in rows}) < len(
        rows
    )
    names = [_name(row, with_run=has_several) for row in rows]
    headers = (*_HEADERS, *(_PLAN_COLUMNS if plans else ()))
    runs_without_log = sum(row["run"] not in records for row in rows)
    blocks: dict[str, list[Line]] = {}
    for row in rows:
        record = records.get(row["run"])
        label = one_line(row["protocol"] + (f" (run {row['run']})" if has_several else ""))
        cells = zip(headers, [*_cells(row, record), *_plan_cells(row, plans)], strict=False)
        counts = {"Replies": row["replies"]}
        line = Line(label, tuple(Cell(text, of=row, n=counts.get(head)) for head, text in cells))
        blocks.setdefault(_heading(row), []).append(line)
    grid = Grid(
        "Protocol",
        headers,
        tuple(RowBlock(heading, (tuple(lines),)) for heading, lines in blocks.items()),
        (
            f"Replies: generations of the model under test{_helper_phrase()}. A generation "
            "that several conversations share counts once. Unread: unparsed replies, which have "
            "no single answer, including refusals. Failed: turns without a reply, which count in "
            "no result. Cost: – if no price is known.",
            *((_PLAN_NOTE,) if plans else ()),
            *(
                [
                    f"Settings and dates are unknown for {counted(runs_without_log, 'run')}, "
                    "because you gave a turns table instead of the log directory."
                ]
                if runs_without_log
                else []
            ),
        ),
    )
    lacking = with_sequences(missing_replies(turns), "", turns, stopped_runs).to_dicts()
    missing = [
        line
        for row in rows
        for line in _missing_lines(row, records.get(row["run"]), lacking, texts=row["run"] in texts)
    ]
    settings = [
        (name, _settings(records[row["run"]]))
        for row, name in zip(rows, names, strict=True)
        if row["run"] in records
    ]
    missing += [
        f"{row['model']} was asked with other settings in {counted(row['n'], 'turn')}: "
        f"{row['sent_otherwise']}."
        for row in sent_otherwise(turns).iter_rows(named=True)
    ]
    lacks = [row["run"] in records and row["records"] < records[row["run"]].records for row in rows]
    unfinished = None if runs_without_log and not any(lacks) else any(lacks)
    return Runs(grid, tuple(missing), tuple(settings), unfinished)


def _rows(turns: pl.DataFrame) -> list[dict[str, Any]]:
    status, is_answer = pl.col("status"), ~apart()
    is_failed = status == "error"
    is_read = is_answer & ~is_failed
    is_unshared = ~pl.col("shared").fill_null(value=False)
    return (
        turns.group_by("run", "protocol", "model", "dataset", maintain_order=True)
        .agg(
            questions=pl.col("question").n_unique(),
            epochs=pl.col("epoch").n_unique(),
            records=pl.struct("question", "epoch").n_unique(),
            replies=is_unshared.sum(),
            read=is_read.sum(),
            unread=(is_read & missing()).sum(),
            refused=(is_read & missing() & (status == "refused")).sum(),
            handed_over=(is_read & (pl.col("rule") == HANDED_OVER)).sum(),
            failed=is_failed.sum(),
            no_answer=(is_read & (status == "parsed")).sum() == 0,
            input=pl.col("input_tokens").filter(is_unshared).sum(),
            output=pl.col("output_tokens").filter(is_unshared).sum(),
            cost=pl.col("cost").filter(is_unshared).sum(),
            priced=pl.col("cost").filter(is_unshared).is_not_null().any(),
            arms=pl.col("arm").n_unique(),
        )
        .to_dicts()
    )


def _heading(row: Mapping[str, Any]) -> str:
    mark = " [SIMULATED]" if is_simulated(row["model"]) else ""
    return one_line(f"{system_of(row)}{mark} on {row['dataset']}")


def _name(row: Mapping[str, Any], *, with_run: bool) -> str:
    run = f" (run {row['run']})" if with_run else ""
    return one_line(f"{system_of(row)} on {row['dataset']}: {row['protocol']}{run}")


def _cells(row: Mapping[str, Any], record: RunRecord | None) -> list[str]:
    replies_read = row["read"]
    return [
        f"{row['questions']:,}",
        f"{row['epochs']:,}",
        f"{row['replies']:,}",
        percent(row["unread"] / replies_read) if replies_read else "",
        percent(row["refused"] / replies_read) if replies_read else "",
        f"{row['failed']:,}",
        f"{row['input']:,} / {row['output']:,}",
        f"${row['cost']:,.2f}" if row["priced"] else "–",
        "not known" if record is None else _dates(record),
    ]


def _helper_phrase() -> str:
    return "".join(
        f" and, in {name}, of the {helper}"
        for name in PROTOCOLS
        for helper in turns_of(name).helpers
    )


def _plan_cells(row: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return planned replies and cost, including helpers whose replies are turns."""
    protocol = row["protocol"]
    dataset_plans = [plan for plan in plans if plan["dataset"] == row["dataset"]]
    model_plans = [
        plan
        for plan in dataset_plans
        if (plan["protocol"], plan["model"]) == (protocol, row["model"])
        and plan.get("defence", "none") == (defence_of(row["run"]) or "none")
    ]
    helpers = [f"{protocol}: {helper}" for helper in turns_of(protocol).helpers]
    helping = [plan for plan in dataset_plans if model_plans and plan["protocol"] in helpers][
        : len(helpers)
    ]
    plans_counted = [*model_plans[-1:], *helping]
    if not plans_counted:
        return ["", ""]
    most_calls, least_calls = (
        sum(plan[name] for plan in plans_counted) for name in ("generations", "at_least")
    )
    costs = [plan["cost"] for plan in plans_counted]
    return [
        f"{most_calls:,}" if least_calls == most_calls else f"{least_calls:,} to {most_calls:,}",
        "–" if None in costs else f"${sum(costs):,.2f}",
    ]


def _dates(record: RunRecord) -> str:
    days = [_day(moment) for moment in (record.start, record.end) if moment]
    return " to ".join(dict.fromkeys(days))


def _day(moment: str) -> str:
    try:
        return f"{datetime.fromisoformat(moment):%Y-%m-%d}"
    except ValueError:
        return one_line(moment)


def _missing_lines(
    row: Mapping[str, Any],
    record: RunRecord | None,
    lacking: Sequence[Mapping[str, Any]],
    *,
    texts: bool,
) -> list[str]:
    name, phrases = _name(row, with_run=False), []
    unlike = unlike_arms(
        lacking_study
        for lacking_study in lacking
        if all(lacking_study[key] == row[key] for key in STUDY)
    )
    if record is not None and row["records"] < record.records:
        left = record.records - row["records"]
        phrases.append(
            f"{name}: {left:,} of {record.records:,} questions (counting repeats) have not been "
            "asked yet. Repeat the command to resume."
        )
    if row["failed"]:
        phrases.append(f"{name}: {counted(row['failed'], 'turn')} failed and count in no result.")
    if row["no_answer"] and row["read"]:
        phrases.append(
            f"{name}: none of the {row['read']:,} replies could be parsed, so every accuracy is "
            "0. Read some replies below before you draw a conclusion."
        )
    elif row["unread"]:
        phrases.append(
            f"{name}: {row['unread']:,} of {row['read']:,} replies could not be parsed and "
            f"count as wrong{f'; {unlike}' if unlike else '.'}"
        )
    elif unlike:
        phrases.append(f"{name}: {unlike}")
    if row["handed_over"]:
        phrases.append(
            f"{name}: the model handed {row['handed_over']:,} of {row['read']:,} replies over to "
            "a person. They do not count as right."
        )
    if not texts:
        phrases.append(
            f"{name}: the texts were not stored (--no-text), so you cannot read the conversations."
        )
    return [one_line(line) for line in phrases]


def _settings(record: RunRecord) -> tuple[tuple[str, str], ...]:
    settings = {**record.settings, **{f"{k} (package)": v for k, v in record.versions.items()}}
    return tuple((one_line(name), _value(value)) for name, value in settings.items())


def _value(value: Any) -> str:
    text = one_line(value if isinstance(value, str) else json.dumps(value, default=str))
    return text if len(text) <= _SETTING_SHOWN else f"{text[:_SETTING_SHOWN]}…"
