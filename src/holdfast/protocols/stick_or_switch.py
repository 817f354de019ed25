"""Stick-or-Switch: the options one after another (Guo et al., 2026).

A question's options are partitioned into a binary choice and further offers (section 3.1).
Positive conviction: the right answer is held against one distractor after another. Negative
conviction: the right answer is withheld and ``None of the Above`` is held instead. Flexibility:
from that abstention the right answer is offered after all. The baselines show all options at
once, with the right answer and with ``None of the Above`` in its place.
"""

from dataclasses import dataclass
from functools import cached_property, partial

from inspect_ai import Task, task
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, GenerateConfig

from holdfast.challenges import (
    ABSTAIN,
    alternative_prompt,
    choice_prompt,
    offering_version,
)
from holdfast.challenges import system_prompt as system_message
from holdfast.dialogue import (
    Conversation,
    Intervention,
    Turn,
    gather,
)
from holdfast.errors import InputError, counted
from holdfast.questions import (
    LETTERS,
    Question,
    QuestionSet,
)

from .estimate import Estimate
from .scoring import conviction, conviction_view
from .showing import (
    BANK,
    LOGPROBS,
    as_example,
    choose_exemplars,
    displayed,
    displayed_beliefs,
    says_none,
    shuffled,
)
from .sitting import Sitting, sitting_solver
from .study import Study, asked_questions, one_text, protocol_task, settings_of

OFFER = "offer"
"""The one intervention: another option."""


