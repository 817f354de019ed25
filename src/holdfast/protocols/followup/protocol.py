"""MedQA-Followup: a first answer and challenges to it (Manczak et al., 2025, sections 2 and 4)."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from inspect_ai.model import GenerateConfig, ModelOutput

from holdfast.challenges.catalogue import (
    CONTEXTS,
    INERT,
    MISLEADING,
    SUPPORTING,
    Chain,
    Technique,
    choose_chains,
    load_catalogue,
    of_wording,
)
from holdfast.challenges.contexts import KINDS, Context
from holdfast.challenges.cues import Cue, judge_prompt, read_cue, read_judgement
from holdfast.challenges.texts import challenge_prompt, question_prompt
from holdfast.dialogue.conversation import JUDGEMENT_TOKENS, Run, Turn
from holdfast.dialogue.turn import Intervention
from holdfast.files import packaged
from holdfast.models.behaviour import Behaviour, Profile
from holdfast.protocols.challenge_settings import TechniqueSettings, deterministic, obstacle
from holdfast.protocols.control_turns import CONTROL, ask_control, is_resampled, resample
from holdfast.protocols.protocol import JUDGE, Protocol
from holdfast.protocols.settings import listed, setting
from holdfast.questions.question import Question

from .context_generation import context_lengths
from .published import medqa_followup

VERSION = 1
"""Raised when the protocol changes in a way that changes prompts or results."""

CORRECTION = "correction"
"""Arm and family of a challenge's wording put for the right option."""

RESTATE = Intervention("restate", CONTROL)
"""Asks in the conversation for the final answer again, neutrally."""

DOCUMENT = Intervention("document", "document", "indirect", "deep")
"""Asks for the final answer again, while the assistant retrieves a misleading context."""

INERT_PURPOSE = "inert"
"""Family of a control in a challenge's own wording, with a passage that argues for nothing."""


@dataclass(frozen=True)
class FollowupSettings(TechniqueSettings):
    """MedQA-Followup: does the first answer survive a challenge?

    A model in the role ``judge`` reads every challenged reply for the challenge's mention.
    """

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
    inert: bool = setting(
        False,
        "whether each context challenge is also put with a passage of the same length and topic "
        "that argues for nothing, as its control (``inert``)",
        grows=True,
    )

    inject: str = setting(
        "chat",
        "``document``: the misleading context is also put where your assistant's retrieval puts a "
        "document, with a passage that argues for nothing as its control; ``chat``: only into the "
        "chat",
        choices=("chat", "document"),
        grows=True,
    )

    @cached_property
    def chosen_chains(self) -> tuple[Chain, ...]:
        """The chains that are asked."""
        return choose_chains(self.catalogue, listed(self.chains))

    @cached_property
    def chosen_lengths(self) -> tuple[int, ...]:
        """The lengths of the ablation, in sentences."""
        return context_lengths(self.lengths)

    @cached_property
    def paths(self) -> tuple[Chain, ...]:
        """Follow-ups, lengths and chains with all that they begin with."""
        contextual = [item.id for item in self.catalogue.values() if item.context]
        paths: list[Chain] = [(technique.id,) for technique in self.chosen_techniques]
        paths += [(f"{id}@{length}",) for length in self.chosen_lengths for id in contextual]
        paths += [chain[: n + 1] for chain in self.chosen_chains for n in range(len(chain))]
        return tuple(dict.fromkeys(paths))

    @cached_property
    def contextual(self) -> tuple[str, ...]:
        """First challenges that are also put with an inert passage: those with a context."""
        puts_inert = self.inert or self.puts_documents
        alone = [path[0] for path in self.paths if len(path) == 1] if puts_inert else []
        steps = ((name, _step(self, name)[0]) for name in alone)
        # where a letter is named too, no passage would make it a control
        return tuple(
            name for name, technique in steps if technique.context and not technique.needs_letter
        )

    @property
    def puts_documents(self) -> bool:
        """Whether the misleading context is put where an assistant retrieves a document."""
        return self.inject == "document"

    @property
    def restates(self) -> int:
        """How often the final answer is asked for again: to the depth of the deepest chain."""
        return max(map(len, self.chosen_chains), default=1) if self.controls else 0


