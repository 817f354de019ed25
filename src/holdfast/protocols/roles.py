"""Helpers of a study, by role; one that is not bound is never the model under test."""

from inspect_ai.model import Model, model_roles

JUDGE = "judge"
ATTACKER = "attacker"
READER = "reader"
"""Reads the replies in which the rules find no answer, or several."""
READER_ALL = "reader-all"
"""Reads every reply."""


def bound(role: str) -> Model | None:
    """The model in that role, None without one."""
    # never by get_model(role=...), which fills a role that is not bound with the model under test
    model = model_roles().get(role)
    return model if isinstance(model, Model) or model is None else model[0]
