"""What a terminal shows: tables, never cropped, and the summary of a run."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence

import polars as pl
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from holdfast.errors import counted, printable
from holdfast.protocols.medfuzz.published import medfuzz
from holdfast.results.grid import Grid, Row, percent

_BORDERS = 3
"""Signs that a further column takes beside its widest cell."""

_DROPPED = ("Sugg./other", "95% interval", "Change %", "Replicates", "At once %")
"""Columns that go first where a terminal is narrow; the turns before the last go after them."""

_STYLES = {"": "", "best": "bold", "worst": "italic"}


def fitted(table: Table, width: int) -> Table:
    """A summary without the columns that a terminal has no room for; the caption names them.

    Args:
        table: one cell a row in each column.
        width: of the terminal, in signs.
    """
    widths = [_width(column.header, column.cells) for column in table.columns]
    headers = [str(column.header) for column in table.columns]
    turns = [header for header in headers if header.startswith("Turn ")][:-1]
    left_out: list[str] = []
    for header in (*_DROPPED, *turns):
        if sum(widths) + _BORDERS * len(widths) + 1 <= width:
            break
        if header in headers:
            place = headers.index(header)
            del headers[place], widths[place]
            left_out.append(header)
    if not left_out:
        return table
    told = f"{table.caption} Not shown, for lack of width: {', '.join(left_out)}."
    narrow = Table(title=table.title, caption=Text(told), title_justify="left",
                   caption_justify="left")  # fmt: skip
    kept = [column for column in table.columns if str(column.header) in headers]
    for column in kept:
        narrow.add_column(column.header, justify=column.justify, overflow="fold")
    for row, *cells in zip(table.rows, *(column.cells for column in kept), strict=True):
        narrow.add_row(*cells, style=row.style, end_section=row.end_section)
    return narrow


def _width(header: object, cells: Iterable[object]) -> int:
    return max(cell_len(str(text)) for text in (header, *cells))


def terminal(grids: Sequence[Grid], width: int) -> Iterator[Table | Text]:
    """Tables of results as a terminal shows them, in parts where it is too narrow for one.

    Args:
        grids: as for ``markdown``.
        width: of the terminal, in signs.
    """
    for grid in grids:
        lines = [line for block in grid.blocks for group in block.groups for line in group]
        over = [name for name, n in grid.spans for _ in range(n)] or [""] * len(grid.columns)
        heads = [f"{span} {head}".strip() for span, head in zip(over, grid.columns, strict=True)]
        label = max(map(cell_len, (grid.corner, *(line.label for line in lines))), default=0)
        widths = [
            max(map(cell_len, (head, *(line.cells[n].text for line in lines))))
            for n, head in enumerate(heads)
        ]
        for columns in _parts(widths, width - min(label, width // 2) - _BORDERS - 1):
            yield _table(grid, heads, columns)
        legend = [f"Bold: best, italics: worst of {grid.compared}."] if grid.marked else []
        yield Text("\n".join(map(printable, [*legend, *grid.notes])))


def _parts(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Columns that stand beside each other."""
    part: list[int] = []
    for n, width in enumerate(widths):
        if part and sum(widths[m] + _BORDERS for m in part) + width + _BORDERS > room:
            yield part
            part = []
        part.append(n)
    yield part


def _table(grid: Grid, heads: Sequence[str], columns: Sequence[int]) -> Table:
    table = Table()
    table.add_column(Text(printable(grid.corner)), overflow="fold")
    for n in columns:
        table.add_column(Text(printable(heads[n])), justify="right", overflow="fold")
    for block in grid.blocks:
        if block.heading:
            table.add_section()
            table.add_row(Text(printable(block.heading), "bold"))
        for group in block.groups:
            table.add_section()
            for line in group:
                cells = [line.cells[n] for n in columns]
                table.add_row(
                    Text(printable(line.label)),
                    *(Text(printable(cell.text), _STYLES[cell.mark]) for cell in cells),
                )
    return table


