"""Settings of protocols that challenge a first answer: its opening, and the option suggested."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, get_args

from inspect_ai.model import GenerateConfig

from holdfast.challenges.catalogue import (
    CONTEXTS,
    MISLEADING,
    Catalogue,
    Technique,
    choose,
    load_catalogue,
)
from holdfast.challenges.contexts import Context, Contexts, load_contexts
from holdfast.challenges.suggestion import Letters, SuggestRule, load_letters, suggested_letter
from holdfast.challenges.texts import system_prompt
from holdfast.errors import unknown
from holdfast.questions.cases import NO_WRONG
from holdfast.questions.question import Question

from .settings import HISTORIES, TestedSettings, history, listed, setting

RULES: tuple[SuggestRule, ...] = get_args(SuggestRule)
"""Rules that select the suggested option."""


@dataclass(frozen=True)
class ChallengeSettings(TestedSettings):
    """The settings of everything that challenges a first answer."""

    rules: ClassVar[tuple[SuggestRule, ...]] = RULES
    """Rules that the protocol knows."""

    _: KW_ONLY
    suggest: str = setting(
        "per-question",
        "``per-question``, ``per-technique``, ``second-best``, ``not-own``, or a file with the "
        "columns question, suggested and path",
        input=True,
    )
    system_prompt: str = setting("expert", "``expert`` (appendix A.1), ``none``, or a text")
    seed: int = setting(42, "seed of the suggested letters and of the model's sampling")
    challenges: str | None = setting(None, "a file of your own techniques", input=True)
    reasoning_history: str = setting(
        "none",
        "whether hidden reasoning of earlier turns is sent again: ``none``, ``all``, ``last`` or "
        "``auto``",
        choices=HISTORIES,
    )
    controls: bool = setting(
        True,
        "whether the first question is asked afresh (``resample``), and something neutral after "
        "it, to tell a change from chance",
        grows=True,
    )

    @cached_property
    def catalogue(self) -> Catalogue:
        """Every technique that is known."""
        return load_catalogue(self.challenges, self.question_set.techniques)

    @cached_property
    def letters(self) -> Letters | None:
        """The suggested letters, where a file names them."""
        return load_letters(self.suggest, self.question_set)

    @cached_property
    def rule(self) -> SuggestRule:
        """Which wrong option is suggested, where no file names them.

        Raises:
            InputError: the protocol knows no such rule.
        """
        if self.letters:
            return "per-question"
        for rule in self.rules:
            if rule == self.suggest:
                return rule
        raise unknown("rule", self.suggest, self.rules, "suggest")

    @property
    def opening(self) -> dict[str, Any]:
        """How the conversation begins, as ``Run.chat`` takes it."""
        return {
            "system": system_prompt(self.system_prompt),
            "config": history(self.reasoning_history),
            "seed": self.seed,
        }

    @property
    def suggested_from(self) -> str:
        """The rule, or the digest of the letters, for the log."""
        return self.letters.fingerprint if self.letters else self.rule

    def suggestion(
        self,
        question: Question,
        path: str,
        technique: str,
        first_answer: str | None = None,
        second_best: str | None = None,
    ) -> str | None:
        """The wrong option to suggest; None where there is none.

        Args:
            question: the question.
            path: challenges so far, by which a file names its letters.
            technique: id of the technique.
            first_answer: what the model has answered, needed by ``not-own`` alone.
            second_best: choice of the generator.
        """
        if self.letters:
            return self.letters.of(question, path)
        letter = suggested_letter(
            question, self.rule, self.seed, technique, first_answer, second_best
        )
        return None if letter is None or question.options[letter] == NO_WRONG else letter


@dataclass(frozen=True)
class TechniqueSettings(ChallengeSettings):
    """The settings of everything that challenges a first answer by techniques of the catalogue."""

    contexts: str = setting(
        "auto",
        "``auto`` (those that came with the questions), ``synthetic``, ``none``, or a file",
        input=True,
    )
    techniques: str | list[str] = setting(
        "all", "comma-separated ids or families; ``all``; ``none``", grows=True
    )
    _: KW_ONLY
    corrections: bool = setting(
        False,
        "whether wrong first answers are corrected, in the wordings that name or support a wrong "
        "option",
        grows=True,
    )

    @cached_property
    def chosen_techniques(self) -> tuple[Technique, ...]:
        """The techniques that are asked."""
        return choose(self.catalogue, listed(self.techniques))

    @cached_property
    def chosen_lengths(self) -> tuple[int, ...]:
        """The lengths of an ablation, in sentences."""
        return ()

    @cached_property
    def loaded_contexts(self) -> Contexts:
        """The contexts."""
        return load_contexts(self.contexts, self.question_set, self.seed, self.chosen_lengths)

    @cached_property
    def corrected(self) -> tuple[Technique, ...]:
        """Techniques that are put for the right option too."""
        return tuple(
            technique
            for technique in (self.chosen_techniques if self.corrections else ())
            if technique.needs_letter or MISLEADING in technique.needs
        )

    @property
    def simulated(self) -> Mapping[str, str]:
        """Contexts, where they are simulated."""
        return {"contexts": "contexts"} if self.loaded_contexts.is_simulated else {}

    @property
    def lacks_contexts(self) -> bool:
        """Whether there are no contexts at all."""
        return not self.loaded_contexts.by_question

    def check_made(self) -> None:
        """Refuse contexts that are still to be generated."""
        self.loaded_contexts.check_made()

    def notes(self) -> list[str]:
        """Contexts for questions that are not asked."""
        return self.loaded_contexts.remarks()


def obstacle(context: Context, technique: Technique, length: str = "") -> str | None:
    """Why a technique cannot be put: the context that it lacks."""
    lacking = (context.obstacle(kind, length) for kind in technique.needs if kind in CONTEXTS)
    return next(filter(None, lacking), None)


def deterministic(settings: Any) -> GenerateConfig:
    """Deterministic decoding with the study's seed (MedQA-Followup, section 4)."""
    return GenerateConfig(temperature=0.0, seed=settings.seed)
