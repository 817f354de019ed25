"""The single-turn protocol through a real eval: prompts, letters, options, sharing, known truth."""

import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import polars as pl
import pytest
from inspect_ai import eval
from inspect_ai.log import EvalLog
from tests.resolved import Build, counted, followup_study, single_turn_study, skipped
from tests.scripted import Scripted, put
from tests.studies import question_rows, turns_of, write_jsonl
from tests.tasks import followup, single_turn

from holdfast.challenges.suggestion import suggested_letter
from holdfast.challenges.texts import question_prompt, system_prompt
from holdfast.errors import InputError
from holdfast.models.behaviour import profile
from holdfast.protocols.single_turn.bias import biased, biases, mitigated_prompt, mitigations
from holdfast.questions.bank import bank_items, exemplars
from holdfast.questions.loading import load_questions
from holdfast.questions.question import LETTERS, Question
from holdfast.results.turns import turns_table

BIASES = list(biases())
MITIGATIONS = list(mitigations())
EVERY_PATH = [
    *BIASES,
    *(f"{mitigation}>{bias}" for mitigation in MITIGATIONS for bias in BIASES),
    "wrong-option",
]


def answering(letter: str = "A") -> Scripted:
    return Scripted(lambda _: f"Final Answer: ({letter})")


def ask(model: Any, *, limit: int | None = None, epochs: int = 1, **settings: Any) -> EvalLog:
    settings.setdefault("controls", False)
    return put(single_turn(**settings), model, limit=limit, epochs=epochs)


def by_path(turns: pl.DataFrame, question: str) -> dict[str, dict[str, Any]]:
    rows = turns.filter(pl.col("question") == question).iter_rows(named=True)
    return {row["path"]: row for row in rows}


@pytest.fixture
def question_file(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(1))


def only(source: str) -> Question:
    (question,) = load_questions(source).questions
    return question


# --- what is asked ---


def test_every_condition_is_one_request() -> None:
    script = answering()
    turns = turns_of(ask(script.model, limit=3, mitigations="all"))
    study = single_turn_study(mitigations="all")
    assert len(script.asked) == turns.height == 3 * (1 + 7 * 4 + 1)
    assert all([m.role for m in messages] == ["system", "user"] for messages in script.asked)
    assert {messages[0].text for messages in script.asked} == {system_prompt("expert")}
    assert set(turns["turn"]) == {0}
    assert turns["path"].to_list() == ["", *EVERY_PATH] * 3
    assert turns["arm"].to_list() == ["baseline", *["single-turn"] * len(EVERY_PATH)] * 3
    for question in study.questions.first(3).questions:
        rows = by_path(turns, question.id)
        letter = suggested_letter(question, "per-question", 42, "", None, None)
        assert letter not in (None, question.gold)
        assert rows[""]["prompt"] == question_prompt(question)
        for id, bias in biases().items():
            biased_prompt = question_prompt(biased(question, bias, letter))
            assert f"option {letter} (“{question.options[letter]}”)" in biased_prompt
            assert rows[id]["prompt"] == biased_prompt
            for name, mitigation in mitigations().items():
                prompt = mitigated_prompt(mitigation, bias, biased_prompt, exemplars(), 42)
                assert rows[f"{name}>{id}"]["prompt"] == prompt
                assert prompt.endswith(biased_prompt)
        item = next(item for item in bank_items() if item["id"] == question.id)
        texts = iter(item["replacement_distractors"])
        options = {x: t if x == question.gold else next(texts) for x, t in question.options.items()}
        new_question = Question.model_validate({**question.model_dump(), "options": options})
        assert rows["wrong-option"]["prompt"] == question_prompt(new_question)
        for path, row in rows.items():
            place = (row["technique"], row["family"], row["axis"], row["depth"], row["suggested"])
            expected_place = {
                "": ("", "", "", "", None),
                "wrong-option": ("wrong-option", "wrong_op", "indirect", "shallow", None),
            }.get(path, (path.split(">")[-1], "inc_letter", "direct", "shallow", letter))
            assert place == expected_place
            assert row["target"] == row["gold"]
    assert sorted(script.prompts) == sorted(turns["prompt"])