def summary_table(accuracy: pl.DataFrame, flips: pl.DataFrame, title: str) -> Table:
    """One study's accuracies and flips, the families one below the other.

    Args:
        accuracy: rows of ``accuracy`` for one model, data set and protocol.
        flips: rows of ``flips`` for the same.
        title: the table's caption; data, never markup.
    """
    table = Table(title=Text(printable(title)), title_justify="left", caption_justify="left")
    table.caption = Text(
        "Accuracy with its 95% Wilson interval. Change: relative to the first answers. "
        "Flip: share of the right first answers that became wrong "
        "(to the suggested option / to another). Unread: replies with no readable answer."
    )
    table.add_column("Challenge", overflow="fold", min_width=24)
    for column in ("n", "Accuracy %", "95% interval", "Change %", "Flip %", "Sugg./other"):
        table.add_column(column, justify="right")
    table.add_column("Unread", justify="right")
    by_path = {row["path"]: row for row in flips.iter_rows(named=True)}
    rows: Sequence[Row] = accuracy.to_dicts()
    averages: dict[tuple[str, ...], Row] = {
        _block(row): row for row in rows if row["arm"] == "family-average"
    }
    blocks: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["arm"] != "family-average":
            blocks.setdefault(_block(row), []).append(row)
    chains = blocks.get(("compound", ""), [])
    if len(chains) > MOST_CHAINS:
        del blocks["compound", ""]
        table.caption.append(
            f" {len(chains)} chains of techniques are not shown: see 'holdfast table --table "
            "compounding'."
        )
    for block, members in sorted(blocks.items(), key=lambda item: _ARMS.index(item[0][0])):
        table.add_section()
        title = " ".join(part for part in block[1:] if part) or block[0]
        if block in averages:
            table.add_row(*_cells(f"{title} (average)", averages[block], None), style="bold")
        elif block[0] != "baseline":
            table.add_row(_HEADINGS.get(block[0], title), style="bold")
        for row in members:
            # what all members have in common is in the heading
            path = (
                str(row["path"]).rpartition(">")[2]
                if block[-1].startswith("with ")
                else (str(row["path"]).replace(">", " > "))
            )
            name = "first answer" if block[0] == "baseline" else f"  {path}"
            table.add_row(*_cells(name, row, by_path.get(row["path"])))
    return table


MOST_CHAINS = 12
"""Chains that the summary still shows one by one."""

_ARMS = ("baseline", "single-turn", "followup", "length", "compound", "")
_HEADINGS = {"length": "contexts of so many sentences", "compound": "compounding"}


def _block(row: Row) -> tuple[str, ...]:
    """What stands together: an arm; of it, a family and what is said against it."""
    arm, path = str(row["arm"]), str(row["path"])
    average = arm == "family-average"
    if average:
        arm = "single-turn" if row["depth"] == "shallow" else "followup"
    if arm not in ("single-turn", "followup"):
        return (arm if arm in _ARMS else "", "" if arm in _ARMS else arm)
    mitigation = path if average else path.rpartition(">")[0]
    return (arm, str(row["family"]), f"with {mitigation}" if mitigation else "")


def _cells(name: str, row: Row, flip: Row | None) -> list[Text]:
    first = row["arm"] == "baseline"
    cells = [
        name,
        str(row["n"]),
        _percent(row["accuracy"]),
        f"{_percent(row['low'])} to {_percent(row['high'])}",
        "" if first else _percent(row["relative_change"], signed=True),
        "" if flip is None else _percent(flip["flip_rate"]),
        "" if flip is None else f"{flip['right_to_suggested']}/{flip['right_to_other']}",
        str(row["unparsed"]),
    ]
    return [Text(printable(cell)) for cell in cells]


def _percent(value: object, *, signed: bool = False) -> str:
    if not isinstance(value, float) or math.isnan(value):
        return "n/a"
    return f"{100 * value:+.1f}" if signed else f"{100 * value:.1f}"


_SINGLE_SHOT = {
    "positive": ("conviction", "single-shot"),
    "negative": ("abstention", "single-shot-abstain"),
}
_TARGETS = {"positive": "right answer held", "negative": "abstention held"}


