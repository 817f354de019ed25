"""MedQA-Followup: a question, the model's answer, and challenges to it (Manczak et al., 2025).

Baseline: the question alone (section 2, ``Q -> A``). Follow-up: the whole conversation so far and
one technique (``Q -> A -> I1 -> A1``). Compounding: further techniques on top of it (section 4.4).
Every branch of a question runs inside one Inspect sample and shares its first answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from holdfast.challenges import (
    CONTEXTS,
    Catalogue,
    Chain,
    Contexts,
    SuggestRule,
    Technique,
    challenge_prompt,
    choose,
    choose_chains,
    load_catalogue,
    load_contexts,
    question_prompt,
    suggest_rule,
    suggested_letter,
)
from holdfast.challenges import system_prompt as system_message
from holdfast.dialogue import Conversation, Intervention, gather
from holdfast.errors import InputError
from holdfast.questions import Fields, Question, QuestionSet, load_questions

from .estimate import Estimate
from .scoring import robustness, samples_view, turns_to_log

VERSION = 1
"""Raised when the protocol changes in a way that changes prompts or results."""

Tree = Mapping[str, "Tree"]
"""Techniques that follow on a turn, each with those that follow on it."""


@dataclass(frozen=True)
class FollowupStudy:
    """A follow-up study with every setting resolved.

    Attributes:
        questions: what is asked.
        contexts: texts for the techniques that need one.
        catalogue: every technique by id.
        techniques: those put to the model on their own.
        chains: those put to it one after another.
        suggest: rule for the suggested letter.
        system: ``expert``, ``none``, or the system prompt itself.
        seed: fixes the suggested letters, with the question.
    """

    questions: QuestionSet
    contexts: Contexts
    catalogue: Catalogue
    techniques: tuple[Technique, ...]
    chains: tuple[Chain, ...]
    suggest: SuggestRule
    system: str
    seed: int

    @cached_property
    def tree(self) -> Tree:
        """Follow-ups and chains as one tree: a shared prefix is asked once."""
        root: dict[str, Any] = {technique.id: {} for technique in self.techniques}
        for chain in self.chains:
            branch = root
            for id in chain:
                branch = branch.setdefault(id, {})
        return root

    @cached_property
    def paths(self) -> tuple[Chain, ...]:
        """Every path of the tree, each after its prefix."""
        return tuple(_paths(self.tree))

    def left_out(self, question: Question) -> dict[str, str]:
        """Paths that cannot be put for this question, with the reason."""
        return {
            ">".join(path): reason
            for path in self.paths
            for reason in [self._obstacle(question, path)]
            if reason
        }

    @property
    def exact(self) -> bool:
        """Whether ``estimate`` counts exactly; under ``not-own`` the first answer decides."""
        return self.suggest != "not-own"

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations that the question takes, and their tokens at four characters each.

        Args:
            question: one of the study's questions.
            reply_tokens: assumed length of a reply.
        """
        first = len(system_message(self.system) or "") + len(question_prompt(question))
        texts, left_out = self.contexts.of(question).texts, self.left_out(question)
        asked = [path for path in self.paths if ">".join(path) not in left_out]
        characters = first * (1 + len(asked)) + sum(
            len(challenge_prompt(self.catalogue[id].template, question, texts))
            for path in asked
            for id in path
        )
        replies_read = sum(len(path) for path in asked)
        generations = 1 + len(asked)
        return Estimate(
            generations, characters // 4 + replies_read * reply_tokens, generations * reply_tokens
        )

    def _obstacle(self, question: Question, path: Chain) -> str | None:
        """Why a path cannot be put, by the first of its techniques that lacks something."""
        context = self.contexts.of(question)
        for id in path:
            technique = self.catalogue[id]
            for kind in technique.needs:
                if kind in CONTEXTS and kind not in context.texts:
                    return f"no {kind}"
            if technique.needs_letter and self.suggest == "second-best" and not context.second_best:
                return "no second-best option"
        return None


def _paths(tree: Tree, prefix: Chain = ()) -> list[Chain]:
    found: list[Chain] = []
    for id, then in tree.items():
        found.append((*prefix, id))
        found.extend(_paths(then, (*prefix, id)))
    return found


def followup_study(
    questions: str = "bank",
    contexts: str = "auto",
    techniques: str | list[str] = "all",
    chains: str | list[str] = "none",
    suggest: str = "per-question",
    system_prompt: str = "expert",
    seed: int = 42,
    challenges: str | None = None,
    fields: str | list[str] | None = None,
) -> FollowupStudy:
    """Resolve the settings of a study; those of ``followup`` with the same names.

    Raises:
        InputError: a setting names something unknown, or a file cannot be used.
    """
    for name, value in (
        ("questions", questions),
        ("contexts", contexts),
        ("system_prompt", system_prompt),
        ("challenges", challenges or ""),
    ):
        if not isinstance(value, str):
            raise InputError(
                f"{name} is {value!r}, not one text",
                field="-T",
                remedy="Inspect splits and converts -T values; give it in a --task-config file",
            )
    catalogue = load_catalogue(challenges)
    chosen = choose(catalogue, _listed(techniques))
    linked = choose_chains(catalogue, _listed(chains))
    rule = suggest_rule(suggest)
    asked = load_questions(questions, Fields.parse(_listed(fields)) if fields else None)
    return FollowupStudy(
        questions=asked,
        contexts=load_contexts(contexts, asked, seed),
        catalogue=catalogue,
        techniques=chosen,
        chains=linked,
        suggest=rule,
        system=system_prompt,
        seed=seed,
    )


