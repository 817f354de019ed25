"""The generated texts of a question, and of a question set."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from holdfast.questions import Question


@dataclass(frozen=True)
class Context:
    """The contexts of one question.

    Attributes:
        second_best: letter of the wrong option that the misleading context supports.
        texts: text by kind (misleading_context, alternative_context, edge_case_context); those
            of a length ablation by kind and number of sentences (``misleading_context@10``).
        faults: by the same keys, why a text is missing or cannot be used.
    """

    second_best: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)

    def at(self, length: str) -> dict[str, str]:
        """Text by kind at one length of an ablation; the study's own texts for ``""``."""
        return {
            kind: text
            for key, text in self.texts.items()
            for kind, _, at in [key.partition("@")]
            if at == length
        }

    def obstacle(self, kind: str, length: str = "") -> str | None:
        """Why there is no text of that kind at that length; None where there is one."""
        key = text_key(kind, length)
        if key in self.texts:
            return None
        of_length = f" of {length} sentences" if length else ""
        return self.faults.get(key, f"no {kind}{of_length}")


def text_key(kind: str, length: int | str | None) -> str:
    """Under which a text is kept: its kind, and its length where that is an ablation's."""
    return f"{kind}@{length}" if length else kind


@dataclass(frozen=True)
class Contexts:
    """The contexts of a question set.

    Attributes:
        name: ``bank``, ``synthetic``, ``none`` or the file they came from.
        by_question: contexts by question id.
        unused: rows of the file for questions that are not in the set.
        origin: how a generator made them, for a study that has them made as it grows.
    """

    name: str
    by_question: Mapping[str, Context] = field(default_factory=dict)
    unused: int = 0
    origin: str = ""

    def of(self, question: Question) -> Context:
        """The question's contexts; empty where it has none."""
        return self.by_question.get(question.id, Context())

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """By length (``""`` for the study's own), SHA-256 (hex, 16 characters) over the texts.

        Over their origin where they have one: more of the same contexts are the same contexts.
        """
        lengths = {key.partition("@")[2] for c in self.by_question.values() for key in c.texts}
        ordered = sorted({"", *lengths}, key=lambda length: int(length or 0))
        return {length: self._fingerprint(length) for length in ordered}

    def _fingerprint(self, length: str) -> str:
        texts = [
            (id, context.second_best, sorted(context.at(length).items()))
            for id, context in sorted(self.by_question.items())
        ]
        content = self.origin or json.dumps(texts)
        return hashlib.sha256(content.encode()).hexdigest()[:16]
