"""Whether answers that are held against each other were read alike."""

from collections.abc import Mapping

import polars as pl

from holdfast.errors import InputError

from .readings import READ_BY

_SHOWN = 3


def check_read_alike(
    sides: Mapping[str, pl.DataFrame], place: str | None = None, field: str | None = None
) -> None:
    """Refuse turns that different rules or different readers have read.

    Imported answers that were given, not read, are held against any.

    Args:
        sides: turns by the name of their side, with the columns of ``READ_BY``.
        place: where the comparison is asked for, for the error.
        field: the same.

    Raises:
        InputError: the turns of one side, or of both, were read differently.
    """
    found = {
        name: turns.filter(pl.col("reading_version").is_not_null())
        .select(READ_BY)
        .unique(maintain_order=True)
        .rows()
        for name, turns in sides.items()
    }
    if len({reading for readings in found.values() for reading in readings}) < 2:
        return
    told = "; ".join(
        f"{name} by {' and by '.join(map(_told, readings[:_SHOWN]))}"
        for name, readings in found.items()
        if readings
    )
    raise InputError(
        f"the replies were not read alike: {told}",
        place,
        field=field,
        remedy="Read them again with 'holdfast reread LOGDIR', all with the same --reader or none",
    )


def _told(reading: tuple[int, str | None, bool | None, int | None]) -> str:
    version, reader, every, prompt = reading
    rules = f"version {version} of the rules"
    if reader is None:
        return rules
    what = "every reply" if every else "what they leave"
    return f"{rules} with {reader} for {what} (prompt {prompt})"
