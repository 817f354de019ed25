"""MedQA-Followup: a question, the model's answer, and challenges to it (Manczak et al., 2025).

Baseline: the question alone (section 2, ``Q -> A``). Follow-up: the whole conversation so far and
one technique (``Q -> A -> I1 -> A1``). Compounding: further techniques on top of it (section 4.4).
Every branch of a question runs inside one Inspect sample and shares its first answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from inspect_ai import Task, task
from inspect_ai.model import ChatMessage, GenerateConfig
from inspect_ai.util import span

from holdfast.challenges import (
    CONTEXTS,
    GENERATE,
    Catalogue,
    Chain,
    Contexts,
    Letters,
    SuggestRule,
    Technique,
    challenge_prompt,
    choose,
    choose_chains,
    fingerprint,
    load_catalogue,
    load_contexts,
    load_letters,
    question_prompt,
    read_cue,
    suggest_rule,
    suggested_letter,
)
from holdfast.challenges import system_prompt as system_message
from holdfast.dialogue import Conversation, Intervention, gather
from holdfast.errors import InputError, counted
from holdfast.questions import Question, QuestionSet

from .context_generation import context_lengths
from .estimate import Estimate
from .judging import judged_cue, judgement_estimate
from .roles import JUDGE
from .scoring import robustness, samples_view
from .sitting import Sitting, sitting_solver
from .study import (
    Study,
    asked_questions,
    history,
    listed,
    one_text,
    opening_of,
    protocol_task,
    settings_of,
)

VERSION = 1
"""Raised when the protocol changes in a way that changes prompts or results."""

Step = str
"""A technique's id; for a context of an ablation with its length, such as ``rag-style@10``."""

Tree = Mapping[Step, "Tree"]
"""Steps that follow on a turn, each with those that follow on it."""


