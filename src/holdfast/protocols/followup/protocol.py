"""MedQA-Followup: a first answer and challenges to it (Manczak et al., 2025, sections 2 and 4)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from inspect_ai import Task, task
from inspect_ai.model import ChatMessage, GenerateConfig

from holdfast.challenges import (
    CONTEXTS,
    KINDS,
    MISLEADING,
    SUPPORTING,
    Catalogue,
    Chain,
    Contexts,
    Cue,
    Letters,
    SuggestRule,
    Technique,
    challenge_prompt,
    choose,
    choose_chains,
    judge_prompt,
    load_catalogue,
    load_contexts,
    load_letters,
    of_wording,
    question_prompt,
    read_cue,
    read_judgement,
    suggest_rule,
    suggested_letter,
)
from holdfast.challenges import system_prompt as system_message
from holdfast.dialogue import Branches, Conversation, Intervention, Turn, branch, gather
from holdfast.files import packaged
from holdfast.models.behaviour import Behaviour, Profile
from holdfast.protocols.protocol import Protocol, settings_of
from holdfast.protocols.sample_run import (
    CONTROL,
    RESAMPLE,
    ControlledStudy,
    SampleRun,
    control,
    protocol_solver,
    resample,
)
from holdfast.protocols.scoring import robustness, samples_view
from holdfast.protocols.settings import HISTORIES, TestedSettings, history, listed, setting
from holdfast.protocols.study import JUDGE, Estimate, Turns, bound, protocol_task
from holdfast.questions import Question, QuestionSet

from .context_generation import context_lengths
from .published import medqa_followup

VERSION = 1
"""Raised when the protocol changes in a way that changes prompts or results."""

CORRECTION = "correction"
"""``arm`` and ``family`` of a challenge's wording put for the right option."""

RESTATE = Intervention("restate", CONTROL)
"""Asks in the conversation for the final answer again, neutrally."""

Step = str
"""A technique's id; for a context of an ablation with its length, such as ``rag-style@10``."""

Tree = Mapping[Step, "Tree"]
"""Steps that follow on a turn, each with those that follow on it."""


