"""Links: the address of conversations inside the report."""

from urllib.parse import quote, urlencode

LINK_KEYS = (
    "protocol", "model", "dataset", "run", "arm", "path", "family", "technique", "system", "step",
    "specialty", "subject", "question", "epoch", "flip",
)  # fmt: skip
"""What conversations can be chosen by: columns of the turns table, and ``flip``."""


def conversations_link(**filters: str | None) -> str:
    """The address of the conversations with these values, for an ``href`` in the report.

    Args:
        filters: values by ``LINK_KEYS``, exactly as they stand in the table; those that are None
            are left out. ``flip`` is one of ``FLIPS``, or ``given-up`` for three of them.

    Raises:
        ValueError: a name is not among ``LINK_KEYS``.
    """
    unknown = sorted(filters.keys() - set(LINK_KEYS))
    if unknown:
        raise ValueError(f"conversations are not chosen by {', '.join(unknown)}")
    pairs = [(key, filters[key]) for key in LINK_KEYS if filters.get(key) is not None]
    return "#conversations" + (f"?{urlencode(pairs, quote_via=quote, safe='')}" if pairs else "")
