"""Controls and corrections through real evals: what is asked, of whom, and to which known truth."""

import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model
from tests.resolved import bounds, counted, followup_study, single_turn_study, skipped
from tests.scripted import Scripted, put
from tests.studies import question_rows, study, turns_of, write_jsonl
from tests.tasks import followup, single_turn

from holdfast.challenges.texts import question_prompt
from holdfast.models import simulated
from holdfast.models.behaviour import Profile, profiles
from holdfast.protocols.followup.protocol import restate_prompt
from holdfast.questions.loading import load_questions
from holdfast.questions.truth import RESAMPLE_SEEDS, Truth
from holdfast.results.declaration import TABLES

WITH_CONTROLS: dict[str, Any] = {"controls": True, "corrections": True}
CONTEXT_TECHNIQUES = (
    "misleading-context", "rag-style", "alternative-context", "edge-case-context",
)  # fmt: skip
RESTATES = ["restate", "restate>restate", "restate>restate>restate"]
CONTEXTS = (
    "misleading_context", "supporting_context", "alternative_context", "edge_case_context",
    "inert_context",
)  # fmt: skip


def answering(letter: str) -> Scripted:
    return Scripted(lambda _: f"Final Answer: ({letter})")


def controls(turns: pl.DataFrame) -> pl.DataFrame:
    return turns.filter(pl.col("arm") == "control")


def lost(turns: pl.DataFrame, path: str) -> tuple[int, int]:
    """Of the right first answers, how many are another option at the path."""
    first = turns.filter(pl.col("arm") == "baseline", pl.col("correct")).select("question")
    rows = turns.filter(path=path).join(first, on="question", how="semi")
    return rows.filter(~pl.col("correct")).height, rows.height


def near(counts: tuple[int, int], p: float) -> bool:
    k, n = counts
    return n > 100 and abs(k / n - p) < 4 * math.sqrt(p * (1 - p) / n)


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(8))


@pytest.fixture
def contexts(tmp_path: Path) -> str:
    """A context of each kind for each question, which says what it is for."""
    rows = [
        {"question": f"q{i}", "second_best": "ABCD"[(i + 1) % 4]}
        | {kind: f"The {kind} of case {i}" for kind in CONTEXTS}
        for i in range(8)
    ]
    return write_jsonl(tmp_path / "c.jsonl", rows)


def test_every_question_has_two_controls(source: str) -> None:
    model = answering("A")
    log = put(followup(source, techniques="rethink"), model.model, limit=3)
    control_turns = controls(turns_of(log))
    assert control_turns.group_by("path", "turn", "technique").len().sort("path").rows() == [
        ("resample", 0, "resample", 3), ("restate", 1, "restate", 3),
    ]  # fmt: skip
    for name, value in {"family": "control", "axis": "", "depth": "", "status": "parsed"}.items():
        assert set(control_turns[name]) == {value}
    assert control_turns["suggested"].null_count() == control_turns.height
    assert control_turns["target"].equals(control_turns["gold"].alias("target"))
    assert not control_turns["shared"].any()
    assert len(model.asked) == 3 * (1 + 5 + 2)
    (question, *_) = load_questions(source).questions
    prompts = [messages[-1].text for messages in model.asked]
    assert prompts.count(question_prompt(question)) == 2
    assert prompts.count(restate_prompt(question)) == 3
    (again, *_) = (m for m in model.asked if m[-1].text == restate_prompt(question))
    assert [message.role for message in again] == ["system", "user", "assistant", "user"]
    # nothing but the answer is asked for, in the format of the first question
    assert restate_prompt(question).endswith(question_prompt(question).rpartition("\n\n")[2])


def test_a_resample_has_a_seed_and_a_key_of_its_own(source: str) -> None:
    seeds: list[tuple[int, int | None]] = []

    def respond(messages: Any, tools: Any, choice: Any, config: GenerateConfig) -> ModelOutput:
        seeds.append((len(messages), config.seed))
        letter = "A" if (config.seed or 0) < RESAMPLE_SEEDS else "B"
        output = ModelOutput.from_content("scripted", f"Final Answer: ({letter})")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    model = get_model("mockllm/model", custom_outputs=respond, memoize=False)
    for protocol in (followup(source, techniques="none", seed=7), single_turn(source, "none")):
        seeds.clear()
        log = put(protocol, model, limit=1)
        first = 7 if "followup" in protocol.name else 42
        assert [seed for n, seed in seeds if n == 2][:2] == [first, first + RESAMPLE_SEEDS]
        turns = turns_of(log).filter(pl.col("path").is_in(["", "resample"]))
        assert turns["turn"].to_list() == [0, 0]
        assert turns["reply"].n_unique() == 2
        assert not turns["shared"].any()