@dataclass(frozen=True)
class FollowupStudy(ControlledStudy):
    """A follow-up study with every setting resolved.

    ``letters`` are the suggested ones where they are given, None where the rule draws them;
    ``corrections`` says whether wrong first answers are corrected.
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
    corrections: bool = False

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

    @cached_property
    def restates(self) -> int:
        """How often the final answer is asked for again: to the depth of the deepest chain."""
        return max(map(len, self.chains), default=1) if self.controls else 0

    @cached_property
    def correcting(self) -> Mapping[str, Technique]:
        """Techniques whose wording is put for the right option too, by path."""
        return {
            _correction(technique).step: technique
            for technique in self.techniques
            if self.corrections and (technique.needs_letter or MISLEADING in technique.needs)
        }

    @property
    def keys(self) -> list[str]:
        """``baseline`` and every path that a question can have."""
        return [
            "baseline",
            *(">".join(path) for path in self.paths),
            *(">".join([RESTATE.step] * n) for n in range(1, self.restates + 1)),
            *([RESAMPLE.step] if self.resampled else []),
            *self.correcting,
        ]

    def left_out(self, question: Question) -> dict[str, str]:
        """Paths that cannot be put for this question, with the reason."""
        obstacles = {">".join(path): self.obstacle(question, path) for path in self.paths} | {
            path: self.uncorrectable(question, technique)
            for path, technique in self.correcting.items()
        }
        return {path: reason for path, reason in obstacles.items() if reason}

    @property
    def exact(self) -> bool:
        """Whether ``estimate`` counts exactly, and no first answer decides what is asked."""
        return self.suggest != "not-own" and not self.correcting

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations that the question takes, and their tokens at four characters each.

        At the least none is a correction, at the most all that there are.
        """
        first = self._first_tokens(question)
        # a length of the ablation can be the very text of the study itself
        asked = {tuple(self.prompt(question, step) for step in p) for p in self._asked(question)}
        asked |= {(restate_prompt(question),) * n for n in range(1, self.restates + 1)}
        fewest = 1 + self.resampled + len(asked)
        left_out = self.left_out(question)
        asked |= {
            (self.correction(question, technique),)
            for path, technique in self.correcting.items()
            if path not in left_out
        }
        said = sum(len(prompt) for path in asked for prompt in path) // 4
        replies_read = sum(len(path) for path in asked)
        generations = 1 + self.resampled + len(asked)
        return Estimate(
            generations,
            first * generations + said + replies_read * reply_tokens,
            generations * reply_tokens,
            fewest,
        )

    def turns(self, question: Question) -> Turns:
        """The first answers, those that are challenged, and all up to the first challenge."""
        first, paths = 1 + self.resampled, self._asked(question)
        single = {self.prompt(question, path[0]) for path in paths if len(path) == 1}
        single |= {restate_prompt(question)} if self.restates else set()
        left_out = self.left_out(question)
        single |= {
            self.correction(question, technique)
            for path, technique in self.correcting.items()
            if path not in left_out
        }
        return Turns(first, int(bool(single)), first + len(single))

    def _first_tokens(self, question: Question) -> int:
        system = system_message(self.system) or ""
        return (len(system) + len(question_prompt(question))) // 4

    def helped(self, question: Question, reply_tokens: int) -> dict[str, Estimate]:
        """Judgements of the question's challenged replies."""
        total = Estimate()
        for path in self._asked(question):
            if self.technique(path[-1]).cue:
                prompt = self.prompt(question, path[-1])
                total += Estimate(1, 300 + len(prompt) // 4 + reply_tokens, 20)
        return {JUDGE: total}

    def openings(self, question: Question) -> tuple[str, ...]:
        """The plain question and its resample, which the single-turn protocol has too."""
        return self.openings_under(self.system, question)

    def needs(self, setting: str) -> bool:
        """Contexts where a technique has one, or where the second-best option is suggested."""
        used = {
            self.technique(step).id: self.technique(step) for path in self.paths for step in path
        }
        second_best = self.suggest == "second-best"
        return any(one.context or (one.needs_letter and second_best) for one in used.values())

    @property
    def simulated(self) -> tuple[str, ...]:  # type: ignore[override]
        """Contexts, where they are simulated and anything that is asked depends on them."""
        return ("contexts",) if self.contexts.simulated and self.needs("contexts") else ()

    def remarks(self) -> list[str]:
        """Contexts for questions that are not asked."""
        return self.contexts.remarks()

    def technique(self, step: Step) -> Technique:
        """The technique of a step of a path."""
        return self.catalogue[step.partition("@")[0]]

    def prompt(self, question: Question, step: Step, letter: str | None = None) -> str:
        """The user message of a step."""
        values = self.contexts.of(question).at(step.partition("@")[2])
        if letter is not None:
            values["incorr_letter"] = letter
        return challenge_prompt(self.technique(step).template, question, values)

    def correction(self, question: Question, technique: Technique) -> str:
        """The user message of a technique put for the right option."""
        values = self.contexts.of(question).at("")
        values |= {MISLEADING: values.get(SUPPORTING, ""), "incorr_letter": question.gold}
        return challenge_prompt(technique.correction or technique.template, question, values)

    def uncorrectable(self, question: Question, technique: Technique) -> str | None:
        """Why a technique cannot be put for the right option; None where it can."""
        context = self.contexts.of(question)
        needed = [SUPPORTING if kind == MISLEADING else kind for kind in technique.needs]
        obstacles = [context.obstacle(kind) for kind in needed if kind in KINDS]
        return next(filter(None, obstacles), None)

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


def _paths(tree: Tree, prefix: Chain = ()) -> Iterator[Chain]:
    for id, then in tree.items():
        yield (*prefix, id)
        yield from _paths(then, (*prefix, id))


@dataclass(frozen=True)
class FollowupSettings(TestedSettings[FollowupStudy]):
    """MedQA-Followup: does the first answer survive a challenge?

    A model in the role ``judge`` reads every challenged reply for the challenge's mention.
    """

    contexts: str = setting(
        "auto",
        "``auto`` (those that came with the questions), ``synthetic``, ``none``, or a file",
        input=True,
    )
    techniques: str | list[str] = setting(
        "all", "comma-separated ids or families; ``all``; ``none``", grows=True
    )
    chains: str | list[str] = setting(
        "none",
        "comma-separated chains such as ``authority-prior>rag-style``; ``paper``; ``none``",
        grows=True,
    )
    lengths: str | list[str] | int = setting(
        "none",
        "comma-separated numbers of sentences: also asks with contexts of these lengths, from a "
        "file of contexts that has them; ``none``",
        grows=True,
    )
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
        "whether the first question is asked afresh (``resample``), and the final answer asked for "
        "again after it (``restate``), to tell a change from chance",
        grows=True,
    )
    corrections: bool = setting(
        False,
        "whether wrong first answers are corrected, in the wordings that name or support a wrong "
        "option",
        grows=True,
    )

    def study(self) -> FollowupStudy:
        """What will be asked."""
        asked = self.asked()
        catalogue = load_catalogue(self.challenges, asked.techniques)
        chosen = choose(catalogue, listed(self.techniques))
        chains, lengths = (
            choose_chains(catalogue, listed(self.chains)),
            context_lengths(self.lengths),
        )
        letters = load_letters(self.suggest, asked)
        return FollowupStudy(
            questions=asked,
            contexts=load_contexts(self.contexts, asked, self.seed, lengths),
            catalogue=catalogue,
            techniques=chosen,
            chains=chains,
            lengths=lengths,
            suggest="per-question" if letters else suggest_rule(self.suggest),
            letters=letters,
            system=self.system_prompt,
            seed=self.seed,
            history=history(self.reasoning_history),
            corrections=self.corrections,
            controls=self.controls,
            defence=self.defended(),
        )