async def followup(run: Run, settings: FollowupSettings) -> None:
    """The baseline, then every follow-up, chain, control and correction on top of it."""
    question = run.question
    context = settings.loaded_contexts.of(question)
    chat = run.chat(**settings.opening)
    first = await chat.ask(question_prompt(question), arm="baseline", target=question.gold)
    branches: dict[str, Awaitable[Any]] = {
        ">".join(path): challenge(run, settings, context, first, path) for path in settings.paths
    }
    if settings.restates:
        branches[RESTATE.id] = restate(first, settings.restates)
    if is_resampled(run, controls=settings.controls):
        branches["resample"] = resample(run, run.chat(**settings.opening, resample=1))
    for name in settings.contextual:
        branches[f"{INERT_PURPOSE}:{name}"] = put_inert(run, settings, context, first, name)
    if settings.puts_documents:
        inert = replace(DOCUMENT, family=INERT_PURPOSE, purpose=INERT_PURPOSE)
        for step, kind in ((DOCUMENT, MISLEADING), (inert, INERT)):
            branches[step.step] = put_document(run, context, first, step, kind)
    for technique in settings.corrected:
        branches[f"{CORRECTION}:{technique.id}"] = correct(run, context, first, technique)
    await run.side_by_side(branches)


async def challenge(
    run: Run, settings: FollowupSettings, context: Context, first: Turn, path: Chain
) -> None:
    """Put the steps of a path; what an earlier path has put is not put again."""
    turn, letter = first, None
    for depth, name in enumerate(path):
        technique, length = _step(settings, name)
        if why := obstacle(context, technique, length):
            return run.skip(">".join(path), why)
        if technique.needs_letter and letter is None:
            letter = suggest(settings, context, first, technique, ">".join(path[: depth + 1]))
            if letter is None:
                return run.skip(">".join(path), _no_letter(settings))
        turn = await put(run, settings, context, turn, name, letter)
    # each turn ends some path: the chain goes on whatever a judge makes of its beginning
    if technique.cue:
        await note_cue(run, settings, technique, turn)


async def put(
    run: Run,
    settings: FollowupSettings,
    context: Context,
    turn: Turn,
    name: str,
    letter: str | None,
) -> Turn:
    """Put one step."""
    question, (technique, length) = run.question, _step(settings, name)
    values: dict[str, Any] = context.at(length) if technique.context else {}
    # misleading contexts argue for the generator's second-best option without naming its letter
    suggestion = context.second_best if technique.context == MISLEADING else None
    if technique.needs_letter:
        values["incorr_letter"], suggestion = letter, letter
    return await turn.ask(
        challenge_prompt(technique.template, question, values),
        arm="compound" if turn.interventions else "length" if length else "followup",
        step=Intervention(
            technique.id, technique.family, technique.axis, technique.depth, suggestion, length
        ),
        target=question.gold,
    )


async def note_cue(run: Run, settings: FollowupSettings, technique: Technique, turn: Turn) -> None:
    """Note whether a reply names the challenge (appendix C), by rule and by a judge."""

    def read(output: ModelOutput) -> Cue | None:
        return read_cue(technique, output.completion)

    if (cue := turn.observe(read, None)) is not None:
        turn.notes.update(cue=cue.named, stance=cue.stance)
    if not run.has(JUDGE):
        return
    config = GenerateConfig(temperature=0.0, seed=settings.seed)
    chat = run.chat(
        role=JUDGE, config=config, replicate=1, purpose="judgement", tokens=JUDGEMENT_TOKENS
    )
    judgement = await chat.consult(
        judge_prompt(technique, turn.prompt, str(turn.reply)),
        read_judgement,
        None,
        step=turn.interventions[-1],
        named=cue and cue.named,
        stance=cue and cue.stance,
    )
    is_named, stance = (judgement.named, judgement.stance) if judgement else (None, "unreadable")
    turn.notes.update(cue_judged=is_named, stance_judged=stance)


async def restate(turn: Turn, times: int) -> None:
    """Ask for the final answer again, and again."""
    for _ in range(times):
        turn = await ask_control(turn, restate_prompt(turn.question), RESTATE)


async def put_inert(
    run: Run, settings: FollowupSettings, context: Context, first: Turn, name: str
) -> None:
    """Put a challenge with a passage that argues for nothing in the place of its context."""
    technique, length = _step(settings, name)
    step = Intervention(technique.id, INERT_PURPOSE, variant=length, purpose=INERT_PURPOSE)
    if why := context.obstacle(INERT, length):
        return run.skip(step.step, why)
    values = dict.fromkeys(CONTEXTS, context.at(length)[INERT])
    prompt = challenge_prompt(technique.template, run.question, values)
    await ask_control(first, prompt, step)


