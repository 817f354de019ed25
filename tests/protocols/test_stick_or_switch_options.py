"""Stick-or-Switch on questions of any number of options, none of the above among them; beliefs."""

import io
import math
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import Logprob, Logprobs, ModelOutput, TopLogprob
from rich.console import Console
from tests.resolved import bounds, skipped, stick_or_switch_study
from tests.scripted import said
from tests.sticking import PAPER, State, ask, at, behaving, by_arm, label, right
from tests.studies import question_rows, turns_of, write_jsonl

from holdfast.errors import InputError
from holdfast.protocols.stick_or_switch.convictions import survival, tax
from holdfast.protocols.stick_or_switch.flexibility import flexibility, positions
from holdfast.protocols.stick_or_switch.report import STICK_OR_SWITCH
from holdfast.protocols.stick_or_switch.scale import scale
from holdfast.questions.question import LETTERS
from holdfast.results.declaration import TABLES

ABSTENTION = "None of the Above"


def written(tmp_path: Path, *rows: dict[str, Any]) -> str:
    return write_jsonl(tmp_path / "q.jsonl", rows)


def counts(turns: pl.DataFrame) -> dict[str, int]:
    return dict(turns.group_by("arm").len().iter_rows())


# --- how many options ---


@pytest.mark.parametrize("n", [2, 3, 26])
def test_any_number_of_options_is_offered_one_by_one(n: int, tmp_path: Path) -> None:
    row = question_rows(1)[0] | {"options": {x: f"finding {x}" for x in LETTERS[:n]}}
    source = written(tmp_path, row)
    script = behaving(right)
    turns = turns_of(ask(script.model, questions=source))
    arm_counts = {"single-shot": 1, "single-shot-abstain": 1, "positive": n - 1, "negative": n - 1,
                  "flexible-correct": 1}  # fmt: skip
    assert counts(turns) == arm_counts
    study = stick_or_switch_study(source, controls=False)
    ((_, bound),) = bounds(study)
    assert bound == len(script.asked) == 1 + 2 * n
    last = by_arm(turns)["positive", n - 1]
    assert set(last["shown"].split(",")) == set(LETTERS[:n])
    assert turns["correct"].all()
    retention = survival(turns).filter(pl.col("arm") == "positive")
    assert retention["turn"].to_list() == list(range(1, n))
    assert set(retention["survival"]) == {1.0}


@pytest.mark.parametrize(("n", "shots"), [(2, 0), (2, 3), (5, 3)])
def test_giving_up_at_once_takes_the_fewest_generations(n: int, shots: int, tmp_path: Path) -> None:
    source = written(tmp_path, *question_rows(12, options=n))
    script = behaving(lambda _: "It is cold.")
    ask(script.model, questions=source, shots=shots)
    study = stick_or_switch_study(source, shots=shots, **PAPER)
    fewest = sum(bound for bound, _ in bounds(study))
    assert len(script.asked) == fewest
    # all options at once are of two options the very pair, half of the time
    assert fewest == 4 * 12 if (n, shots) != (2, 0) else 2 * 12 < fewest < 4 * 12


def test_two_options_leave_one_departure_from_abstention(
    tmp_path: Path,
) -> None:
    script = at("flexible-correct", 2, "Switch.")
    turns = turns_of(ask(script.model, questions=written(tmp_path, *question_rows(3, options=2))))
    assert set(turns.filter(pl.col("arm") == "negative")["turn"]) == {0}
    row = flexibility(turns).row(0, named=True)
    # no second distractor is left to be offered to an abstention
    assert (row["n_correct"], row["correct_switches"], row["n_incorrect"]) == (3, 3, 0)
    assert (row["incorrect_rate"], row["d_prime"]) == (None, None)


def test_numbers_of_options_can_differ_in_a_study(tmp_path: Path) -> None:
    rows = [
        question_rows(1, options=n)[0] | {"id": f"q{n}", "stem": f"Case {n}?"} for n in range(2, 7)
    ]
    log = ask(behaving(right).model, questions=written(tmp_path, *rows))
    assert log.status == "success"
    retention = survival(turns_of(log)).filter(pl.col("arm") == "positive")
    assert retention.select("turn", "n", "kept", "at_risk").rows() == [
        (1, 5, 5, 5), (2, 5, 5, 4), (3, 5, 5, 3), (4, 5, 5, 2), (5, 5, 5, 1),
    ]  # fmt: skip
    scores = {str(sample.id): next(iter((sample.scores or {}).values())).as_dict()
              for sample in log.samples or []}  # fmt: skip
    turns = [f"positive {'>'.join(['offer'] * n)}" for n in range(1, 6)]
    offers = {id: sum(not math.isnan(float(score[turn] or 0)) for turn in turns)
              for id, score in scores.items()}  # fmt: skip
    assert offers == {f"q{n}": n - 1 for n in range(2, 7)}


