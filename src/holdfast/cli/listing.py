"""Commands ``holdfast list``: protocols, question sets, techniques, defences and tables."""

import sys
from collections.abc import Sequence

import typer

from holdfast.errors import printable

from . import options

listing = typer.Typer(
    help="List protocols, question sets, techniques, defences or tables.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@listing.command()
def protocols(as_json: options.AsJson = False) -> None:
    """List the protocols with their required and optional helper models.

    Example: holdfast list protocols
    """
    import inspect

    from holdfast.protocols.installed import PROTOCOLS
    from holdfast.protocols.settings import signature

    rows = []
    for name in PROTOCOLS:
        protocol = PROTOCOLS[name]
        about = (inspect.getdoc(protocol.settings) or "").partition("\n")[0]
        # some settings make a helper needless, or needed
        required = protocol.settings().required(protocol.required)
        rows.append(
            {
                "name": name,
                "about": about,
                "required_roles": list(required),
                "optional_roles": [
                    role
                    for role in dict.fromkeys((*protocol.roles, *protocol.required))
                    if role not in required
                ],
                "generated": list(protocol.generated),
                "settings": list(signature(protocol.settings).parameters),
            }
        )
    if as_json:
        options.print_json(rows)
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        _print(f"{row['name']:{width}}  {row['about']}")
        roles = {"requires": row["required_roles"], "optional": row["optional_roles"]}
        helpers = "; ".join(f"{verb} {', '.join(names)}" for verb, names in roles.items() if names)
        if helpers:
            _print(f"{'':{width}}  roles: {helpers}")
    _print("Every protocol also accepts a judge, a reader, and a generator for missing inputs")


@listing.command()
def questions(as_json: options.AsJson = False) -> None:
    """List the published question sets that --questions accepts by name.

    Example: holdfast list questions
    """
    from holdfast.questions.sets import named_sets

    sets = {
        name: named_set.model_dump() | {"questions": named_set.questions}
        for name, named_set in named_sets().items()
    }
    if as_json:
        options.print_json([{"name": name, **facts} for name, facts in sets.items()])
        return
    for name, facts in sets.items():
        parts = f"; parts: {', '.join(facts['parts'])}" if len(facts["parts"]) > 1 else ""
        _print(f"{name}: {facts['questions']:,} questions. {facts['about']}{parts}")
        revision = facts["revision"] or "COMMIT (no commit is confirmed: give one)"
        _print(f"    {facts['hub']}@{revision}")
        _print(f"    licence: {facts['licence']}; cite: {facts['citation']}")


@listing.command()
def techniques(as_json: options.AsJson = False) -> None:
    """List the bundled techniques with the inputs that each needs.

    Example: holdfast list techniques
    """
    from holdfast.challenges.catalogue import bundled_techniques

    catalogue = list(bundled_techniques().values())
    if as_json:
        options.print_json([technique.model_dump(mode="json") for technique in catalogue])
        return
    header = ("technique", "family", "axis", "depth", "needs")
    rows = [
        (
            technique.id,
            technique.family,
            technique.axis,
            technique.depth,
            ", ".join(technique.needs),
        )
        for technique in catalogue
    ]
    _print_columns([header, *rows])


@listing.command()
def defences(as_json: options.AsJson = False) -> None:
    """List the defences that --defence accepts by name.

    Example: holdfast list defences
    """
    from holdfast.defences.defence import bundled

    blocks = bundled()
    if as_json:
        options.print_json(list(blocks.values()))
        return
    _print_columns([(id, block["kind"], block["citation"]) for id, block in blocks.items()])
    _print("You can add +abstain to any defence and to the plain model")


@listing.command()
def tables(as_json: options.AsJson = False) -> None:
    """List the result tables with the question that each answers.

    Example: holdfast list tables
    """
    from holdfast.registry import BY
    from holdfast.results.declaration import TABLES

    if as_json:
        options.print_json(
            [
                {
                    "name": name.partition(BY)[0],
                    "by": name.partition(BY)[2] or None,
                    "question": table.title,
                    "section": table.section,
                    "options": list(table.takes),
                    "gates": [gate.key for gate in table.gates],
                    "picture": table.chart is not None,
                }
                for name, table in TABLES.items()
            ]
        )
        return
    _print_columns([(name.replace(BY, " --by "), table.title) for name, table in TABLES.items()])


def _print_columns(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        _print("  ".join(cells).rstrip())


def _print(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
