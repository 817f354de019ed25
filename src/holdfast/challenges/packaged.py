"""What comes with the package beside the code: wording, rules and lists."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def packaged(*name: str) -> Mapping[str, Any]:
    """A TOML file of this room, read once.

    Args:
        name: its path below the room.
    """
    return tomllib.loads(files(__package__).joinpath(*name).read_text("utf-8"))
