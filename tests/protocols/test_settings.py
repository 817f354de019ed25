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

TASKS = {
    name: protocol
    for table in (PROTOCOLS, GENERATIONS)
    for name, protocol in zip(table, table.own(), strict=False)
}


def settings() -> Iterator[tuple[str, str, Any]]:
    for name, protocol in TASKS.items():
        for setting, parameter in declared(protocol.settings).items():
            yield name, setting, parameter


@pytest.mark.parametrize("name", TASKS)
def test_the_task_takes_the_settings(name: str) -> None:
    assert inspect.signature(task_named(name)) == signature(TASKS[name].settings)


def test_a_log_records_inputs_and_growable_settings() -> None:
    study = PROTOCOLS["followup"].study(techniques="none")
    task = study_task(study, study.plan())
    assert task.metadata is not None
    assert {"-T techniques", "-T chains", "--model-role judge"} <= {*task.metadata[GROWS]}
    assert "-T seed" not in task.metadata[GROWS]
    assert {"questions", "contexts", "challenges", "fields"} <= {*task.metadata[INPUTS]}


def test_each_setting_has_a_line_in_the_list() -> None:
    for name, setting, parameter in settings():
        assert parameter.help, setting
        assert f"\n| `{setting}` | `" in described(TASKS[name].settings)


@pytest.mark.parametrize(
    ("protocol", "values", "message"),
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
    protocol: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        TASKS[protocol].study(**values)
    assert message in str(caught.value)
