"""A setting is declared once: parameters, checks and what may grow are read off it."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.errors import InputError
from holdfast.protocols.installed import GENERATIONS, PROTOCOLS, task_named
from holdfast.protocols.settings import declared, described, signature
from holdfast.protocols.task import study_task
from holdfast.results.runs import GROWS, INPUTS

KNOWN = {
    name: protocol
    for table in (PROTOCOLS, GENERATIONS)
    for name, protocol in zip(table, table.own(), strict=False)
}


def settings() -> Iterator[tuple[str, str, Any]]:
    for name, protocol in KNOWN.items():
        for setting, known in declared(protocol.settings).items():
            yield name, setting, known


@pytest.mark.parametrize("name", KNOWN)
def test_the_task_takes_the_settings(name: str) -> None:
    assert inspect.signature(task_named(name)) == signature(KNOWN[name].settings)


def test_a_log_says_what_of_its_run_may_grow_and_what_is_an_input() -> None:
    study = PROTOCOLS["followup"].study(techniques="none")
    task = study_task(study, study.plan())
    assert task.metadata is not None
    assert {"-T techniques", "-T chains", "--model-role judge"} <= {*task.metadata[GROWS]}
    assert "-T seed" not in task.metadata[GROWS]
    assert {"questions", "contexts", "challenges", "fields"} <= {*task.metadata[INPUTS]}


def test_each_has_a_line_in_the_list_of_settings() -> None:
    for name, setting, known in settings():
        assert known.help, setting
        assert f"\n| `{setting}` | `" in described(KNOWN[name].settings)


@pytest.mark.parametrize(
    ("protocol", "given", "message"),
    [
        ("followup", {"contexts": ["a", "b"]}, "contexts is ['a', 'b'], not one text"),
        ("followup", {"reasoning_history": "some"}, "unknown reasoning_history 'some'"),
        ("medfuzz", {"attempts": 0}, "attempts is 0"),
        ("medfuzz", {"confidence": "maybe"}, "confidence is 'maybe', not true or false"),
        ("stick-or-switch", {"shots": -1}, "shots is '-1', not a number of exemplars"),
        ("stick-or-switch", {"beliefs": 1}, "beliefs is '1', not true or false"),
        ("contexts", {"sentences": 0}, "sentences is 0"),
        ("distractors", {"replace": -1}, "replace is -1"),
    ],
)
def test_a_value_out_of_bounds_is_refused(
    protocol: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        KNOWN[protocol].study(**given)
    assert message in str(caught.value)
