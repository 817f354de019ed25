"""Templates of the pages: everything put into them is escaped."""

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def environment() -> "Environment":
    """The templates, with escaping on and no name left open."""
    from jinja2 import (
        Environment,
        PackageLoader,
        StrictUndefined,
    )  # which other commands do without

    return Environment(
        loader=PackageLoader("holdfast.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def source(name: str) -> str:
    """The text of a style sheet or script that ships with the templates."""
    return (files("holdfast.report") / "templates" / name).read_text("utf-8")
