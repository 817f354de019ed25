"""The Inspect tasks of the protocols and of the generations, by their settings."""

from holdfast.protocols.installed import task_named

followup = task_named("followup")
single_turn = task_named("single-turn")
stick_or_switch = task_named("stick-or-switch")
medfuzz = task_named("medfuzz")
open_answers = task_named("open")
pressure = task_named("pressure")
contexts = task_named("contexts")
distractors = task_named("distractors")
labels = task_named("labels")
plausibility = task_named("plausibility")
