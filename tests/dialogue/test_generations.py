"""The store of finished generations: what is kept comes back, what a kill tears does not."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
)
from tests.studies import study

from holdfast.dialogue.generations import Generations, generations, keeping

KEY, OTHER = "0f" * 16, "a1" * 16
HOSTILE = 'line\nbreak\u2028\u0085 {"key":"x"}\n}\n \x00 \U0001f4a9 {{brace}} %s'


def output(text: str) -> ModelOutput:
    return ModelOutput.from_content("m", text)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def test_what_was_kept_is_found_by_another_process_later(tmp_path: Path) -> None:
    kept = Generations(tmp_path)
    assert (kept.get(KEY), len(kept)) == (None, 0)
    assert not files(tmp_path)
    kept.put(KEY, output("one"))
    kept.put(OTHER, output(HOSTILE))
    for there in (kept, Generations(tmp_path)):
        assert len(there) == 2
        assert [there.get(key).completion for key in (KEY, OTHER)] == ["one", HOSTILE]  # type: ignore[union-attr]


def test_an_output_comes_back_with_all_that_it_holds(tmp_path: Path) -> None:
    whole = ModelOutput(
        model="m-2026",
        choices=[
            ChatCompletionChoice(
                message=ChatMessageAssistant(
                    content=[
                        ContentReasoning(reasoning="hm", signature="s"),
                        ContentText(text=HOSTILE, refusal=True),
                    ],
                    model="m-2026",
                    source="generate",
                ),
                stop_reason="content_filter",
                logprobs=Logprobs(
                    content=[
                        Logprob(
                            token="A",
                            logprob=-math.inf,
                            top_logprobs=[],
                        )
                    ]
                ),
            )
        ],
        usage=ModelUsage(
            input_tokens=3, output_tokens=2, total_tokens=5, reasoning_tokens=1, total_cost=0.25
        ),
        time=1.5,
        metadata={"note": [1, {"x": None}]},
    )
    Generations(tmp_path).put(KEY, whole)
    assert Generations(tmp_path).get(KEY) == whole


def test_every_line_is_json_with_the_key_that_it_is_found_by(tmp_path: Path) -> None:
    Generations(tmp_path).put(KEY, output(HOSTILE))
    (line,) = files(tmp_path)[0].read_bytes().splitlines()
    assert json.loads(line)["key"] == KEY


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_line_that_a_kill_has_torn_counts_for_nothing(tmp_path: Path, cut: int) -> None:
    kept = Generations(tmp_path)
    kept.put(KEY, output("one"))
    kept.put(OTHER, output("two"))
    (file,) = files(tmp_path)
    os.truncate(file, file.stat().st_size - cut)
    again = Generations(tmp_path)
    assert len(again) == 1
    assert again.get(OTHER) is None
    again.put(OTHER, output("anew"))
    found = Generations(tmp_path)
    assert [found.get(key).completion for key in (KEY, OTHER)] == ["one", "anew"]  # type: ignore[union-attr]


def test_a_damaged_reply_or_a_file_that_has_gone_is_asked_for_again(tmp_path: Path) -> None:
    Generations(tmp_path).put(KEY, output("one"))
    (file,) = files(tmp_path)
    sound = file.read_bytes()
    file.write_bytes(sound.replace(b'"choices":[', b'"choices":{'))
    assert Generations(tmp_path).get(KEY) is None
    file.write_bytes(b"garbage\n" + sound)
    there = Generations(tmp_path)
    assert there.get(KEY) == Generations(tmp_path).get(KEY) is not None
    file.unlink()
    assert there.get(KEY) is None


@pytest.mark.slow
def test_each_process_writes_a_file_of_its_own(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from inspect_ai.model import ModelOutput\n"
        "from holdfast.dialogue.generations import Generations\n"
        "kept = Generations(Path(sys.argv[1]))\n"
        "for n in range(200): kept.put(f'{n:031x}{sys.argv[2]}', "
        "ModelOutput.from_content('m', sys.argv[2] * 5000))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    there = Generations(tmp_path)
    assert (len(there), len(files(tmp_path))) == (400, 2)
    for n in range(200):
        for name in "ab":
            assert there.get(f"{n:031x}{name}") is not None


def test_what_cannot_be_written_is_not_kept_and_spoils_nothing(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from inspect_ai.model import ModelOutput\n"
        "from holdfast.dialogue.generations import Generations\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "kept = Generations(Path(sys.argv[1]))\n"
        "kept.put('0' * 32, ModelOutput.from_content('m', 'first'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, -1))\n"
        "kept.put('1' * 32, ModelOutput.from_content('m', 'x' * 5000))\n"
        "assert kept.get('1' * 32) is None\n"
        "kept.put('2' * 32, ModelOutput.from_content('m', 'third'))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)
    there = Generations(tmp_path)
    found = [there.get(digit * 32) for digit in "012"]
    assert [one and one.completion for one in found] == ["first", None, "third"]


def test_a_run_keeps_its_own_and_gives_back_the_place(tmp_path: Path) -> None:
    with keeping(tmp_path / "inner"):
        generations().put(KEY, output("one"))
        assert generations().get(KEY) is not None
    assert generations().get(KEY) is None
    assert len(Generations(tmp_path / "inner")) == 1


def test_what_is_replayed_is_in_the_log_with_what_it_took_and_is_not_spent_again() -> None:
    first, again = (
        study("simulated/claude-sonnet-4", limit=1, techniques="double-check") for _ in range(2)
    )

    def replies(log: EvalLog) -> dict[str, ModelEvent]:
        events = [event for sample in log.samples or [] for event in sample.events]
        asked = [event for event in events if isinstance(event, ModelEvent)]
        return {str(event.output.message.id): event for event in asked}

    asked, replayed = replies(first), replies(again)
    assert {event.cache for event in replayed.values()} == {"read"}
    assert {event.cache for event in asked.values()} == {None}
    assert replayed.keys() == asked.keys()
    for id, event in replayed.items():
        assert event.output == asked[id].output
    assert sum(usage.total_tokens for usage in first.stats.model_usage.values()) > 0
    assert not again.stats.model_usage
