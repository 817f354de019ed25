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

RESOURCES = Path(__file__).resolve().parents[2].parent / "shared"

MODELS = ["claude-sonnet-4", "gpt-4.1", "gpt-4.1-mini", "medgemma-4b", "medgemma-27b"]
STICK_OR_SWITCH = [
    "gpt-5.2", "gpt-4o", "qwen-2.5-72b", "llama-3.1-70b", "qwen-3-32b", "gemma-3-27b",
    "qwen-3-14b", "gemma-3-12b", "llama-3.1-8b", "qwen-3-8b", "qwen-2.5-7b", "gemma-3-4b",
    "qwen-3-4b", "qwen-2.5-3b", "qwen-2.5-1.5b", "gemma-3-1b", "llama-3.2-1b",
]  # fmt: skip
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
"""Family of a technique in the first question."""
FAMILY = SINGLE_TURN | {id: technique.family for id, technique in built_in().items()}


def accuracy_after(subject: Profile, technique: str, family: str) -> float:
    """Accuracy in percent that follows from the chances."""
    abandon, recover = subject.chances(technique, family)
    competence = subject.baseline / 100
    return 100 * (competence * (1 - abandon) + (1 - competence) * recover)


def test_every_profile_is_found_by_name() -> None:
    assert list(profiles()) == [*OURS, *MODELS, *STICK_OR_SWITCH]
    assert profile("gpt-4.1") == profiles()["gpt-4.1"]


def test_profiles_of_published_figures_have_no_noise() -> None:
    # the papers asked at temperature 0, or print what comes of all noise
    assert {profile(name).noise for name in (*MODELS, *STICK_OR_SWITCH)} == {0.0}


@pytest.mark.parametrize("name", [*OURS, *STICK_OR_SWITCH])
def test_profiles_have_only_declared_chances(name: str) -> None:
    chances = {chance for behaviour in behaviours() for chance in behaviour.chances.model_fields}
    assert set(profile(name).model_extra or {}) <= chances
    for behaviour in behaviours():
        profile(name).of(behaviour.chances)  # in bounds, or this fails


@pytest.mark.parametrize("name", MODELS)
def test_a_published_profile_has_a_source_and_a_figure_for_every_technique(name: str) -> None:
    assert "MedQA-Followup (Manczak et al., 2025), Table 2" in profile(name).about
    assert list(profile(name).accuracy) == [*SINGLE_TURN, *built_in()]


def test_figures_match_table_2() -> None:
    paper = next(RESOURCES.glob("papers/001_*.txt"), None)
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
    assert models == MODELS
    for column, name in enumerate(models):
        column_figures = {technique: row[column] for technique, row in figures.items()}
        assert {"baseline": profile(name).baseline, **profile(name).accuracy} == column_figures


# --- chances ---


@pytest.mark.parametrize("name", MODELS)
def test_chances_reproduce_the_published_accuracy(name: str) -> None:
    subject = profile(name)
    for technique, family in FAMILY.items():
        after = accuracy_after(subject, technique, family)
        assert after == pytest.approx(subject.accuracy[technique], abs=1e-9)
        assert all(0 <= chance <= 1 for chance in subject.chances(technique, family))


@given(baseline=st.floats(1, 100), after=st.floats(0, 100), recover=st.floats(0, 1))
def test_chances_reproduce_any_accuracy(baseline: float, after: float, recover: float) -> None:
    subject = Profile(about="", baseline=baseline, accuracy={"nudge": after}, recover=recover)
    abandon, mend = subject.chances("nudge", "mine")
    assert -1e-9 <= abandon <= 1 + 1e-9
    assert -1e-9 <= mend <= 1 + 1e-9
    assert accuracy_after(subject, "nudge", "mine") == pytest.approx(after, abs=1e-9)


