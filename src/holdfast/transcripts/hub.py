"""Data set folder for the Hugging Face Hub: the turns and a card that describes them."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import yaml

from holdfast.errors import printable
from holdfast.files import replacing, whole_folder
from holdfast.parquet import write_parquet
from holdfast.questions.bank import BANK_NAME
from holdfast.questions.sets import named_sets
from holdfast.results.runs import IMPORTED_PREFIX

from .training import origin

DATA = "data/turns.parquet"
"""File of the turns in the folder."""

SPLIT = "test"
"""The only split: data that measure models are not for training."""

_KINDS = {
    "asked": "collected by holdfast",
    "simulated": "SIMULATED: not a measurement of a model",
    "imported": "IMPORTED: not collected by holdfast",
}


def write_hub(turns: pl.DataFrame, output: str) -> None:
    """Write a data set folder that ``datasets`` loads.

    Args:
        turns: turns table.
        output: folder, new or empty.

    Raises:
        InputError: the folder is not empty or cannot be written.
    """
    with whole_folder(output, "-o FOLDER") as partial:
        (partial / DATA).parent.mkdir()
        with replacing(partial / DATA) as file:
            write_parquet(turns, file)
        (partial / "README.md").write_text(
            card(turns, Path(output).expanduser().resolve().name), encoding="utf-8"
        )


def card(turns: pl.DataFrame, name: str) -> str:
    """Return the card of a data set folder: front matter for the Hub, then Markdown."""
    runs = turns.group_by(_RUN, maintain_order=True).agg(
        turns=pl.len(), questions=pl.col("question").n_unique()
    )
    counts: dict[str, int] = {}
    for run, model, *_, n, _ in runs.iter_rows():
        kind = origin(run, model)
        counts[kind] = counts.get(kind, 0) + n
    front = {
        "pretty_name": printable(name),
        "license": "other",
        "tags": ["holdfast", *(kind for kind in counts if kind != "asked")],
        "configs": [
            {"config_name": "default", "data_files": [{"split": SPLIT, "path": DATA}]}
        ],
    }  # fmt: skip
    lines = [
        "---", yaml.safe_dump(front, sort_keys=False, allow_unicode=True).strip(), "---",
        f"# {_cell(name)}", "",
        f"{turns.height:,} turns on {turns['question'].n_unique():,} questions. Each row is one "
        "reply of a model, with the columns of holdfast's turns table.", "",
        *(f"- **{_KINDS[kind]}**: {n:,} turns" for kind, n in sorted(counts.items())), "",
        "## Runs", "",
        f"| {' | '.join((*_RUN, 'origin', 'questions', 'turns'))} |",
        "|" + "---|" * (len(_RUN) + 3),
        *_rows(runs), "",
        "`protocol_version` is the version of the protocol that asked the questions. "
        "`reading_version` is the version of the rules that extracted the answers. "
        f"Runs that begin with `{IMPORTED_PREFIX}` are imported transcripts.", "",
        "## Licence", "",
        *_licences(turns), "",
        "Replies are subject to the terms of the models that gave them.", "",
        "## Use", "",
        "```python", "from datasets import load_dataset", "",
        f'turns = load_dataset("FOLDER_OR_NAME", split="{SPLIT}")', "```", "",
        "The prompts contain benchmark questions, and challenges that argue for wrong options. "
        "Do not train on them, because a model that saw them cannot be measured with them.", "",
    ]  # fmt: skip
    return "\n".join(lines)


_RUN = ("run", "model", "dataset", "protocol", "protocol_version", "seed")


def _rows(runs: pl.DataFrame) -> Iterator[str]:
    for *run_fields, n, questions in runs.iter_rows():
        kind = origin(run_fields[0], run_fields[1])
        cells = (*run_fields, kind.upper() if kind != "asked" else kind, questions, n)
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _licences(turns: pl.DataFrame) -> Iterator[str]:
    """Yield the known licence of each question set."""
    sets = named_sets()
    for dataset in turns["dataset"].unique(maintain_order=True):
        bare = str(dataset).removesuffix(" (no gold)")
        of = max(
            (set_name for set_name in sets if f"{bare}-".startswith(f"{set_name}-")),
            key=len,
            default="",
        )
        if of:
            licence_text = f"{sets[of].licence}; cite {sets[of].citation}"
        elif bare == BANK_NAME:
            licence_text = "MIT, questions written for holdfast"
        else:
            licence_text = "not known to holdfast, so state it before you publish"
        yield f"- {_cell(dataset)}: {licence_text}"


def _cell(value: object) -> str:
    """Return a value as a table cell on one line."""
    text = "" if value is None else printable(str(value))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
