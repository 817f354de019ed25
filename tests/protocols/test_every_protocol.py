"""What holds for every protocol: decoding, system prompt, epochs, order of questions, resuming."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage
from tests import tasks
from tests.scripted import Scripted, errors, put
from tests.studies import question_rows, turns_of, write_jsonl

from holdfast.challenges.texts import system_prompt

SETTINGS: dict[str, dict[str, Any]] = {
    "followup": {
        "techniques": "double-check,authority-prior", "chains": "authority-prior>double-check",
    },
    "single_turn": {"biases": "recency,frequency", "mitigations": "education"},
    "stick_or_switch": {},
    "medfuzz": {"attempts": 1, "confirm": 0},
    "open_answers": {"techniques": "double-check,authority-prior"},
    "pressure": {"turns": 2},
}  # fmt: skip
PROTOCOLS = pytest.mark.parametrize("name", [name for name in SETTINGS if name != "medfuzz"])


def task(name: str, source: str, **more: Any) -> Any:
    settings = {"questions": source, "controls": False} | SETTINGS[name] | more
    return getattr(tasks, name)(**settings)


def asked(name: str, source: str, model: Any, epochs: int = 1, **more: Any) -> EvalLog:
    roles = {"judge": "simulated/judge"} if name == "open_answers" else None
    return put(task(name, source, **more), model, epochs=epochs, roles=roles)


def questions(folder: Path, n: int, *, backwards: bool = False) -> str:
    rows = question_rows(n)
    return write_jsonl(folder / f"{n}.jsonl", rows[::-1] if backwards else rows)


def answering() -> Scripted:
    return Scripted(lambda _: "Answer: A")


@pytest.mark.parametrize(
    ("name", "temperature", "epochs"),
    [
        ("followup", 0.0, 1), ("single_turn", 0.0, 1), ("stick_or_switch", None, 1),
        ("medfuzz", 1.0, 5), ("open_answers", 0.0, 1), ("pressure", 0.0, 1),
        ("contexts", 0.0, 1), ("distractors", 0.0, 1), ("labels", 0.0, 1),
    ],
)  # fmt: skip
def test_temperature_and_seed_are_those_of_paper_and_study(
    name: str, temperature: float | None, epochs: int, tmp_path: Path
) -> None:
    source = questions(tmp_path, 1)
    for settings, seed in (({}, 42), ({"seed": 7}, 7)):
        protocol = getattr(tasks, name)(questions=source, **SETTINGS.get(name, {}), **settings)
        assert (protocol.config.temperature, protocol.config.seed) == (temperature, seed)
        assert protocol.epochs == epochs


@PROTOCOLS
def test_the_system_prompt_is_a_setting(name: str, tmp_path: Path) -> None:
    source = questions(tmp_path, 1)
    brief = "Be brief. {stem}"
    for value, text in (("none", None), ("expert", system_prompt("expert")), (brief, brief)):
        script = answering()
        asked(name, source, script.model, system_prompt=value)
        system = {m.text for messages in script.asked for m in messages if m.role == "system"}
        assert system == ({text} if text else set())
        assert not text or all(messages[0].text == text for messages in script.asked)


@PROTOCOLS
def test_each_epoch_is_asked_anew(name: str, tmp_path: Path) -> None:
    source = questions(tmp_path, 1)
    once, thrice = answering(), answering()
    rows = turns_of(asked(name, source, once.model)).height
    turns = turns_of(asked(name, source, thrice.model, epochs=3))
    assert len(thrice.asked) == 3 * len(once.asked)
    assert turns["epoch"].to_list() == [1] * rows + [2] * rows + [3] * rows


@PROTOCOLS
def test_prompts_ignore_order_and_number_of_questions(name: str, tmp_path: Path) -> None:
    two = turns_of(asked(name, questions(tmp_path, 2), "simulated/sycophant"))
    more = turns_of(asked(name, questions(tmp_path, 4, backwards=True), "simulated/sycophant"))
    columns = ["question", "arm", "path", "suggested", "prompt", "reply"]
    subset = more.filter(pl.col("question").is_in(["q0", "q1"]))
    assert sorted(two.select(columns).rows(), key=str) == sorted(
        subset.select(columns).rows(), key=str
    )


@pytest.mark.rest_slow
@PROTOCOLS
def test_only_a_failed_request_is_repeated(name: str, tmp_path: Path) -> None:
    source = questions(tmp_path, 2)
    sound = answering()
    reference = turns_of(asked(name, source, sound.model))
    failures = [OSError("no route")]

    def reply(_: list[ChatMessage]) -> str:
        if len(flaky.asked) == 4 and failures:
            raise failures.pop()
        return "Answer: A"

    flaky = Scripted(reply)
    log = asked(name, source, flaky.model)
    assert log.status == "error"
    assert ["OSError: no route" in error for error in errors(log)] == [True]
    assert (turns_of(log)["status"] == "error").sum() == 1
    log = asked(name, source, flaky.model)
    assert log.status == "success"
    assert len(flaky.asked) == len(sound.asked) + 1
    columns = ["question", "arm", "path", "prompt", "answer"]
    assert turns_of(log).select(columns).equals(reference.select(columns))