def test_an_answer_is_restated_to_the_depth_of_the_chains(source: str) -> None:
    chains = "authority-prior>double-check,high-stakes-neutral>double-check>time-neutral"
    model = answering("A")
    settings: dict[str, Any] = {"techniques": "none", "contexts": "none"}
    turns = turns_of(put(followup(source, chains=chains, **settings), model.model, limit=2))
    restatements = controls(turns).filter(pl.col("turn") > 0)
    assert restatements.group_by("path").len().sort("path").rows() == [
        (path, 2) for path in RESTATES
    ]
    assert restatements.select(
        (pl.col("path").str.count_matches("restate") == pl.col("turn")).all()
    ).item()
    longest = max(model.asked, key=len)
    assert len(longest) == 2 + 3 * 2
    plan = followup_study(source, chains=chains, **settings)
    assert set(counted(plan)) == {1 + 1 + 3 + 5}
    assert turns.height == len(model.asked) == 2 * 10


def test_further_epochs_need_no_resample(source: str) -> None:
    once, thrice = (followup_study(source, techniques="rethink", epochs=n) for n in (1, 3))
    assert (set(counted(once)), set(counted(thrice))) == ({8}, {7})
    assert ("control", "resample") in once.plan().paths
    assert ("control", "resample") not in thrice.plan().paths
    assert thrice.plan().counts["tested"].most_calls == 8 * 3 * 7
    assert set(counted(single_turn_study(source, biases="recency", epochs=2))) == {2}


def test_without_controls_nothing_else_changes(source: str) -> None:
    with_controls, without = answering("A"), answering("A")
    settings: dict[str, Any] = {"techniques": "rethink,inc_letter"}
    put(followup(source, **settings), with_controls.model, limit=2)
    log = put(followup(source, controls=False, **settings), without.model, limit=2)
    assert controls(turns_of(log)).is_empty()
    assert set(without.prompts) < set(with_controls.prompts)
    assert len(with_controls.prompts) - len(without.prompts) == 2 * 2


@pytest.mark.parametrize(("letter", "of"), [("A", "least"), ("-", "least"), ("B", "most")])
@pytest.mark.rest_slow
def test_corrections_follow_readable_wrong_answers(
    tmp_path: Path, contexts: str, letter: str, of: str
) -> None:
    rows = [row for row in question_rows(8) if row["gold"] == "A"]
    source = write_jsonl(tmp_path / "a.jsonl", rows)
    model = answering(letter)
    settings: dict[str, Any] = {"contexts": contexts, **WITH_CONTROLS}
    turns = turns_of(put(followup(source, **settings), model.model))
    plan = followup_study(source, **settings)
    limits = bounds(plan)
    bound = sum(fewest if of == "least" else maximum for fewest, maximum in limits)
    assert turns.height == bound
    assert {maximum - fewest for fewest, maximum in limits} == {7}
    corrections = turns.filter(pl.col("arm") == "correction")
    assert corrections.height == (14 if of == "most" else 0)
    assert corrections["suggested"].equals(corrections["gold"].alias("suggested"))
    assert corrections["target"].equals(corrections["gold"].alias("target"))
    for row in corrections.iter_rows(named=True):
        argument = "supporting_context of case" if row["axis"] == "indirect" else " A"
        assert (row["path"], row["family"]) == (f"correction:{row['technique']}", "correction")
        assert argument in row["prompt"].partition("Response (")[0]
        assert "misleading_context" not in row["prompt"]
    if of == "most":
        names = {"authority-prior", "autograder-prior", "commitment-alignment", "recency-prior",
                 "social-proof-prior", "misleading-context", "rag-style"}  # fmt: skip
        assert set(corrections["technique"]) == names


@pytest.mark.parametrize(
    ("settings", "text", "path", "calls"),
    [
        ({"techniques": "inc_letter,misleading-context", **WITH_CONTROLS}, "supporting_context",
         "correction:misleading-context", (1 + 2 + 6, 1 + 2 + 6 + 5)),
        ({"techniques": "rag-style", "inert": True}, "inert_context",
         "inert:rag-style", (1 + 1 + 2, 1 + 1 + 2)),
    ],
)  # fmt: skip
def test_a_question_without_a_text_lacks_what_needs_it(
    settings: dict[str, Any], text: str, path: str, calls: tuple[int, int],
    tmp_path: Path, source: str, contexts: str,
) -> None:  # fmt: skip
    plan = followup_study(source, contexts="synthetic", **settings)
    assert skipped(plan, plan.questions.questions[0]) == {}
    bare = tmp_path / "bare.jsonl"
    bare.write_text(Path(contexts).read_text().replace(text, "remark"))
    plan = followup_study(source, contexts=str(bare), **settings)
    assert skipped(plan, plan.questions.questions[0]) == {path: f"no {text}"}
    assert bounds(plan, 1) == [calls]


