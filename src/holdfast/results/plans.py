"""Plans beside the logs: what a study was to take, for the report to set beside what it took."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

PLAN_FILE = "plan.json"
"""Name of the plan in a log dir."""

_KEY = ("protocol", "model", "dataset")
_COLUMNS = {*_KEY, "generations", "at_least", "cost"}


def keep_plan(
    log_dir: str, rows: Sequence[Mapping[str, Any]], left_out: Mapping[str, str] | None = None
) -> None:
    """Write a plan into a log dir, over what it planned for the same studies before.

    Args:
        log_dir: a local folder or any fsspec URL.
        rows: those of ``holdfast plan``.
        left_out: by question set, which techniques were left out and what would bring them in.
    """
    told = left_out or {}
    planned = [
        {**row, "left_out": told[row["dataset"]]} if row["dataset"] in told else row for row in rows
    ]
    kept = {_key(row): dict(row) for row in [*_read(log_dir), *planned]}
    text = json.dumps(list(kept.values()), indent=1, ensure_ascii=False)
    import fsspec  # slow to import, and a table does without

    with fsspec.open(f"{log_dir.rstrip('/')}/{PLAN_FILE}", "wb") as file:
        file.write(text.encode())


def plans(sources: Iterable[str]) -> list[dict[str, Any]]:
    """The plans of log dirs, in their order.

    Args:
        sources: as for ``turns_table``; logs and turns tables have none.
    """
    return [
        row for source in sources if not source.endswith((".parquet", ".eval"))
        for row in _read(source)
    ]  # fmt: skip


def left_out(sources: Iterable[str]) -> list[str]:
    """What the runs of log dirs left out, a line each.

    Args:
        sources: as for ``turns_table``.
    """
    return list(
        dict.fromkeys(str(row["left_out"]) for row in plans(sources) if row.get("left_out"))
    )


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in _KEY)


def _read(log_dir: str) -> list[dict[str, Any]]:
    path = f"{log_dir.rstrip('/')}/{PLAN_FILE}"
    try:
        if "://" not in path:
            text = Path(path).read_text("utf-8")
        else:
            import fsspec

            with fsspec.open(path, "rb") as file:
                text = file.read().decode()
        found = json.loads(text)
    except (OSError, ValueError):  # none there, or one that was cut off: nothing is known
        return []
    rows = found if isinstance(found, list) else []
    return [row for row in rows if isinstance(row, dict) and row.keys() >= _COLUMNS]
