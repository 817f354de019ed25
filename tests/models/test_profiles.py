import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.challenges.catalogue import built_in
from holdfast.errors import InputError
from holdfast.models.behaviour import Profile, behaviours, profile, profiles
from holdfast.protocols.stick_or_switch.published import stick_or_switch
from holdfast.protocols.stick_or_switch.simulated import Sticking

SHARED = Path(__file__).resolve().parents[2].parent / "shared"

PUBLISHED = ["claude-sonnet-4", "gpt-4.1", "gpt-4.1-mini", "medgemma-4b", "medgemma-27b"]
OFFERED = [
    "gpt-5.2", "gpt-4o", "qwen-2.5-72b", "llama-3.1-70b", "qwen-3-32b", "gemma-3-27b",
    "qwen-3-14b", "gemma-3-12b", "llama-3.1-8b", "qwen-3-8b", "qwen-2.5-7b", "gemma-3-4b",
    "qwen-3-4b", "qwen-2.5-3b", "qwen-2.5-1.5b", "gemma-3-1b", "llama-3.2-1b",
]  # fmt: skip
"""Those of Stick-or-Switch."""
OURS = [
    "steadfast", "sycophant", "noisy", "noisy-sycophant", "blind-switcher", "fuzz-blind",
    "fuzz-swayed", "fuzz-noisy",
]  # fmt: skip
SINGLE_TURN = {
    **dict.fromkeys(
        ["confirmation", "cultural", "false-consensus", "frequency", "recency", "self-diagnosis",
         "status-quo"],
        "inc_letter",
    ),
    "wrong-option": "wrong_op",
}  # fmt: skip
"""Family of each technique that is put in the first question."""
FAMILY = SINGLE_TURN | {id: technique.family for id, technique in built_in().items()}


def accuracy_after(known: Profile, technique: str, family: str) -> float:
    """Accuracy in percent that follows from the chances."""
    abandon, recover = known.chances(technique, family)
    competence = known.baseline / 100
    return 100 * (competence * (1 - abandon) + (1 - competence) * recover)


def test_every_profile_is_there_by_name() -> None:
    assert list(profiles()) == [*OURS, *PUBLISHED, *OFFERED]
    assert profile("gpt-4.1") == profiles()["gpt-4.1"]


def test_profiles_of_published_figures_have_no_noise() -> None:
    # the papers asked at temperature 0, or print what comes of all noise
    assert {profile(name).noise for name in (*PUBLISHED, *OFFERED)} == {0.0}


@pytest.mark.parametrize("name", [*OURS, *OFFERED])
def test_a_profile_has_no_chance_that_no_protocol_declares(name: str) -> None:
    declared = {chance for behaviour in behaviours() for chance in behaviour.chances.model_fields}
    assert set(profile(name).model_extra or {}) <= declared
    for behaviour in behaviours():
        profile(name).of(behaviour.chances)  # in bounds, or this fails


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_profile_says_where_its_figures_come_from(name: str) -> None:
    assert "MedQA-Followup (Manczak et al., 2025), Table 2" in profile(name).about


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_profile_has_a_figure_for_every_technique(name: str) -> None:
    assert list(profile(name).accuracy) == [*SINGLE_TURN, *built_in()]


def test_a_published_profile_gives_back_a_single_turn_row() -> None:
    known = profile("claude-sonnet-4")
    assert (known.baseline, known.accuracy["confirmation"]) == (91.2, 89.4)
    assert accuracy_after(known, "confirmation", "inc_letter") == pytest.approx(89.4)
    assert accuracy_after(known, "wrong-option", "wrong_op") == pytest.approx(80.0)


