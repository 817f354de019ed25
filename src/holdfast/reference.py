"""Reference pages generated from declarations: ``python -m holdfast.reference [PROTOCOL]``."""

import inspect
import re
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

from holdfast.errors import InputError
from holdfast.protocols.installed import PROTOCOLS
from holdfast.protocols.protocol import Protocol
from holdfast.protocols.settings import described
from holdfast.results.declaration import TABLES, Table, sections


def protocol_page(name: str) -> str:
    """Return a protocol in Markdown: description, settings, and tables of its package.

    Raises:
        InputError: the protocol is unknown, or its package cannot be loaded.
    """
    if name not in PROTOCOLS:
        raise InputError(f"unknown protocol '{name}'", remedy=f"Known: {', '.join(PROTOCOLS)}")
    protocol = PROTOCOLS[name]
    protocol_tables = [table for table in TABLES.values() if _is_of(table, protocol)]
    parts = [f"## {name}", _doc(protocol.settings), described(protocol.settings)]
    parts += ["### Tables", tables_list(protocol_tables)] if protocol_tables else []
    return "\n\n".join(part.strip() for part in parts) + "\n"


def settings_page() -> str:
    """Return the settings of every protocol in Markdown."""
    lead = (
        "# Settings\n\nThe settings of each protocol. Give them with "
        "`-T NAME=VALUE` on the command line, as `task_args` in Python, or as parameters of the "
        "Inspect task. `holdfast run` also has the options `--questions`, `--seed`, `--shuffle` "
        "and `--defence`.\n"
    )
    return "\n".join([lead, *map(protocol_page, PROTOCOLS)])


def tables_page() -> str:
    """Return every table in Markdown, by section of the report."""
    lead = """# Tables

```console
$ holdfast table runs --table flips --by family
$ holdfast table runs --compare-with paper --format csv -o accuracy.csv
$ holdfast table runs --table retention --format svg -o retention.svg
```

`md` and `latex` follow the layout of the papers, if the papers have the table. The best value of
a family is bold and the worst is in italics, if a paired test distinguishes the value from every
other. `csv` and `json` contain every digit. `svg`, `pdf`, `png` and `vega` draw the table.
Whiskers and bands are 95% intervals. Estimates from fewer than seven values have an open mark and
no interval.

Every table has the columns `model`, `dataset` and `run`. A share is null if its denominator is 0.
Tables exclude failed turns. `--compare-with paper` adds the published values as rows with
`[published]` in `model`. The last column below lists the keys for rules of a
[gate](../guides/gate.md).
"""
    parts = [lead, tables_list(TABLES.values(), with_links=True)]
    for section, tables in sections():
        parts += [f"## {section.title}", section.lead, *map(table_entry, tables)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def table_entry(table: Table) -> str:
    """Return a table in Markdown: question, rows, columns, options and gate keys."""
    facts = {
        "Note": " ".join(n for n in getattr(table.layout, "notes", ()) if isinstance(n, str)),
        "Options": _code(f"--{name.replace('_', '-')}" for name in table.takes),
        "Gate": _code(gate.key for gate in table.gates),
        "Picture": "yes" if table.chart else "no",
    }
    lines = "\n".join(f"- **{name}:** {fact}" for name, fact in facts.items() if fact)
    heading = f"### {table.name}\n\n*{table.title}* {table.lead}"
    return "\n\n".join(filter(None, [heading, _doc(table.measure), lines, _columns(table)]))


def _columns(table: Table) -> str:
    """Return a Markdown table of the columns: name, printed header and meaning."""
    printed_columns = getattr(table.layout, "columns", ())
    headers = {column.name: column.header.strip() for column in printed_columns}
    columns = list(table.schema)
    names_listed = [name for name in columns if name not in ("model", "dataset", "run")]
    rows = [
        f"| `{name}` | {headers.get(name, '')} | {table.meaning(name)} |" for name in names_listed
    ]
    return "\n".join(["| column | printed as | meaning |", "|---|---|---|", *rows])


def tables_list(tables: Iterable[Table], *, with_links: bool = False) -> str:
    """Return a Markdown list of tables with their question and gate keys."""
    rows = ["| table | question | keys of a gate's rules |", "|---|---|---|"]
    for table in tables:
        name = f"[`{table.name}`](#{table.id})" if with_links else f"`{table.name}`"
        rows.append(f"| {name} | {table.title} | {_code(gate.key for gate in table.gates)} |")
    return "\n".join(rows)


def _doc(of: object) -> str:
    """Return a docstring in Markdown: description and return value, without parameters."""
    text = inspect.getdoc(of.func if isinstance(of, partial) else of) or ""
    body, *sections = re.split(r"(?m)^(Args|Returns|Raises):\n", text.replace("``", "`"))
    sections_by_name = dict(zip(sections[::2], sections[1::2], strict=True))
    # another list already has the names of the columns
    rows = re.sub(
        r",?\s+with\s+`(\w+_COLUMNS|\w+_columns\(by\))`", "", sections_by_name.get("Returns", "")
    )
    return f"{body.strip()}\n\n{inspect.cleandoc(rows)}".strip()


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _is_of(table: Table, protocol: Protocol[Any]) -> bool:
    """Whether a table is declared in the package of the protocol."""
    home = protocol.settings.__module__
    return table.measure.__module__ in (home, home.rpartition(".")[0] or home)


def main() -> None:
    """Print the page of one protocol, or the settings of all protocols."""
    sys.stdout.write(protocol_page(sys.argv[1]) if sys.argv[1:] else settings_page())


if __name__ == "__main__":
    main()