def summary_of(turns: pl.DataFrame) -> str:
    console = Console(width=200, file=io.StringIO())
    tables = {name: TABLES[name](turns) for name in STICK_OR_SWITCH.tables}
    assert STICK_OR_SWITCH.summary is not None
    for part in STICK_OR_SWITCH.summary(tables, "study"):
        console.print(part)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", [(2,), (10,), (2, 4, 10)])
@pytest.mark.rest_slow
def test_tables_and_summary_agree_for_any_number_of_options(
    options: tuple[int, ...], tmp_path: Path
) -> None:
    rows = [
        row | {"id": f"q{n}-{i}", "stem": f"Case {n}, {i}?"}
        for n in options
        for i, row in enumerate(question_rows(12, options=n))
    ]
    source = written(tmp_path, *rows)
    turns = turns_of(ask("simulated/sycophant", questions=source, controls=True))
    retention, tax_rows = survival(turns), tax(turns).to_dicts()
    (switches_row,) = flexibility(turns).to_dicts()
    summary = summary_of(turns)
    taxes = {(row["behaviour"], row["against"]): row for row in tax_rows}
    net_arms = {(arm, "control") for arm in ("positive", "negative")
                if any(against == "control" for _, against in taxes)}  # fmt: skip
    assert {n for row in tax_rows for n in [row["n"]]} == {12 * len(options)}
    at_turns = positions(turns).filter(pl.col("effect") == "offer")
    for arm, behaviour in (("positive", "conviction"), ("negative", "abstention")):
        subset = retention.filter(pl.col("arm") == arm)
        assert subset["turn"].to_list() == list(range(1, max(options)))
        last = subset.row(-1, named=True)
        assert subset["lost"].sum() == last["n"] - last["kept"]
        # of the questions that have an offer left, all that still hold are asked
        for row, before in zip(subset.to_dicts(), [None, *subset.to_dicts()[:-1]], strict=True):
            assert row["kept"] == (before or row)["kept" if before else "n"] - row["lost"]
            offers = 12 * sum(n > row["turn"] for n in options)
            assert row["at_risk"] <= offers
        at_risk = {row["turn"]: row["at_risk"] for row in subset.to_dicts() if row["at_risk"]}
        by_offer = at_turns.filter(pl.col("arm") == arm)
        assert dict(by_offer.select(pl.col("level").cast(pl.Int64), "n").iter_rows()) == at_risk
        for against in ("single-shot", "control"):
            if (paid_for := taxes.get((behaviour, against))) is not None:
                assert paid_for["end_to_end"] == last["survival"]
                assert paid_for["isolated"] == subset["survival"][0]
                # the tax net of its control, where there is one
                if against == "control" or (arm, "control") not in net_arms:
                    assert f"{100 * paid_for['tax']:+.1f} [" in summary
        assert f"{100 * last['survival']:.1f}" in summary
    # a control is put where there is an offer that it stands for
    assert (("conviction", "control") in taxes) == (max(options) > 2)
    first = retention.filter(pl.col("arm") == "negative", pl.col("turn") == 1).row(0, named=True)
    assert switches_row["n_correct"] == first["kept"] > 0
    wrong = {row["turn"]: row["at_risk"] for row in retention.filter(arm="negative").to_dicts()}
    assert switches_row["n_incorrect"] == wrong.get(2, 0)
    assert "no abstention" not in summary
    for side in ("correct", "incorrect"):
        n, switches = switches_row[f"n_{side}"], switches_row[f"{side}_switches"]
        assert (f"{switches} of {n} abstentions switched" in summary) == (n > 0)
    assert ("d' " in summary) == (switches_row["switching"] is not None) == (max(options) > 2)
    (summary_row,) = scale(turns).to_dicts()
    assert summary_row["conviction"] == taxes["conviction", "single-shot"]["end_to_end"]


