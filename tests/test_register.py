"""What the register of Inspect evaluations reads of the package."""

from importlib.resources import files

import yaml
from inspect_ai._util.registry import registry_info

from holdfast._registry import TASKS
from holdfast.protocols.installed import task_named
from holdfast.questions.bank import bank_items
from holdfast.registry import DEMO


def test_the_register_names_tasks_that_inspect_finds() -> None:
    register = yaml.safe_load((files("holdfast") / "eval.yaml").read_text("utf-8"))
    names = {task["name"] for task in register["tasks"]}
    assert names == {registry_info(task_named(protocol)).name for protocol in DEMO["protocols"]}
    assert names <= {registry_info(task).name for task in TASKS}
    assert {task["dataset_samples"] for task in register["tasks"]} == {len(bank_items())}
