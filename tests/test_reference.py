"""Pages of the documentation that are made from declarations."""

import re

from holdfast.reference import settings_page, tables_page
from holdfast.results import TABLES


def entries() -> dict[str, str]:
    """What the page of tables says of each."""
    parts = re.split(r"(?m)^### (.+)$", tables_page())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_table_has_an_entry() -> None:
    assert entries().keys() == TABLES.keys()


def test_an_entry_says_what_the_declaration_says() -> None:
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


def test_an_entry_has_what_the_docstring_says_of_the_rows_and_no_name_of_the_code() -> None:
    page = tables_page()
    assert "One row for each model, data set, arm and letter offered." in page
    assert not re.search(r"Args:|Returns:|_COLUMNS|``|new function with partial", page)


def test_the_page_of_settings_has_every_protocol() -> None:
    headings = re.findall(r"(?m)^## (.+)$", settings_page())
    assert headings == ["followup", "single-turn", "stick-or-switch", "medfuzz"]
