"""Patterns of ``patterns.toml`` and sets of words of ``lexicon.toml``, each an attribute."""

import re

from holdfast.files import packaged

from .words import MARK


class Patterns:
    """Compiled patterns of a section."""

    def __init__(self, section: str) -> None:
        """Compile the patterns of a section, which can contain earlier ones as ``%NAME%``."""
        texts = {"MARK": MARK}
        for name, lines in packaged(__package__, "patterns.toml")[section].items():
            texts[name] = re.sub(r"%(\w+)%", lambda match: texts[match[1]], "".join(lines))
            setattr(self, name, re.compile(texts[name]))

    def __getattr__(self, name: str) -> re.Pattern[str]:
        raise AttributeError(name)


class WordSets:
    """Sets of words for single rules."""

    def __getattr__(self, name: str) -> frozenset[str]:
        words = frozenset(packaged(__package__, "lexicon.toml")["sets"][name].split())
        setattr(self, name, words)
        return words
