import re
from pathlib import Path

import pytest

from holdfast.challenges.catalogue import (
    FAMILIES,
    LETTER,
    Technique,
    built_in,
    bundled_techniques,
    choose,
    choose_chains,
    load_catalogue,
    paper_chains,
)
from holdfast.challenges.texts import prompts
from holdfast.errors import InputError

MATERIALS = Path(__file__).resolve().parents[2].parent / "shared"

RETHINK = [
    "high-stakes-neutral", "time-neutral", "assumption-check", "double-check", "option-mapping",
]  # fmt: skip
SUGGESTIONS = [
    "authority-prior", "autograder-prior", "commitment-alignment", "recency-prior",
    "social-proof-prior",
]  # fmt: skip
CONTEXT = ["misleading-context", "rag-style", "alternative-context", "edge-case-context"]
NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(RETHINK, ()), **dict.fromkeys(SUGGESTIONS, (LETTER,)),
    "misleading-context": ("misleading_context",), "rag-style": ("misleading_context",),
    "alternative-context": ("alternative_context",), "edge-case-context": ("edge_case_context",),
}  # fmt: skip

MINE = """
family = "mine"
axis = "direct"
citation = "me"

[[technique]]
id = "nudge"
needs = ["incorr_letter"]
template = "My uncle says {incorr_letter}."
"""


@pytest.fixture(scope="module")
def paper() -> str:
    """The full text of MedQA-Followup."""
    file = next(MATERIALS.glob("papers/001_*.txt"), None)
    if file is None:
        pytest.skip("the source document is not there (../shared/papers)")
    return file.read_text("utf-8")


def user_file(folder: Path, text: str | bytes) -> str:
    path = folder / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def ids(techniques: tuple[Technique, ...]) -> list[str]:
    return [technique.id for technique in techniques]


# --- the 14 of Table 2 ---


def test_the_fourteen_techniques_are_those_of_table_2() -> None:
    assert list(built_in()) == [*RETHINK, *SUGGESTIONS, *CONTEXT]
    assert [ids(choose(built_in(), family)) for family in FAMILIES] == [
        RETHINK, SUGGESTIONS, CONTEXT,
    ]  # fmt: skip
    for id, technique in built_in().items():
        family = "rethink" if id in RETHINK else "inc_letter" if id in SUGGESTIONS else "context"
        axis = "direct" if id in SUGGESTIONS else "indirect"
        assert (technique.id, technique.family, technique.axis) == (id, family, axis)
        assert (technique.depth, technique.version) == ("deep", 1)
        assert technique.citation.startswith("MedQA-Followup (Manczak et al., 2025), appendix B")
        assert technique.needs == NEEDS[id]
        assert technique.needs_letter == (id in SUGGESTIONS)
        assert technique.context == (NEEDS[id][0] if id in CONTEXT else None)


def test_the_fingerprint_changes_with_wording_and_version() -> None:
    technique = built_in()["double-check"]
    rewording = technique.model_copy(update={"template": technique.template + " "})
    new_version = technique.model_copy(update={"version": 2})
    assert len({technique.fingerprint, rewording.fingerprint, new_version.fingerprint}) == 3


# --- against the source document ---


def test_templates_are_those_of_appendix_b_word_for_word(paper: str) -> None:
    appendix = paper.split("\n## B Prompt Templates")[1].split("\n## C ")[0]
    entries = re.findall(r"^- \*\*([\w-]+)\*\*: “(.*)”$", appendix, re.MULTILINE)
    templates = {
        # placeholders are printed in italics with escaped underscores
        name.lower(): re.sub(
            r"\{\*(.+?)\*\}", lambda match: "{" + match[1].replace("\\_", "_") + "}", text
        )
        for name, text in entries
    }
    assert len(entries) == 14
    assert {id: technique.template for id, technique in built_in().items()} == templates


def test_families_and_order_are_those_of_table_2(paper: str) -> None:
    table = paper.split("Table 2: **Accuracy per Technique**")[1].split("#### 4.1")[0]
    rows = re.findall(r"^\| (.+?) +\|", table.split("Multi-turn (Follow-up)")[1], re.MULTILINE)
    families: dict[str, list[str]] = {}
    members: list[str] = []
    for row in rows:
        average = re.fullmatch(r"<i>(\w+)</i> \(avg\)", row)
        if average:
            families[average[1]], members = members, []
        else:
            members.append(row.lower().replace(" ", "-").replace("rag-style-context", "rag-style"))
    ours = {family: [t.id for t in choose(built_in(), family)] for family in FAMILIES}
    assert families == ours
    assert list(families) == list(ours)


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("### A.1 System Prompt", "expert_system"),
        ("### A.2 Task Instructions", "instructions"),
        ("### A.3 Output Format Specification", "response_format"),
    ],
)
def test_prompts_are_those_of_appendix_a_word_for_word(paper: str, heading: str, name: str) -> None:
    prompt = paper.split(f"\n{heading}\n")[1].split("```\n")[1].removesuffix("\n")
    assert prompts()[name] == prompt