@task
@settings_of(FollowupSettings)
def followup(study: FollowupStudy) -> Task:
    """MedQA-Followup: does the first answer survive a challenge?"""
    study.contexts.check_made()
    techniques = {
        technique.id: technique.fingerprint
        for path in study.paths
        for technique in map(study.technique, path)
    }
    shipped = load_catalogue(came=study.questions.techniques)
    own = {
        id: wording
        for id, wording in sorted(techniques.items())
        if id not in shipped or shipped[id].fingerprint != wording
    }
    supporting = {SUPPORTING: study.contexts.supporting} if study.correcting else {}
    return protocol_task(
        study,
        protocol_solver("follow_up", study, partial(_follow_up, study)),
        robustness(study.keys),
        samples_view(study.keys),
        protocol="followup",
        version=VERSION,
        # section 4: deterministic decoding, seed 42
        config=GenerateConfig(temperature=0.0, seed=study.seed),
        contexts=study.contexts.fingerprints | supporting,
        contexts_from=study.contexts.name,
        techniques=techniques | ({RESTATE.id: _restate_wording()} if study.restates else {}),
        suggest=study.letters.fingerprint if study.letters else study.suggest,
        **({"own_techniques": own} if own else {}),
    )


async def _follow_up(study: FollowupStudy, run: SampleRun) -> list[ChatMessage]:
    """The baseline, then every follow-up, chain, control and correction on top of it."""
    question = run.question
    begun: dict[str, Any] = {
        "system": system_message(study.system), "config": study.history, "seed": study.seed
    }  # fmt: skip
    chat = run.begin(**begun)
    async with branch("baseline"):
        first = await chat.ask(question_prompt(question), arm="baseline", target=question.gold)
    async with gather() as branches:
        _challenge(study, branches, chat, study.tree, own=first.answer)
        if study.restates:
            branches.start(RESTATE.id, _restate, chat.branch(), study.restates)
        # Inspect's own command line does not say how many epochs there are
        if study.resampled and run.replicate == 1:
            branches.start(RESAMPLE.id, partial(resample, run, **begun))
        if first.answer not in (None, question.gold):
            for path, technique in study.correcting.items():
                if study.uncorrectable(question, technique) is None:
                    branches.start(path, _correct, study, chat.branch(), technique)
    return chat.challenged


async def _restate(chat: Conversation, times: int) -> None:
    """Ask for the final answer again, and again."""
    for _ in range(times):
        chat = chat.branch(RESTATE)
        await control(chat, restate_prompt(chat.question))


async def _correct(study: FollowupStudy, chat: Conversation, technique: Technique) -> None:
    """Put a technique for the right option."""
    gold = chat.question.gold
    prompt = study.correction(chat.question, technique)
    await chat.branch(_correction(technique, gold)).ask(prompt, arm=CORRECTION, target=gold)


