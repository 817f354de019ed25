"""Reference pages made from declarations: ``python -m holdfast.reference [PROTOCOL]``."""

import inspect
import sys
from collections.abc import Iterable

from holdfast.errors import InputError
from holdfast.protocols import PROTOCOLS, Protocol
from holdfast.protocols.settings import described
from holdfast.results import TABLES, Table


def protocol_page(name: str) -> str:
    """A protocol in Markdown: what it asks, its settings, and the tables of its package.

    Raises:
        InputError: there is no such protocol, or its package cannot be loaded.
    """
    if name not in PROTOCOLS:
        raise InputError(f"unknown protocol '{name}'", remedy=f"Known: {', '.join(PROTOCOLS)}")
    protocol = PROTOCOLS[name]
    own = [table for table in TABLES.values() if _is_of(table, protocol)]
    said = inspect.cleandoc(protocol.settings.__doc__ or "").replace("``", "`")
    parts = [f"## {name}", said, described(protocol.settings)]
    parts += ["### Tables", tables_list(own)] if own else []
    return "\n\n".join(part.strip() for part in parts) + "\n"


def settings_page() -> str:
    """The settings of every protocol, in Markdown."""
    lead = (
        "# Settings\n\nLook up here what a protocol can be told: with `-T NAME=VALUE` on the "
        "command line, as `task_args` in Python, as parameters of the Inspect task. Settings that "
        "have an option of their own are given with it.\n"
    )
    return "\n".join([lead, *map(protocol_page, PROTOCOLS)])


def tables_list(tables: Iterable[Table]) -> str:
    """Tables by name, with the question that each answers and its keys of a gate's rules."""
    rows = ["| table | question | keys of a gate's rules |", "|---|---|---|"]
    for table in tables:
        keys = ", ".join(f"`{gate.key}`" for gate in table.gates)
        rows.append(f"| `{table.name}` | {table.title} | {keys} |")
    return "\n".join(rows)


def _is_of(table: Table, protocol: Protocol) -> bool:
    """Whether a table is declared where the protocol is."""
    home = protocol.settings.__module__
    return table.measure.__module__ in (home, home.rpartition(".")[0] or home)


def main() -> None:
    """Print the page of one protocol, or the settings of all."""
    sys.stdout.write(protocol_page(sys.argv[1]) if sys.argv[1:] else settings_page())


if __name__ == "__main__":
    main()
