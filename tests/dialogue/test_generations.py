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

KEY, SECOND_KEY = "0f" * 16, "a1" * 16
HOSTILE = 'line\nbreak\u2028\u0085 {"key":"x"}\n}\n \x00 \U0001f4a9 {{brace}} %s'


def output(text: str) -> ModelOutput:
    return ModelOutput.from_content("m", text)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def test_stored_generations_serve_a_later_process(tmp_path: Path) -> None:
    store = Generations(tmp_path)
    assert (store.get(KEY), len(store)) == (None, 0)
    assert not files(tmp_path)
    store.put(KEY, output("one"))
    store.put(SECOND_KEY, output(HOSTILE))
    for reader in (store, Generations(tmp_path)):
        assert len(reader) == 2
        assert [reader.get(key).completion for key in (KEY, SECOND_KEY)] == ["one", HOSTILE]  # type: ignore[union-attr]


def test_an_output_is_restored_in_full(tmp_path: Path) -> None:
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


def test_every_line_is_json_with_its_key(tmp_path: Path) -> None:
    Generations(tmp_path).put(KEY, output(HOSTILE))
    (line,) = files(tmp_path)[0].read_bytes().splitlines()
    assert json.loads(line)["key"] == KEY


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_torn_lines_are_ignored(tmp_path: Path, cut: int) -> None:
    store = Generations(tmp_path)
    store.put(KEY, output("one"))
    store.put(SECOND_KEY, output("two"))
    (file,) = files(tmp_path)
    os.truncate(file, file.stat().st_size - cut)
    again = Generations(tmp_path)
    assert len(again) == 1
    assert again.get(SECOND_KEY) is None
    again.put(SECOND_KEY, output("anew"))
    result = Generations(tmp_path)
    assert [result.get(key).completion for key in (KEY, SECOND_KEY)] == ["one", "anew"]  # type: ignore[union-attr]


def test_damaged_or_missing_replies_are_not_found(tmp_path: Path) -> None:
    Generations(tmp_path).put(KEY, output("one"))
    (file,) = files(tmp_path)
    sound = file.read_bytes()
    file.write_bytes(sound.replace(b'"choices":[', b'"choices":{'))
    assert Generations(tmp_path).get(KEY) is None
    file.write_bytes(b"garbage\n" + sound)
    store = Generations(tmp_path)
    assert store.get(KEY) == Generations(tmp_path).get(KEY) is not None
    file.unlink()
    assert store.get(KEY) is None


@pytest.mark.slow
def test_each_process_writes_its_own_file(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from inspect_ai.model import ModelOutput\n"
        "from holdfast.dialogue.generations import Generations\n"
        "kept = Generations(Path(sys.argv[1]))\n"
        "for n in range(200): kept.put(f'{n:031x}{sys.argv[2]}', "
        "ModelOutput.from_content('m', sys.argv[2] * 5000))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    store = Generations(tmp_path)
    assert (len(store), len(files(tmp_path))) == (400, 2)
    for n in range(200):
        for name in "ab":
            assert store.get(f"{n:031x}{name}") is not None


@pytest.mark.slow
def test_a_failed_write_spoils_nothing(tmp_path: Path) -> None:
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
    store = Generations(tmp_path)
    result = [store.get(digit * 32) for digit in "012"]
    assert [item and item.completion for item in result] == ["first", None, "third"]


def test_a_run_restores_the_previous_store(tmp_path: Path) -> None:
    with keeping(tmp_path / "inner"):
        generations().put(KEY, output("one"))
        assert generations().get(KEY) is not None
    assert generations().get(KEY) is None
    assert len(Generations(tmp_path / "inner")) == 1


def test_replays_are_logged_and_not_charged() -> None:
    first, again = (
        study("simulated/claude-sonnet-4", limit=1, techniques="double-check") for _ in range(2)
    )

    def replies(log: EvalLog) -> dict[str, ModelEvent]:
        events = [event for sample in log.samples or [] for event in sample.events]
        originals = [event for event in events if isinstance(event, ModelEvent)]
        return {str(event.output.message.id): event for event in originals}

    originals, replays = replies(first), replies(again)
    assert {event.cache for event in replays.values()} == {"read"}
    assert {event.cache for event in originals.values()} == {None}
    assert replays.keys() == originals.keys()
    for id, event in replays.items():
        assert event.output == originals[id].output
    assert sum(usage.total_tokens for usage in first.stats.model_usage.values()) > 0
    assert not again.stats.model_usage
