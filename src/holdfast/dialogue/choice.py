"""The choice that a reply makes: the options in play as they were displayed, and how it is read."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.reading import Extraction, extract_answer, read_decision

Rule = Callable[[str, Mapping[str, str]], Extraction]
"""Reads an answer out of a reply, given the options by letter."""


@dataclass(frozen=True)
class Choice:
    """What a reply is read against.

    Attributes:
        options: displayed letter to text, in the order of display.
        letters: displayed letter to the question's own, or ``NA``.
        decision: displayed letters of the option held and of the one offered; None for a choice
            among all.
        rule: reads a choice among all.
    """

    options: Mapping[str, str]
    letters: Mapping[str, str]
    decision: tuple[str, str] | None = None
    rule: Rule = extract_answer

    @classmethod
    def among(cls, options: Mapping[str, str], rule: Rule = extract_answer) -> "Choice":
        """A choice among a question's own options, displayed as they are."""
        return cls(options, {letter: letter for letter in options}, rule=rule)

    def displayed(self, reply: str) -> Extraction:
        """What the rules find, in the letters displayed."""
        if self.decision:
            return read_decision(reply, self.options, *self.decision)
        return self.rule(reply, self.options)

    def read(self, reply: str) -> Extraction:
        """What the rules find, in the question's own letters."""
        found = self.displayed(reply)
        answer = self.letters[found.answer] if found.answer else None
        return Extraction(answer, found.status, found.rule)


@dataclass(frozen=True, slots=True)
class Reading:
    """What counts of the readings of a reply.

    Attributes:
        extraction: the answer that counts.
        notes: what each reader found, by the names of the turns table.
    """

    extraction: Extraction
    notes: Mapping[str, Any] = field(default_factory=dict)


SecondReader = Callable[[Choice, str, Extraction], Awaitable[Reading]]
"""Reads a reply beside the rules, given the choice, the reply and what the rules found."""
