"""What is simulated, and how its name says so wherever results of it appear."""

from collections.abc import Collection, Mapping

MARK = "[simulated]"
"""Stands in every text that a simulated helper writes."""

PLACEHOLDER = "[synthetic placeholder context]"
"""Stands in every text of ``-T contexts=synthetic``."""

MADE_OF = "simulated_from"
"""In the metadata of a log: which inputs of the study are simulated."""


def is_simulated(model: str) -> bool:
    """Whether a model's name says that its results are simulated."""
    return model.startswith("simulated/") or "[simulated" in model


def is_simulated_row(row: Mapping[str, object]) -> bool:
    """Whether a row says, by its model or in its texts, that a simulated helper wrote it."""
    texts = [value for value in row.values() if isinstance(value, str)]
    is_marked = any(mark in text for text in texts for mark in (MARK, PLACEHOLDER))
    return is_marked or is_simulated(str(row.get("model")))


def name_in_results(model: str, inputs: Collection[str] = ()) -> str:
    """The name of a model in results; it says where they rest on simulated inputs."""
    if not inputs or is_simulated(model):
        return model
    return f"{model} [simulated {' and '.join(inputs)}]"