@pytest.mark.parametrize(
    ("baseline", "after", "abandon", "recover"),
    [
        # 0.912 right, 0.05 of 0.088 corrected = 0.0044; 0.135 - 0.0044 = 0.1306 kept of 0.912
        (91.2, 13.5, 1 - 0.1306 / 0.912, 0.05),
        # an accuracy above that of recovery: 0.005 of the 0.075 wrong are corrected
        (92.5, 93.0, 0.0, 0.005 / 0.075),
        # an accuracy below that of recovery: 0.01 of the 0.8 wrong are corrected
        (20.0, 1.0, 1.0, 0.0125),
        # without competence every right answer is a corrected one
        (0.0, 0.0, None, 0.0),
        (0.0, 2.0, None, 0.02),
        (0.0, 60.0, None, 0.6),
    ],
)
def test_chances_match_hand_calculation(
    baseline: float, after: float, abandon: float | None, recover: float
) -> None:
    subject = Profile(about="", baseline=baseline, accuracy={"nudge": after}, recover=0.05)
    chances = subject.chances("nudge", "mine")
    assert abandon is None or chances[0] == pytest.approx(abandon)
    assert chances[1] == pytest.approx(recover)


def test_technique_precedes_family_and_default() -> None:
    subject = Profile(
        about="", baseline=90, recover=0.2, abandon={"nudge": 0.1, "mine": 0.3, "default": 0.5}
    )
    assert subject.chances("nudge", "mine") == (0.1, 0.2)
    assert subject.chances("shove", "mine") == (0.3, 0.2)
    assert subject.chances("shove", "other") == (0.5, 0.2)
    assert Profile(about="", baseline=90).chances("nudge", "mine") == (0.0, 0.05)


@pytest.mark.parametrize(
    ("name", "rethink", "suggestion"),
    [("steadfast", (0, 0), (0, 0)), ("sycophant", (0.05, 0), (0.85, 0)),
     ("blind-switcher", (0.5, 0.5), (0.5, 0.5))],
)  # fmt: skip
def test_our_profiles_have_their_chances(
    name: str, rethink: tuple[float, float], suggestion: tuple[float, float]
) -> None:
    for id, technique in built_in().items():
        expected_chances = rethink if technique.family == "rethink" else suggestion
        assert profile(name).chances(id, technique.family) == expected_chances


# --- names ---


@pytest.mark.parametrize(
    ("name", "near"),
    [("claude-sonet-4", "'claude-sonnet-4'"), ("sycophantic", "'sycophant'"),
     ("qqq", "Known: blind-switcher, claude-sonnet-4")],
)  # fmt: skip
def test_an_unknown_profile_offers_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InputError, match=f"unknown profile '{name}'") as caught:
        profile(name)
    assert near in str(caught.value.remedy)


@pytest.mark.parametrize("dataset", ["MedQA", "JAMA CC", "MedMCQA"])
@pytest.mark.parametrize(
    ("name", "model"), [*zip(STICK_OR_SWITCH, stick_or_switch().models, strict=True)]
)
def test_stick_or_switch_profiles_reproduce_their_cells(
    name: str, model: str, dataset: str
) -> None:
    subject, tables = profile(name, dataset=dataset), stick_or_switch()
    right, abstention = (
        table.cells[model][dataset] for table in (tables.conviction, tables.abstention)
    )
    flexibility = tables.flexibility.cells[model][dataset]
    chances = subject.of(Sticking)
    assert chances.isolated is not None
    assert subject.baseline == float(right.single_shot)
    # equation 1 over the three turns of four options
    assert 100 * chances.isolated * chances.stick["positive"] ** 2 == pytest.approx(
        float(right.multi_turn)
    )
    assert 100 * (1 - chances.stick["negative"]) == pytest.approx(float(flexibility.incorrect))
    assert 100 * chances.flexible == pytest.approx(float(flexibility.correct))
    retention = 100 * chances.abstain * chances.stick["negative"] * chances.stick_on["negative"]
    if (name, dataset) == ("llama-3.1-8b", "MedMCQA"):  # the tables cannot both hold
        assert retention == pytest.approx(53.2)
        assert float(abstention.multi_turn) == 53.6
    else:
        assert retention == pytest.approx(float(abstention.multi_turn))


def test_an_unknown_data_set_of_a_profile_is_refused() -> None:
    with pytest.raises(InputError, match="MedMCQA"):
        profile("gpt-4o", dataset="medmcqa")