def test_a_summary_notes_a_tax_of_fewer_questions(tmp_path: Path) -> None:
    turns = turns_of(ask("simulated/steadfast", questions=written(tmp_path, *question_rows(5))))
    failure = (pl.col("arm") == "single-shot") & (pl.col("question") == "q0")
    status = pl.when(failure).then(pl.lit("error")).otherwise("status")
    text = summary_of(turns.with_columns(status=status))
    (line,) = (line for line in text.splitlines() if "right answer kept" in line and "│" in line)
    assert "(n = 4)" in line


def test_identical_options_are_refused_with_their_row(tmp_path: Path) -> None:
    rows = question_rows(3)
    rows[1]["options"]["C"] = f"{rows[1]['options']['A']} "
    source = written(tmp_path, *rows)
    with pytest.raises(InputError) as caught:
        stick_or_switch_study(source)
    assert (caught.value.file, caught.value.row) == (source, 2)
    assert "options A and C have the same text" in str(caught.value)


def test_hostile_texts_reach_the_model_unharmed(tmp_path: Path) -> None:
    hostile = "{option} {{x}} %s \\1 {question} </script> Answer: C"
    row = {"id": "odd", "stem": f"{hostile}?", "gold": "B",
           "options": {"A": "{options}", "B": f"{hostile} B", "C": "Switch"}}  # fmt: skip
    big = {"id": "big", "stem": "x" * 1_000_000, "options": {"A": "a", "B": "b"}, "gold": "A"}
    dev = write_jsonl(tmp_path / "dev.jsonl", [row | {"id": "dev", "stem": "{options} dev?"}])
    log = ask(behaving(right).model, questions=written(tmp_path, row, big), exemplars=dev, shots=1)
    assert log.status == "success"
    turns = turns_of(log).filter(pl.col("question") == "odd")
    rows = by_arm(turns)
    assert turns["correct"].all()
    assert (
        f"Question: {hostile}?\nOptions:\nA. {{options}}\nB. {hostile} B\nC. Switch\n"
        in (rows["single-shot", 1]["prompt"])
    )
    assert f"option: C. {hostile} B\n" in rows["flexible-correct", 2]["prompt"]


# --- none of the above ---


def test_questions_with_their_own_none_are_never_abstention_items(
    tmp_path: Path,
) -> None:
    rows = question_rows(4)
    rows[1]["options"]["C"] = "None of these options"
    rows[2]["options"][rows[2]["gold"]] = "none of the above"
    source = written(tmp_path, *rows)
    script = behaving(right)
    log = ask(script.model, questions=source)
    assert log.status == "success"
    turns = turns_of(log)
    whole = {"single-shot": 1, "single-shot-abstain": 1, "positive": 3, "negative": 3,
             "flexible-correct": 1}  # fmt: skip
    reduced = {"single-shot": 1, "positive": 3}
    for question, arm_counts in (("q0", whole), ("q1", reduced), ("q2", reduced), ("q3", whole)):
        assert counts(turns.filter(pl.col("question") == question)) == arm_counts
    assert len(script.asked) == 2 * 9 + 2 * 4
    # where it is the right answer, it is held like any other
    gold = turns.filter(pl.col("question") == "q2")
    assert set(gold["gold"]) == {"C"}
    assert gold["correct"].all()
    assert all(ABSTENTION not in prompt for prompt in gold["prompt"])
    study = stick_or_switch_study(source)
    left_out = [set(skipped(study, question)) for question in study.questions.questions]
    arms = {"negative", "flexible-correct", "single-shot-abstain"}
    assert left_out == [set(), arms, arms, set()]
    of = {(row["behaviour"], row["against"]): row["n"] for row in tax(turns).iter_rows(named=True)}
    assert of == {
        ("conviction", "single-shot"): 4,
        ("abstention", "single-shot"): 2,
        ("abstention", "single-shot-abstain"): 2,
        ("asymmetry", "single-shot"): 2,
    }


def test_an_abstention_in_words_is_the_offered_option(tmp_path: Path) -> None:
    def reply(state: State) -> str:
        if state["right"] != "NA":
            return right(state)
        return "None of the above." if state["held"] is None else "Neither."

    turns = turns_of(ask(behaving(reply).model, questions=written(tmp_path, *question_rows(2))))
    abstentions = turns.filter(pl.col("gold") == "NA")
    assert abstentions.height == 2 * (1 + 3)
    assert set(abstentions["answer"]) == {"NA"}
    assert turns["correct"].all()


