"""Tables with a block for each study and several columns of different kinds."""

from collections.abc import Callable, Mapping, Sequence

from holdfast.results import is_simulated

from .grid import Block, Cell, Grid, Line
from .matrix import interval, percent
from .studies import Row, studies
from .tables import one_line

Column = tuple[str, Callable[[Row], str]]
"""Header of a column, and what it shows of a row."""


def listing(
    rows: Sequence[Row],
    corner: str,
    label: Callable[[Row], str],
    shown: Sequence[Column],
    notes: Sequence[str],
    part: Callable[[Row], str] = lambda row: "",
    counted: Mapping[str, str] | None = None,
) -> Grid:
    """A line for each row, under a heading for each study.

    Args:
        rows: long rows.
        corner: header of the labels.
        label: label of a row.
        shown: the columns.
        notes: sentences below the table.
        part: what else rows are parted by, shown in the heading.
        counted: of columns that count conversations of one outcome, which outcome that is.
    """
    columns = studies(rows)
    lines: dict[str, list[Line]] = {}
    outcomes = counted or {}
    for row in rows:
        heading = ", ".join(filter(None, [columns.headers[columns.of(row)], part(row)]))
        cells = tuple(
            Cell(show(row), of={**row, "flip": outcomes[header]} if header in outcomes else row)
            for header, show in shown
        )
        lines.setdefault(heading, []).append(Line(label(row), cells))
    blocks = tuple(Block(heading, (tuple(those),)) for heading, those in lines.items())
    headers = tuple(header for header, _ in shown)
    return Grid(corner, headers, blocks, (*notes, *columns.notes()))


_OUTCOMES = {
    "To pushed": "given-up-pushed",
    "To another": "given-up-other",
    "To unread": "given-up-unread",
}


def flips(rows: Sequence[Row]) -> list[Grid]:
    """What became of the first answers, a block for each study."""
    shown: list[Column] = [
        ("n", lambda row: count(row["n"])),
        ("Right before", lambda row: count(row["n_right"])),
        ("Given up", lambda row: count(row["right_to_wrong"])),
        ("Given up %", lambda row: percent(row["flip_rate"])),
        ("To pushed", lambda row: count(row["right_to_suggested"])),
        ("To another", lambda row: count(row["right_to_other"])),
        ("To unread", lambda row: count(row["right_to_unparsed"])),
        ("Mended", lambda row: count(row["wrong_to_right"])),
        ("Own pushed", lambda row: count(row["suggested_own"])),
    ]
    notes = [
        "Given up: right first answers that became another option, to the pushed one or to "
        "another; in percent of those right before. Mended: wrong or unread ones that became "
        "right. Own pushed: suggestions of the model's own wrong first answer.",
    ]
    return [listing(rows, "Challenge", path_label, shown, notes, counted=_OUTCOMES)]


def holding(rows: Sequence[Row]) -> list[Grid]:
    """Right first answers kept and wrong ones mended, a block for each study and protocol."""

    def share(of: str, bounds: str) -> Callable[[Row], str]:
        def show(row: Row) -> str:
            between = interval({name: row[f"{bounds}{name}"] for name in ("low", "high")})
            return " ".join(filter(None, [percent(row[of]), between]))

        return show

    shown: list[Column] = [
        ("Techniques", lambda row: count(row["techniques"])),
        ("Right before", lambda row: count(row["n_right"])),
        ("Questions", lambda row: count(row["questions"])),
        ("Kept", lambda row: count(row["kept"])),
        ("Kept %", share("kept_share", "")),
        ("To pushed", lambda row: count(row["to_suggested"])),
        ("To another", lambda row: count(row["to_other"])),
        ("To unread", lambda row: count(row["unread"])),
        ("Wrong before", lambda row: count(row["n_wrong"])),
        ("Mended", lambda row: count(row["mended"])),
        ("Mended %", share("mended_share", "mended_")),
        ("Own pushed", lambda row: count(row["suggested_own"])),
    ]
    notes = [
        "First answers under one challenge, once for each technique [95% interval, techniques of "
        "one question being alike]. Mended: wrong ones that became right. Own pushed: wrong ones "
        "that were themselves suggested.",
    ]
    return [listing(rows, "Family", family_label, shown, notes, _protocol)]