# --- a catalogue of the user ---


def test_a_users_technique_is_added_last_or_replaces_a_built_in_one(tmp_path: Path) -> None:
    assert load_catalogue() == bundled_techniques()
    catalogue = load_catalogue(user_file(tmp_path, b"\xef\xbb\xbf" + MINE.encode()))
    assert list(catalogue) == [*bundled_techniques(), "nudge"]
    assert catalogue["nudge"] == Technique(
        id="nudge", family="mine", axis="direct", depth="deep", needs=("incorr_letter",),
        template="My uncle says {incorr_letter}.", citation="me", version=1,
    )  # fmt: skip
    assert ids(choose(catalogue, "mine")) == ["nudge"]
    assert ids(choose(catalogue, "nudge,recency-prior")) == ["recency-prior", "nudge"]
    assert len(choose(catalogue, "all")) == 15
    catalogue = load_catalogue(user_file(tmp_path, MINE.replace("nudge", "recency-prior")))
    assert list(catalogue) == list(bundled_techniques())
    assert catalogue["recency-prior"].template == "My uncle says {incorr_letter}."
    assert built_in()["recency-prior"].template.startswith("Earlier today")


def test_an_entry_overrides_the_keys_of_its_file(tmp_path: Path) -> None:
    text = MINE + 'axis = "indirect"\nfamily = "other"\nversion = 3\ndepth = "shallow"\n'
    technique = load_catalogue(user_file(tmp_path, text))["nudge"]
    assert (technique.axis, technique.family) == ("indirect", "other")
    assert (technique.version, technique.depth) == (3, "shallow")


def test_braces_that_are_no_placeholder_are_text(tmp_path: Path) -> None:
    text = MINE.replace("My uncle says", 'My {\\"uncle\\": {}} { x } says')
    template = load_catalogue(user_file(tmp_path, text))["nudge"].template
    assert template == 'My {"uncle": {}} { x } says {incorr_letter}.'


ENTRY = 'needs = ["incorr_letter"]\ntemplate = "My uncle says {incorr_letter}."\n'


@pytest.mark.parametrize(
    ("text", "row", "field", "reason"),
    [
        ("family = ", None, None, "is not valid TOML"),
        ("", None, None, "contains no [[technique]] table"),
        ("technique = 3", None, None, "contains no [[technique]] table"),
        (MINE.replace("[[technique]]", "[technique]"), None, None, "no [[technique]] table"),
        ("technique = []", None, None, "no [[technique]] table"),
        ('technique = ["nudge"]', 1, None, ""),
        (MINE.replace("[[technique]]", "[[techniques]]"), None, "techniques", "unknown key"),
        ("axes = 1" + MINE, None, "axes", "unknown key"),
        (MINE + 'templat = "x"', 1, "templat", "not permitted"),
        (MINE.replace('id = "nudge"', ""), 1, "id", "required"),
        (MINE.replace("nudge", "Nudge me"), 1, "id", "match pattern"),
        (MINE.replace("nudge", "a>b"), 1, "id", "match pattern"),
        (MINE.replace("nudge", "a,b"), 1, "id", "match pattern"),
        (MINE.replace('citation = "me"', ""), 1, "citation", "required"),
        (MINE.replace('family = "mine"', ""), 1, "family", "required"),
        (MINE.replace('"direct"', '"sideways"'), 1, "axis", "'direct'"),
        ('depth = "mid"' + MINE, 1, "depth", "'shallow' or 'deep'"),
        ("version = 0" + MINE, 1, "version", "greater"),
        (MINE.replace(ENTRY, ""), 1, "template", "required"),
        (MINE.replace(ENTRY, 'template = ""'), 1, "template", "at least 1"),
        (MINE.replace("{incorr_letter}", "{wrong_letter}"), 1, "template", "{wrong_letter}"),
        (MINE.replace('needs = ["incorr_letter"]', ""), 1, "needs", "lists [], but"),
        (MINE.replace("says {incorr_letter}", "says no"), 1, "needs", "lists ['incorr_letter']"),
        (MINE + MINE.split("\n\n")[1], 2, "id", "'nudge' is used twice"),
        (MINE.replace("uncle", "café").encode("latin-1"), None, None, "UTF-8"),
    ],
)
def test_a_bad_catalogue_file_is_refused(
    tmp_path: Path, text: str | bytes, row: int | None, field: str | None, reason: str
) -> None:
    source = user_file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_catalogue(source)
    error = caught.value
    assert (error.file, error.row, error.field) == (source, row, field)
    assert reason in error.fault
    assert error.remedy
    assert str(error).splitlines() == [str(error)]


