"""Twenty thousand conversations, faults in one of twenty requests, two kills: nothing is lost."""

import json
import signal
from pathlib import Path

import pytest

from tests.faults import TRANSIENT, Fault, drawn, faulty_server

from .driving import DIFFERS
from .killing import Run, wait_for

QUESTIONS, TURNS_PER_QUESTION = 1334, 17
"""Each question is a first answer, 14 follow-ups of it and two controls: 17 conversations."""

CONVERSATIONS = QUESTIONS * TURNS_PER_QUESTION
CONNECTIONS = 100
SEED = 20


@pytest.mark.slow
def test_a_soak_ends_with_the_turns_of_a_sound_run(tmp_path: Path) -> None:
    faults = Fault("|".join(TRANSIENT), rate=0.05, seconds=2)
    # early, because what was asked before a kill is read from the cache after it
    kills = [int(CONVERSATIONS * (0.05 + 0.15 * (i + drawn(SEED, "kill", i)))) for i in range(2)]
    with faulty_server(seed=SEED) as sound_server, faulty_server(faults, seed=SEED) as server:
        sound = Run(sound_server, tmp_path / "sound", QUESTIONS, CONNECTIONS)
        soak = Run(server, tmp_path / "soaked", QUESTIONS, CONNECTIONS)
        beside = sound.start()
        for kill in kills:
            process = soak.start()
            wait_for(server, kill, process)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        n_kept = soak.kept()
        assert CONVERSATIONS * 0.15 < n_kept < CONVERSATIONS / 2

        process = soak.start()
        out, err = process.communicate(timeout=900)
        assert process.returncode == 0, err
        outcome = json.loads(out)
        stats = server.stats()
        _, err = beside.communicate(timeout=900)
        assert beside.returncode == 0, err
        assert sound_server.stats()["attempts"] == CONVERSATIONS

    assert outcome["complete"]
    assert outcome["calls"] == CONVERSATIONS - n_kept
    # and of what the server had finished, only what was on its way
    assert stats["distinct"] == CONVERSATIONS
    assert stats["repeated"] <= CONNECTIONS * len(kills)
    assert set(stats["faults"]) == set(TRANSIENT)
    went_wrong = sum(stats["faults"].values())
    assert 0.04 < went_wrong / stats["attempts"] < 0.06
    turns = soak.turns().drop(DIFFERS)
    assert turns.height == CONVERSATIONS
    assert turns.equals(sound.turns().drop(DIFFERS))
