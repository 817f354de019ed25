"""``holdfast plan``: what a study will take, before a model is called."""

import inspect
import sys
from typing import Annotated, Any

import typer

from holdfast.errors import counted

from . import options
from .run import run


def plan(**given: Any) -> None:
    """Count generations, tokens and dollars before a model is called.

    Takes every option of 'run', so the same command line can be planned and run. Generations are
    exact (bounds where a study adapts); tokens and cost are estimates.

    Example: holdfast plan followup --model openai/gpt-4.1 --prices prices.json
    """
    import polars as pl

    from holdfast.protocols import reasons
    from holdfast.report import render

    from . import settings
    from .estimating import estimates, lacking

    names = (
        "contexts", "distractors", "exemplars", "seed", "shuffle", "stratify", "challenges",
        "fields",
    )  # fmt: skip
    common = {name: given[name] for name in names}
    protocols, limit = given["protocols"], given["limit"]
    settings.load_prices(given["prices"])
    roles = settings.role_names(
        settings.role_arguments(
            given["model_role"],
            given["generator"],
            given["reader"],
            reader_all=given["reader_all"],
        )
    )
    settings.checked_names(list(roles.values()) or ["simulated/sycophant"])
    common = settings.generating(protocols, common, "generator" in roles)
    studies = settings.planned(protocols, given["questions"], common, given["task_args"] or [])
    settings.check_roles(studies, roles)
    models = settings.checked_names(given["model"])
    settings.check_readers(roles, models)
    lack = lacking(studies, limit)
    sys.stderr.writelines(f"{line}\n" for line in lack)
    told_of = {path for line in lack for path in line.paths}
    for each in studies:
        for path, why in reasons(each.study, limit).items():
            for reason, n in why.items() if path not in told_of else ():
                sys.stderr.write(f"{path}: left out for {counted(n, 'question')} ({reason})\n")
    rows = estimates(studies, models, roles, limit, given["epochs"], given["reply_tokens"])
    table = pl.DataFrame(rows, schema_overrides={"cost": pl.Float64})
    sys.stdout.write(render(table, "json" if given["as_json"] else "md"))


_REPLY_TOKENS = Annotated[
    int, typer.Option(min=1, max=options.MOST, help="Assumed length of a reply, in tokens.")
]
_taken = [
    *inspect.signature(run).parameters.values(),
    inspect.Parameter(
        "reply_tokens",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=options.REPLY_TOKENS,
        annotation=_REPLY_TOKENS,
    ),
]
plan.__signature__ = inspect.Signature(_taken)  # type: ignore[attr-defined]
plan.__annotations__ = {one.name: one.annotation for one in _taken}