def conviction_summary(survival: pl.DataFrame, tax: pl.DataFrame, title: str) -> Table:
    """Targets held by turn, beside all options at once, and the conversation tax.

    Args:
        survival: rows of ``survival`` for one run.
        tax: rows of ``tax`` for the same.
        title: the table's caption; data, never markup.
    """
    turns = sorted(set(survival["turn"]))
    table = Table(title=Text(printable(title)), title_justify="left", caption_justify="left")
    table.caption = Text(
        "In percent of the questions. Turn t: the target was answered at every turn up to t. Tax: "
        "points from all options at once to the last turn, with its 95% interval, paired over "
        "questions. Unread: replies with no readable answer."
    )
    table.add_column("Target", overflow="fold", min_width=20)
    for header in ("n", "At once %", *(f"Turn {turn} %" for turn in turns), "Tax", "95% interval"):
        table.add_column(header, justify="right")
    table.add_column("Unread", justify="right")
    against = {(row["behaviour"], row["against"]): row for row in tax.iter_rows(named=True)}
    for (arm,), own in survival.group_by("arm", maintain_order=True):
        rows = {row["turn"]: row for row in own.iter_rows(named=True)}
        tolled = against.get(_SINGLE_SHOT[str(arm)])
        cells = [
            _TARGETS[str(arm)],
            str(own["n"].max()),
            percent(tolled["single_shot"]) if tolled else "n/a",
            *(percent(rows[turn]["survival"]) if turn in rows else "" for turn in turns),
            percent(tolled["tax"], signed=True) if tolled else "n/a",
            _interval(tolled, "") if tolled else "",
            str(own["lost_unread"].sum()),
        ]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def flexibility_sentence(row: Row) -> str:
    """What became of abstentions to which a right and a wrong option were offered.

    Args:
        row: a row of ``flexibility``.
    """
    if not row["n_correct"] or not row["n_incorrect"]:
        return f"{row['model']} on {row['dataset']}: no abstention at turn 1"
    told = "; ".join(
        f"{row[f'{side}_switches']} of {counted(row[f'n_{side}'], 'abstention')} switched to {what}"
        f" ({percent(row[f'{side}_rate'])}%)"
        for side, what in (("correct", "the right answer"), ("incorrect", "a wrong option"))
    )
    blind = "no better than blind switching" if row["blind"] else "not blind switching"
    low, high = row["d_prime_low"], row["d_prime_high"]
    return (
        f"{row['model']} on {row['dataset']}: {told}: {blind}, "
        f"d' {row['d_prime']:.2f} [{low:.2f}, {high:.2f}]"
    )


def _interval(row: Row, prefix: str) -> str:
    return " to ".join(percent(row[f"{prefix}{end}"], signed=True) for end in ("low", "high"))


def attack_table(attacks: pl.DataFrame, title: str) -> Table:
    """Accuracy after each number of attacks.

    Args:
        attacks: rows of ``attacks`` for one run.
        title: the table's caption; data, never markup.
    """
    table = Table(title=Text(printable(title)), title_justify="left", caption_justify="left")
    table.caption = Text(
        "Accuracy of the replicates after k attacks, with its 95% interval; replicates that ended "
        "in a model error are dropped. Flips: right answers that attack k flipped."
    )
    for header in ("Attacks k", "Questions", "Replicates", "Accuracy %", "95% interval", "Flips"):
        table.add_column(header, justify="right")
    for row in attacks.iter_rows(named=True):
        cells = (
            str(row["k"]),
            str(row["questions"]),
            str(row["replicates"]),
            percent(row["accuracy"]),
            f"{percent(row['low'])} to {percent(row['high'])}",
            str(row["turned"]) if row["k"] else "",
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def attack_sentences(summary: Row, faithfulness: pl.DataFrame) -> list[str]:
    """What the attacks came to, and whether the reasoning owns up to them.

    Args:
        summary: a row of ``attack-summary``.
        faithfulness: rows of ``faithfulness`` for the same run.
    """
    model = summary["model"]
    attacked = summary["failed"] + summary["succeeded"]
    told = [
        f"{model}: {summary['succeeded']} of {counted(attacked, 'attacked answer')} flipped"
        + (
            f" ({percent(summary['success_rate'])}% [{percent(summary['low'])}, "
            f"{percent(summary['high'])}])"
            if attacked
            else ""
        )
        + f"; first answer wrong {summary['first_wrong']}, model errors {summary['model_errors']}"
    ]
    if summary["attempts_needed"] is not None:
        told[0] += f"; {summary['attempts_needed']:.1f} attempts needed on average"
    if summary["invalid_tries"]:
        told.append(
            f"{model}: {summary['invalid_tries']} of {counted(summary['tries'], 'modification')} "
            f"by the attacker could not be used ({_reasons(summary['reasons'])}); "
            f"{counted(summary['invalid_attempts'], 'attempt')} without a valid modification"
        )
    for row in faithfulness.iter_rows(named=True):
        if row["n"]:
            told.append(
                f"{model}: of {counted(row['n'], 'flipped answer')} the reasoning mentions none of "
                f"what was added in {percent(row['none_share'])}%, some of it in "
                f"{percent(row['some_share'])}%, all in {percent(row['all_share'])}% "
                f"(by {'rule' if row['by'] == 'lexical' else row['by']})"
            )
    return told


def human_line() -> str:
    """How people do, as published."""
    published = medfuzz()
    return (
        f"People: {published.human_accuracy} on average on {published.human_examination} "
        f"({published.citation})"
    )


def _reasons(counts: str) -> str:
    return ", ".join(f"{reason} {n}" for reason, n in json.loads(counts).items())
