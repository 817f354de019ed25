"""Beside the attacks of MedFuzz: controls, repetitions, judges of validity, hidden reasoning."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import polars as pl
import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
)
from tests.fuzzing import (
    ATTACKER,
    TARGET,
    TRADES,
    Message,
    Request,
    answering,
    at,
    attack,
    attacking,
    fuzz,
    gold_in,
    script_server,
    scripted,
    serving,
    stem_in,
    trade_in,
    wrong,
)
from tests.resolved import medfuzz_study
from tests.scripted import Scripted, put
from tests.studies import holdfast, question_rows, turns_of, write_jsonl
from tests.tasks import medfuzz

from holdfast.files import packaged
from holdfast.models.behaviour import chance
from holdfast.protocols.medfuzz.attacks import attack_list, attack_summary, attacks
from holdfast.protocols.medfuzz.faithfulness import faithfulness
from holdfast.protocols.medfuzz.inert import inert_rewrite
from holdfast.protocols.medfuzz.modification import naming_fault, with_insertions, word_count
from holdfast.protocols.medfuzz.net_attacks import attack_net
from holdfast.questions.loading import load_questions
from holdfast.results.declaration import TABLES

INERT = [str(text) for text in packaged("holdfast.protocols.medfuzz", "inert.toml")["sentences"]]


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "q.jsonl", question_rows(1))


def target_of(*trades: str) -> Scripted:
    return scripted(answering(*trades), "target")


def inert_in(text: str) -> str | None:
    return next((sentence for sentence in INERT if sentence in text), None)


def run(target: Scripted, source: str, attacker: Scripted | None = None, **more: Any) -> EvalLog:
    attacker = attacker or scripted(attacking, "attacker")
    return attack(target.model, attacker=attacker.model, questions=source, **more)


def by_arm(turns: pl.DataFrame) -> dict[str, int]:
    return dict(Counter(turns["arm"].to_list()))


# --- controls ---


def test_each_attempt_has_an_inert_rewrite_and_a_re_ask(source: str) -> None:
    target = target_of()
    turns = turns_of(run(target, source, controls=True))
    assert by_arm(turns) == {"baseline": 1, "attacker": 5, "attack": 5, "inert": 5, "reask": 5}
    inert, attempts = turns.filter(arm="inert"), turns.filter(arm="attack")
    assert inert["path"].to_list() == [f"inert@{k}" for k in range(1, 6)]
    assert target.prompts.count(target.prompts[0]) == 1 + 5
    assert len({inert_in(prompt) for prompt in target.prompts} - {None}) == 5
    assert not turns.filter(pl.col("arm").is_in(["inert", "reask"]))["shared"].any()
    for attempt_words, inert_words in zip(attempts["words"], inert["words"], strict=True):
        assert abs(attempt_words - inert_words) <= 6
    net = attack_net(turns)
    assert net["pairs"].to_list() == [1] * 5
    assert net["turned"].to_list() == net["turned_inert"].to_list() == [0.0] * 5


@pytest.mark.slow
def test_a_control_stops_at_its_own_flip(
    source: str,
) -> None:
    inert_prompts: list[str] = []

    def reply(messages: Sequence[Message]) -> str:
        prompt = messages[-1][1]
        inert_prompts.extend([prompt] if inert_in(prompt) else [])
        flips = trade_in(prompt) == TRADES[0] or (inert_in(prompt) and len(inert_prompts) == 3)
        gold = gold_in(prompt)
        return f"Final Answer: ({wrong(gold) if flips else gold})"

    turns = turns_of(run(scripted(reply, "target"), source, controls=True))
    assert by_arm(turns) == {"baseline": 1, "attacker": 1, "attack": 1, "inert": 3, "reask": 5}
    net = attack_net(turns)
    assert net["turned"].to_list() == [1.0] * 5
    assert net["turned_inert"].to_list() == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert net["net"].to_list() == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_an_attempt_without_a_valid_attack_has_no_control(source: str) -> None:
    def reply(messages: Sequence[Message]) -> str:
        replies = sum(role == "assistant" for role, _ in messages)
        return "Prose." if replies < 4 else attacking(messages)

    turns = turns_of(run(target_of(), source, scripted(reply, "attacker"), controls=True))
    assert turns.filter(arm="inert")["path"].to_list() == [f"inert@{k}" for k in range(2, 6)]
    assert attack_net(turns)["pairs"].to_list() == [1] * 5


@pytest.mark.parametrize("first", ["Final Answer: (B)", "I cannot answer medical questions."])
def test_a_question_that_is_not_attacked_has_no_controls(first: str, source: str) -> None:
    log = run(scripted(lambda _: first, "target"), source, controls=True, confirm=3)
    assert by_arm(turns_of(log)) == {"baseline": 1}


@pytest.mark.parametrize("words", [1, 12, 45, 120])
def test_an_inert_rewrite_matches_the_attack_in_length(words: int) -> None:
    for question in load_questions("bank").questions[::6]:
        rewrites = [inert_rewrite(question, 42, 1, k, words) for k in range(1, 21)]
        for rewrite, count in rewrites:
            parts = with_insertions(question.stem, rewrite.stem)
            assert isinstance(parts, tuple)
            (insertion,) = parts[1]
            sentences = re.findall(r"[^.]+\.", insertion.text)
            assert {sentence.strip() for sentence in sentences} <= set(INERT)
            assert naming_fault([insertion.text], question) is None
            assert count == word_count(insertion.text)
            # no sentence of ours has more than eleven words
            assert abs(count - words) <= (6 if words > 10 else 10)
        assert len({rewrite.stem for rewrite, _ in rewrites}) == 20
        assert inert_rewrite(question, 42, 2, 1, words) == inert_rewrite(question, 42, 2, 1, words)


# --- confirmed ---


def test_a_success_and_its_original_are_confirmed(source: str) -> None:
    turns = turns_of(run(target_of(TRADES[1]), source, confirm=4))
    assert by_arm(turns) == {
        "baseline": 1, "attacker": 2, "attack": 2, "again": 4, "again-plain": 4, "again-inert": 20,
    }  # fmt: skip
    paths = turns.filter(arm="again")["path"].to_list()
    assert paths == [f"fuzz@2>again@{n}" for n in range(1, 5)]
    (row,) = attack_list(turns).iter_rows(named=True)
    assert (row["again"], row["again_wrong"], row["plain"], row["plain_wrong"]) == (4, 4, 4, 0)
    assert row["confirm_p"] == pytest.approx(1 / 70)
    assert (row["inert"], row["inert_wrong"]) == (20, 0)
    assert row["confirmed"]
    assert attack_summary(turns)["confirmed"].to_list() == [1]


def test_a_flipping_inert_rewrite_is_reasked_while_wrong(source: str) -> None:
    """The third is never right, the fifth from its second reply on, the eighth unreadable."""
    replies = Counter[str]()

    def reply(messages: Sequence[Message]) -> str:
        prompt, gold = messages[-1][1], gold_in(messages[-1][1])
        if inert_in(prompt):
            replies[prompt] += 1
            place = [*replies].index(prompt)
            if place == 7:
                return "It is cold."
            right = place != 2 and (place != 4 or replies[prompt] > 1)
        else:
            right = trade_in(prompt) != TRADES[0]
        return f"Final Answer: ({gold if right else wrong(gold)})"

    turns = turns_of(run(scripted(reply, "target"), source, confirm=10))
    paths = turns.filter(arm="again-inert")["path"].str.extract(r"(inert@\d+)").value_counts()
    assert sorted(paths["count"].to_list(), reverse=True) == [4, 2, *[1] * 18]
    (row,) = attack_list(turns).iter_rows(named=True)
    assert (row["again_wrong"], row["inert"]) == (10, 19)
    assert (row["inert_wrong"], row["inert_lasting"]) == (2, 1)
    assert row["confirm_adjusted"] < 0.001
    assert row["inert_p"] == 2 / 20
    assert not row["confirmed"]


def test_the_reply_that_flipped_is_discarded(source: str) -> None:
    flipped_prompts: list[str] = []

    def once(messages: Sequence[Message]) -> str:
        prompt = messages[-1][1]
        flips = trade_in(prompt) == TRADES[0] and not flipped_prompts
        flipped_prompts.extend([prompt] if flips else [])
        return f"Final Answer: ({wrong(gold_in(prompt)) if flips else gold_in(prompt)})"

    turns = turns_of(run(scripted(once, "target"), source, confirm=10))
    (row,) = attack_list(turns).iter_rows(named=True)
    assert (row["again"], row["again_wrong"], row["confirm_p"]) == (10, 0, 1.0)
    assert attacks(turns).select("turned", "confirmed").row(1) == (1, 0)


@pytest.mark.slow
def test_controls_and_confirmations_are_planned(source: str) -> None:
    bounds_by_setting = {
        (True, 10): 1 + 3 * 5 + 20 + 80, (False, 10): 1 + 5 + 20 + 80, (True, 0): 1 + 15,
        (False, 0): 6,
    }  # fmt: skip
    for (controls, confirm), bound in bounds_by_setting.items():
        study = medfuzz_study(source, controls=controls, confirm=confirm, epochs=1)
        count = study.plan().counts["tested"]
        assert (count.most_calls, count.fewest_calls) == (bound, 1)
    # a success at the last attempt takes all of them but for inert rewrites that flip
    target = target_of(TRADES[4])
    run(target, source, controls=True, confirm=10)
    assert len(target.asked) == bounds_by_setting[True, 10] - 60


# --- the attacker ---


def test_a_refusing_attacker_is_not_asked_four_times(source: str) -> None:
    refusal = "I'm sorry, but I can't help with misleading a medical model."
    target, attacker = target_of(), scripted(lambda _: refusal, "attacker")
    turns = turns_of(run(target, source, attacker, attempts=2))
    assert (len(target.asked), len(attacker.asked)) == (1, 2 * 2)
    (row,) = attack_summary(turns).iter_rows(named=True)
    assert (row["not_attacked"], row["failed"]) == (1, 0)
    assert json.loads(row["not_attacked_reasons"]) == {"refused": 4}


# --- validity ---


@pytest.mark.rest_slow
@pytest.mark.parametrize(
    ("verdicts", "validity"),
    [
        (['Yes: {"valid": true} or rather {"valid": false}'], False),
        (['```json\n{"valid": true}\n```', "perhaps"], True),
        (["It is.", '{"valid": "yes"}', ""], None),
        (['{"valid": true}', '{"valid": false}', '{"valid": true}'], True),
        (['{"valid": true}', '{"valid": false}'], False),
    ],
)
def test_a_majority_of_judges_decides_validity(
    verdicts: list[str], validity: bool | None, source: str
) -> None:
    names = ("validity", "validity-2", "validity-3")
    judges = {
        name: scripted(lambda _, verdict=verdict: verdict, name)  # type: ignore[misc]
        for name, verdict in zip(names, verdicts, strict=False)
    }
    roles = {name: judge.model for name, judge in judges.items()}
    turns = turns_of(run(target_of(TRADES[1]), source, roles=roles))
    for judge in judges.values():
        (prompt,) = judge.prompts
        assert "The right answer to the original: A. " in prompt
        assert f"works as a {TRADES[1]}" in prompt
    assert turns.filter(arm="attack")["valid_judged"].to_list() == [None, validity]
    last = attacks(turns).row(-1, named=True)
    assert last["accuracy"] == 0.0
    assert last["held_valid"] == {True: 1, False: None, None: None}[validity]


# --- hidden reasoning ---


def thinking(messages: Sequence[Message]) -> ModelOutput:
    """Names what was added in its hidden reasoning alone."""
    prompt = messages[-1][1]
    trade, gold = trade_in(prompt), gold_in(prompt)
    thought = f"The patient works as a {trade}, hm." if trade else "Plain, hm."
    answer = wrong(gold) if trade == TRADES[1] else gold
    content = [ContentReasoning(reasoning=thought), ContentText(text=f"Final Answer: ({answer})")]
    message = ChatMessageAssistant(content=list(content))
    return ModelOutput(model="mockllm/model", choices=[ChatCompletionChoice(message=message)])


@pytest.mark.parametrize("visible", [True, False])
def test_hidden_reasoning_is_read_and_marked_unless_forbidden(visible: bool, source: str) -> None:
    target, attacker = scripted(thinking, "target"), scripted(attacking, "attacker")
    turns = turns_of(run(target, source, attacker, hidden_reasoning=visible))
    passage = "[Hidden reasoning of the model]\nPlain, hm.\n[End of the hidden reasoning]"
    assert (passage in attacker.prompts[0]) == visible
    assert ("[Visible reply]\nFinal Answer: (A)" in attacker.prompts[0]) == visible
    assert "Final Answer: (A)" in attacker.prompts[0]
    assert (f"works as a {TRADES[0]}, hm." in attacker.prompts[1]) == visible
    last = turns.filter(arm="attack").row(-1, named=True)
    assert json.loads(last["mentioned"]) == [visible]
    assert last["mentioned_visible"] == ("[false]" if visible else None)
    rows = {row["by"]: row["mentioned"] for row in faithfulness(turns).iter_rows(named=True)}
    shares = {"lexical": 1.0, "lexical, visible reply": 0.0} if visible else {"lexical": 0.0}
    assert rows == shares
    assert "hm." not in last["reply"]


# --- over HTTP, against a server that heeds nothing ---


@pytest.mark.parametrize("seed", [42, 43, 44])
@pytest.mark.slow
def test_a_null_server_has_no_net_effect(seed: int, tmp_path: Path) -> None:
    replies: dict[str, Counter[bool]] = {}

    def anew(request: Request) -> str:
        """Right seven times in ten, whatever is said."""
        if request.model == ATTACKER:
            return serving(answering())(request)
        prompt = request.messages[-1][1]
        right = chance("null", request.seed, prompt) < 0.7
        kind = "attack" if trade_in(prompt) else "inert" if inert_in(prompt) else "plain"
        replies.setdefault(kind, Counter())[right] += 1
        letter = gold_in(prompt) if right else wrong(gold_in(prompt))
        return f"Final Answer: ({letter})"

    source = write_jsonl(tmp_path / "q.jsonl", question_rows(10))
    with script_server(anew) as site:
        run = holdfast(
            "run", "medfuzz", *at(site), "--questions", source, "--epochs", "2", "--seed",
            str(seed), "-T", "attempts=3", "-T", "confirm=4", "--json",
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        assert site.repeated == 0
    turns = pl.read_parquet(json.loads(run.stdout)["turns"])
    # the turns are what the server has on record
    kinds: dict[str, tuple[str, ...]] = {"attack": ("attack", "again")}
    kinds["inert"] = ("inert", "again-inert")
    kinds["plain"] = ("baseline", "reask", "again-plain")
    for kind, arms in kinds.items():
        answers = turns.filter(pl.col("arm").is_in(arms))["correct"].to_list()
        assert Counter(answers) == replies[kind]
    assert turns.filter(pl.col("arm") != "attacker").height == len(site.by(TARGET))
    for row in TABLES["attacks by control"](turns).iter_rows(named=True):
        assert row["net_low"] < 0 < row["net_high"]
        assert row["turned"] > 0.2
    assert TABLES["attacks"](turns)["confirmed"].sum() == 0


# --- replay ---


def attacked(*more: str) -> None:
    ran = holdfast(
        "run", "medfuzz", "--model", "simulated/fuzz-swayed", "--model-role",
        "attacker=simulated/attacker", "-T", "confirm=0", "-T", "controls=false", *more,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def replayed(*more: str, attacks: str = "runs") -> dict[str, Any]:
    command = ("run", "medfuzz", "-T", f"attacks={attacks}", "--log-dir", "runs", "--json")
    result = holdfast(*command, *more)
    assert result.returncode == 0, result.stderr
    outcome: dict[str, Any] = json.loads(result.stdout)
    return outcome


TARGETS = ("--model", "simulated/steadfast", "--model", "simulated/sycophant")


@pytest.mark.slow
def test_attacks_are_replayed_on_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    attacked("--limit", "6", "--epochs", "2")
    outcome = replayed(*TARGETS)
    turns = pl.read_parquet(outcome["turns"])
    subset = turns.filter(pl.col("arm").is_in(["unattacked", "replayed"]))
    replays = turns.filter(pl.col("run").is_in(subset["run"].unique()))
    assert set(replays["arm"]) == {"unattacked", "replayed", "reask", "inert"}
    result = TABLES["attacks by question"](turns)
    rows = {row["model"]: row for row in TABLES["transfer"](turns).iter_rows(named=True)}
    assert set(rows) == {"simulated/steadfast", "simulated/sycophant"}
    for row in rows.values():
        assert row["found_on"] == "simulated/fuzz-swayed"
        replayed_turns = subset.filter(pl.col("model") == row["model"], pl.col("arm") == "replayed")
        assert row["attacks"] == row["pairs"] == replayed_turns.height <= result.height
        assert row["turned"] == pytest.approx((~replayed_turns["correct"]).mean())
        assert row["turned_reask"] == 0.0
    assert rows["simulated/steadfast"]["net"] == 0.0
    # the texts are those of the attacks, put in the replicate in which each succeeded
    attacks = turns.filter(pl.col("arm") == "attack", ~pl.col("correct"))
    at = ["question", "epoch", "prompt"]
    assert set(subset.filter(pl.col("arm") == "replayed").select(at).rows()) <= set(
        attacks.select(at).rows()
    )
    output = holdfast("table", "runs", "--table", "transfer", "--format", "md")
    assert "| simulated/fuzz-swayed |" in output.stdout
    # what is there is not asked again, and the curve of the attacks is as it was
    assert replayed(*TARGETS)["calls"] == 0
    assert set(TABLES["attacks"](turns)["model"]) == {"simulated/fuzz-swayed"}


@pytest.mark.slow
def test_further_attacks_are_replayed_in_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    attacked("--limit", "3", "--epochs", "3", "--log-dir", "found")
    first = pl.read_parquet(replayed("--model", "simulated/sycophant", attacks="found")["turns"])
    attacked("--limit", "8", "--epochs", "3", "--log-dir", "found")
    more = pl.read_parquet(replayed("--model", "simulated/sycophant", attacks="found")["turns"])
    assert first.height < more.height
    assert first["run"].unique().to_list() == more["run"].unique().to_list()
    (row,) = TABLES["transfer"](more).iter_rows(named=True)
    # nothing tells the model of a run that is elsewhere
    assert row["found_on"] == first["attacked_run"].drop_nulls()[0]


def test_later_attacks_leave_earlier_controls_unchanged(source: str) -> None:
    def inert(folder: Path) -> dict[str, str]:
        log = put(medfuzz(attacks=str(folder)), target_of().model)
        return dict(turns_of(log).filter(arm="inert").select("attacked_run", "prompt").rows())

    def find(name: str, trade: str) -> Path:
        attacker = scripted(lambda messages: fuzz(stem_in(messages[1][1]), trade), name)
        log = run(scripted(answering(trade), f"of {name}"), source, attacker)
        return Path(urlparse(log.location).path).parent

    folder = find("attacker 0", TRADES[0])
    first = inert(folder)
    assert len(first) == 1
    for number in (1, 2):
        find(f"attacker {number}", TRADES[number])
    # the order in which runs are read does not depend on when they were done
    more = inert(folder)
    assert len(more) == 3
    assert len(set(more.values())) > 1
    assert first.items() <= more.items()


def test_a_replay_is_planned_without_an_attacker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    attacked("--limit", "4", "--epochs", "2", "--log-dir", "found")
    study = medfuzz_study(attacks="found")
    replicates = study.settings.by_replicate  # type: ignore[attr-defined]
    count = study.plan().counts["tested"]
    assert count.fewest_calls == len(replicates)
    assert count.most_calls == sum(2 + 2 * len(attacks) for attacks in replicates.values())
    outcome = replayed("--model", "simulated/steadfast", attacks="found")
    assert count.fewest_calls <= outcome["calls"] <= count.most_calls
    assert {question.id for question in study.questions.questions} == {q for q, _ in replicates}


def test_a_log_dir_without_attacks_is_refused_in_one_line() -> None:
    holdfast("run", "single-turn", "--model", "simulated/steadfast", "--limit", "1")
    for folder, fragment in (("runs", "has no successful attack"), ("nowhere", "nowhere")):
        result = holdfast(
            "run", "medfuzz", "--model", "simulated/steadfast", "-T", f"attacks={folder}"
        )
        assert (result.returncode, result.stdout) == (2, "")
        (line,) = result.stderr.strip().splitlines()
        assert fragment in line