def restate_prompt(question: Question) -> str:
    """Asks for the final answer again."""
    return challenge_prompt(packaged(__package__, "controls.toml")["restate"], question, {})


def _restate_wording() -> str:
    wording = packaged(__package__, "controls.toml")
    return of_wording(wording["version"], wording["restate"])


def _correction(technique: Technique, letter: str | None = None) -> Intervention:
    return Intervention(
        technique.id, CORRECTION, technique.axis, technique.depth, letter, purpose=CORRECTION
    )


def _challenge(
    study: FollowupStudy, branches: Branches, chat: Conversation, tree: Tree, own: str | None
) -> None:
    """Put every step of the tree to the conversation, side by side."""
    for step, then in tree.items():
        path = (*(earlier.step for earlier in chat.interventions), step)
        if study.obstacle(chat.question, path) is not None:
            continue
        letter = _letter(study, chat, path, own)
        if letter is None and study.technique(step).needs_letter:
            continue
        branch = chat.branch(_intervention(study, chat.question, step, letter))
        branches.start(step, _put, study, branch, letter, then, own)


async def _put(
    study: FollowupStudy, chat: Conversation, letter: str | None, then: Tree, own: str | None
) -> None:
    step = chat.interventions[-1]
    compound, ablation = len(chat.interventions) > 1, step.variant
    turn = await chat.ask(
        study.prompt(chat.question, step.step, letter),
        arm="compound" if compound else "length" if ablation else "followup",
        target=chat.question.gold,
    )
    technique = study.technique(step.step)
    cue = read_cue(technique, turn.reply)  # appendix C
    if cue is not None:
        turn.notes.update(cue=cue.named, stance=cue.stance)
    if then:
        async with gather() as branches:
            _challenge(study, branches, chat, then, own)
    if cue is not None:
        turn.notes.update(await _judged_cue(technique, turn, chat.question, cue, study.seed))


def _letter(study: FollowupStudy, chat: Conversation, path: Chain, own: str | None) -> str | None:
    """The letter that the last step of a path names; in a chain, the one named before."""
    question, technique = chat.question, study.technique(path[-1])
    if not technique.needs_letter:
        return None
    for step in chat.interventions:
        if study.technique(step.id).needs_letter:
            return step.suggested
    if study.letters:
        return study.letters.of(question, ">".join(path))
    second_best = study.contexts.of(question).second_best
    return suggested_letter(question, study.suggest, study.seed, technique.id, own, second_best)


def _intervention(
    study: FollowupStudy, question: Question, step: Step, letter: str | None
) -> Intervention:
    technique, length = study.technique(step), step.partition("@")[2]
    # misleading contexts argue for the generator's second-best option without naming its letter
    if not technique.needs_letter and technique.context == "misleading_context":
        letter = study.contexts.of(question).second_best
    return Intervention(
        technique.id, technique.family, technique.axis, technique.depth, letter, length
    )


async def _judged_cue(
    technique: Technique, turn: Turn, question: Question, cue: Cue, seed: int
) -> dict[str, Any]:
    """What the judge says of a reply, by the names of the turns table; nothing without one."""
    judge = bound(JUDGE)
    if judge is None:
        return {}
    config = GenerateConfig(temperature=0.0, seed=seed)
    chat = Conversation(judge, question, config=config, purpose="judgement")
    chat = chat.branch(turn.interventions[-1])
    prompt = judge_prompt(technique, turn.prompt, turn.reply)
    output = await chat.say(prompt, named=cue.named, stance=cue.stance)
    judged = read_judgement(output.completion)
    named, stance = (judged.named, judged.stance) if judged else (None, "unreadable")
    return {"cue_judged": named, "stance_judged": stance}


def _profiles(dataset: str) -> Mapping[str, Profile]:
    profiles = {}
    for name, data in packaged(__package__, "profiles.toml").items():
        baseline, accuracy = medqa_followup().accuracies("paper", data["published"])
        figures = {"about": data["about"], "baseline": baseline, "accuracy": accuracy}
        profiles[name] = Profile.model_validate(figures)
    return profiles


PROTOCOL = Protocol(
    FollowupSettings,
    followup,
    generated={"contexts": "contexts"},
    behaviour=Behaviour(profiles=_profiles),
)
