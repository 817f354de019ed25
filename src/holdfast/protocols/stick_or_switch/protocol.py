"""Stick-or-Switch: options are offered one after another (Guo et al., 2026).

A question's options are partitioned into a binary choice and further offers (section 3.1). In
positive conviction, the right answer is the target, and one distractor after another is offered. In
negative conviction, the right answer is withheld, and ``None of the Above`` is the target.
Flexibility offers the right answer after such an abstention. The baselines show all options at
once, with the right answer or with ``None of the Above`` in its place. The controls of both
convictions repeat the first two options as often as others are offered.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inspect_ai.model import GenerateConfig

from holdfast.challenges.suggestion import draw
from holdfast.challenges.texts import fill, option_lines
from holdfast.challenges.texts import system_prompt as system_message
from holdfast.dialogue.conversation import Run, Turn
from holdfast.dialogue.turn import Intervention
from holdfast.errors import counted
from holdfast.files import packaged
from holdfast.protocols.few_shot import (
    ABSTAIN,
    BANK,
    LOGPROBS,
    SHOTS,
    as_example,
    choice_prompt,
    choose_exemplars,
    displayed,
    displayed_beliefs,
    in_play,
    says_none,
    shuffled,
)
from holdfast.protocols.protocol import Protocol
from holdfast.protocols.settings import TestedSettings, setting
from holdfast.questions.question import LETTERS, Question

from .convictions import CONTROLS
from .simulated import BEHAVIOUR

ARMS = ("single-shot", "positive", "single-shot-abstain", "negative")
"""Arms with a separate first turn; the last two withhold the right answer."""

CONTROL_OF = {conviction: control for control, conviction in CONTROLS.items()}
"""Arm of the control of each conviction."""

TRUE = ("single-shot", "positive", "positive-control")
"""Arms whose target is the right option."""


@dataclass(frozen=True)
class StickOrSwitchSettings(TestedSettings):
    """Stick-or-Switch: does a right answer hold, and does an abstention give way to it?"""

    exemplars: str = setting(
        BANK,
        "few-shot exemplars: ``bank`` (the bundled bank's own), or a file of a development split",
        input=True,
    )
    shots: int = setting(3, "number of exemplars shown", at_least=0, noun=SHOTS)
    system_prompt: str = setting(
        "none", "``none``, ``expert`` (MedQA-Followup, appendix A.1), or a text"
    )
    seed: int = setting(
        42,
        "seed of the orders in which options are offered and shown, and of the model's sampling",
    )
    beliefs: bool = setting(
        False, "whether to record the probability of each option in play after every turn"
    )
    exemplar_answers: str = setting(
        "balanced",
        "``balanced`` (the exemplars' right answer is equally often at each position, and none of "
        "the above is neither always right nor always last), or ``paper`` (as in the source)",
        choices=("balanced", "paper"),
    )
    controls: bool = setting(
        True,
        "whether to repeat the first two options, as a control of the offers",
        grows=True,
    )

    @cached_property
    def exemplar_draw(self) -> tuple[tuple[Question, ...], int]:
        """The exemplars, and the number of exemplars skipped because they are also asked."""
        return choose_exemplars(self.exemplars, self.shots, self.seed, self.question_set)

    @property
    def chosen_exemplars(self) -> tuple[Question, ...]:
        """The exemplars."""
        return self.exemplar_draw[0]

    @property
    def balanced(self) -> bool:
        """Whether the exemplars reveal neither a position nor an abstention."""
        return self.exemplar_answers == "balanced"

    def notes(self) -> list[str]:
        """Notes on exemplars that are among the questions."""
        overlapping = self.exemplar_draw[1]
        if not overlapping:
            return []
        return [f"{counted(overlapping, 'exemplar')} skipped: also among the questions"]

    def order(self, question: Question) -> tuple[str, ...]:
        """Return the distractors in the order of the offers."""
        return shuffled(question.distractors, self.seed, question.content_hash, "order")

    def pair(self, question: Question, target: str) -> tuple[str, ...]:
        """Return target and first distractor in a random order, so that position is not a cue."""
        pair = (target, self.order(question)[0])
        return shuffled(pair, self.seed, question.content_hash, "pair", target)

    @property
    def shows_examples(self) -> bool:
        """Whether exemplars stand before the question."""
        return self.shots > 0

    def examples(self, arm: str, question: Question) -> list[tuple[str, str]]:
        """Return the exemplars before a question, as user and assistant turns."""
        versions = self.versions[arm]
        key = (self.seed, question.content_hash, "exemplars", arm)
        return versions[int(draw([str(n) for n in range(len(versions))], *key))]

    @cached_property
    def versions(self) -> dict[str, list[list[tuple[str, str]]]]:
        """Versions of the exemplars by arm, one of which each question gets.

        The source has one version, in the format of the arm's first turn. It reveals that an
        abstention is always right and always last. Balanced, there are as many versions as options
        shown. Over these, each exemplar has its right answer equally often at every position. If
        ``None of the Above`` is shown, it is right as often as any option.
        """
        if not self.balanced:
            return {
                arm: [
                    [
                        as_example(exemplar, *self.first(arm, exemplar))
                        for exemplar in self.chosen_exemplars
                    ]
                ]
                for arm in ARMS
            }
        return {
            arm: [
                [
                    self._balance_exemplar(arm, exemplar, version + n)
                    for n, exemplar in enumerate(self.chosen_exemplars)
                ]
                for version in range(math.lcm(*self._options_of(arm)))
            ]
            for arm in ARMS
        }

    def _options_of(self, arm: str) -> list[int]:
        return [len(self.first(arm, exemplar)[0]) for exemplar in self.chosen_exemplars]

    def _balance_exemplar(self, arm: str, exemplar: Question, turn: int) -> tuple[str, str]:
        """Return a version of an exemplar; versions rotate the right answer and its position."""
        letters, right = self.first(arm, exemplar)
        n, key = len(letters), (self.seed, exemplar.content_hash, arm)
        if right == ABSTAIN and turn % n:
            right = exemplar.gold
            # replaces a distractor
            distractors = [letter for letter in letters if letter != ABSTAIN]
            letters = (right, ABSTAIN, *distractors[: n - 2])
        alternatives = list(
            shuffled([letter for letter in letters if letter != right], *key, turn % n)
        )
        # positions rotate independently, so that they do not reveal the right answer
        places = shuffled([str(place) for place in range(n)], *key, "places")
        alternatives.insert(int(places[turn % n]), right)
        return as_example(exemplar, alternatives, right)

    def first(self, arm: str, question: Question) -> tuple[tuple[str, ...], str]:
        """Return the options that the first turn of an arm shows, and the right one."""
        match arm:
            case "single-shot":
                return tuple(question.options), question.gold
            case "single-shot-abstain":
                letters = (*question.distractors, ABSTAIN)
                key = (self.seed, question.content_hash, "abstain")
                return (shuffled(letters, *key) if self.balanced else letters), ABSTAIN
            case "positive":
                return self.pair(question, question.gold), question.gold
            case _:
                return self.pair(question, ABSTAIN), ABSTAIN


async def stick_or_switch(run: Run, settings: StickOrSwitchSettings) -> None:
    """Run all possible arms concurrently."""
    arms: Sequence[str] = ARMS
    if says_none(run.question):
        arms = ARMS[:2]
        for arm in ("negative", "flexible-correct", "single-shot-abstain"):
            run.skip(arm, "an option already says none of the above")
    await run.side_by_side({arm: ask_arm(run, settings, arm) for arm in arms})


async def ask_arm(run: Run, settings: StickOrSwitchSettings, arm: str) -> None:
    """Run a baseline, or offers until the target is given up or no distractor is left."""
    question = run.question
    chat = run.chat(
        system_message(settings.system_prompt),
        config=LOGPROBS if settings.beliefs else None,
        seed=settings.seed,
        examples=settings.examples(arm, question),
    )
    letters, target = settings.first(arm, question)
    if arm.startswith("single-shot"):
        await show(settings, chat, arm, letters, target)
        return
    first, *later = settings.order(question)
    turn = await show(settings, chat, arm, letters, target, offered_option=first)
    if not turn.kept:
        return
    branches = {"offer": offer(settings, turn, arm, letters, target, later)}
    if arm == "negative":
        branches["flexible"] = offer_gold(settings, turn, letters)
    if settings.controls and later:
        branches["again"] = show_again(settings, turn, arm, letters, target, first, len(later))
    await run.side_by_side(branches)


async def offer(
    settings: StickOrSwitchSettings,
    turn: Turn,
    arm: str,
    letters: tuple[str, ...],
    target: str,
    distractors: Sequence[str],
) -> None:
    """Run a conviction: offer one distractor after another until the target is given up."""
    for number, letter in enumerate(distractors):
        if number and not turn.kept:
            return
        letters = (*letters, letter)
        turn = await show(
            settings, turn, arm, letters, target, held_option=target, offered_option=letter
        )


async def offer_gold(settings: StickOrSwitchSettings, turn: Turn, letters: tuple[str, ...]) -> None:
    """Run the flexibility branch: offer the right answer after an abstention."""
    gold = turn.question.gold
    await show(settings, turn, "flexible-correct", (*letters, gold), gold, ABSTAIN, gold)


async def show_again(
    settings: StickOrSwitchSettings,
    turn: Turn,
    arm: str,
    letters: tuple[str, ...],
    target: str,
    alternative: str,
    times: int,
) -> None:
    """Run the control of a conviction: repeat the first two options instead of offering others."""
    for number in range(times):
        if number and not turn.kept:
            return
        turn = await show(settings, turn, CONTROL_OF[arm], letters, target, target, alternative)


async def show(
    settings: StickOrSwitchSettings,
    turn: Turn,
    arm: str,
    letters: tuple[str, ...],
    right: str,
    held_option: str | None = None,
    offered_option: str | None = None,
) -> Turn:
    """Ask one turn of an arm.

    Args:
        settings: the settings.
        turn: the conversation so far.
        arm: the arm.
        letters: all options in play in the order of display, a new one last.
        right: the option that is right here.
        held_option: the current answer, None at the first turn.
        offered_option: the option that is offered, None without an offer.
    """
    question, control = turn.question, arm in CONTROLS
    decision, step = None, None
    context: dict[str, Any] = {"offered": offered_option} if control else {}
    if held_option is not None and offered_option is not None:
        decision = LETTERS[letters.index(held_option)], LETTERS[letters.index(offered_option)]
        prompt = (control_prompt if control else alternative_prompt)(question, letters)
    else:
        prompt = choice_prompt(question, letters)
    if control:
        step = Intervention("again", "control", "", "deep", offered_option)
    elif offered_option is not None:
        step = Intervention("offer", "stick-or-switch", "indirect", "deep", offered_option)
    turn = await turn.ask(
        prompt,
        arm=arm,
        step=step or (),
        target=question.gold if arm in TRUE else ABSTAIN,
        choice=displayed(question, letters, decision),
        notes={"gold": right, "shown": ",".join(letters)},
        shown=letters,
        held=held_option,
        right=right,
        **context,
    )
    if settings.beliefs:
        nothing: dict[str, float] = {}
        beliefs = turn.observe(
            lambda output: displayed_beliefs(output, question, letters, decision), nothing
        )
        answer = turn.extraction.answer if turn.extraction else None
        turn.notes.update(
            p_gold=beliefs.get(right),
            p_suggested=beliefs.get(offered_option or ""),
            p_answer=beliefs.get(answer or ""),
        )
    return turn


def _wording() -> Mapping[str, Any]:
    return packaged(__package__, "prompts.toml")


def alternative_prompt(question: Question, letters: Sequence[str]) -> str:
    """Return the prompt of a later turn, which offers the last option."""
    label, text = list(in_play(question, letters).items())[-1]
    return fill(_wording()["alternative"], {"option": f"{label}. {text}"})


def control_prompt(question: Question, letters: Sequence[str]) -> str:
    """Return the prompt of a control's later turn, which repeats the first two options."""
    return fill(_wording()["again"], {"options": option_lines(in_play(question, letters))})


PROTOCOL = Protocol(
    "stick-or-switch",
    stick_or_switch,
    StickOrSwitchSettings,
    int(_wording()["version"]),
    # section 4.2: the models' default temperature
    config=lambda settings: GenerateConfig(seed=settings.seed),
    inputs=lambda settings: {
        "exemplars": [question.content_hash[:16] for question in settings.chosen_exemplars]
    },
    behaviour=BEHAVIOUR,
    reply_tokens=10,
)