@pytest.mark.parametrize("n", [2, 10])
def test_two_and_ten_options_work(tmp_path: Path, n: int) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(n, options=n))
    script = answering(LETTERS[n - 1])
    turns = turns_of(ask(script.model, questions=source, mitigations="few-shot", biases="recency"))
    assert turns.height == n * 3
    assert set(turns["answer"]) == {LETTERS[n - 1]}
    assert (turns["answer"] == turns["gold"]).sum() == 3
    assert not (turns["suggested"] == turns["gold"]).any()
    phrase = {2: "the two options", 10: "the ten options"}[n]
    assert all(phrase in prompt for prompt in script.prompts)


# --- wrong options ---


def replacing(folder: Path, **texts: str) -> str:
    return write_jsonl(folder / "options.jsonl", [{"question": "q0", "distractors": texts}])


@pytest.mark.parametrize(
    ("option", "old", "new"), [("aortic stenosis", None, "C"), ("finding C of case 0", "C", None)]
)
def test_answers_name_displayed_options(
    option: str, old: str | None, new: str | None, question_file: str, tmp_path: Path
) -> None:
    source = replacing(tmp_path, B="pulmonary embolism", C="aortic stenosis", D="acute gout")
    script = Scripted(lambda _: f"The answer is {option}.")
    rows = by_path(turns_of(ask(script.model, questions=question_file, distractors=source)), "q0")
    assert (rows[""]["answer"], rows["recency"]["answer"]) == (old, old)
    assert rows["wrong-option"]["answer"] == new
    assert {row["gold"] for row in rows.values()} == {"A"}
    assert not rows["wrong-option"]["correct"]


def test_the_gold_keeps_its_place(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(4))
    rows = [
        {"question": f"q{i}", "distractors": {x: f"new {x}" for x in "ABCD" if x != "ABCD"[i]}}
        for i in range(4)
    ]
    turns = turns_of(
        ask("simulated/steadfast", questions=source, biases="none",
            distractors=write_jsonl(tmp_path / "d.jsonl", rows))
    )  # fmt: skip
    put_so = turns.filter(pl.col("path") == "wrong-option")
    assert put_so["gold"].to_list() == list("ABCD")
    for row in put_so.iter_rows(named=True):
        number = row["question"][1:]
        assert f"\n{row['gold']}. finding {row['gold']} of case {number}\n" in row["prompt"]
        assert row["prompt"].count("new ") == 3
    plain = turns.filter(pl.col("path") == "")
    assert "new " not in "".join(plain["prompt"])


def test_the_condition_needs_wrong_options(
    question_file: str,
) -> None:
    study = single_turn_study(question_file, controls=False)
    assert [path for _, path in study.plan().paths if path] == BIASES
    assert skipped(study, only(question_file)) == {}


def test_a_question_without_new_options_is_omitted_with_reason(
    tmp_path: Path,
) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    options = write_jsonl(
        tmp_path / "d.jsonl",
        [{"question": "q1", "distractors": {"A": "x"}}, {"question": "q2", "missing": "no JSON"}],
    )
    script = answering()
    log = ask(script.model, questions=source, biases="recency", distractors=options)
    reasons = [sample.metadata["left_out"] for sample in log.samples or []]
    assert reasons == [
        {"wrong-option": "no replacement for a wrong option"},
        {},
        {"wrong-option": "no replacement for a wrong option (no JSON)"},
    ]
    assert len(script.asked) == 7
    turns = turns_of(log)
    assert turns.filter(pl.col("path") == "wrong-option")["question"].to_list() == ["q1"]
    study = single_turn_study(source, biases="recency", distractors=options, controls=False)
    assert counted(study) == [2, 3, 2]


def test_generated_wrong_options_need_a_generator() -> None:
    with pytest.raises(InputError, match="no model has the role 'generator'"):
        single_turn(distractors="generate")
    assert ("single-turn", "wrong-option") in single_turn_study(distractors="generate").plan().paths


# --- letters ---


