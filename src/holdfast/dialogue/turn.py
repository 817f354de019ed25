"""Assistant turn: its options, its answer, and its form in log and turns table."""

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
    """Intervention of a user turn.

    Attributes:
        id: id of the technique.
        family: family of the technique.
        axis: ``direct`` or ``indirect``.
        depth: ``shallow`` or ``deep``.
        suggested: letter of the suggested option, None without a suggestion.
        variant: distinguishes two uses of a technique, such as the length of a context.
        purpose: purpose other than a challenge, such as ``correction``.
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
        """Name in a path: the purpose before a ``:``, the id, the variant after an ``@``."""
        full_id = f"{self.purpose}:{self.id}" if self.purpose else self.id
        return f"{full_id}@{self.variant}" if self.variant else full_id


NO_INTERVENTION = Intervention("")


def usage_of(output: ModelOutput) -> dict[str, Any]:
    """Return usage and stop reason of a generation, named as in the turns table."""
    usage = output.usage
    cache_reads = (usage.input_tokens_cache_read or 0) if usage else 0
    cache_writes = (usage.input_tokens_cache_write or 0) if usage else 0
    return {
        # Inspect's input_tokens exclude cached tokens; the table counts the whole prompt
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


def usage_with(usage: Mapping[str, Any], output: ModelOutput) -> dict[str, Any]:
    """The usage of a turn with that of one more generation for it."""
    further = usage_of(output)
    names = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "calls")
    costs = [cost for cost in (usage.get("cost"), further["cost"]) if cost is not None]
    sums = {name: (usage.get(name) or 0) + further[name] for name in names}
    return {**usage, **sums, "cost": sum(costs) if costs else None}


CUT_OFF: tuple[StopReason, ...] = ("max_tokens", "model_length")


def judged(extraction: Extraction, stop_reason: StopReason) -> Extraction:
    """Return the extraction, corrected for the reason that the generation stopped."""
    if extraction.status == "parsed":
        return extraction
    if stop_reason == "content_filter":
        return Extraction(None, "refused", "content-filter")
    if stop_reason in CUT_OFF and extraction.status == "none":
        return Extraction(None, "none", "cut-off")
    return extraction


Rule = Callable[[str, Mapping[str, str]], Extraction]
"""Function from a reply and the options by letter to the extracted answer."""


@dataclass(frozen=True)
class Choice:
    """Options of a reply and how to extract its answer.

    Attributes:
        options: displayed letter to text, in the order of display.
        letters: displayed letter to the question's letter, or ``NA``.
        decision: displayed letters of the current and the offered option. None for a choice among
            all.
        rule: function that extracts a choice among all.
    """

    options: Mapping[str, str]
    letters: Mapping[str, str]
    decision: tuple[str, str] | None = None
    rule: Rule = extract_answer

    @classmethod
    def among(cls, options: Mapping[str, str], rule: Rule = extract_answer) -> "Choice":
        """Return the choice among a question's options, displayed with their own letters."""
        return cls(options, {letter: letter for letter in options}, rule=rule)

    def displayed(self, reply: str) -> Extraction:
        """Extract the answer in displayed letters."""
        if self.decision:
            return read_decision(reply, self.options, *self.decision)
        return self.rule(reply, self.options)

    def read(self, reply: str) -> Extraction:
        """Extract the answer in the question's letters."""
        extraction = self.displayed(reply)
        answer = self.letters[extraction.answer] if extraction.answer else None
        return Extraction(answer, extraction.status, extraction.rule)


@dataclass(frozen=True, slots=True)
class ReplyReading:
    """Combined reading of a reply.

    Attributes:
        extraction: the answer that counts.
        notes: results of each reader, named as in the turns table.
    """

    extraction: Extraction
    notes: Mapping[str, Any] = field(default_factory=dict)


SecondReader = Callable[[Choice, str, Extraction], Awaitable[ReplyReading]]
"""Second reader, a function of the choice, the reply and the extraction by the rules."""