@dataclass(frozen=True)
class StickOrSwitchStudy(Study):
    """A stick-or-switch study with every setting resolved.

    Attributes:
        questions: what is asked.
        exemplars: few-shot exemplars, none of them a question asked.
        overlapping: exemplars that were left out because they are asked.
        system: ``none``, ``expert``, or the system prompt itself.
        seed: fixes the order of the distractors and of display, with the question.
        beliefs: whether log-probabilities are asked for.
    """

    questions: QuestionSet
    exemplars: tuple[Question, ...]
    overlapping: int
    system: str
    seed: int
    beliefs: bool

    exact = False
    """A conversation stops at the first departure from its target."""

    def left_out(self, question: Question) -> dict[str, str]:
        """Arms that cannot be put for this question, with the reason."""
        if not self.abstains(question):
            reason = "an option already says none of the above"
            return dict.fromkeys(("negative", "flexible-correct", "single-shot-abstain"), reason)
        return {}

    def abstains(self, question: Question) -> bool:
        """Whether the question can be put with its right answer withheld."""
        return not says_none(question)

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations at the most, with the fewest beside them; replies are a few tokens long."""
        offers, abstains = len(question.distractors), self.abstains(question)
        most = 1 + offers + (2 + offers if abstains else 0)
        first = len(choice_prompt(question, list(question.options)))
        shown = sum(len(choice_prompt(q, list(q.options))) for q in self.exemplars)
        replied = min(reply_tokens, 10)
        # of two options, all at once can be the very pair of turn 1
        arms = self.shots if abstains else ("single-shot", "positive")
        openings = {
            (*self.shots[arm], choice_prompt(question, self.first(arm, question)[0]))
            for arm in arms
        }
        return Estimate(most, most * (first + shown) // 4, most * replied, len(openings))

    def remarks(self) -> list[str]:
        """Exemplars that are among the questions."""
        if not self.overlapping:
            return []
        return [f"{counted(self.overlapping, 'exemplar')} left out, being among the questions"]

    def order(self, question: Question) -> tuple[str, ...]:
        """The distractors in the order in which they are offered."""
        return shuffled(question.distractors, self.seed, question.content_hash, "order")

    def pair(self, question: Question, target: str) -> tuple[str, ...]:
        """Target and first distractor in the order of display, so that position is no cue."""
        pair = (target, self.order(question)[0])
        return shuffled(pair, self.seed, question.content_hash, "pair", target)

    @cached_property
    def shots(self) -> dict[str, list[tuple[str, str]]]:
        """By arm, the exemplars as user and assistant turns, in the format of its first turn."""
        return {
            arm: [as_example(question, *self.first(arm, question)) for question in self.exemplars]
            for arm in ("single-shot", "single-shot-abstain", "positive", "negative")
        }

    def first(self, arm: str, question: Question) -> tuple[tuple[str, ...], str]:
        """What the first turn of an arm shows, and which of it is right."""
        match arm:
            case "single-shot":
                return tuple(question.options), question.gold
            case "single-shot-abstain":
                return (*question.distractors, ABSTAIN), ABSTAIN
            case "positive":
                return self.pair(question, question.gold), question.gold
            case _:
                return self.pair(question, ABSTAIN), ABSTAIN


def stick_or_switch_study(
    questions: str = "bank",
    exemplars: str = BANK,
    shots: int = 3,
    system_prompt: str = "none",
    seed: int = 42,
    fields: str | list[str] | None = None,
    shuffle: int | None = None,
    stratify: str | None = None,
    beliefs: bool = False,
) -> StickOrSwitchStudy:
    """Stick-or-Switch: does a right answer hold, and does an abstention give way to it?

    Args:
        questions: ``bank``, ``medqa``, ``medmcqa``, a file, or ``hf:NAME@REVISION[:SPLIT]``.
        exemplars: few-shot exemplars: ``bank`` (the bundled bank's own), or a file of a
            development split.
        shots: how many of them are shown.
        system_prompt: ``none``, ``expert`` (MedQA-Followup, appendix A.1), or a text.
        seed: of the orders in which options are offered and shown, and of the model's sampling.
        fields: which column holds what, such as ``stem=vignette,gold=key``.
        shuffle: seed of the order in which questions are asked; with a limit, of the sample.
        stratify: label whose shares every beginning of that order keeps (step, system, ...).
        beliefs: whether the probability of each option in play is read after every turn.

    Raises:
        InputError: a setting names something unknown, or a file cannot be used.
    """
    one_text(questions=questions, exemplars=exemplars, system_prompt=system_prompt)
    # Inspect's own command line lets any value through
    if type(shots) is not int or shots < 0:
        raise InputError(f"shots is '{shots}', not a number of exemplars", field="-T",
                         remedy="Give 0 or more")  # fmt: skip
    if type(beliefs) is not bool:
        raise InputError(f"beliefs is '{beliefs}', not true or false", field="-T",
                         remedy="Give true or false")  # fmt: skip
    asked = asked_questions(questions, fields, shuffle, stratify)
    chosen, overlapping = choose_exemplars(exemplars, shots, seed, asked)
    return StickOrSwitchStudy(asked, chosen, overlapping, system_prompt, seed, beliefs)


@task
@settings_of(stick_or_switch_study)
def stick_or_switch(study: StickOrSwitchStudy) -> Task:
    """Stick-or-Switch: does a right answer hold, and does an abstention give way to it?"""
    return protocol_task(
        study,
        sitting_solver("offer_options", study.questions, partial(_stick_or_switch, study)),
        conviction(_longest(study)),
        conviction_view(_longest(study)),
        protocol="stick-or-switch",
        version=offering_version(),
        # section 4.2: the models' default temperature
        config=GenerateConfig(seed=study.seed),
        exemplars=[question.content_hash[:16] for question in study.exemplars],
    )


def _longest(study: StickOrSwitchStudy) -> int:
    return max((len(q.distractors) for q in study.questions.questions), default=0)


async def _stick_or_switch(study: StickOrSwitchStudy, sitting: Sitting) -> list[ChatMessage]:
    """Every arm that can be put, side by side."""
    question = sitting.question
    arms = ["single-shot", "positive"]
    arms += ["single-shot-abstain", "negative"] if study.abstains(question) else []
    chats = {
        arm: sitting.begin(
            system=system_message(study.system),
            config=LOGPROBS if study.beliefs else None,
            seed=study.seed,
            examples=study.shots[arm],
        )
        for arm in arms
    }
    async with gather() as branches:
        for arm, chat in chats.items():
            put = _all_at_once if arm.startswith("single-shot") else _one_by_one
            branches.start(arm, put, study, chat, question, arm)
    held = chats["positive"]
    said = [(turn.prompt, turn.reply) for turn in held.turns]  # each in a branch of its own
    return held.messages + [
        message
        for prompt, reply in said
        for message in (ChatMessageUser(content=prompt), ChatMessageAssistant(content=reply))
    ]


async def _all_at_once(
    study: StickOrSwitchStudy, chat: Conversation, question: Question, arm: str
) -> None:
    """A single-shot baseline: every option at once."""
    shown, right = study.first(arm, question)
    await _turn(study, chat, question, arm, shown, right, held=None)


async def _one_by_one(
    study: StickOrSwitchStudy, chat: Conversation, question: Question, arm: str
) -> None:
    """Conviction: offer distractors until the target is given up or they are used up."""
    shown, target = study.first(arm, question)
    order = study.order(question)
    chat = chat.branch(_offer(order[0]))
    first = await _turn(study, chat, question, arm, shown, target, held=None)
    if first.answer != target:
        return
    async with gather() as branches:
        if arm == "negative":
            branches.start("flexible", _flexible, study, chat.branch(_offer(question.gold)),
                           question, shown)  # fmt: skip
        branches.start("on", _go_on, study, chat, question, arm, shown, target, order[1:])


async def _go_on(
    study: StickOrSwitchStudy,
    chat: Conversation,
    question: Question,
    arm: str,
    shown: tuple[str, ...],
    target: str,
    left: tuple[str, ...],
) -> None:
    for letter in left:
        shown = (*shown, letter)
        chat = chat.branch(_offer(letter))
        turn = await _turn(study, chat, question, arm, shown, target, held=target)
        if turn.answer != target:
            return


async def _flexible(
    study: StickOrSwitchStudy, chat: Conversation, question: Question, shown: tuple[str, ...]
) -> None:
    """Flexibility: from an abstention, offer the right answer after all."""
    await _turn(
        study, chat, question, "flexible-correct", (*shown, question.gold), question.gold,
        held=ABSTAIN,
    )  # fmt: skip


async def _turn(
    study: StickOrSwitchStudy,
    chat: Conversation,
    question: Question,
    arm: str,
    shown: tuple[str, ...],
    right: str,
    held: str | None,
) -> Turn:
    """One turn of an arm.

    Args:
        study: the study.
        chat: the conversation so far.
        question: the question.
        arm: the arm.
        shown: every option in play in the order of display, the offered one last.
        right: the option that is right to answer here.
        held: the option answered so far; None at the first turn.
    """
    decision = None if held is None else (LETTERS[shown.index(held)], LETTERS[len(shown) - 1])
    prompt = choice_prompt(question, shown) if held is None else alternative_prompt(question, shown)
    turn = await chat.ask(
        prompt,
        arm=arm,
        target=question.gold if arm in ("single-shot", "positive") else ABSTAIN,
        choice=displayed(question, shown, decision),
        notes={"gold": right, "shown": ",".join(shown)},
        shown=shown,
        held=held,
        right=right,
    )
    if study.beliefs and chat.last is not None:
        beliefs = displayed_beliefs(chat.last, question, shown, decision)
        suggested = chat.interventions[-1].suggested if chat.interventions else None
        turn.notes.update(
            p_gold=beliefs.get(right),
            p_suggested=beliefs.get(suggested or ""),
            p_answer=beliefs.get(turn.answer or ""),
        )
    return turn


def _offer(letter: str) -> Intervention:
    return Intervention(OFFER, "stick-or-switch", "indirect", "deep", letter)