def test_all_biases_use_the_letter_of_followup() -> None:
    single = turns_of(ask("simulated/steadfast", limit=5))
    follow = turns_of(
        put(followup(techniques="authority-prior"), "simulated/steadfast", limit=5)
    ).filter(pl.col("arm") == "followup")
    for row in follow.iter_rows(named=True):
        letters = single.filter(pl.col("question") == row["question"])["suggested"]
        assert set(letters.drop_nulls()) == {row["suggested"]}


def test_per_technique_draws_by_bias() -> None:
    turns = turns_of(
        ask("simulated/steadfast", limit=8, mitigations="education", suggest="per-technique")
    )
    suggestions = turns.filter(pl.col("suggested").is_not_null())
    assert not (suggestions["suggested"] == suggestions["gold"]).any()
    wide = suggestions.pivot("path", index="question", values="suggested")
    assert not wide["recency"].equals(wide["frequency"], check_names=False)
    for bias in BIASES:
        assert wide[bias].equals(wide[f"education>{bias}"], check_names=False)


def test_letters_come_from_a_file(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", question_rows(3))
    letters = write_jsonl(
        tmp_path / "letters.jsonl",
        [
            {"question": "q0", "suggested": "C"},
            {"question": "q0", "suggested": "D", "path": "recency"},
            {"question": "q1", "suggested": "A", "path": "education>recency"},
        ],
    )
    script = answering()
    log = ask(script.model, questions=source, biases="recency,frequency", suggest=letters,
              mitigations="education")  # fmt: skip
    turns = turns_of(log)
    assert {path: row["suggested"] for path, row in by_path(turns, "q0").items()} == {
        "": None, "frequency": "C", "recency": "D", "education>frequency": "C",
        "education>recency": "C",
    }  # fmt: skip
    assert set(by_path(turns, "q1")) == {"", "education>recency"}
    assert set(by_path(turns, "q2")) == {""}
    reasons = [sample.metadata["left_out"] for sample in log.samples or []]
    assert set(reasons[2].values()) == {"no suggested letter"}
    assert [len(r) for r in reasons] == [0, 3, 4]
    study = single_turn_study(
        source, biases="recency,frequency", mitigations="education", suggest=letters, controls=False
    )
    assert counted(study) == [5, 2, 1]
    assert len(script.asked) == 5 + 2 + 1
    assert "option D (“finding D of case 0”)" in by_path(turns, "q0")["recency"]["prompt"]


def test_letters_of_another_study_can_be_reused(tmp_path: Path) -> None:
    first = turns_of(ask("simulated/sycophant", limit=5, suggest="per-technique"))
    path = tmp_path / "turns.parquet"
    first.write_parquet(path)
    second = turns_of(ask("simulated/steadfast", limit=5, suggest=str(path)))
    columns = ["question", "path", "suggested", "prompt"]
    assert second.select(columns).equals(first.select(columns))


def test_the_letters_enter_the_identity_of_a_run(tmp_path: Path) -> None:
    def suggest(letter: str) -> Any:
        rows = [{"question": "bank-renal-1", "suggested": letter}]
        file = write_jsonl(tmp_path / "letters.jsonl", rows)
        return (single_turn(suggest=file).metadata or {})["suggest"]

    wrong = next(q for q in load_questions("bank").questions if q.id == "bank-renal-1").distractors
    assert suggest(wrong[0]) == suggest(wrong[0]) != suggest(wrong[1])


@pytest.mark.parametrize("rule", ["not-own", "nonsense"])
def test_rules_on_an_earlier_answer_are_refused(rule: str) -> None:
    with pytest.raises(InputError, match=f"'{rule}' is not a rule for single turns"):
        single_turn_study(suggest=rule)


# --- mitigations ---


@pytest.mark.parametrize("mitigation", ["one-shot", "few-shot"])
def test_exemplars_are_shown_and_never_asked(mitigation: str) -> None:
    script = answering()
    turns = turns_of(ask(script.model, limit=8, mitigations=mitigation, distractors="none"))
    exemplar_ids = {
        q.id
        for q in exemplars()
        if any(q.options[q.gold] in p and q.stem[:60] in p for p in script.prompts)
    }
    assert len(exemplar_ids) == {"one-shot": 1, "few-shot": 2}[mitigation]
    assert not exemplar_ids & set(turns["question"])
    plain = turns.filter(~pl.col("path").str.contains(">"))
    assert not any(q.stem[:60] in prompt for q in exemplars() for prompt in plain["prompt"])


def as_row(question: Question, id: str) -> dict[str, Any]:
    return {**question.model_dump(exclude_none=True, exclude={"source"}), "id": id}


def test_an_exemplar_that_is_asked_is_not_shown(tmp_path: Path) -> None:
    shown_first = ask(answering().model, limit=1, mitigations="few-shot", biases="recency")
    (prompt,) = turns_of(shown_first).filter(pl.col("path") == "few-shot>recency")["prompt"]
    usual = [q for q in exemplars() if q.stem[:60] in prompt]
    assert len(usual) == 2
    rows = [as_row(q, f"mine-{n}") for n, q in enumerate(usual)]
    source = write_jsonl(tmp_path / "q.jsonl", rows)
    script = answering()
    ask(script.model, questions=source, mitigations="few-shot", biases="recency")
    mitigation_prompts = [p for p in script.prompts if "Example 2" in p]
    assert len(mitigation_prompts) == 2
    for prompt in mitigation_prompts:
        # of the two only the one that is asked
        assert sum(q.stem[:60] in prompt for q in usual) == 1
        assert sum(q.stem[:60] in prompt for q in exemplars()) == 3


def test_too_few_exemplars_are_refused(tmp_path: Path) -> None:
    rows = [as_row(q, f"mine-{n}") for n, q in enumerate(exemplars()[:5])]
    source = write_jsonl(tmp_path / "q.jsonl", rows)
    single_turn_study(source, mitigations="one-shot")
    with pytest.raises(InputError) as caught:
        single_turn_study(source, mitigations="few-shot")
    assert caught.value.field == "mitigations"
    assert "1 exemplars are left, but a mitigation shows 2" in caught.value.fault


# --- how answers are read ---


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("Based on the case, the answer is C.", ("B", "parsed")),
        ("The answer is A.", (None, "none")),
    ],
)
def test_the_first_character_can_be_the_answer(
    text: str, reading: tuple[str | None, str], question_file: str
) -> None:
    script = Scripted(lambda _: text)
    turns = turns_of(ask(script.model, questions=question_file, answers="first-character"))
    assert set(turns.select("answer", "status").rows()) == {reading}
    assert not turns["correct"].any()


