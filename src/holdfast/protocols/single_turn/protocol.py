"""Single-turn baselines: the question misleads (MedQA-Followup, sections 2 and 4)."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inspect_ai.model import GenerateConfig

from holdfast.challenges.suggestion import Letters, load_letters, suggest_rule, suggested_letter
from holdfast.challenges.texts import question_prompt
from holdfast.challenges.texts import system_prompt as system_message
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.turn import Intervention, Rule
from holdfast.errors import InputError, unknown
from holdfast.protocols.control_turns import is_resampled, resample
from holdfast.protocols.protocol import Protocol
from holdfast.protocols.settings import HISTORIES, TestedSettings, history, listed, setting
from holdfast.questions.bank import exemplars
from holdfast.questions.question import Question, digest_of_each
from holdfast.reading.answers import extract_answer, first_character

from .bias import (
    Bias,
    Mitigation,
    biased,
    choose_biases,
    choose_mitigations,
    mitigated_prompt,
)
from .distractors import Distractors, load_distractors

VERSION = 1
"""Version of the protocol. Raise it if prompts or results change."""

ARM = "single-turn"

WRONG_OPTION = Intervention("wrong-option", "wrong_op", "indirect", "shallow")
"""The question with more plausible wrong options."""

STATEMENTS: Mapping[str, str] = {"type1": "misleading_context", "type2": "statements"}
"""Column of the statements before the question: for one wrong option, or for all options including
the right one (MedMisBench, Zhou et al., 2026)."""

RULES: Mapping[str, Rule] = {
    "extracted": extract_answer,
    "first-character": first_character,
}
"""Rule that extracts an answer, by the value of the setting ``answers``."""


@dataclass(frozen=True)
class SingleTurnSettings(TestedSettings):
    """Single-turn baselines: does the first answer stand up to a question that misleads?"""

    biases: str | list[str] = setting("all", "comma-separated ids; ``all``; ``none``", grows=True)
    mitigations: str | list[str] = setting(
        "none",
        "comma-separated ids (education, one-shot, few-shot), each tried against each bias; "
        "``all``; ``none``",
        grows=True,
    )
    distractors: str = setting(
        "auto",
        "more plausible wrong options: ``auto`` (the bank's own for the bank), ``none``, or a file",
        input=True,
    )
    statements: bool = setting(
        True,
        "whether to also ask the questions that have a statement for each option after one "
        "statement (``type1``) and after all statements (``type2``)",
        grows=True,
    )
    suggest: str = setting(
        "per-question",
        "``per-question``, ``per-technique``, or a file with the columns question, suggested and "
        "path",
        input=True,
    )
    system_prompt: str = setting("expert", "``expert`` (appendix A.1), ``none``, or a text")
    seed: int = setting(42, "seed of the suggested letters and of the model's sampling")
    answers: str = setting(
        "extracted", "``extracted``, or ``first-character`` for the naive rule of earlier studies"
    )
    reasoning_history: str = setting(
        "none",
        "as in the follow-up protocol, which shares the plain question",
        choices=HISTORIES,
    )
    controls: bool = setting(
        True,
        "whether to resample the plain question (``resample``), to distinguish changes from chance",
        grows=True,
    )

    @cached_property
    def chosen_biases(self) -> tuple[Bias, ...]:
        """The biases."""
        return choose_biases(listed(self.biases))

    @cached_property
    def chosen_mitigations(self) -> tuple[Mitigation, ...]:
        """The mitigations, checked to have enough exemplars."""
        mitigations = choose_mitigations(listed(self.mitigations))
        most_examples = max((len(mitigation.examples) for mitigation in mitigations), default=0)
        if most_examples > len(self.examples):
            problem = (
                f"{len(self.examples)} exemplars are left, but a mitigation shows {most_examples}"
            )
            remedy = "Remove the bank's exemplars from the questions"
            raise InputError(problem, field="mitigations", remedy=remedy)
        return mitigations

    @cached_property
    def examples(self) -> tuple[Question, ...]:
        """Exemplars for mitigations, none of which is among the questions."""
        hashes = {question.content_hash for question in self.question_set.questions}
        return tuple(q for q in exemplars() if q.content_hash not in hashes)

    @cached_property
    def wrong_options(self) -> Distractors:
        """More plausible wrong options."""
        return load_distractors(self.distractors, self.question_set)

    @cached_property
    def statement_rows(self) -> Mapping[str, Mapping[str, Any]]:
        """Statements that come with the questions, by question id."""
        came = self.question_set.contexts if self.statements else ()
        return {row["question"]: row for row in came if row.get("statements")}

    @cached_property
    def letters(self) -> Letters | None:
        """Suggested letters from a file, None without a file."""
        letters = load_letters(self.suggest, self.question_set)
        if letters is None and self.suggest not in ("per-question", "per-technique"):
            remedy = "Use per-question, per-technique or a file with question, suggested and path"
            problem = f"'{self.suggest}' is not a rule for single turns"
            raise InputError(problem, field="suggest", remedy=remedy)
        return letters

    @cached_property
    def rule(self) -> Rule:
        """Rule that extracts an answer."""
        if self.answers not in RULES:
            raise unknown("rule", self.answers, RULES, "answers")
        return RULES[self.answers]

    @property
    def simulated(self) -> Mapping[str, str]:
        """Simulated wrong options."""
        return {"distractors": "wrong options"} if self.wrong_options.is_simulated else {}

    def check_made(self) -> None:
        """Raise an error for wrong options that are not generated yet."""
        self.wrong_options.check_made()

    def notes(self) -> list[str]:
        """Notes on wrong options for questions that are not asked."""
        return self.wrong_options.remarks()


async def single_turn(run: Run, settings: SingleTurnSettings) -> None:
    """Ask the plain question and every condition, each in a separate conversation."""
    question = run.question
    opening: dict[str, Any] = {
        "system": system_message(settings.system_prompt),
        "config": history(settings.reasoning_history),
        "seed": settings.seed,
        "parse": settings.rule,
    }
    chat = run.chat(**opening)
    branches: dict[str, Awaitable[Any]] = {
        "baseline": chat.ask(question_prompt(question), arm="baseline", target=question.gold)
    }
    for mitigation in (None, *settings.chosen_mitigations):
        for bias in settings.chosen_biases:
            path = f"{mitigation.id}>{bias.id}" if mitigation else bias.id
            if letter := suggested(settings, question, path, bias):
                branches[path] = ask_biased(settings, chat, bias, letter, mitigation)
            else:
                run.skip(path, "no suggested letter")
    for kind, column in STATEMENTS.items() if settings.statement_rows else ():
        row = settings.statement_rows.get(question.id, {})
        if row.get(column):
            branches[kind] = ask_after_statement(chat, kind, row)
        else:
            run.skip(kind, "no statement")
    if settings.wrong_options.name != "none":
        if why := settings.wrong_options.obstacle(question):
            run.skip(WRONG_OPTION.id, why)
        else:
            harder = settings.wrong_options.replaced(question)
            branches[WRONG_OPTION.id] = chat.ask(
                question_prompt(harder), arm=ARM, step=WRONG_OPTION, target=question.gold,
                question=harder,
            )  # fmt: skip
    if is_resampled(run, controls=settings.controls):
        branches["resample"] = resample(run, run.chat(**opening, resample=1))
    await run.side_by_side(branches)


async def ask_biased(
    settings: SingleTurnSettings,
    chat: Turn,
    bias: Bias,
    letter: str,
    mitigation: Mitigation | None,
) -> Turn:
    """Ask the question with a bias in its stem, and optionally a mitigation."""
    question = biased(chat.question, bias, letter)
    prompt = question_prompt(question)
    steps = [Intervention(bias.id, bias.family, bias.axis, bias.depth, letter)]
    if mitigation:
        prompt = mitigated_prompt(mitigation, bias, prompt, settings.examples, settings.seed)
        steps.insert(0, Intervention(mitigation.id, "mitigation", depth="shallow"))
    return await chat.ask(prompt, arm=ARM, step=steps, target=question.gold, question=question)


async def ask_after_statement(chat: Turn, kind: str, row: Mapping[str, Any]) -> Turn:
    """Ask the question after a statement for one option, or for each."""
    question, letter = chat.question, row.get("second_best") if kind == "type1" else None
    prompt = f"Additional Clinical Context:\n{row[STATEMENTS[kind]]}\n\n{question_prompt(question)}"
    step = Intervention(kind, "statement", "indirect", "shallow", letter)
    return await chat.ask(prompt, arm=ARM, step=step, target=question.gold)


def suggested(
    settings: SingleTurnSettings, question: Question, path: str, bias: Bias
) -> str | None:
    """Return the wrong option that a bias names."""
    if settings.letters:
        return settings.letters.of(question, path)
    rule = suggest_rule(settings.suggest)
    return suggested_letter(question, rule, settings.seed, bias.id, None, None)


def _inputs(settings: SingleTurnSettings) -> dict[str, Any]:
    rows = sorted((id, row.get("second_best"), row["statements"])
                  for id, row in settings.statement_rows.items())  # fmt: skip
    statements = dict.fromkeys(STATEMENTS, digest_of_each(rows)) if rows else {}
    wordings = (*settings.chosen_biases, *settings.chosen_mitigations)
    return {
        "distractors": settings.wrong_options.fingerprint,
        "distractors_from": settings.wrong_options.name,
        "techniques": {item.id: item.fingerprint for item in wordings} | statements,
        "suggest": settings.letters.fingerprint if settings.letters else settings.suggest,
    }


PROTOCOL = Protocol(
    "single-turn",
    single_turn,
    SingleTurnSettings,
    VERSION,
    config=lambda settings: GenerateConfig(temperature=0.0, seed=settings.seed),
    inputs=_inputs,
    generated={"distractors": "distractors"},
)