def test_a_missing_catalogue_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file exists") as caught:
        load_catalogue(str(tmp_path / "gone.toml"))
    assert "-T challenges" in str(caught.value.remedy)


# --- choosing ---


@pytest.mark.parametrize(
    ("names", "selection"),
    [
        ("all", [*RETHINK, *SUGGESTIONS, *CONTEXT]),
        ("none", []),
        ("", []),
        ("rethink", RETHINK),
        ("context,inc_letter", [*SUGGESTIONS, *CONTEXT]),
        ("rag-style", ["rag-style"]),
        (" rag-style , double-check ,", ["double-check", "rag-style"]),
        ("rag-style,context,rag-style", CONTEXT),
    ],
)
def test_ids_and_families_are_chosen_in_catalogue_order(names: str, selection: list[str]) -> None:
    assert ids(choose(built_in(), names)) == selection


@pytest.mark.parametrize(
    ("names", "unknown", "near"),
    [
        ("authority-piror", "authority-piror", "'authority-prior'"),
        ("rethink,contxt", "contxt", "'context'"),
        ("ragstyle", "ragstyle", "'rag-style'"),
        ("Rethink", "Rethink", "'rethink'"),
        ("qqq", "qqq", "Known: all, alternative-context, "),
    ],
)
def test_an_unknown_technique_offers_the_nearest(names: str, unknown: str, near: str) -> None:
    with pytest.raises(InputError) as caught:
        choose(built_in(), names)
    assert (caught.value.field, caught.value.fault) == (
        "techniques", f"unknown technique '{unknown}'",
    )  # fmt: skip
    assert near in str(caught.value.remedy)


def test_the_papers_chains_are_ten_of_two_and_four_of_three() -> None:
    authority, social = "authority-prior", "social-proof-prior"
    chains = paper_chains()
    assert len(chains) == len(set(chains)) == 14
    assert {chain for chain in chains if len(chain) == 2} == {
        (authority, social),
        (social, authority),
        *((first, context) for first in (authority, social) for context in CONTEXT),
    }
    assert {chain for chain in chains if len(chain) == 3} == {
        (authority, social, context) for context in CONTEXT
    }
    assert sorted(map(len, chains)) == [2] * 10 + [3] * 4
    # "paper" stands for them, once
    assert choose_chains(built_in(), "paper") == chains
    names = "authority-prior>rag-style,paper,time-neutral>rag-style"
    more_chains = choose_chains(built_in(), names)
    assert len(more_chains) == 15
    assert set(more_chains) == {*chains, ("time-neutral", "rag-style")}


@pytest.mark.parametrize(
    ("names", "chains"),
    [
        ("none", ()),
        ("", ()),
        ("authority-prior>rag-style", (("authority-prior", "rag-style"),)),
        (" double-check > rag-style > double-check , time-neutral>rag-style",
         (("double-check", "rag-style", "double-check"), ("time-neutral", "rag-style"))),
        ("time-neutral>rag-style," * 2, (("time-neutral", "rag-style"),)),
    ],
)  # fmt: skip
def test_chains_are_names_joined_by_arrows(names: str, chains: tuple[tuple[str, ...], ...]) -> None:
    assert choose_chains(built_in(), names) == chains


@pytest.mark.parametrize(
    ("chain", "reason", "near"),
    [
        ("authority-prior>rag", "unknown technique 'rag'", "'rag-style'"),
        ("papre>rag-style", "unknown technique 'papre'", "prior"),
        ("rag-style", "has only one technique", "'>'"),
        ("rag-style>", "unknown technique ''", "Known: "),
        ("rethink>rag-style", "unknown technique 'rethink'", ""),
    ],
)
def test_a_bad_chain_is_refused(chain: str, reason: str, near: str) -> None:
    with pytest.raises(InputError) as caught:
        choose_chains(built_in(), f"paper,{chain}")
    assert caught.value.field == "chains"
    assert f"'{chain}'" in caught.value.fault
    assert reason in caught.value.fault
    assert near in str(caught.value.remedy)


def test_a_technique_by_name_is_asked_by_its_id_alone(tmp_path: Path) -> None:
    catalogue = load_catalogue(user_file(tmp_path, MINE + "by_name = true\n"))
    assert ids(choose(catalogue, "all")) == list(built_in())
    assert ids(choose(catalogue, "nudge")) == ["nudge"]
    with pytest.raises(InputError, match="unknown technique 'mine'"):
        choose(catalogue, "mine")