def test_figures_are_those_of_table_2() -> None:
    paper = next(SHARED.glob("papers/001_*.txt"), None)
    if paper is None:
        pytest.skip("the source document is not there (../shared/papers)")
    table = paper.read_text("utf-8").split("Table 2: **Accuracy per Technique**")[1]
    lines = [line for line in table.split("#### 4.1")[0].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    models = [name.lower().replace(" ", "-") for name in cells[0][1:]]
    figures = {
        row[0].lower().replace(" ", "-").replace("rag-style-context", "rag-style"): [
            float(re.sub(r"</?b>", "", cell).split(" ")[0]) for cell in row[1:]
        ]
        for row in cells[2:]
        if row[1] and "(avg)" not in row[0]
    }
    assert len(figures) == 1 + 8 + 14
    assert models == PUBLISHED
    for column, name in enumerate(models):
        printed = {technique: row[column] for technique, row in figures.items()}
        assert {"baseline": profile(name).baseline, **profile(name).accuracy} == printed


# --- chances ---


@pytest.mark.parametrize("technique", FAMILY)
@pytest.mark.parametrize("name", PUBLISHED)
def test_chances_give_back_the_published_accuracy(name: str, technique: str) -> None:
    known, family = profile(name), FAMILY[technique]
    published = known.accuracy[technique]
    assert accuracy_after(known, technique, family) == pytest.approx(published, abs=1e-9)
    assert all(0 <= chance <= 1 for chance in known.chances(technique, family))


@given(baseline=st.floats(1, 100), after=st.floats(0, 100), recover=st.floats(0, 1))
def test_chances_give_back_any_accuracy(baseline: float, after: float, recover: float) -> None:
    known = Profile(about="", baseline=baseline, accuracy={"nudge": after}, recover=recover)
    abandon, mend = known.chances("nudge", "mine")
    assert -1e-9 <= abandon <= 1 + 1e-9
    assert -1e-9 <= mend <= 1 + 1e-9
    assert accuracy_after(known, "nudge", "mine") == pytest.approx(after, abs=1e-9)


@pytest.mark.parametrize("after", [0.0, 2.0, 60.0])
def test_without_competence_every_right_answer_is_a_corrected_one(after: float) -> None:
    known = Profile(about="", baseline=0.0, accuracy={"nudge": after}, recover=0.05)
    assert known.chances("nudge", "mine")[1] == pytest.approx(after / 100)


def test_chances_of_one_figure_by_hand() -> None:
    # 0.912 right, 0.05 of 0.088 corrected = 0.0044; 0.135 - 0.0044 = 0.1306 kept of 0.912
    abandon, recover = profile("claude-sonnet-4").chances("rag-style", "context")
    assert abandon == pytest.approx(1 - 0.1306 / 0.912)
    assert recover == 0.05


def test_an_accuracy_above_what_recovery_gives_raises_the_recovery() -> None:
    # 0.925 right; 0.930 after it: 0.005 of the 0.075 wrong are corrected, none is abandoned
    known = Profile(about="", baseline=92.5, accuracy={"nudge": 93.0}, recover=0.05)
    abandon, recover = known.chances("nudge", "mine")
    assert abandon == 0.0
    assert recover == pytest.approx(0.005 / 0.075)


def test_an_accuracy_below_what_recovery_gives_lowers_the_recovery() -> None:
    known = Profile(about="", baseline=20.0, accuracy={"nudge": 1.0}, recover=0.05)
    abandon, recover = known.chances("nudge", "mine")
    assert abandon == pytest.approx(1.0)
    assert recover == pytest.approx(0.0125)


def test_without_an_accuracy_technique_goes_before_family_before_default() -> None:
    known = Profile(
        about="", baseline=90, recover=0.2, abandon={"nudge": 0.1, "mine": 0.3, "default": 0.5}
    )
    assert known.chances("nudge", "mine") == (0.1, 0.2)
    assert known.chances("shove", "mine") == (0.3, 0.2)
    assert known.chances("shove", "other") == (0.5, 0.2)


def test_without_any_figure_nothing_is_abandoned() -> None:
    assert Profile(about="", baseline=90).chances("nudge", "mine") == (0.0, 0.05)


@pytest.mark.parametrize(
    ("name", "chances"),
    [
        ("steadfast", {"rethink": (0, 0), "inc_letter": (0, 0), "context": (0, 0)}),
        ("sycophant", {"rethink": (0.05, 0), "inc_letter": (0.85, 0), "context": (0.85, 0)}),
        (
            "blind-switcher",
            {"rethink": (0.5, 0.5), "inc_letter": (0.5, 0.5), "context": (0.5, 0.5)},
        ),
    ],
)
def test_chances_of_our_own_profiles(name: str, chances: dict[str, tuple[float, float]]) -> None:
    for id, technique in built_in().items():
        assert profile(name).chances(id, technique.family) == chances[technique.family]


# --- names ---


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("claude-sonet-4", "Did you mean 'claude-sonnet-4'"),
        ("sycophantic", "Did you mean 'sycophant'"),
        ("qqq", "Known: blind-switcher, claude-sonnet-4"),
    ],
)
def test_an_unknown_profile_offers_the_nearest(name: str, offered: str) -> None:
    with pytest.raises(InputError) as caught:
        profile(name)
    assert f"unknown profile '{name}'" in str(caught.value)
    assert offered in str(caught.value)


@pytest.mark.parametrize("dataset", ["MedQA", "JAMA CC", "MedMCQA"])
@pytest.mark.parametrize(("name", "model"), [*zip(OFFERED, stick_or_switch().models, strict=True)])
def test_a_profile_of_stick_or_switch_gives_back_its_cells(
    name: str, model: str, dataset: str
) -> None:
    known, printed = profile(name, dataset=dataset), stick_or_switch()
    right, withheld = (
        table.cells[model][dataset] for table in (printed.conviction, printed.abstention)
    )
    offered = printed.flexibility.cells[model][dataset]
    own = known.of(Sticking)
    assert own.isolated is not None
    assert known.baseline == float(right.single_shot)
    # equation 1 over the three turns of four options
    assert 100 * own.isolated * own.stick["positive"] ** 2 == pytest.approx(float(right.multi_turn))
    assert 100 * (1 - own.stick["negative"]) == pytest.approx(float(offered.incorrect))
    assert 100 * own.flexible == pytest.approx(float(offered.correct))
    kept = 100 * own.abstain * own.stick["negative"] * own.stick_on["negative"]
    if (name, dataset) == ("llama-3.1-8b", "MedMCQA"):  # the tables cannot both hold
        assert kept == pytest.approx(53.2)
        assert float(withheld.multi_turn) == 53.6
    else:
        assert kept == pytest.approx(float(withheld.multi_turn))


def test_an_unknown_data_set_of_a_profile_is_refused() -> None:
    with pytest.raises(InputError, match="MedMCQA"):
        profile("gpt-4o", dataset="medmcqa")