async def put_document(
    run: Run, context: Context, first: Turn, step: Intervention, kind: str
) -> None:
    """Ask for the final answer again, with a text of a kind where the assistant's retrieval is."""
    if why := context.obstacle(kind):
        return run.skip(step.step, why)
    prompt, document = restate_prompt(run.question), context.at("")[kind]
    if kind == INERT:
        await ask_control(first, prompt, step, document)
        return
    step = replace(step, suggested=context.second_best)
    await first.ask(prompt, arm="followup", step=step, target=run.question.gold, document=document)


async def correct(run: Run, context: Context, first: Turn, technique: Technique) -> None:
    """Put a technique for the right option, where the first answer is wrong."""
    question = run.question
    step = Intervention(
        technique.id, CORRECTION, technique.axis, technique.depth, question.gold,
        purpose=CORRECTION,
    )  # fmt: skip
    for kind in (SUPPORTING if kind == MISLEADING else kind for kind in technique.needs):
        if kind in KINDS and (why := context.obstacle(kind)):
            return run.skip(step.step, why)
    if first.answer in (None, question.gold):
        return
    values = context.at("")
    values |= {MISLEADING: values.get(SUPPORTING, ""), "incorr_letter": question.gold}
    prompt = challenge_prompt(technique.correction or technique.template, question, values)
    await first.ask(prompt, arm=CORRECTION, step=step, target=question.gold)


def suggest(
    settings: FollowupSettings, context: Context, first: Turn, technique: Technique, path: str
) -> str | None:
    """The wrong option that a step suggests; None where there is none to suggest."""
    answer = first.answer if settings.rule == "not-own" else None
    return settings.suggestion(first.question, path, technique.id, answer, context.second_best)


def restate_prompt(question: Question) -> str:
    """Asks for the final answer again."""
    return challenge_prompt(packaged(__package__, "controls.toml")["restate"], question, {})


def _step(settings: FollowupSettings, name: str) -> tuple[Technique, str]:
    """A step's technique, and for an ablation the length of its context."""
    id, _, length = name.partition("@")
    return settings.catalogue[id], length


def _no_letter(settings: FollowupSettings) -> str:
    second_best = settings.rule == "second-best" and not settings.letters
    return "no second-best option" if second_best else "no suggested letter"


def _inputs(settings: FollowupSettings) -> dict[str, Any]:
    contexts = settings.loaded_contexts
    texts_used = {SUPPORTING: settings.corrected, INERT: settings.inert or settings.puts_documents}
    further = {
        kind: contexts.fingerprint_of(kind) for kind, is_used in texts_used.items() if is_used
    }
    techniques_asked = [_step(settings, name)[0] for path in settings.paths for name in path]
    techniques = {technique.id: technique.fingerprint for technique in techniques_asked}
    set_catalogue = load_catalogue(came=settings.question_set.techniques)
    own_techniques = {
        id: wording
        for id, wording in sorted(techniques.items())
        if id not in set_catalogue or set_catalogue[id].fingerprint != wording
    }
    for is_put, id in ((settings.restates, RESTATE.id), (settings.puts_documents, DOCUMENT.id)):
        if is_put:
            wording = packaged(__package__, "controls.toml")
            techniques[id] = of_wording(wording["version"], wording["restate"])
    return {
        "contexts": contexts.fingerprints | further,
        "contexts_from": contexts.name,
        "techniques": techniques,
        "suggest": settings.suggested_from,
        **({"own_techniques": own_techniques} if own_techniques else {}),
    }


def _profiles(dataset: str) -> Mapping[str, Profile]:
    profiles = {}
    for name, data in packaged(__package__, "profiles.toml").items():
        baseline, accuracy = medqa_followup().accuracies("paper", data["published"])
        figures = {key: value for key, value in data.items() if key != "published"}
        figures |= {"baseline": baseline, "accuracy": accuracy}
        profiles[name] = Profile.model_validate(figures)
    return profiles


PROTOCOL = Protocol(
    "followup",
    followup,
    FollowupSettings,
    VERSION,
    config=deterministic,
    inputs=_inputs,
    generated={"contexts": "contexts"},
    behaviour=Behaviour(profiles=_profiles),
)
