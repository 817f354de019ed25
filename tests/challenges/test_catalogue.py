import re
from pathlib import Path

import pytest

from holdfast.challenges.catalogue import (
    CONTEXTS,
    FAMILIES,
    LETTER,
    Technique,
    built_in,
    choose,
    choose_chains,
    load_catalogue,
    paper_chains,
)
from holdfast.challenges.texts import prompts
from holdfast.errors import InputError

MATERIALS = Path(__file__).resolve().parents[2].parent / "shared"

RETHINK = [
    "high-stakes-neutral",
    "time-neutral",
    "assumption-check",
    "double-check",
    "option-mapping",
]
SUGGESTIONS = [
    "authority-prior",
    "autograder-prior",
    "commitment-alignment",
    "recency-prior",
    "social-proof-prior",
]
CONTEXT = ["misleading-context", "rag-style", "alternative-context", "edge-case-context"]

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


def test_the_fourteen_techniques_in_the_order_of_table_2() -> None:
    assert list(built_in()) == [*RETHINK, *SUGGESTIONS, *CONTEXT]
    assert {id: technique.id for id, technique in built_in().items()} == {
        id: id for id in built_in()
    }


@pytest.mark.parametrize(
    ("members", "family", "axis"),
    [
        (RETHINK, "rethink", "indirect"),
        (SUGGESTIONS, "inc_letter", "direct"),
        (CONTEXT, "context", "indirect"),
    ],
    ids=FAMILIES,
)
def test_a_familys_place_in_the_taxonomy(members: list[str], family: str, axis: str) -> None:
    for id in members:
        technique = built_in()[id]
        assert (technique.family, technique.axis, technique.depth) == (family, axis, "deep")
        assert technique.citation.startswith("MedQA-Followup (Manczak et al., 2025), appendix B")
        assert technique.version == 1


@pytest.mark.parametrize(
    ("id", "needs"),
    [
        *((id, ()) for id in RETHINK),
        *((id, ("incorr_letter",)) for id in SUGGESTIONS),
        ("misleading-context", ("misleading_context",)),
        ("rag-style", ("misleading_context",)),
        ("alternative-context", ("alternative_context",)),
        ("edge-case-context", ("edge_case_context",)),
    ],
)
def test_what_a_technique_needs(id: str, needs: tuple[str, ...]) -> None:
    technique = built_in()[id]
    assert technique.needs == needs
    assert technique.needs_letter == (needs == (LETTER,))
    assert technique.context == (needs[0] if needs and needs[0] in CONTEXTS else None)


def test_the_fingerprint_changes_with_wording_and_version() -> None:
    technique = built_in()["double-check"]
    assert technique.fingerprint == built_in()["double-check"].fingerprint
    rewording = technique.model_copy(update={"template": technique.template + " "})
    new_version = technique.model_copy(update={"version": 2})
    assert len({technique.fingerprint, rewording.fingerprint, new_version.fingerprint}) == 3


def test_families_stand_in_order_one_after_the_other() -> None:
    assert [[t.id for t in choose(built_in(), family)] for family in FAMILIES] == [
        RETHINK,
        SUGGESTIONS,
        CONTEXT,
    ]
    assert [t.id for t in built_in().values()] == [*RETHINK, *SUGGESTIONS, *CONTEXT]


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


# --- a user's own catalogue ---


def test_without_a_file_the_catalogue_is_the_built_in_one() -> None:
    assert load_catalogue() == built_in()


def test_a_users_technique_is_added_last(tmp_path: Path) -> None:
    catalogue = load_catalogue(user_file(tmp_path, MINE))
    assert list(catalogue) == [*built_in(), "nudge"]
    assert catalogue["nudge"] == Technique(
        id="nudge",
        family="mine",
        axis="direct",
        depth="deep",
        needs=("incorr_letter",),
        template="My uncle says {incorr_letter}.",
        citation="me",
        version=1,
    )
    assert "nudge" not in built_in()


def test_a_users_technique_replaces_the_built_in_one_in_its_place(tmp_path: Path) -> None:
    catalogue = load_catalogue(user_file(tmp_path, MINE.replace("nudge", "recency-prior")))
    assert list(catalogue) == list(built_in())
    assert catalogue["recency-prior"].template == "My uncle says {incorr_letter}."
    assert built_in()["recency-prior"].template.startswith("Earlier today")


