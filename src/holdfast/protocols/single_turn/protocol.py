"""Single-turn baselines: the question is tampered with (MedQA-Followup, sections 2 and 4)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from inspect_ai import Task, task
from inspect_ai.model import ChatMessage, GenerateConfig

from holdfast.challenges import (
    Letters,
    load_letters,
    question_prompt,
    suggest_rule,
    suggested_letter,
)
from holdfast.challenges import system_prompt as system_message
from holdfast.dialogue import Conversation, Intervention, Rule, gather
from holdfast.errors import InputError, unknown
from holdfast.protocols.protocol import Logged, Protocol, Rereading, settings_of
from holdfast.protocols.sample_run import (
    RESAMPLE,
    ControlledStudy,
    SampleRun,
    protocol_solver,
    resample,
)
from holdfast.protocols.scoring import robustness, samples_view
from holdfast.protocols.settings import HISTORIES, TestedSettings, history, listed, setting
from holdfast.protocols.study import Estimate, protocol_task
from holdfast.questions import Question, QuestionSet, digest_of_each, exemplars
from holdfast.reading import extract_answer, first_character

from .bias import (
    Bias,
    Mitigation,
    Worded,
    biased,
    choose_biases,
    choose_mitigations,
    mitigated_prompt,
)
from .distractors import Distractors, load_distractors

VERSION = 1
"""Raised when the protocol changes in a way that changes prompts or results."""

WRONG_OPTION = Intervention("wrong-option", "wrong_op", "indirect", "shallow")
"""The question with more plausible wrong options."""

STATEMENTS: Mapping[str, Intervention] = {
    "type1": Intervention("type1", "statement", "indirect", "shallow"),
    "type2": Intervention("type2", "statement", "indirect", "shallow"),
}
"""The question after one wrong option's statement, and after those of all options, the right one's
included (MedMisBench, Zhou et al., 2026)."""

RULES: Mapping[str, Rule] = {
    "extracted": extract_answer,
    "first-character": first_character,
}
"""How an answer is read, by the name of the setting ``answers``."""


@dataclass(frozen=True)
class Condition:
    """One way to put the question.

    Attributes:
        bias: the bias put into its stem; None where its wrong options are replaced.
        mitigation: what is said against the bias, or None.
        statement: key of ``STATEMENTS``, what is put before the question; empty for nothing.
    """

    bias: Bias | None
    mitigation: Mitigation | None = None
    statement: str = ""

    @property
    def path(self) -> str:
        """As in the turns table: the mitigation, then what it is to counter."""
        if self.bias is None:
            return self.statement or WRONG_OPTION.id
        return f"{self.mitigation.id}>{self.bias.id}" if self.mitigation else self.bias.id


@dataclass(frozen=True)
class SingleTurnStudy(ControlledStudy):
    """A single-turn study with every setting resolved."""

    questions: QuestionSet
    biases: tuple[Bias, ...]
    mitigations: tuple[Mitigation, ...]
    distractors: Distractors
    suggest: str
    letters: Letters | None
    system: str
    seed: int
    read: Rule
    history: GenerateConfig
    statements: bool = False

    @cached_property
    def stated(self) -> Mapping[str, Mapping[str, Any]]:
        """The statements that came with the questions, by question id."""
        came = self.questions.contexts if self.statements else ()
        return {row["question"]: row for row in came if row.get("statements")}

    @property
    def said(self) -> dict[str, str]:
        """Digest of what is put before the questions, by kind of statement."""
        rows = sorted(
            (id, row.get("second_best"), row["statements"]) for id, row in self.stated.items()
        )
        return dict.fromkeys(STATEMENTS, digest_of_each(rows)) if rows else {}

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Every way in which the question is put beside the plain one."""
        biased = [Condition(bias, m) for m in (None, *self.mitigations) for bias in self.biases]
        stated = [Condition(None, statement=kind) for kind in STATEMENTS if self.stated]
        return (*biased, *stated, *([Condition(None)] if self.distractors.name != "none" else []))

    def left_out(self, question: Question) -> dict[str, str]:
        """Paths that cannot be put for this question, with the reason."""
        obstacles = {one.path: self.obstacle(question, one) for one in self.conditions}
        return {path: reason for path, reason in obstacles.items() if reason}

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations that the question takes, and their tokens at four characters each."""
        left_out = self.left_out(question)
        prompts = [question_prompt(question)] * (1 + self.resampled) + [
            self.prompt(question, condition)[0]
            for condition in self.conditions
            if condition.path not in left_out
        ]
        characters = sum(map(len, prompts)) + len(prompts) * len(system_message(self.system) or "")
        return Estimate(len(prompts), characters // 4, len(prompts) * reply_tokens)

    def openings(self, question: Question) -> tuple[str, ...]:
        """The plain question and its resample, which the follow-up protocol has too."""
        return self.openings_under(self.system, question)

    def needs(self, setting: str) -> bool:
        """Wrong options, wherever they are not left out."""
        return self.distractors.name != "none"

    @property
    def simulated(self) -> tuple[str, ...]:  # type: ignore[override]
        """Wrong options, where they are simulated."""
        return ("wrong options",) if self.distractors.simulated else ()

    def remarks(self) -> list[str]:
        """Wrong options for questions that are not asked."""
        return self.distractors.remarks()

    @cached_property
    def examples(self) -> tuple[Question, ...]:
        """Exemplars that a mitigation may show: none of the questions asked."""
        asked = {question.content_hash for question in self.questions.questions}
        return tuple(q for q in exemplars() if q.content_hash not in asked)

    def letter(self, question: Question, condition: Condition) -> str | None:
        """The wrong option that the bias names, or the one statement argues for."""
        if condition.bias is None:
            told = self.stated.get(question.id, {}) if condition.statement == "type1" else {}
            return told.get("second_best")
        if self.letters:
            return self.letters.of(question, condition.path)
        rule = suggest_rule(self.suggest)
        return suggested_letter(question, rule, self.seed, condition.bias.id, None, None)

    def prompt(self, question: Question, condition: Condition) -> tuple[str, Question]:
        """The user message of a condition, and the question as it puts it."""
        bias, letter = condition.bias, self.letter(question, condition)
        if condition.statement:
            text = self.stated[question.id][_SAID[condition.statement]]
            return f"Additional Clinical Context:\n{text}\n\n{question_prompt(question)}", question
        if bias is None or letter is None:
            put = self.distractors.replaced(question)
            return question_prompt(put), put
        put = biased(question, bias, letter)
        prompt = question_prompt(put)
        if condition.mitigation:
            prompt = mitigated_prompt(condition.mitigation, bias, prompt, self.examples, self.seed)
        return prompt, put

    def obstacle(self, question: Question, condition: Condition) -> str | None:
        """Why a condition cannot be put; None where it can."""
        if condition.statement:
            told = self.stated.get(question.id, {}).get(_SAID[condition.statement])
            return None if told else "no statement"
        if condition.bias is None:
            return self.distractors.obstacle(question)
        return None if self.letter(question, condition) else "no suggested letter"


_SAID = {"type1": "misleading_context", "type2": "statements"}
"""Column of what is put before the question."""


@dataclass(frozen=True)
class SingleTurnSettings(TestedSettings[SingleTurnStudy]):
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
        "whether questions that came with a statement for each option are also put after one "
        "(``type1``) and after all of them (``type2``)",
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
        "whether the plain question is also asked afresh (``resample``), to tell a change from "
        "chance",
        grows=True,
    )

    def study(self) -> SingleTurnStudy:
        """What will be asked."""
        if self.answers not in RULES:
            raise unknown("rule", self.answers, RULES, "answers")
        asked, suggest = self.asked(), self.suggest
        letters = load_letters(suggest, asked)
        if letters is None and suggest not in ("per-question", "per-technique"):
            remedy = "Use per-question, per-technique or a file with question, suggested and path"
            what = f"'{suggest}' is not a rule for single turns"
            raise InputError(what, field="suggest", remedy=remedy)
        study = SingleTurnStudy(
            questions=asked,
            biases=choose_biases(listed(self.biases)),
            mitigations=choose_mitigations(listed(self.mitigations)),
            distractors=load_distractors(self.distractors, asked),
            suggest=suggest,
            letters=letters,
            system=self.system_prompt,
            seed=self.seed,
            read=RULES[self.answers],
            history=history(self.reasoning_history),
            controls=self.controls,
            statements=self.statements,
            defence=self.defended(),
        )
        shown = max((len(mitigation.examples) for mitigation in study.mitigations), default=0)
        if shown > len(study.examples):
            what = f"{len(study.examples)} exemplars are left, but a mitigation shows {shown}"
            remedy = "Remove the bank's exemplars from the questions"
            raise InputError(what, field="mitigations", remedy=remedy)
        return study


@task
@settings_of(SingleTurnSettings)
def single_turn(study: SingleTurnStudy) -> Task:
    """Single-turn baselines: does the first answer stand up to a question that misleads?"""
    study.distractors.check_made()
    keys = ["baseline", *(condition.path for condition in study.conditions)]
    keys += [RESAMPLE.step] if study.resampled else []
    worded: tuple[Worded, ...] = (*study.biases, *study.mitigations)
    return protocol_task(
        study,
        protocol_solver("put_misleading_questions", study, partial(_single_turn, study)),
        robustness(keys),
        samples_view(keys),
        protocol="single-turn",
        version=VERSION,
        config=GenerateConfig(temperature=0.0, seed=study.seed),
        distractors=study.distractors.fingerprint,
        distractors_from=study.distractors.name,
        techniques={one.id: one.fingerprint for one in worded} | study.said,
        suggest=study.letters.fingerprint if study.letters else study.suggest,
    )


async def _single_turn(study: SingleTurnStudy, run: SampleRun) -> list[ChatMessage]:
    """The plain question and every condition, each in a conversation of its own."""
    question = run.question
    left_out = study.left_out(question)
    begun: dict[str, Any] = {
        "system": system_message(study.system), "config": study.history, "seed": study.seed,
        "read": study.read,
    }  # fmt: skip
    root = run.begin(**begun)
    plain = root.branch()
    async with gather() as branches:
        put = partial(plain.ask, question_prompt(question), arm="baseline", target=question.gold)
        branches.start("baseline", put)
        for condition in study.conditions:
            if condition.path not in left_out:
                branches.start(condition.path, _put, study, root, question, condition)
        # Inspect's own command line does not say how many epochs there are
        if study.resampled and run.replicate == 1:
            branches.start(RESAMPLE.id, partial(resample, run, **begun))
    return plain.challenged


async def _put(
    study: SingleTurnStudy, root: Conversation, question: Question, condition: Condition
) -> None:
    """Ask the question in one condition, in a conversation of its own."""
    prompt, put = study.prompt(question, condition)
    chat = root
    if condition.mitigation:
        chat = chat.branch(Intervention(condition.mitigation.id, "mitigation", depth="shallow"))
    chat = chat.branch(_intervention(study, question, condition), question=put)
    await chat.ask(prompt, arm="single-turn", target=question.gold)


def _intervention(study: SingleTurnStudy, question: Question, condition: Condition) -> Intervention:
    bias = condition.bias
    letter = study.letter(question, condition)
    if condition.statement:
        return replace(STATEMENTS[condition.statement], suggested=letter)
    if bias is None:
        return WRONG_OPTION
    return Intervention(bias.id, bias.family, bias.axis, bias.depth, letter)


def _as_put(question: Question, turn: Logged) -> Question | None:
    """The question with its wrong options replaced, where only the prompt holds them.

    So it is in logs whose replies were read by version 1.
    """
    if turn["technique"] != WRONG_OPTION.id:
        return question
    options = _in_prompt(question, turn["prompt"])
    return None if options is None else question.changed(options=options)


def _in_prompt(question: Question, prompt: str) -> dict[str, str] | None:
    """The options that a prompt of the plain question shows; None where it has another form."""
    shown = prompt.partition(f"{question.stem}\n\n")[2].rpartition("\n\n")[0]
    lines = "".join(rf"\n{letter}\. (.+)" for letter in question.options)
    found = re.fullmatch(lines, f"\n{shown}", re.DOTALL)
    options = dict(zip(question.options, found.groups(), strict=True)) if found else {}
    # the right one is never replaced
    same = options.get(question.gold) == question.options[question.gold]
    return options if same and len(set(options.values())) == len(options) else None


PROTOCOL = Protocol(
    SingleTurnSettings,
    single_turn,
    generated={"distractors": "distractors"},
    rereading=Rereading(put=_as_put),
)
