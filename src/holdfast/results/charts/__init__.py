"""Charts: the kinds of figure that a table describes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt
else:

    class _Altair:
        """Altair, imported when something is drawn: tables are declared with their charts."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("altair"), name)

    alt = _Altair()

__all__ = ["alt"]
