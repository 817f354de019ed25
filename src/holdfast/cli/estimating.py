"""What studies will take, by protocol and model, before a model is called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.challenges import CONTEXTS, GENERATE
from holdfast.errors import counted
from holdfast.protocols import (
    READER_ALL,
    ContextStudy,
    Estimate,
    FollowupStudy,
    Study,
    opening_estimate,
    readings_of,
    reasons,
)
from holdfast.questions import BANK_NAME, Question

from . import settings
from .options import REPLY_TOKENS
from .settings import Planned


def estimates(
    studies: Sequence[Planned],
    models: Sequence[str],
    roles: Mapping[str, str],
    limit: int | None = None,
    epochs: int | None = None,
    reply_tokens: int = REPLY_TOKENS,
) -> list[dict[str, Any]]:
    """Generations, tokens and dollars of studies that are put to models by one command.

    Args:
        studies: protocols with their settings.
        models: names of the models under test.
        roles: names of the helpers by role.
        limit: first questions only.
        epochs: times each question is asked; None leaves it to the protocol.
        reply_tokens: assumed length of a reply.

    Returns:
        A row for each study and model, for what a generator makes, and for each helper, with
        ``protocol``, ``model``, ``dataset``, ``questions``, ``generations``, ``at_least``,
        ``exact``, ``input_tokens``, ``output_tokens`` and ``cost`` (None without a price).
    """
    rows: list[dict[str, Any]] = []

    def add(name: str, by: str, study: Study, asked: int, total: Estimate, *, exact: bool) -> None:
        price = settings.price_of(by)
        cost = (total.input_tokens * price.input + total.output_tokens * price.output) / 1e6 \
            if price else None  # fmt: skip
        rows.append(
            {
                "protocol": name,
                "model": by,
                "dataset": study.questions.name,
                "questions": asked,
                "generations": total.generations,
                "at_least": total.least,
                "exact": exact,
                "input_tokens": total.input_tokens,
                "output_tokens": total.output_tokens,
                "cost": cost,
            }
        )

    opened: set[str] = set()
    for planned in studies:
        study = planned.study
        asked = study.questions.first(limit).questions
        exact = study.exact
        for setting, name in planned.protocol.generated.items():
            if planned.args.get(setting) == GENERATE and study.needs(setting):
                making = settings.preparation(name, planned.args).study
                needed = _total(making, asked, reply_tokens)
                add(name, roles["generator"], making, len(asked), needed, exact=False)
                exact = False  # what cannot be generated is left out
        total = _total(study, asked, reply_tokens)
        # what an earlier protocol of this command asks too is asked once
        openings = {opening for q in asked if (opening := study.opening(q)) is not None}
        for again in openings & opened:
            total -= opening_estimate(again, reply_tokens)
        opened |= openings
        times = epochs or study.epochs
        for each in models:
            add(planned.name, each, study, len(asked), total.times(times), exact=exact)
            helped = _helped(study, asked, reply_tokens) | readings_of(total, reply_tokens)
            for role, needed in helped.items():
                if role in roles and needed.generations:
                    add(f"{planned.name}: {role}", roles[role], study, len(asked),
                        needed.times(times), exact=exact and role == READER_ALL)  # fmt: skip
    return rows


@dataclass(frozen=True)
class Lacking:
    """Techniques that are left out of every question, because there are no contexts.

    Attributes:
        paths: those left out.
        techniques: how many techniques there are, with those.
        questions: the question set.
        source: how ``--questions`` names it.
        generations: what it takes to write the contexts.
    """

    paths: tuple[str, ...]
    techniques: int
    questions: str
    source: str
    generations: int

    def __str__(self) -> str:
        """In words, with the remedy."""
        return (
            f"{len(self.paths)} of {counted(self.techniques, 'technique')} left out: no contexts "
            f"for {self.questions}. Write them with 'holdfast contexts build --questions "
            f"{self.source} --generator MODEL' ({counted(self.generations, 'generation')}), then "
            "run the same command with --contexts contexts.jsonl"
        )


def lacking(studies: Sequence[Planned], limit: int | None) -> list[Lacking]:
    """What studies leave out because there are no contexts, one for each that does.

    Args:
        studies: protocols with their settings.
        limit: first questions only.
    """
    found = []
    for planned in studies:
        study = planned.study
        if not isinstance(study, FollowupStudy) or study.contexts.by_question:
            continue  # what a file of contexts lacks is told by technique
        asked = study.questions.first(limit).questions
        why = {
            path: sum(n for reason, n in counts.items() if reason.removeprefix("no ") in CONTEXTS)
            for path, counts in reasons(study, limit).items()
        }
        left_out = tuple(path for path, n in why.items() if n == len(asked) and ">" not in path)
        if left_out:
            making = ContextStudy(study.questions, None, study.lengths, study.seed)
            needed = _total(making, asked, 0).generations
            source = str(planned.args.get("questions", BANK_NAME))
            found.append(
                Lacking(left_out, len(study.techniques), study.questions.name, source, needed)
            )
    return found


def _total(study: Study, questions: Sequence[Question], reply_tokens: int) -> Estimate:
    return sum((study.estimate(question, reply_tokens) for question in questions), Estimate())


def _helped(study: Study, questions: Sequence[Question], reply_tokens: int) -> dict[str, Estimate]:
    totals: dict[str, Estimate] = {}
    for question in questions:
        for role, needed in study.helped(question, reply_tokens).items():
            totals[role] = totals.get(role, Estimate()) + needed
    return totals