@dataclass(frozen=True)
class FollowupStudy(Study):
    """A follow-up study with every setting resolved.

    Attributes:
        questions: what is asked.
        contexts: texts for the techniques that need one.
        catalogue: every technique by id.
        techniques: those put to the model on their own.
        chains: those put to it one after another.
        lengths: numbers of sentences at which every context is put too (section 4.3).
        suggest: rule for the suggested letter.
        letters: the suggested letters where they are given, None where the rule draws them.
        system: ``expert``, ``none``, or the system prompt itself.
        seed: fixes the suggested letters, with the question.
        history: whether hidden reasoning of earlier turns is sent again.
    """

    questions: QuestionSet
    contexts: Contexts
    catalogue: Catalogue
    techniques: tuple[Technique, ...]
    chains: tuple[Chain, ...]
    lengths: tuple[int, ...]
    suggest: SuggestRule
    letters: Letters | None
    system: str
    seed: int
    history: GenerateConfig

    @cached_property
    def tree(self) -> Tree:
        """Follow-ups, lengths and chains as one tree: a shared prefix is asked once."""
        root: dict[str, Any] = {technique.id: {} for technique in self.techniques}
        root |= {
            f"{technique.id}@{length}": {}
            for length in self.lengths
            for technique in self.catalogue.values()
            if technique.context
        }
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
            for reason in [self.obstacle(question, path)]
            if reason
        }

    @property
    def exact(self) -> bool:
        """Whether ``estimate`` counts exactly; under ``not-own`` the first answer decides."""
        return self.suggest != "not-own"

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations that the question takes, and their tokens at four characters each."""
        first = self._first_tokens(question)
        # a length of the ablation can be the very text of the study itself
        asked = {tuple(self.prompt(question, step) for step in p) for p in self._asked(question)}
        said = sum(len(prompt) for path in asked for prompt in path) // 4
        replies_read = sum(len(path) for path in asked)
        generations = 1 + len(asked)
        return Estimate(
            generations,
            first * generations + said + replies_read * reply_tokens,
            generations * reply_tokens,
        )

    def _first_tokens(self, question: Question) -> int:
        system = system_message(self.system) or ""
        return (len(system) + len(question_prompt(question))) // 4

    def helped(self, question: Question, reply_tokens: int) -> dict[str, Estimate]:
        """Judgements of the question's challenged replies."""
        total = Estimate()
        for path in self._asked(question):
            if self.technique(path[-1]).cue:
                prompt = self.prompt(question, path[-1])
                total += judgement_estimate(len(prompt), reply_tokens)
        return {JUDGE: total}

    def opening(self, question: Question) -> str | None:
        """The plain question, which the single-turn protocol begins with too."""
        return opening_of(self.system, question)

    def needs(self, setting: str) -> bool:
        """Contexts where a technique has one, or where the second-best option is suggested."""
        steps = {step for path in self.paths for step in path}
        return any(
            self.technique(step).context
            or (self.technique(step).needs_letter and self.suggest == "second-best")
            for step in steps
        )

    def remarks(self) -> list[str]:
        """Contexts for questions that are not asked."""
        n = self.contexts.unused
        return [f"{self.contexts.name}: {counted(n, 'row')} for other questions"] if n else []

    def technique(self, step: Step) -> Technique:
        """The technique of a step of a path."""
        return self.catalogue[step.partition("@")[0]]

    def prompt(self, question: Question, step: Step, letter: str | None = None) -> str:
        """The user message of a step.

        Args:
            question: the question under discussion.
            step: the technique, with its length.
            letter: the suggested letter, where the template names one.
        """
        values = self.contexts.of(question).at(step.partition("@")[2])
        if letter is not None:
            values["incorr_letter"] = letter
        return challenge_prompt(self.technique(step).template, question, values)

    def _asked(self, question: Question) -> list[Chain]:
        left_out = self.left_out(question)
        return [path for path in self.paths if ">".join(path) not in left_out]

    def obstacle(self, question: Question, path: Chain) -> str | None:
        """Why a path cannot be put, by the first of its techniques that lacks something."""
        context = self.contexts.of(question)
        for depth, step in enumerate(path):
            technique, length = self.technique(step), step.partition("@")[2]
            for kind in technique.needs:
                if kind in CONTEXTS and (reason := context.obstacle(kind, length)):
                    return reason
            if not technique.needs_letter:
                continue
            if self.letters and not self.letters.of(question, ">".join(path[: depth + 1])):
                return "no suggested letter"
            if self.suggest == "second-best" and not context.second_best:
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
    lengths: str | list[str] | int = "none",
    suggest: str = "per-question",
    system_prompt: str = "expert",
    seed: int = 42,
    challenges: str | None = None,
    fields: str | list[str] | None = None,
    shuffle: int | None = None,
    stratify: str | None = None,
    reasoning_history: str = "none",
) -> FollowupStudy:
    """MedQA-Followup: does the first answer survive a challenge?

    A model in the role ``judge`` reads every challenged reply for the challenge's mention.

    Args:
        questions: ``bank``, ``medqa``, ``medmcqa``, a file, or ``hf:NAME@REVISION[:SPLIT]``.
        contexts: ``auto`` (the bank's own for the bank), ``synthetic``, ``none``, or a file.
        techniques: comma-separated ids or families; ``all``; ``none``.
        chains: comma-separated chains such as ``authority-prior>rag-style``; ``paper``; ``none``.
        lengths: comma-separated numbers of sentences at which every context is put too, from a
            file of contexts that has them; ``none``.
        suggest: ``per-question``, ``per-technique``, ``second-best``, ``not-own``, or a file
            with the columns question, suggested and path.
        system_prompt: ``expert`` (appendix A.1), ``none``, or a text.
        seed: of the suggested letters and of the model's sampling.
        challenges: a catalogue file of your own.
        fields: which column holds what, such as ``stem=vignette,gold=key``.
        shuffle: seed of the order in which questions are asked; with a limit, of the sample.
        stratify: label whose shares every beginning of that order keeps (step, system, ...).
        reasoning_history: whether hidden reasoning of earlier turns is sent again: ``none``,
            ``all``, ``last`` or ``auto``.

    Raises:
        InputError: a setting names something unknown, or a file cannot be used.
    """
    one_text(
        questions=questions,
        contexts=contexts,
        suggest=suggest,
        system_prompt=system_prompt,
        challenges=challenges or "",
    )
    catalogue = load_catalogue(challenges)
    chosen = choose(catalogue, listed(techniques))
    linked = choose_chains(catalogue, listed(chains))
    ablation = context_lengths(lengths)
    asked = asked_questions(questions, fields, shuffle, stratify)
    letters = load_letters(suggest, asked)
    return FollowupStudy(
        questions=asked,
        contexts=load_contexts(contexts, asked, seed, ablation),
        catalogue=catalogue,
        techniques=chosen,
        chains=linked,
        lengths=ablation,
        suggest="per-question" if letters else suggest_rule(suggest),
        letters=letters,
        system=system_prompt,
        seed=seed,
        history=history(reasoning_history),
    )


