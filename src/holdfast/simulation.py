"""Marks of simulated models and inputs, which appear with all their results."""

from collections.abc import Collection, Mapping

MARK = "[simulated]"
"""Mark in every text that a simulated helper writes."""

PLACEHOLDER = "[synthetic placeholder context]"
"""Mark in every text of ``-T contexts=synthetic``."""

MADE_OF = "simulated_from"
"""Metadata key of a log for the simulated inputs of the study."""


def is_simulated(model: str) -> bool:
    """Whether a model's name marks its results as simulated."""
    return model.startswith("simulated/") or "[simulated" in model


def is_simulated_row(row: Mapping[str, object]) -> bool:
    """Whether the model or the texts of a row mark it as written by a simulated helper."""
    texts = [value for value in row.values() if isinstance(value, str)]
    is_marked = any(mark in text for text in texts for mark in (MARK, PLACEHOLDER))
    return is_marked or is_simulated(str(row.get("model")))


def name_in_results(model: str, inputs: Collection[str] = ()) -> str:
    """Return the name of a model in results, marked if the inputs are simulated."""
    if not inputs or is_simulated(model):
        return model
    return f"{model} [simulated {' and '.join(inputs)}]"
