"""Pages of the reference, made from declarations and measurements, for MkDocs."""

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from textwrap import dedent
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from holdfast.challenges.catalogue import Technique
from holdfast.models.behaviour import profiles
from holdfast.models.target import Call, Document, Session, Target
from holdfast.reference import settings_page, tables_page
from holdfast.results.turn_columns import TURN_COLUMNS
from holdfast.results.turns import SCHEMA
from holdfast.transcripts.mapping import FieldSource, JoinedFile
from holdfast.transcripts.mapping import Mapping as TranscriptMapping


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages of the reference."""
    measured = Path(config.config_file_path).parent / "benchmarks"
    pages = {
        "command-line": command_line_page(),
        "settings": settings_page(),
        "tables": tables_page(),
        "turns-table": turns_page(),
        "prompts": prompts_page(),
        "models": models_page(),
        "formats": formats_page(),
        "coverage": (measured / "coverage.md").read_text("utf-8"),
        "rules": (measured / "rules.md").read_text("utf-8"),
    }
    for name, content in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


PROMPT_FILES: Mapping[str, tuple[str, ...]] = {
    "The question": ("challenges/prompts.toml", "protocols/few_shot.toml"),
    "Follow-up": (
        "challenges/catalogue/rethink.toml",
        "challenges/catalogue/inc_letter.toml",
        "challenges/catalogue/context.toml",
        "protocols/followup/controls.toml",
    ),
    "Published challenges": (
        "challenges/catalogue/sets/sycobench-600.toml",
        "challenges/catalogue/sets/whoflips.toml",
    ),
    "Single-turn": ("protocols/single_turn/biases.toml", "protocols/single_turn/mitigations.toml"),
    "Stick-or-Switch": ("protocols/stick_or_switch/prompts.toml",),
    "MedFuzz": ("protocols/medfuzz/prompts.toml", "protocols/medfuzz/inert.toml"),
    "Open answers": ("protocols/judging.toml",),
    "Pressure": ("protocols/pressure/ladder.toml", "protocols/persona.toml"),
    "Defences": ("defences/defences.toml", "defences/prompts.toml"),
    "Generators": (
        "protocols/followup/context_generation.toml",
        "protocols/single_turn/distractors.toml",
        "protocols/single_turn/plausibility.toml",
        "protocols/labelling.toml",
        "protocols/generating.toml",
    ),
    "Judges and readers": ("challenges/cues.toml", "protocols/second_reading.toml"),
}
"""Files of prompts by the section of the page."""

_FACTS = ("version", "citation", "place", "family", "axis", "depth", "kind", "id", "name")
_NO_PROMPT = {*_FACTS, "cue", "needs", "verify", "defer", "look", "check", "simulated"}
"""Fields of these files that no model reads."""

EXIT_CODES: Mapping[int, str] = {
    0: "Done.",
    1: "A gate failed.",
    2: "Bad usage or bad input. The error is one line that names the file, the row, the field and "
    "the remedy. Nothing is written.",
    3: "The run is incomplete. Repeat the command to resume it.",
    4: "A gate is undecided.",
    130: "Interrupted. Repeat the command to resume it.",
}
"""Meaning of each exit code."""


def command_line_page() -> str:
    """The commands with their options, and the exit codes, in Markdown."""
    from holdfast.cli.app import app

    lead = (
        "# Command line\n\n```console\n$ holdfast --help\n$ holdfast COMMAND --help\n```\n\n"
        "Results go to standard output, progress and messages to standard error. LOGDIR is a log "
        "directory, a `.eval` log or a turns table."
    )
    codes = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    parts = [lead, "## Exit codes\n\n| code | meaning |\n|---|---|\n" + "\n".join(codes)]
    parts += _command_entries(typer.main.get_command(app), "holdfast")
    return "\n\n".join(parts) + "\n"


def _command_entries(command: Any, path: str) -> Iterator[str]:
    """A command and its subcommands, a section each."""
    subcommands = getattr(command, "commands", {})
    if path != "holdfast" and not command.hidden:
        yield _command_entry(command, path)
    for name, subcommand in subcommands.items():
        if not subcommand.hidden:
            yield from _command_entries(subcommand, f"{path} {name}")


def _command_entry(command: Any, path: str) -> str:
    help_text, *examples = (command.help or "").split("Example:")
    parts = [f"## `{path}`", " ".join(help_text.split())]
    if examples:
        lines = "\n".join(f"$ {' '.join(example.split())}" for example in examples)
        parts.append(f"```console\n{lines}\n```")
    rows = [_option_row(option) for option in command.params if option.name != "help"]
    if rows:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _option_row(option: Any) -> str:
    is_argument = option.param_type_name == "argument"
    names = (
        [(option.metavar or option.name).upper()]
        if is_argument
        else [*option.opts, *option.secondary_opts]
    )
    meaning = " ".join((getattr(option, "help", "") or "").split()).replace("|", "\\|")
    default = option.default
    if default not in (None, False, (), [], "") and not callable(default):
        meaning = f"{meaning.rstrip('.')} (default `{default}`)."
    return f"| {', '.join(f'`{name}`' for name in names)} | {meaning} |"


def turns_page() -> str:
    """The columns of the turns table in Markdown."""
    lead = (
        "# The turns table\n\n`turns.parquet` in the log directory has one row for each assistant "
        "turn. holdfast derives it from the logs and rewrites it at the end of each run. Types are "
        "those of polars."
    )
    rows = [f"| `{name}` | {SCHEMA[name]} | {TURN_COLUMNS[name]} |" for name in SCHEMA]
    return "\n".join([lead, "", "| column | type | meaning |", "|---|---|---|", *rows, ""])


def prompts_page() -> str:
    """Every prompt with its id, version and citation, in Markdown."""
    parts = [
        "# Prompts\n\nEvery text that holdfast sends to a model, word for word. A name in braces "
        "is filled in for each question."
    ]
    for section, names in PROMPT_FILES.items():
        parts.append(f"## {section}")
        for name in names:
            data = tomllib.loads(files("holdfast").joinpath(name).read_text("utf-8"))
            parts += _prompt_entries(data, {}, "")
    return "\n\n".join(parts) + "\n"


def _prompt_entries(
    data: Mapping[str, Any], inherited: Mapping[str, Any], path: str
) -> Iterator[str]:
    """The prompts in a table of a file, those of nested tables with the facts of the outer."""
    facts = {**inherited, **{name: data[name] for name in _FACTS if name in data}}
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _prompt_entries(value, facts, f"{path}{name}: " if path else f"{name}: ")
        elif isinstance(value, list) and name not in _NO_PROMPT:
            yield from _listed_prompts(name, value, facts)
        elif isinstance(value, str) and name not in _NO_PROMPT:
            title = facts.get("id", "")
            prompt_name = title if name == "template" else f"{path}{name}"
            yield _prompt_entry(f"{title}: {name}" if title and name != "template" else prompt_name,
                                value, facts)  # fmt: skip


def _listed_prompts(name: str, items: list[Any], facts: Mapping[str, Any]) -> Iterator[str]:
    texts = [item for item in items if isinstance(item, str)]
    if texts:
        yield _prompt_entry(name, "\n".join(texts), facts)
    for item in items:
        if isinstance(item, Mapping):
            yield from _prompt_entries(item, facts, "")


def _prompt_entry(title: str, text: str, facts: Mapping[str, Any]) -> str:
    fence = "`" * max(4, 1 + max(map(len, re.findall("`+", text)), default=0))
    source = ". ".join(
        filter(None, [f"Version {facts['version']}" if "version" in facts else "",
                      str(facts.get("citation", "")), str(facts.get("place", ""))])
    )  # fmt: skip
    return f"### {title}\n\n{source}\n\n{fence}text\n{text.strip()}\n{fence}"


def models_page() -> str:
    """The simulated models and their profiles, in Markdown."""
    lead = (
        "# Simulated models\n\n`--model simulated/NAME` answers at random, with the probabilities "
        "of its profile. Seed, question and turn fix every draw, so a command gives the same "
        "table on any machine. Results are marked SIMULATED."
    )
    known = {name: profile.model_dump(exclude_unset=True) for name, profile in profiles().items()}
    rows = [f"| `{name}` | {fields['about']} |" for name, fields in known.items()]
    parts = [lead, "\n".join(["| model | behaviour |", "|---|---|", *rows])]
    parts += ["## Fields of a profile", _field_table(type(next(iter(profiles().values()))))]
    return "\n\n".join(parts) + "\n"


def formats_page() -> str:
    """The fields of files that users write, in Markdown."""
    kinds: Mapping[str, tuple[str, type[BaseModel]]] = {
        "Mapping": ("A TOML file for `holdfast import --mapping`.", TranscriptMapping),
        "Source of a field": (
            "A value in `[turn]`, `[first]` or `[later]` of a mapping. A text names a column, a "
            "list several.",
            FieldSource,
        ),
        "Joined file": ("A value in `[joined_files]` of a mapping.", JoinedFile),
        "Target": (
            "A TOML file for `holdfast run --target`, with the fields of a call and these. Every "
            "text may hold Jinja expressions over `messages`, `last` (the newest message), "
            "`system`, `session` and `document`, and `${VARIABLE}` of the environment.",
            Target,
        ),
        "Call": ("A target, and its `[session.open]` and `[session.close]`.", Call),
        "Session": ("`[session]` of a target.", Session),
        "Document": ("`[document]` of a target.", Document),
        "Technique": ("A `[[technique]]` in a file for `-T challenges=`.", Technique),
    }
    parts = ["# File formats\n\nThe fields of files that you write."]
    for title, (lead, kind) in kinds.items():
        parts += [f"## {title}", lead, _field_table(kind)]
    return "\n\n".join(parts) + "\n"


def _field_table(kind: type[BaseModel]) -> str:
    """The fields of a model that have a description, with their defaults."""
    rows = []
    for name, meaning in _field_docs(kind).items():
        default = kind.model_fields[name].default
        shown = "" if default in (PydanticUndefined, None, "", ()) else f"`{default}`"
        rows.append(f"| `{name}` | {shown} | {meaning} |")
    return "\n".join(["| field | default | meaning |", "|---|---|---|", *rows])


def _field_docs(kind: type[BaseModel]) -> dict[str, str]:
    """The texts below the fields of a class, by field."""
    body = ast.parse(dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                docs[name] = " ".join(doc.replace("``", "`").split()).replace("|", "\\|")
    return docs