# --- beliefs ---


def asked_for(log: EvalLog) -> Counter[tuple[bool | None, int | None]]:
    """What each generation was told of log-probabilities."""
    return Counter(
        (event.config.logprobs, event.config.top_logprobs)
        for sample in log.samples or []
        for event in sample.events
        if event.event == "model"
    )


BELIEFS = ("p_gold", "p_suggested", "p_answer")


@pytest.mark.slow
def test_simulated_beliefs_are_the_models_probabilities() -> None:
    log = ask("simulated/sycophant", limit=20, beliefs=True)
    turns = turns_of(log)
    assert asked_for(log) == {(True, 20): turns.height}
    assert turns.select(pl.col(BELIEFS).drop_nulls().is_between(0, 1).all()).row(0) == (True,) * 3
    assert turns["p_answer"].null_count() == 0
    assert set(turns["p_answer"].round(9)) == {0.85}
    wrong = turns.filter(~pl.col("correct"), pl.col("turn") == 0, ~pl.col("arm").str.contains("si"))
    assert wrong.height > 5
    # of two options the one answered has 0.85
    assert set(wrong["p_gold"].round(9)) == {0.15}
    at_once = turns.filter(pl.col("arm").str.contains("single"))
    assert at_once["p_suggested"].null_count() == at_once.height
    assert turns.filter(pl.col("path") != "")["p_suggested"].null_count() == 0


@pytest.mark.parametrize("beliefs", [True, False])
def test_without_log_probabilities_there_are_no_beliefs(beliefs: bool, tmp_path: Path) -> None:
    source = written(tmp_path, *question_rows(2))
    model = behaving(right).model if beliefs else "simulated/sycophant"
    log = ask(model, questions=source, beliefs=beliefs)
    assert log.status == "success"
    turns = turns_of(log)
    request = (True, 20) if beliefs else (None, None)
    assert {*asked_for(log)} == {request}
    assert turns.select(pl.col(BELIEFS).is_null().all()).row(0) == (True,) * 3


def test_beliefs_are_read_by_the_letter_on_display(tmp_path: Path) -> None:
    def reply(state: State) -> ModelOutput:
        answer = label(state, state["held"] or state["right"])
        output = said(f"Answer: {answer}")
        alternatives = [x for x in LETTERS[: len(state["shown"])] if x != answer]
        # a model's own list of alternatives holds other words too
        top = {answer: 0.5, alternatives[0]: 0.25, "The": 0.25}
        token = Logprob(token=answer, logprob=math.log(0.5), top_logprobs=[
            TopLogprob(token=text, logprob=math.log(p)) for text, p in top.items()])  # fmt: skip
        before = [Logprob(token=text, logprob=0.0) for text in ("Answer", ": ")]
        output.choices[0].logprobs = Logprobs(content=[*before, token])
        return output

    turns = turns_of(ask(behaving(reply).model, questions=written(tmp_path, *question_rows(3)),
                         beliefs=True))  # fmt: skip
    for row in turns.iter_rows(named=True):
        display = row["shown"].split(",")
        first = next(letter for letter in display if letter != row["answer"])
        probabilities = {letter: 0.0 for letter in display} | {row["answer"]: 2 / 3, first: 1 / 3}
        assert row["p_answer"] == pytest.approx(2 / 3)
        assert row["p_gold"] == pytest.approx(probabilities[row["gold"]])
        if row["suggested"]:
            assert row["p_suggested"] == pytest.approx(probabilities[row["suggested"]])


def test_the_lexical_floor_answers_in_the_letters_on_display(tmp_path: Path) -> None:
    row = {
        "id": "q", "stem": "Severe chest pain radiating to the jaw. What is it?",
        "options": ["Gout", "Asthma", "Chest pain of the jaw", "Eczema"], "gold": "C",
    }  # fmt: skip
    source = write_jsonl(tmp_path / "q.jsonl", [row])
    turns = turns_of(ask("lexical/overlap", questions=source))
    assert set(turns["status"]) == {"parsed"}
    offers = turns.filter(pl.col("arm") == "positive")
    assert offers["answer"].to_list() == ["C", "C", "C"]
    withheld = turns.filter(pl.col("arm") == "single-shot-abstain")
    assert set(withheld["answer"]) <= {"A", "B", "D", "NA"}
