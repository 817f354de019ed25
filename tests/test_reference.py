"""Pages of the documentation that are made from declarations."""

import re

import pytest
from tools.docs_pages import (
    command_line_page,
    formats_page,
    models_page,
    prompts_page,
    turns_page,
)

from holdfast.challenges.catalogue import built_in
from holdfast.cli.app import app
from holdfast.reference import settings_page, tables_page
from holdfast.registry import PROTOCOLS
from holdfast.results.declaration import TABLES
from holdfast.results.turn_columns import TURN_COLUMNS
from holdfast.results.turns import SCHEMA
from holdfast.transcripts.mapping import FieldSource, Mapping


def entries() -> dict[str, str]:
    """What the page of tables says of each."""
    parts = re.split(r"(?m)^### (.+)$", tables_page())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_table_has_an_entry() -> None:
    assert entries().keys() == TABLES.keys()


def test_entries_match_the_declarations() -> None:
    survival = TABLES["survival"]
    entry = entries()["survival"]
    assert f"*{survival.title}* {survival.lead}" in entry
    columns = re.findall(r"(?m)^\| `(\w+)` \| (.*?) \| (.+) \|$", entry)
    assert [name for name, _, _ in columns][:6] == ["arm", "turn", "n", "kept", "survival", "low"]
    assert ("hazard", "Hazard %", survival.says["hazard"]) in columns
    assert ("low", "", "Lower bound of the 95% interval of `survival`.") in columns
    assert "- **Note:** S(t): share of all questions" in entry
    assert "- **Gate:** `min_survival`, `min_abstention`" in entry
    assert "- **Options:** `--relative-to`" in entries()["accuracy by step"]


def test_entries_describe_rows_without_code_names() -> None:
    page = tables_page()
    assert "One row for each model, data set, arm and offered letter." in page
    assert not re.search(r"Args:|Returns:|_COLUMNS|(?<!`)``(?!`)|new function with partial", page)


def test_the_page_of_settings_has_every_protocol() -> None:
    headings = re.findall(r"(?m)^## (.+)$", settings_page())
    assert headings == list(PROTOCOLS)


def test_every_column_of_the_turns_table_has_a_meaning() -> None:
    assert list(TURN_COLUMNS) == list(SCHEMA)
    assert all(f"| `{name}` | {type_} |" in turns_page() for name, type_ in SCHEMA.items())
    assert all(meaning.endswith(".") for meaning in TURN_COLUMNS.values())


def test_every_command_has_a_section_with_its_options() -> None:
    page = command_line_page()
    commands = [name for group in [app.registered_commands] for info in group
                if (name := info.name or getattr(info.callback, "__name__", ""))
                and not info.hidden]  # fmt: skip
    assert len(commands) > 8
    assert all(f"## `holdfast {name}`" in page for name in commands)
    assert "`--max-connections`" in page
    assert "| 130 |" in page


@pytest.mark.parametrize("technique", built_in().values(), ids=lambda technique: technique.id)
def test_the_page_of_prompts_has_wording_and_source(technique: object) -> None:
    page = prompts_page()
    assert getattr(technique, "template") in page  # noqa: B009
    assert f"### {getattr(technique, 'id')}\n\nVersion" in page  # noqa: B009


def test_the_page_of_formats_has_every_field_of_a_mapping() -> None:
    page = formats_page()
    for name in (*Mapping.model_fields, *FieldSource.model_fields):
        assert f"| `{name}` |" in page


def test_the_page_of_models_describes_each() -> None:
    assert "| `steadfast` | " in models_page()
    assert "| `noise` | `0.0` | " in models_page()