@task
@settings_of(followup_study)
def followup(study: FollowupStudy) -> Task:
    """MedQA-Followup: does the first answer survive a challenge?"""
    if study.contexts.name == GENERATE:
        raise InputError(
            "the role 'generator' is not bound",
            field="contexts",
            remedy="Give --generator MODEL, or build a file with 'holdfast contexts build'",
        )
    keys = ["baseline", *(">".join(path) for path in study.paths)]
    return protocol_task(
        study,
        sitting_solver("follow_up", study.questions, partial(_follow_up, study)),
        robustness(keys),
        samples_view(keys),
        protocol="followup",
        version=VERSION,
        # section 4: deterministic decoding, seed 42
        config=GenerateConfig(temperature=0.0, seed=study.seed),
        contexts=study.contexts.fingerprints,
        contexts_from=study.contexts.name,
        techniques={
            study.technique(step).id: study.technique(step).fingerprint
            for path in study.paths
            for step in path
        },
        catalogue=fingerprint(study.catalogue),
        suggest=study.letters.fingerprint if study.letters else study.suggest,
    )


async def _follow_up(study: FollowupStudy, sitting: Sitting) -> list[ChatMessage]:
    """The baseline, then every follow-up and chain on top of it."""
    question = sitting.question
    chat = sitting.begin(system=system_message(study.system), config=study.history, seed=study.seed)
    async with span(name="baseline", type="branch"):
        first = await chat.ask(question_prompt(question), arm="baseline", target=question.gold)
    await _challenge(study, chat, question, study.tree, own=first.answer)
    return chat.messages


async def _challenge(
    study: FollowupStudy, chat: Conversation, question: Question, tree: Tree, own: str | None
) -> None:
    """Put every step of the tree to the conversation, side by side."""
    async with gather() as branches:
        for step, then in tree.items():
            path = (*(earlier.step for earlier in chat.interventions), step)
            if study.obstacle(question, path) is not None:
                continue
            technique, length = study.technique(step), step.partition("@")[2]
            letter = _letter(study, question, technique, chat.interventions, path, own)
            if letter is None and technique.needs_letter:
                continue
            branch = chat.branch(_intervention(study, question, technique, letter, length))
            branches.start(step, _put, study, branch, question, letter, then, own)


async def _put(
    study: FollowupStudy,
    chat: Conversation,
    question: Question,
    letter: str | None,
    then: Tree,
    own: str | None,
) -> None:
    step = chat.interventions[-1]
    compound, ablation = len(chat.interventions) > 1, step.variant
    turn = await chat.ask(
        study.prompt(question, step.step, letter),
        arm="compound" if compound else "length" if ablation else "followup",
        target=question.gold,
    )
    technique = study.technique(step.step)
    cue = read_cue(technique, turn.reply)  # appendix C
    if cue is not None:
        turn.notes.update(cue=cue.named, stance=cue.stance)
    await _challenge(study, chat, question, then, own)
    if cue is not None:
        turn.notes.update(await judged_cue(technique, turn, question, cue, study.seed))


def _letter(
    study: FollowupStudy,
    question: Question,
    technique: Technique,
    earlier: Sequence[Intervention],
    path: Chain,
    own: str | None,
) -> str | None:
    """The letter that a technique names; in a chain, the one named before."""
    if not technique.needs_letter:
        return None
    for step in earlier:
        if study.technique(step.id).needs_letter:
            return step.suggested
    if study.letters:
        return study.letters.of(question, ">".join(path))
    second_best = study.contexts.of(question).second_best
    return suggested_letter(question, study.suggest, study.seed, technique.id, own, second_best)


def _intervention(
    study: FollowupStudy, question: Question, technique: Technique, letter: str | None, length: str
) -> Intervention:
    # misleading contexts argue for the generator's second-best option without naming its letter
    if not technique.needs_letter and technique.context == "misleading_context":
        letter = study.contexts.of(question).second_best
    return Intervention(
        technique.id, technique.family, technique.axis, technique.depth, letter, length
    )