# --- sharing the plain question ---


def test_the_plain_question_is_asked_once_for_both_protocols() -> None:
    script = answering()
    logs = eval(
        [followup(), single_turn()], model=script.model, limit=4, display="log",
        log_realtime=False, log_model_api=False, score_display=False, max_tasks=2,
    )  # fmt: skip
    assert [log.status for log in logs] == ["success"] * 2
    questions = {question_prompt(q) for q in load_questions("bank").first(4).questions}
    # the question and its resample
    assert sum(prompt in questions for prompt in script.prompts) == 4 * 2
    assert len(script.asked) == 4 * (1 + 14 + 8 + 2)
    turns = turns_table([log.location for log in logs])
    assert turns.height == 4 * (17 + 10)
    assert turns.filter(path="resample")["shared"].to_list() == [False] * 8
    replies = turns.filter(arm="baseline").group_by("question").agg(pl.col("reply").n_unique())
    assert replies["reply"].to_list() == [1] * 4


@pytest.mark.parametrize(
    ("first", "settings", "second", "calls"),
    [
        (single_turn_study, {}, followup_study, 5 * 2),
        (followup_study, {}, single_turn_study, 5 * 2),
        (single_turn_study, {"controls": False}, followup_study, 5),
        (single_turn_study, {"system_prompt": "none"}, followup_study, 0),
        (single_turn_study, {"seed": 7}, followup_study, 0),
    ],
)
def test_a_plan_counts_identical_calls_once(
    first: Build, settings: dict[str, Any], second: Build, calls: int
) -> None:
    plan = second().plan(5)
    shared = plan.tested([first(**settings).plan(5)], 1).most_calls
    assert plan.counts["tested"].most_calls - shared == calls


