"""A data set folder for the Hugging Face Hub: the turns, and a card that says what they are."""

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
"""The turns in the folder."""

SPLIT = "test"
"""The one split: nobody trains on what measures."""

_KINDS = {
    "asked": "asked by holdfast",
    "simulated": "SIMULATED: not a measurement of a model",
    "imported": "IMPORTED: not asked by holdfast",
}


def write_hub(turns: pl.DataFrame, output: str) -> None:
    """Write a data set folder that ``datasets`` loads.

    Args:
        turns: a turns table.
        output: the folder, which must be new or empty.

    Raises:
        InputError: it exists and holds something, or cannot be written.
    """
    with whole_folder(output, "-o FOLDER") as partial:
        (partial / DATA).parent.mkdir()
        with replacing(partial / DATA) as file:
            write_parquet(turns, file)
        (partial / "README.md").write_text(
            card(turns, Path(output).expanduser().resolve().name), encoding="utf-8"
        )


def card(turns: pl.DataFrame, name: str) -> str:
    """The card of a data set folder: front matter as the Hub reads it, then Markdown."""
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
        f"{turns.height:,} turns on {turns['question'].n_unique():,} questions, one row for each "
        "reply of a model, in the columns of holdfast's turns table.", "",
        *(f"- **{_KINDS[kind]}**: {n:,} turns" for kind, n in sorted(counts.items())), "",
        "## How it was made", "",
        f"| {' | '.join((*_RUN, 'origin', 'questions', 'turns'))} |",
        "|" + "---|" * (len(_RUN) + 3),
        *_rows(runs), "",
        "`protocol_version` and `reading_version` tell what asked and what read the replies; "
        f"runs that begin with `{IMPORTED_PREFIX}` came from transcripts made elsewhere.", "",
        "## Licence", "",
        *_licences(turns), "",
        "Replies fall under the terms of the models that gave them.", "",
        "## Use", "",
        "```python", "from datasets import load_dataset", "",
        f'turns = load_dataset("FOLDER_OR_NAME", split="{SPLIT}")', "```", "",
        "The prompts hold benchmark questions, and challenges that argue for wrong options. Do not "
        "train on them: a model that was cannot be measured on them.", "",
    ]  # fmt: skip
    return "\n".join(lines)


_RUN = ("run", "model", "dataset", "protocol", "protocol_version", "seed")


def _rows(runs: pl.DataFrame) -> Iterator[str]:
    for *run_fields, n, questions in runs.iter_rows():
        kind = origin(run_fields[0], run_fields[1])
        cells = (*run_fields, kind.upper() if kind != "asked" else kind, questions, n)
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _licences(turns: pl.DataFrame) -> Iterator[str]:
    """What is known of the licence of each question set."""
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
            licence_text = "MIT, holdfast's own questions"
        else:
            licence_text = "not known to holdfast: state it before you publish"
        yield f"- {_cell(dataset)}: {licence_text}"


def _cell(value: object) -> str:
    """A value in a cell of a table, on one line."""
    text = "" if value is None else printable(str(value))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
