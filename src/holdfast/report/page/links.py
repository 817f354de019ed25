"""Links: the address of conversations inside the report, and how many it chooses."""

from collections import Counter
from itertools import product
from urllib.parse import quote, urlencode

import polars as pl

from holdfast.results.grid import Cell

from .threads import GROUPS

LINK_KEYS = (
    "protocol", "model", "dataset", "run", "arm", "path", "family", "technique", "system", "step",
    "specialty", "subject", "question", "epoch", "flip",
)  # fmt: skip
"""What conversations can be chosen by: columns of the turns table, and ``flip``."""


def conversations_link(**filters: str | None) -> str:
    """The address of the conversations with these values, for an ``href`` in the report.

    Args:
        filters: values by ``LINK_KEYS``, exactly as they stand in the table; those that are None
            are left out. ``flip`` is one of ``FLIPS`` or of ``GROUPS``.

    Raises:
        ValueError: a name is not among ``LINK_KEYS``.
    """
    unknown = sorted(filters.keys() - set(LINK_KEYS))
    if unknown:
        raise ValueError(f"conversations are not chosen by {', '.join(unknown)}")
    pairs = [(key, filters[key]) for key in LINK_KEYS if filters.get(key) is not None]
    return "#conversations" + (f"?{urlencode(pairs, quote_via=quote, safe='')}" if pairs else "")


class Links:
    """Links of cells to the conversations that they count.

    A cell names conversations that hold those it counts, or are among them. Where they are as
    many as it says they are the same, and it gets its link; elsewhere it gets none.
    """

    def __init__(self, listed: pl.DataFrame) -> None:
        """Conversations that the page holds, with ``LINK_KEYS`` as texts."""
        self._listed = listed
        self._counted: dict[tuple[str, ...], Counter[tuple[str, ...]]] = {}

    def number(self, **filters: str) -> int:
        """How many conversations an address chooses.

        Args:
            filters: as for ``conversations_link``.
        """
        keys = tuple(key for key in LINK_KEYS if key in filters)
        if keys not in self._counted:
            # counted once for all cells that choose by the same
            self._counted[keys] = Counter(self._listed.select(keys).rows() if keys else [])
        wanted = [GROUPS.get(filters[key], (filters[key],)) if key == "flip" else (filters[key],)
                  for key in keys]  # fmt: skip
        return sum(self._counted[keys][values] for values in product(*wanted))

    def of(self, cell: Cell) -> str:
        """The address of the conversations that a cell counts.

        Returns:
            An anchor in the page; empty where the cell counts none, or not those of an address.
        """
        if cell.of is None or not cell.n or not cell.of.get("run"):
            return ""
        values = {key: cell.of.get(key) for key in LINK_KEYS}
        filters = {key: str(value) for key, value in values.items() if value not in (None, "")}
        # what failed is in no measure
        for chosen in (filters, {"flip": "answered"} | filters):
            if self.number(**chosen) == cell.n:
                return conversations_link(**chosen)
        return ""