def _listed(value: str | list[str]) -> str:
    """The value as one text: Inspect's own command line splits at commas."""
    return value if isinstance(value, str) else ",".join(map(str, value))


@task
def followup(
    questions: str = "bank",
    contexts: str = "auto",
    techniques: str | list[str] = "all",
    chains: str | list[str] = "none",
    suggest: str = "per-question",
    system_prompt: str = "expert",
    seed: int = 42,
    challenges: str | None = None,
    fields: str | list[str] | None = None,
    reasoning_history: str = "none",
) -> Task:
    """MedQA-Followup: does the first answer survive a challenge?

    Args:
        questions: ``bank``, ``medqa``, ``medmcqa``, a file, or ``hf:NAME@REVISION[:SPLIT]``.
        contexts: ``auto`` (the bank's own for the bank), ``synthetic``, ``none``, or a file.
        techniques: comma-separated ids or families; ``all``; ``none``.
        chains: comma-separated chains such as ``authority-prior>rag-style``; ``paper``; ``none``.
        suggest: ``per-question``, ``per-technique``, ``second-best`` or ``not-own``.
        system_prompt: ``expert`` (appendix A.1), ``none``, or a text.
        seed: of the suggested letters and of the model's sampling.
        challenges: a catalogue file of your own.
        fields: which column holds what, such as ``stem=vignette,gold=key``.
        reasoning_history: whether hidden reasoning of earlier turns is sent again: ``none``,
            ``all``, ``last`` or ``auto``.
    """
    study = followup_study(
        questions, contexts, techniques, chains, suggest, system_prompt, seed, challenges, fields
    )
    keys = ["baseline", *(">".join(path) for path in study.paths)]
    return Task(
        dataset=MemoryDataset(
            [_sample(study, question) for question in study.questions.questions],
            name=study.questions.name,
        ),
        solver=_follow_up(study, reasoning_history),
        scorer=robustness(keys),
        # section 4: deterministic decoding, seed 42
        config=GenerateConfig(temperature=0.0, seed=seed),
        fail_on_error=True,
        continue_on_fail=True,
        version=VERSION,
        metadata={
            "protocol": "followup",
            "questions": study.questions.fingerprint,
            "contexts": study.contexts.fingerprint,
            "contexts_from": study.contexts.name,
            "techniques": {t: study.catalogue[t].fingerprint for p in study.paths for t in p},
        },
        viewer=samples_view(keys),
    )


def _sample(study: FollowupStudy, question: Question) -> Sample:
    return Sample(
        id=question.id,
        input=question.stem,
        choices=list(question.options.values()),
        target=question.gold,
        metadata={
            "gold": question.gold,
            "step": question.step,
            "system": question.system,
            "specialty": question.specialty,
            "subject": question.subject,
            "content_hash": question.content_hash,
            "left_out": study.left_out(question),
        },
    )


def _follow_up(study: FollowupStudy, reasoning_history: str) -> Solver:
    questions = {question.id: question for question in study.questions.questions}
    config = GenerateConfig.model_validate({"reasoning_history": reasoning_history})

    @solver(name="follow_up")
    def follow_up() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            question = questions[str(state.sample_id)]
            chat = Conversation(
                get_model(),
                question,
                system=system_message(study.system),
                config=config,
                replicate=state.epoch,
            )
            try:
                async with span(name="baseline", type="branch"):
                    first = await chat.ask(
                        question_prompt(question), arm="baseline", target=question.gold
                    )
                await _challenge(study, chat, question, study.tree, own=first.answer)
            finally:
                turns_to_log(chat.turns)
            state.messages = chat.messages
            state.output.completion = first.reply
            return state

        return solve

    return follow_up()


async def _challenge(
    study: FollowupStudy, chat: Conversation, question: Question, tree: Tree, own: str | None
) -> None:
    """Put every technique of the tree to the conversation, side by side."""
    async with gather() as branches:
        for id, then in tree.items():
            path = tuple(step.id for step in chat.interventions)
            if study._obstacle(question, (*path, id)) is not None:
                continue
            letter = _letter(study, question, study.catalogue[id], chat.interventions, own)
            if letter is None and study.catalogue[id].needs_letter:
                continue
            branch = chat.branch(_intervention(study, question, study.catalogue[id], letter))
            branches.start(id, _put, study, branch, question, letter, then, own)


async def _put(
    study: FollowupStudy,
    chat: Conversation,
    question: Question,
    letter: str | None,
    then: Tree,
    own: str | None,
) -> None:
    technique = study.catalogue[chat.interventions[-1].id]
    values = dict(study.contexts.of(question).texts)
    if letter is not None:
        values["incorr_letter"] = letter
    await chat.ask(
        challenge_prompt(technique.template, question, values),
        arm="followup" if len(chat.interventions) == 1 else "compound",
        target=question.gold,
    )
    await _challenge(study, chat, question, then, own)


def _letter(
    study: FollowupStudy,
    question: Question,
    technique: Technique,
    earlier: Sequence[Intervention],
    own: str | None,
) -> str | None:
    """The letter that a technique names; in a chain, the one named before."""
    if not technique.needs_letter:
        return None
    for step in earlier:
        if study.catalogue[step.id].needs_letter:
            return step.suggested
    second_best = study.contexts.of(question).second_best
    return suggested_letter(question, study.suggest, study.seed, technique.id, own, second_best)


def _intervention(
    study: FollowupStudy, question: Question, technique: Technique, letter: str | None
) -> Intervention:
    # misleading contexts argue for the generator's second-best option without naming its letter
    if not technique.needs_letter and technique.context == "misleading_context":
        letter = study.contexts.of(question).second_best
    return Intervention(technique.id, technique.family, technique.axis, technique.depth, letter)
