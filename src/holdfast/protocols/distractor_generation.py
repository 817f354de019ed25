"""More plausible wrong options from a generator (KGGD; protocols, section 2)."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from inspect_ai import Task, task
from inspect_ai.model import get_model

from holdfast.challenges import (
    Fault,
    candidates,
    distractor_prompt,
    distractor_version,
    draw,
    load_graph,
    read_distractors,
)
from holdfast.dialogue import Conversation
from holdfast.errors import InputError
from holdfast.questions import Question, QuestionSet

from .estimate import Estimate
from .preparing import Preparation, Row, obtain, preparation
from .study import asked_questions, one_text, settings_of


@dataclass(frozen=True)
class DistractorStudy(Preparation):
    """Wrong options with every setting resolved.

    Attributes:
        questions: whose wrong options are replaced.
        replace: how many of each question's; 0 for all.
        seed: fixes which, with the question.
        graph: a knowledge graph to walk for candidates, or None.
        walked: what it offered, by the question's content: a walk takes long in a large graph.
    """

    questions: QuestionSet
    replace: int
    seed: int
    graph: Any
    walked: dict[str, list[str]] = field(default_factory=dict, compare=False)

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """One generation where the first reply can be used."""
        return Estimate(1, len(self.prompt(question)) // 4, min(reply_tokens, 100))

    def letters(self, question: Question) -> tuple[str, ...]:
        """The wrong options that are replaced, drawn where they are not all."""
        left = list(question.distractors)
        chosen: list[str] = []
        while left and (not self.replace or len(chosen) < self.replace):
            key = (self.seed, question.content_hash, "replaced", len(chosen))
            chosen.append(left.pop(left.index(draw(left, *key))))
        return tuple(sorted(chosen))

    def prompt(self, question: Question) -> str:
        """What the generator is asked."""
        return distractor_prompt(question, self.letters(question), self.candidates(question))

    def candidates(self, question: Question) -> list[str]:
        """What the graph offers, each with how it is related."""
        if self.graph is None:
            return []
        if question.content_hash not in self.walked:
            self.walked[question.content_hash] = [
                f"{near.text} ({near.why})" for near in candidates(self.graph, question)
            ]
        return self.walked[question.content_hash]


def distractor_study(
    questions: str = "bank",
    replace: int = 0,
    graph: str | None = None,
    seed: int = 42,
    fields: str | list[str] | None = None,
    shuffle: int | None = None,
    stratify: str | None = None,
) -> DistractorStudy:
    """Wrong options for the single-turn protocol, written by the model as generator.

    Args:
        questions: ``bank``, ``medqa``, ``medmcqa``, a file, or ``hf:NAME@REVISION[:SPLIT]``.
        replace: how many wrong options of each question; 0 for all.
        graph: a CSV file of a knowledge graph (head, relation, tail) to take candidates from.
        seed: of which options are replaced and of the model's sampling.
        fields: which column holds what, such as ``stem=vignette,gold=key``.
        shuffle: seed of the order in which questions are asked; with a limit, of the sample.
        stratify: label whose shares every beginning of that order keeps (step, system, ...).

    Raises:
        InputError: a setting that cannot be used.
    """
    one_text(graph=graph or "")
    if not isinstance(replace, int) or replace < 0:
        raise InputError(f"replace is {replace!r}", field="-T", remedy="Give 0 (all) or more")
    asked = asked_questions(questions, fields, shuffle, stratify)
    return DistractorStudy(asked, replace, seed, load_graph(graph) if graph else None)


@task
@settings_of(distractor_study)
def distractors(study: DistractorStudy) -> Task:
    """Wrong options for the single-turn protocol, written by the model as generator."""

    async def rows(question: Question) -> list[Row]:
        letters = study.letters(question)
        found = await obtain(
            Conversation(get_model(), question, purpose="distractors"),
            study.prompt(question),
            lambda reply: read_distractors(reply, question, letters),
            letters=letters,
        )
        texts = {"missing": found.kind} if isinstance(found, Fault) else {"distractors": found}
        return [
            {
                "question": question.id,
                "content_hash": question.content_hash,
                **texts,
                "candidates": study.candidates(question),
            }
        ]

    return preparation(
        "distractors",
        study.questions,
        rows,
        seed=study.seed,
        version=distractor_version(),
        graph=_digest(study.graph),
    )


def _digest(graph: Any) -> str:
    edges = sorted(graph.edges(data="relation")) if graph is not None else []
    return hashlib.sha256(json.dumps(edges).encode()).hexdigest()[:16]