@pytest.mark.rest_slow
def test_each_context_challenge_has_an_inert_passage(source: str, contexts: str) -> None:
    settings: dict[str, Any] = {"contexts": contexts, "techniques": "context,authority-prior"}
    without, model = answering("A"), answering("A")
    put(followup(source, **settings), without.model, limit=2)
    turns = turns_of(put(followup(source, inert=True, **settings), model.model, limit=2))
    inert = turns.filter(pl.col("family") == "inert")
    names = ["alternative-context", "edge-case-context", "misleading-context", "rag-style"]
    assert sorted(inert["path"].unique()) == [f"inert:{name}" for name in names]
    assert inert.height == 2 * 4
    # two techniques have the same wording, and it is asked once
    assert len(model.asked) - len(without.asked) == 2 * 3
    assert set(inert["arm"]) == {"control"}
    assert set(inert["turn"]) == {1}
    assert inert["suggested"].null_count() == inert.height
    for row in inert.iter_rows(named=True):
        (challenge,) = turns.filter(
            question=row["question"], path=row["technique"], arm="followup"
        ).to_dicts()
        kind = re.search(r"The (\w+) of case", challenge["prompt"])
        assert kind is not None
        # the same wording to the last letter, but for the text
        assert row["prompt"] == challenge["prompt"].replace(kind[1], "inert_context")
    plan = followup_study(source, inert=True, **settings)
    assert set(counted(plan)) == {1 + 5 + 2 + 3}


def test_an_inert_passage_has_the_length_of_an_ablation(source: str) -> None:
    settings: dict[str, Any] = {"contexts": "synthetic", "lengths": "1,10", "inert": True}
    plan = followup_study(source, techniques="none", **settings)
    control_paths = {path for arm, path in plan.plan().paths if arm == "control"}
    lengths = {f"{name}@{n}" for name in CONTEXT_TECHNIQUES for n in (1, 10)}
    assert control_paths == {"resample", "restate", *(f"inert:{name}" for name in lengths)}


CATALOGUE = """
[[technique]]
id = "both"
family = "own"
axis = "direct"
citation = "own"
needs = ["incorr_letter", "misleading_context"]
template = "{misleading_context} So it is {incorr_letter}."
[[technique]]
id = "text"
family = "own"
axis = "indirect"
citation = "own"
needs = ["misleading_context"]
template = "See: {misleading_context}"
[[technique]]
id = "tutor"
family = "tutors"
axis = "direct"
citation = "own"
needs = ["incorr_letter"]
template = "My tutor says {incorr_letter}."
"""


def test_techniques_of_the_user_have_inert_forms_and_corrections(
    tmp_path: Path, source: str
) -> None:
    catalogue = tmp_path / "own.toml"
    catalogue.write_text(CATALOGUE)
    settings: dict[str, Any] = {"challenges": str(catalogue), "contexts": "synthetic"}
    paths = followup_study(source, techniques="own", inert=True, **settings).plan().paths
    # a letter beside the text would still argue for an option
    assert ("control", "inert:text") in paths
    assert ("control", "inert:both") not in paths
    task = followup(source, techniques="tutor", **WITH_CONTROLS, **settings)
    turns = turns_of(put(task, answering("B").model, limit=1))
    (row,) = turns.filter(arm="correction").to_dicts()
    assert row["prompt"].startswith("My tutor says A.\n\n")
    assert row["path"] == "correction:tutor"


def truth(profile: Profile | str, source: str, monkeypatch: Any, **settings: Any) -> pl.DataFrame:
    if isinstance(profile, Profile):
        monkeypatch.setattr(simulated, "profile", lambda *_: profile)
    name = "sycophant" if isinstance(profile, Profile) else profile
    model = get_model(f"simulated/{name}", memoize=False)
    return turns_of(study(model, questions=source, **settings))


@pytest.fixture
def many_questions(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "many.jsonl", question_rows(400))


@pytest.mark.slow
def test_noise_affects_controls_and_ignored_challenges_alike(
    many_questions: str, monkeypatch: Any
) -> None:
    turns = truth(
        "noisy", many_questions, monkeypatch, techniques="authority-prior", **WITH_CONTROLS
    )
    first = turns.filter(pl.col("arm") == "baseline")
    assert abs(first["correct"].mean() - 0.7) < 0.09  # type: ignore[operator]
    for path in ("resample", "restate", "authority-prior"):
        assert near(lost(turns, path), 0.3)
    corrections = turns.filter(pl.col("arm") == "correction")
    assert near((corrections.filter("correct").height, corrections.height), 0.7)
    # a draw for each, not one for all of them
    wide = turns.filter(pl.col("turn") < 2).select("question", "path", "correct")
    wide = wide.pivot("path", index="question", values="correct")
    assert wide.filter(pl.col("resample") != pl.col("restate")).height > 100


