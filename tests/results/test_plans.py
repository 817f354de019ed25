"""Plans stay beside the logs, the newest of each study."""

from pathlib import Path
from typing import Any

from holdfast.results.records import keep_plan, plans


def row(protocol: str, generations: int, model: str = "m") -> dict[str, Any]:
    return {"protocol": protocol, "model": model, "dataset": "d", "generations": generations,
            "at_least": generations, "cost": None}  # fmt: skip


def test_the_newest_plan_of_a_study_counts(tmp_path: Path) -> None:
    log_dir = str(tmp_path)
    assert plans([log_dir]) == []
    keep_plan(log_dir, [row("followup", 15), row("medfuzz", 4)])
    keep_plan(log_dir, [row("followup", 29), row("followup", 29, "other")])
    assert plans([log_dir]) == [
        row("followup", 29),
        row("medfuzz", 4),
        row("followup", 29, "other"),
    ]


def test_torn_and_foreign_plans_are_ignored(tmp_path: Path) -> None:
    for text in ('[{"protocol": "fol', "{}", "3", '["x"]', '[{"protocol": "followup"}]'):
        (tmp_path / "plan.json").write_text(text, "utf-8")
        assert plans([str(tmp_path)]) == []
    assert plans([str(tmp_path / "turns.parquet"), str(tmp_path / "x.eval")]) == []


def test_a_plan_is_kept_on_any_file_system() -> None:
    keep_plan("memory://plans/here", [row("followup", 15)])
    assert plans(["memory://plans/here"]) == [row("followup", 15)]
