"""``holdfast medfuzz``: one attack as it went."""

from typing import Annotated

import typer

from holdfast.cli import options

app = typer.Typer(help="Show attacks.", no_args_is_help=True, rich_markup_mode=None)


@app.command("show")
def show(
    log_dir: Annotated[
        str, typer.Argument(metavar="LOGDIR", help="Log dir, or turns table with texts.")
    ],
    id: Annotated[str, typer.Option("--id", help="Id of the question.")],
    replicate: Annotated[
        int | None,
        typer.Option(min=1, max=options.MOST, help="Replicate; default the first that succeeded."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Model, if there are several.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Question set, if there are several.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one attack: what was added, the reasoning before and after, attempts, p-value.

    Example: holdfast medfuzz show runs --id 0012
    """
    from rich.console import Console

    from holdfast.results import turns_table

    from .attack_log import attack_story, attack_view

    story = attack_story(turns_table([log_dir]), id, replicate, model, dataset)
    if as_json:
        options.print_json(story)
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=100)
    console.print(attack_view(story))