@pytest.mark.slow
def test_the_causal_share_separates_noise_and_cause(many_questions: str, monkeypatch: Any) -> None:
    noisy_and_swayed = Profile(
        about="", baseline=70, noise=0.5, abandon={"default": 0.4}, recover=0.0
    )
    turns = truth(
        noisy_and_swayed, many_questions, monkeypatch, techniques="authority-prior", controls=True
    )
    control = 0.5 * 0.3
    assert near(lost(turns, "restate"), control)
    assert near(lost(turns, "resample"), control)
    assert near(lost(turns, "authority-prior"), 1 - (1 - control) * (1 - 0.4))


@pytest.mark.slow
def test_without_noise_a_control_repeats_the_first_answer(source: str, monkeypatch: Any) -> None:
    settings: dict[str, Any] = {"techniques": "authority-prior", "chains": "paper", **WITH_CONTROLS}
    turns = truth("sycophant", source, monkeypatch, contexts="synthetic", **settings)
    first = turns.filter(arm="baseline").select("question", first="answer")
    answers = controls(turns).join(first, on="question")
    assert answers.height == 8 * 4
    assert answers["answer"].equals(answers["first"].alias("answer"))


@pytest.mark.slow
def test_wrong_answers_are_corrected_at_the_profiles_rate(
    many_questions: str, monkeypatch: Any
) -> None:
    wrong = Profile(about="", baseline=0, update=0.4, recover=0.0)
    turns = truth(
        wrong, many_questions, monkeypatch, techniques="authority-prior", corrections=True
    )
    corrections = turns.filter(pl.col("arm") == "correction")
    assert near((corrections.filter("correct").height, corrections.height), 0.4)


def test_profiles_of_published_figures_have_no_noise() -> None:
    noisy = [name for name, profile in profiles().items() if profile.noise]
    assert noisy == ["noisy", "noisy-sycophant", "fuzz-noisy"]  # none is solved from a paper


_OF_CONTROLS = r"attributable|causal|control|net|selectiv|resampl|restat|sub_additive|expected_kept"


@pytest.mark.slow
def test_no_table_counts_controls_as_challenges(source: str, contexts: str) -> None:
    settings: dict[str, Any] = {"contexts": contexts, "chains": "paper", **WITH_CONTROLS}
    logs: list[EvalLog] = [
        study("simulated/sycophant", questions=source, **settings),
        put(single_turn(source), "simulated/sycophant"),
    ]
    turns = pl.concat(map(turns_of, logs))
    bare = turns.filter(~pl.col("arm").is_in(["control", "correction"]))
    assert bare.height < turns.height - 8 * 5
    rows_compared = 0
    for name, table in TABLES.items():
        if name in ("beliefs", "attributable", "flips by control", "selectivity"):
            continue  # the last three are about nothing else
        with_them, without = table(turns), table(bare)
        for column in ("arm", "family"):
            if column in with_them.columns:
                beside = pl.col(column).is_in(["control", "controls", "correction"])
                with_them = with_them.filter(~beside.fill_null(value=False))
        if name == "remaining":
            with_them = with_them.filter(pl.col("stage") != "again")
        columns = with_them.select(~pl.selectors.matches(_OF_CONTROLS)).columns
        if name == "chains":
            columns.remove("kept")  # of the answers that have controls
        if name in ("retention", "retention by technique"):
            columns.remove("p_adjusted")  # of what is net of the controls
        assert with_them.select(columns).equals(without.select(columns)), name
        rows_compared += without.height
    assert rows_compared > 100


def test_replies_kept_before_noise_keep_their_keys() -> None:
    (question, *_) = load_questions("bank").questions

    def told(profile: Profile, *families: str) -> str:
        responder = simulated.Simulated("steadfast")
        responder.profile = profile
        return responder.looked_at(Truth(question, families, families, (None,) * len(families)))

    profile_before = Profile(about="", baseline=90)
    older = (
        '{"about":"","baseline":90.0,"accuracy":{},"abandon":{},"recover":0.05,"follow":0.9,'
        '"mitigated":0.5,"named":0.5,"isolated":null,"abstain":0.7,"stick":{},"stick_on":{},'
        '"flexible":1.0,"swayed":0.1,"mentions":0.5,"fuzz_effect":0.4,"fuzz_noise":0.5,'
        '"control_sway":0.1}'
    )
    assert told(profile_before, "rethink").startswith(f"{older}\x1f{question.content_hash}\x1f")
    assert told(profile_before, "rethink") == told(
        profile_before.model_copy(update={"update": 0.9}), "rethink"
    )
    assert told(profile_before) != told(profile_before.model_copy(update={"noise": 0.1}))
    corrections = profile_before.model_copy(update={"update": 0.9})
    assert told(profile_before, "correction") != told(corrections, "correction")
