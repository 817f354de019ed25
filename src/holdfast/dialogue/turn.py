"""One assistant turn: what it was read against, and how it goes into log and turns table."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.model import ModelOutput, StopReason

from holdfast.attachments import SENT_OTHERWISE
from holdfast.reading.answers import extract_answer
from holdfast.reading.decisions import read_decision
from holdfast.reading.extraction import Extraction


@dataclass(frozen=True, slots=True)
class Intervention:
    """What a user turn does to the conversation.

    Attributes:
        id: the technique's id.
        family: its family.
        axis: ``direct`` or ``indirect``.
        depth: ``shallow`` or ``deep``.
        suggested: letter of the option it pushes, None where it pushes none.
        variant: what tells apart two uses of one technique, such as a context's length.
        purpose: what it is put for, where that is no challenge, such as ``correction``.
    """

    id: str
    family: str = ""
    axis: str = ""
    depth: str = ""
    suggested: str | None = None
    variant: str = ""
    purpose: str = ""

    @property
    def step(self) -> str:
        """Its name in a path: the id, the purpose before a ``:``, the variant after an ``@``."""
        full_id = f"{self.purpose}:{self.id}" if self.purpose else self.id
        return f"{full_id}@{self.variant}" if self.variant else full_id


NO_INTERVENTION = Intervention("")


def usage_of(output: ModelOutput) -> dict[str, Any]:
    """What a generation took, and how it ended, by the names of the turns table."""
    usage = output.usage
    cache_reads = (usage.input_tokens_cache_read or 0) if usage else 0
    cache_writes = (usage.input_tokens_cache_write or 0) if usage else 0
    return {
        # Inspect leaves cached tokens out of input_tokens; the table counts the whole prompt
        "input_tokens": usage.input_tokens + cache_reads + cache_writes if usage else 0,
        "output_tokens": usage.output_tokens if usage else 0,
        "cached_tokens": cache_reads,
        "reasoning_tokens": (usage.reasoning_tokens or 0) if usage else 0,
        "cost": usage.total_cost if usage else None,
        "latency": output.time,
        "calls": 1,
        "stop": output.stop_reason,
        "answered_by": output.model or None,
        SENT_OTHERWISE: (output.metadata or {}).get(SENT_OTHERWISE),
    }


CUT_OFF: tuple[StopReason, ...] = ("max_tokens", "model_length")


def judged(extraction: Extraction, stop_reason: StopReason) -> Extraction:
    """The extraction in the light of why the generation ended."""
    if extraction.status == "parsed":
        return extraction
    if stop_reason == "content_filter":
        return Extraction(None, "refused", "content-filter")
    if stop_reason in CUT_OFF and extraction.status == "none":
        return Extraction(None, "none", "cut-off")
    return extraction


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
        extraction = self.displayed(reply)
        answer = self.letters[extraction.answer] if extraction.answer else None
        return Extraction(answer, extraction.status, extraction.rule)


@dataclass(frozen=True, slots=True)
class ReplyReading:
    """What counts of the readings of a reply.

    Attributes:
        extraction: the answer that counts.
        notes: what each reader found, by the names of the turns table.
    """

    extraction: Extraction
    notes: Mapping[str, Any] = field(default_factory=dict)


SecondReader = Callable[[Choice, str, Extraction], Awaitable[ReplyReading]]
"""Reads a reply beside the rules, given the choice, the reply and what the rules found."""