def test_an_entry_overrides_what_the_file_says_for_all(tmp_path: Path) -> None:
    text = MINE + 'axis = "indirect"\nfamily = "other"\nversion = 3\ndepth = "shallow"\n'
    technique = load_catalogue(user_file(tmp_path, text))["nudge"]
    assert (technique.axis, technique.family) == ("indirect", "other")
    assert (technique.version, technique.depth) == (3, "shallow")


def test_a_byte_order_mark_before_the_file_is_no_part_of_it(tmp_path: Path) -> None:
    assert "nudge" in load_catalogue(user_file(tmp_path, b"\xef\xbb\xbf" + MINE.encode()))


def test_braces_that_are_no_placeholder_are_text(tmp_path: Path) -> None:
    text = MINE.replace("My uncle says", 'My {\\"uncle\\": {}} { x } says')
    template = load_catalogue(user_file(tmp_path, text))["nudge"].template
    assert template == 'My {"uncle": {}} { x } says {incorr_letter}.'


ENTRY = 'needs = ["incorr_letter"]\ntemplate = "My uncle says {incorr_letter}."\n'


@pytest.mark.parametrize(
    ("text", "row", "field", "reason"),
    [
        pytest.param("family = ", None, None, "is not valid TOML", id="broken-toml"),
        pytest.param("", None, None, "contains no [[technique]] table", id="empty"),
        pytest.param("technique = 3", None, None, "contains no [[technique]] table", id="no-array"),
        pytest.param(
            MINE.replace("[[technique]]", "[technique]"),
            None,
            None,
            "contains no [[technique]] table",
            id="single-table",
        ),
        pytest.param("technique = []", None, None, "no [[technique]] table", id="no-entry"),
        pytest.param('technique = ["nudge"]', 1, None, "", id="entry-no-table"),
        pytest.param(
            MINE.replace("[[technique]]", "[[techniques]]"),
            None,
            "techniques",
            "unknown key",
            id="misspelt-table",
        ),
        pytest.param("axes = 1" + MINE, None, "axes", "unknown key", id="misspelt-key"),
        pytest.param(
            MINE + 'templat = "x"', 1, "templat", "Extra inputs are not permitted", id="extra-field"
        ),
        pytest.param(MINE.replace('id = "nudge"', ""), 1, "id", "required", id="no-id"),
        pytest.param(MINE.replace("nudge", "Nudge me"), 1, "id", "match pattern", id="bad-id"),
        pytest.param(MINE.replace("nudge", "a>b"), 1, "id", "match pattern", id="chain-as-id"),
        pytest.param(MINE.replace("nudge", "a,b"), 1, "id", "match pattern", id="list-as-id"),
        pytest.param(MINE.replace('citation = "me"', ""), 1, "citation", "required", id="cite"),
        pytest.param(MINE.replace('family = "mine"', ""), 1, "family", "required", id="family"),
        pytest.param(MINE.replace('"direct"', '"sideways"'), 1, "axis", "'direct'", id="axis"),
        pytest.param('depth = "mid"' + MINE, 1, "depth", "'shallow' or 'deep'", id="depth"),
        pytest.param("version = 0" + MINE, 1, "version", "greater", id="version"),
        pytest.param(MINE.replace(ENTRY, ""), 1, "template", "required", id="no-template"),
        pytest.param(
            MINE.replace(ENTRY, 'template = ""'), 1, "template", "at least 1", id="empty-template"
        ),
        pytest.param(
            MINE.replace("{incorr_letter}", "{wrong_letter}"),
            1,
            "template",
            "unknown placeholder {wrong_letter}; known: {incorr_letter}",
            id="unknown-placeholder",
        ),
        pytest.param(
            MINE.replace('needs = ["incorr_letter"]', ""),
            1,
            "needs",
            "lists [], but the placeholders of the template are ['incorr_letter']",
            id="needs-left-out",
        ),
        pytest.param(
            MINE.replace("says {incorr_letter}", "says no"),
            1,
            "needs",
            "lists ['incorr_letter'], but the placeholders of the template are []",
            id="needs-too-much",
        ),
        pytest.param(
            MINE + MINE.split("\n\n")[1], 2, "id", "id 'nudge' is used twice", id="same-id"
        ),
        pytest.param(
            MINE.replace("uncle", "café").encode("latin-1"), None, None, "UTF-8", id="latin-1"
        ),
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
    line = str(error)
    assert line.splitlines() == [line]


def test_a_catalogue_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_catalogue(str(tmp_path / "gone.toml"))
    assert caught.value.fault == "no such file exists"
    assert caught.value.remedy == "Check the path given to -T challenges"


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
def test_choose_takes_ids_and_families_in_catalogue_order(names: str, selection: list[str]) -> None:
    assert ids(choose(built_in(), names)) == selection


def test_choose_knows_a_users_technique_and_family(tmp_path: Path) -> None:
    catalogue = load_catalogue(user_file(tmp_path, MINE))
    assert ids(choose(catalogue, "mine")) == ["nudge"]
    assert ids(choose(catalogue, "nudge,recency-prior")) == ["recency-prior", "nudge"]
    assert len(choose(catalogue, "all")) == 15


@pytest.mark.parametrize(
    ("names", "reason", "suggestion"),
    [
        ("authority-piror", "unknown technique 'authority-piror'", "'authority-prior'"),
        ("rethink,contxt", "unknown technique 'contxt'", "Did you mean 'context'"),
        ("ragstyle", "unknown technique 'ragstyle'", "Did you mean 'rag-style'"),
        ("Rethink", "unknown technique 'Rethink'", "Did you mean 'rethink'"),
        ("qqq", "unknown technique 'qqq'", "Known: all, alternative-context, "),
    ],
)
def test_an_unknown_technique_offers_the_nearest(names: str, reason: str, suggestion: str) -> None:
    with pytest.raises(InputError) as caught:
        choose(built_in(), names)
    assert caught.value.fault == reason
    assert caught.value.field == "techniques"
    assert suggestion in str(caught.value)


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


@pytest.mark.parametrize(
    ("names", "chains"),
    [
        ("none", ()),
        ("", ()),
        ("authority-prior>rag-style", (("authority-prior", "rag-style"),)),
        (
            " double-check > rag-style > double-check , time-neutral>rag-style",
            (("double-check", "rag-style", "double-check"), ("time-neutral", "rag-style")),
        ),
        ("time-neutral>rag-style," * 2, (("time-neutral", "rag-style"),)),
    ],
    ids=["none", "empty", "one", "blanks-and-repeats", "named-twice"],
)
def test_choose_chains_reads_names_joined_by_arrows(
    names: str, chains: tuple[tuple[str, ...], ...]
) -> None:
    assert choose_chains(built_in(), names) == chains


def test_paper_stands_for_the_14_chains_once() -> None:
    assert choose_chains(built_in(), "paper") == paper_chains()
    more = choose_chains(built_in(), "authority-prior>rag-style,paper,time-neutral>rag-style")
    assert len(more) == 15
    assert set(more) == {*paper_chains(), ("time-neutral", "rag-style")}


@pytest.mark.parametrize(
    ("names", "reason", "suggestion"),
    [
        (
            "authority-prior>rag",
            "chain 'authority-prior>rag' contains the unknown technique 'rag'",
            "'rag-style'",
        ),
        (
            "papre>rag-style",
            "chain 'papre>rag-style' contains the unknown technique 'papre'",
            "prior",
        ),
        ("rag-style", "chain 'rag-style' has only one technique", "Join two or more with '>'"),
        ("rag-style>", "chain 'rag-style>' contains the unknown technique ''", "Known: "),
        ("rethink>rag-style", "chain 'rethink>rag-style' contains the unknown technique", ""),
    ],
    ids=["second", "first", "one", "open", "family"],
)
def test_a_bad_chain_is_refused(names: str, reason: str, suggestion: str) -> None:
    with pytest.raises(InputError) as caught:
        choose_chains(built_in(), f"paper,{names}")
    assert caught.value.field == "chains"
    assert caught.value.fault.startswith(reason)
    assert suggestion in str(caught.value)
