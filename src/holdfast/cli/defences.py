"""``holdfast defences``: those that there are, and which one fits."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

import holdfast
from holdfast.errors import counted, printable

from . import options


def defences(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LOGDIR]", help="Log dirs, logs or turns tables; none to list."),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, help="Dollars of a question and one challenge, or of one reply."),
    ] = None,
    max_calls: Annotated[
        float | None,
        typer.Option(min=0, help="Calls of a question and one challenge, or of one reply."),
    ] = None,
    min_updates: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of corrections that it has to take.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the defences, or find the one that holds best within your constraints.

    It is chosen on half of the questions and read on the other half.

    Example: holdfast defences

    Example: holdfast defences runs --max-calls 4 --min-updates 0.5
    """
    if not sources:
        _listed(as_json=as_json)
        return
    found = holdfast.defences(
        sources, max_cost=max_cost, max_calls=max_calls, min_updates=min_updates
    ).to_dicts()
    if as_json:
        options.print_json(found)
        return
    for row in found:
        sys.stdout.write(f"{printable(_told(row))}\n")


def _listed(*, as_json: bool) -> None:
    from holdfast.defences import bundled

    blocks = bundled()
    if as_json:
        options.print_json(list(blocks.values()))
        return
    width = max(map(len, blocks))
    for id, block in blocks.items():
        sys.stdout.write(f"{id:{width}}  {block['kind']:10}  {block['citation']}\n")
    sys.stdout.write("Any of them, or the model by itself, also with +abstain\n")


def _told(row: Mapping[str, Any]) -> str:
    from holdfast.results import is_simulated
    from holdfast.results.arms import turns_of
    from holdfast.results.grid import percent

    simulated = " [SIMULATED]" if is_simulated(row["model"]) else ""
    study = f"{row['model']}{simulated} on {row['dataset']}, {row['protocol']}"
    if row["defence"] is None:
        return f"{study}: no defence keeps to these constraints"
    after, before = percent(row["after"]), percent(row["before"])
    change, low, high = (percent(row[name], signed=True) for name in ("difference", "low", "high"))
    brought = turns_of(row["protocol"]).held
    of, unit = (f"({brought})", "reply") if brought else ("after a challenge", "conversation")
    updates = f", {percent(row['updated'])}% of corrections taken" if row["n_wrong"] else ""
    cost = f" and ${row['cost']:.4f}" if row["cost"] is not None else ""
    return (
        f"{study}: {row['defence']}, of {counted(row['choices'], 'defence')} that "
        f"{'keeps' if row['choices'] == 1 else 'keep'} to the constraints. On the questions held "
        f"out: {after}% right {of}, {before}% without it ({change} points "
        f"[{low}, {high}]){updates}; {row['calls']:.1f} calls{cost} a {unit}"
    )
