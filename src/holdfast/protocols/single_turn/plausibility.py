"""Plausibility of new wrong options compared with those they replace, by a blinded judge."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from inspect_ai.model import GenerateConfig

from holdfast.challenges.suggestion import draw
from holdfast.challenges.texts import Fault, fill, json_object
from holdfast.dialogue.conversation import JUDGEMENT_TOKENS, Run
from holdfast.files import packaged
from holdfast.protocols.generating import obtain
from holdfast.protocols.protocol import Protocol
from holdfast.protocols.settings import QuestionSettings, setting
from holdfast.questions.question import Question
from holdfast.stats.intervals import wilson

from .distractors import Distractors, load_distractors

_VERDICT_WORDS = {"1": "1", "first": "1", "2": "2", "second": "2"} | dict.fromkeys(
    ("same", "equal", "equally", "tie", "neither", "both"), "same"
)
"""Words of a verdict."""


@dataclass(frozen=True)
class PlausibilityCounts:
    """Number of questions for which a judge found the new options more, equally, or less plausible.

    Attributes:
        more, ties, less: questions by verdict.
        unread: questions with an unparsed verdict.
    """

    more: int
    ties: int
    less: int
    unread: int

    @property
    def n(self) -> int:
        """Number of questions with a verdict."""
        return self.more + self.ties + self.less

    @property
    def not_below(self) -> tuple[float, float, float]:
        """Share of questions whose new options are not less plausible, with its 95% interval."""
        return _share(self.more + self.ties, self.n)

    @property
    def below(self) -> bool:
        """Whether the judge prefers the old options: the interval, without ties, is below half."""
        return _share(self.more, self.more + self.less)[2] < 0.5

    def as_json(self) -> dict[str, Any]:
        """Return the counts as JSON data."""
        counts = {"more": self.more, "same": self.ties, "less": self.less, "unread": self.unread}
        share = zip(("not_below", "low", "high"), self.not_below, strict=True)
        return {**counts, "n": self.n, **(dict(share) if self.n else {}), "below": self.below}

    def line(self, judge: str) -> str:
        """Return the counts as a line for people."""
        share, low, high = (100 * value for value in self.not_below)
        share_text = (
            f"not less plausible in {share:.1f}% [{low:.1f}, {high:.1f}], " if self.n else ""
        )
        return (
            f"plausibility by {judge}: {share_text}n = {self.n} (more plausible: {self.more}, as "
            f"plausible: {self.ties}, less: {self.less}; unparsed: {self.unread})"
        )


def verdicts(rows: Iterable[Mapping[str, Any]], distractors: Distractors) -> PlausibilityCounts:
    """Count the verdicts on these wrong options among the rows of a file."""
    counts = Counter(
        row.get("verdict", "unread")
        for row in rows
        if row.get("distractors") == distractors.fingerprint
    )
    return PlausibilityCounts(counts["more"], counts["same"], counts["less"], counts["unread"])


def read_verdict(reply: str) -> str | Fault:
    """Parse which set a reply finds more plausible (``1``, ``2``), or ``same``."""
    verdict_text = json_object(reply, "more_plausible").get("more_plausible", reply)
    verdicts = {
        _VERDICT_WORDS[word]
        for word in re.findall(r"\w+", str(verdict_text).casefold())
        if word in _VERDICT_WORDS
    }
    if len(verdicts) != 1:
        return Fault("no verdict", "does not name one set, or say that they are the same")
    return verdicts.pop()


@dataclass(frozen=True)
class PlausibilitySettings(QuestionSettings):
    """New wrong options against those they replace, by the model as judge."""

    distractors: str = setting("bank", "the new wrong options, a file or ``bank``", input=True)
    seed: int = setting(42, "seed of the set shown first and of the model's sampling")

    @cached_property
    def wrong_options(self) -> Distractors:
        """The new wrong options."""
        return load_distractors(self.distractors, self.question_set)

    def new_at(self, question: Question) -> str:
        """Return which set contains the new options, drawn by seed and content."""
        return draw(("1", "2"), self.seed, question.content_hash, "plausibility")

    def sets(self, question: Question) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the wrong options of the first and second set, in the order of their letters."""
        new = self.wrong_options.replaced(question).options
        option_sets = [tuple(of[x] for x in question.distractors) for of in (new, question.options)]
        return (
            (option_sets[0], option_sets[1])
            if self.new_at(question) == "1"
            else (option_sets[1], option_sets[0])
        )

    def prompt(self, question: Question) -> str:
        """Return the prompt for the judge."""
        first, second = (
            "\n".join(f"- {text}" for text in options) for options in self.sets(question)
        )
        values = {
            "question": question.stem,
            "right": question.options[question.gold],
            "first": first,
            "second": second,
            "example": json.dumps({"more_plausible": "1"}),
        }
        template = packaged(__package__, "plausibility.toml")["compare"].removeprefix("\n")
        return fill(template, values)


async def compare_plausibility(run: Run, settings: PlausibilitySettings) -> None:
    """Ask which wrong options are more plausible, the old or the new."""
    question = run.question
    if why := settings.wrong_options.obstacle(question):
        return run.skip("plausibility", why)
    chat = run.chat(purpose="plausibility", tokens=JUDGEMENT_TOKENS)
    sets = settings.sets(question)
    verdict = await obtain(chat, settings.prompt(question), read_verdict, "same", sets=sets)
    row: dict[str, Any] = {
        "question": question.id,
        "content_hash": question.content_hash,
        "distractors": settings.wrong_options.fingerprint,
        "new": settings.new_at(question),
    }
    if isinstance(verdict, Fault):
        row["missing"] = verdict.kind
    else:
        sides = {settings.new_at(question): "more", "same": "same"}
        row["verdict"] = sides.get(verdict, "less")
    run.rows.append(row)


def _share(hits: int, n: int) -> tuple[float, float, float]:
    low, high = wilson(np.array([float(hits)]), np.array([float(n)]))
    return (hits / n if n else float("nan")), float(low[0]), float(high[0])


PROTOCOL = Protocol(
    "plausibility",
    compare_plausibility,
    PlausibilitySettings,
    int(packaged(__package__, "plausibility.toml")["version"]),
    config=lambda settings: GenerateConfig(temperature=0.0, seed=settings.seed),
    inputs=lambda settings: {"distractors": settings.wrong_options.fingerprint},
    generates=True,
)