def flows(rows: Sequence[Row]) -> list[Grid]:
    """What first answers became, a line for each challenge and kind of first answer."""
    by_kind: dict[tuple[object, ...], dict[str, int]] = {}
    lines: list[Row] = []
    for row in rows:
        names = ("run", "model", "dataset", "protocol", "path", "technique", "family", "before")
        kind = tuple(row[name] for name in names)
        if kind not in by_kind:
            lines.append({**row, "became": by_kind.setdefault(kind, {})})
        by_kind[kind][row["after"]] = row["n"]

    def became(*after: str) -> Callable[[Row], str]:
        return lambda row: count(sum(row["became"].get(name, 0) for name in after))

    shown: list[Column] = [
        ("First answer", lambda row: one_line(row["before"])),
        ("n", became("right", "suggested", "other", "unread")),
        ("Right", became("right")),
        ("The pushed one", became("suggested")),
        ("Another wrong one", became("other")),
        ("Unread", became("unread")),
    ]
    notes = [
        "First answers by what they were, and what the answer to the challenge was. The pushed "
        "one: where it is wrong.",
    ]
    drawn = [row for row in lines if any(row["became"].values())]
    return [listing(drawn, "Challenge", path_label, shown, notes, _protocol)]


def family_label(row: Row) -> str:
    """A row's family; without one it is of all."""
    return "All challenges" if row["family"] is None else one_line(row["family"])


def _protocol(row: Row) -> str:
    return one_line(row["protocol"])


def cues(rows: Sequence[Row]) -> list[Grid]:
    """What is said of the challenge where a right answer is kept or given up."""

    def of(count_name: str, share_name: str) -> Callable[[Row], str]:
        def show(row: Row) -> str:
            share = percent(row[share_name])
            return f"{count(row[count_name])} ({share})" if share else count(row[count_name])

        return show

    shown: list[Column] = [
        ("Outcome", lambda row: one_line(row["outcome"])),
        ("n", lambda row: count(row["n"])),
        ("Named (%)", of("named", "named_share")),
        ("95% interval", interval),
        ("Verified (%)", of("verified", "verified_share")),
        ("Deferred (%)", of("deferred", "deferred_share")),
        ("Neither", lambda row: count(row["neither"])),
        ("Silent (%)", of("silent", "silent_share")),
        ("Unreadable", lambda row: count(row["unreadable"])),
    ]
    notes = [
        "Of right first answers that were kept or abandoned: replies that name the challenge, "
        "what they do with it, and those silent about it. Unreadable: judgements that could not "
        "be read.",
    ]
    return [listing(rows, "Challenge", path_label, shown, notes, lambda row: one_line(row["by"]))]


def reading(rows: Sequence[Row]) -> list[Grid]:
    """Whether the rules and a reader read the same answers, over all arms and by arm."""

    def agreement(row: Row) -> str:
        return " ".join(filter(None, [percent(row["agreement"]), interval(row)]))

    def reader(row: Row) -> str:
        simulated = " [SIMULATED]" if is_simulated(row["reader"]) else ""
        what = "every reply" if row["reader_all"] else "what the rules leave"
        return f"{_protocol(row)}, {one_line(row['reader'])}{simulated} reads {what}"

    shown: list[Column] = [
        ("n", lambda row: count(row["n"])),
        ("Agree", lambda row: count(row["agree"])),
        ("Agree %", agreement),
        ("Kappa", lambda row: "" if row["kappa"] is None else f"{row['kappa']:.2f}"),
        ("None by the rules", lambda row: count(row["rules_none"])),
        ("None by the reader", lambda row: count(row["reader_none"])),
        ("Unreadable", lambda row: count(row["unreadable"])),
    ]
    notes = [
        "Replies that a language model has read beside the rules: both found the same option, or "
        "both none [95% interval, replies to one question being alike]. None: no answer found. "
        "Unreadable: readings that could not be read themselves, not in n.",
    ]
    return [listing(rows, "Arm", _arm, shown, notes, reader)]


def _arm(row: Row) -> str:
    return "All arms" if row["arm"] is None else one_line(row["arm"])


def path_label(row: Row) -> str:
    """A row's path as people read it."""
    return one_line(row["path"]).replace(">", " > ")


def count(number: int | None) -> str:
    """A count; empty where it is not known."""
    return "" if number is None else str(number)
