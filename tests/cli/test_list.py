"""``holdfast list``: what there is, in words and as JSON."""

import json
from typing import Any

import pytest
from tests.studies import holdfast

from holdfast.challenges.catalogue import bundled_techniques
from holdfast.defences.defence import bundled
from holdfast.protocols.installed import PROTOCOLS
from holdfast.questions.sets import named_sets
from holdfast.results.declaration import TABLES

NAMES = {
    "protocols": list(PROTOCOLS),
    "questions": list(named_sets()),
    "techniques": list(bundled_techniques()),
    "defences": list(bundled()),
    "tables": list(TABLES),
}


def rows_of(name: str) -> list[dict[str, Any]]:
    result = holdfast("list", name, "--json")
    assert result.returncode == 0, result.stderr
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


@pytest.mark.parametrize("topic", NAMES)
def test_entries_are_listed_by_name(topic: str) -> None:
    rows = rows_of(topic)
    names = [row.get("name", row.get("id")) for row in rows]
    by = [row.get("by") for row in rows]
    assert [f"{name} by {way}" if way else name for name, way in zip(names, by, strict=True)] == (
        NAMES[topic]
    )
    lines = holdfast("list", topic).stdout.splitlines()
    starts = {line.split()[0].rstrip(":") for line in lines if line and not line.startswith(" ")}
    assert starts >= set(names)


def test_a_technique_is_listed_with_family_axis_depth_and_needs() -> None:
    (line,) = (
        line for line in holdfast("list", "techniques").stdout.splitlines() if "rag-style" in line
    )
    assert line.split() == ["rag-style", "context", "indirect", "deep", "misleading_context"]


def test_a_table_is_listed_with_its_question_and_options() -> None:
    (table,) = (
        row for row in rows_of("tables") if (row["name"], row["by"]) == ("defences", "model")
    )
    assert table["question"] == TABLES["defences by model"].title
    assert table["options"] == ["max_cost", "max_calls", "min_updates"]


def test_a_protocol_is_listed_with_its_roles_and_settings() -> None:
    rows = {row["name"]: row for row in rows_of("protocols")}
    assert rows["followup"]["about"].startswith("MedQA-Followup: ")
    assert {"questions", "techniques", "chains"} <= {*rows["followup"]["settings"]}
    for name, row in rows.items():
        roles = {*PROTOCOLS[name].roles, *PROTOCOLS[name].required}
        assert {*row["required_roles"], *row["optional_roles"]} == roles
    assert rows["medfuzz"]["required_roles"] == ["attacker"]
    assert rows["open"]["required_roles"] == ["judge"]
    # nobody is needed for the scripted user, and with options
    assert rows["pressure"]["required_roles"] == []