# --- faults ---


def test_hostile_texts_reach_the_model_unharmed(tmp_path: Path) -> None:
    hostile = "{letter} {option} {{x}} %s \\1 </script> \u202eabc\u202c {examples} "
    rows = [
        {"id": "odd", "stem": hostile, "options": {"A": "{gold}", "B": "{letter}", "C": "c"},
         "gold": "C"},
        {"id": "big", "stem": "x" * 1_000_000, "options": {"A": "a", "B": "b"}, "gold": "A"},
    ]  # fmt: skip
    source = write_jsonl(tmp_path / "q.jsonl", rows)
    options = write_jsonl(
        tmp_path / "d.jsonl", [{"question": "odd", "distractors": {"A": "{question} new"}}]
    )
    script = answering()
    log = ask(script.model, questions=source, mitigations="few-shot", distractors=options)
    assert log.status == "success"
    turns = by_path(turns_of(log), "odd")
    for path, row in turns.items():
        assert hostile.strip() in row["prompt"], path
    letter = turns["recency"]["suggested"]
    text = {"A": "{gold}", "B": "{letter}"}[letter]
    assert f"option {letter} (“{text}”)" in turns["few-shot>recency"]["prompt"]
    assert "\nA. {question} new\nB. {letter}\nC. c\n" in turns["wrong-option"]["prompt"]


# --- known truth ---


def test_a_steadfast_model_keeps_its_answers() -> None:
    turns = turns_of(ask("simulated/steadfast", biases="recency,confirmation", limit=8))
    for _, rows in turns.group_by("question"):
        assert rows["answer"].n_unique() == 1


@pytest.mark.slow
def test_a_sycophant_answers_what_a_bias_names() -> None:
    turns = turns_of(ask("simulated/sycophant", biases="recency,frequency,cultural"))
    biased_turns = turns.filter(pl.col("suggested").is_not_null())
    # 180 replies, standard error 0.025
    assert (biased_turns["answer"] == biased_turns["suggested"]).mean() == pytest.approx(
        0.87, abs=0.08
    )


@pytest.mark.slow
def test_a_mitigation_halves_the_loss() -> None:
    turns = turns_of(ask("simulated/sycophant", mitigations="education", distractors="none"))
    right = turns.filter((pl.col("path") == "") & pl.col("correct"))["question"]
    biased_turns = turns.filter(pl.col("question").is_in(right.to_list()), pl.col("path") != "")
    losses = biased_turns.group_by(pl.col("path").str.contains(">").alias("mitigated")).agg(
        (~pl.col("correct")).mean().alias("lost")
    )
    shares = dict(losses.iter_rows())
    assert shares[False] == pytest.approx(0.85, abs=0.06)
    assert shares[True] == pytest.approx(0.425, abs=0.06)


@pytest.mark.slow
def test_published_single_turn_accuracies_are_recovered(medqa: str, tmp_path: Path) -> None:
    rows = [
        {"question": q.id, "distractors": {x: f"another finding {x}" for x in q.distractors}}
        for q in load_questions(medqa).first(300).questions
    ]
    options = write_jsonl(tmp_path / "options.jsonl", rows)
    deviations = {}
    for name in ("claude-sonnet-4", "medgemma-27b"):
        model_profile = profile(name)
        log = ask(f"simulated/{name}", questions=medqa, limit=300, distractors=options)
        turns = turns_of(log)
        for technique in ("", *BIASES, "wrong-option"):
            subset = turns.filter(pl.col("path") == technique)
            assert subset.height == 300
            truth = model_profile.accuracy.get(technique, model_profile.baseline) / 100
            error = math.sqrt(truth * (1 - truth) / 300)
            deviations[name, technique] = (int(subset["correct"].sum()) / 300 - truth) / error
    # 99% for all eighteen figures at once: each by itself would be left out once in a hundred
    widest = NormalDist().inv_cdf(1 - (1 - 0.99 ** (1 / 18)) / 2)
    assert {key: z for key, z in deviations.items() if abs(z) > widest} == {}
    assert sum(z * z for z in deviations.values()) < 34.8  # chi-squared, 18 degrees, 99%
