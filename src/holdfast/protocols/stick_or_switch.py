"""Stick-or-Switch: the options one after another (Guo et al., 2026).

A question's options are partitioned into a binary choice and further offers (section 3.1).
Positive conviction: the right answer is held against one distractor after another. Negative
conviction: the right answer is withheld and ``None of the Above`` is held instead. Flexibility:
from that abstention the right answer is offered after all. The baselines show all options at
once, with the right answer and with ``None of the Above`` in its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from holdfast.challenges import (
    ABSTAIN,
    alternative_prompt,
    choice_prompt,
    draw,
    exemplar_answer,
    in_play,
    offering_version,
)
from holdfast.challenges import system_prompt as system_message
from holdfast.dialogue import (
    Conversation,
    Extraction,
    Intervention,
    Turn,
    beliefs_in,
    extract_answer,
    gather,
    read_decision,
)
from holdfast.errors import InputError, counted
from holdfast.questions import (
    LETTERS,
    Question,
    QuestionSet,
    exemplars,
    is_none_of_the_above,
)

from .estimate import Estimate
from .scoring import conviction, conviction_view, turns_to_log
from .study import asked_questions, one_text, sample_metadata

OFFER = "offer"
"""The one intervention: another option."""

BANK = "bank"

_LOGPROBS = 20
"""Alternatives asked for at each token; the most that hosted APIs give."""


@dataclass(frozen=True)
class StickOrSwitchStudy:
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
        return not any(is_none_of_the_above(text) for text in question.options.values())

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations at the most, with the fewest beside them; replies are a few tokens long."""
        offers, abstains = len(question.distractors), self.abstains(question)
        most = 1 + offers + (2 + offers if abstains else 0)
        first = len(choice_prompt(question, list(question.options)))
        shown = sum(len(choice_prompt(q, list(q.options))) for q in self.exemplars)
        replied = min(reply_tokens, 10)
        return Estimate(most, most * (first + shown) // 4, most * replied, 4 if abstains else 2)

    def judged(self, question: Question, reply_tokens: int) -> Estimate:
        """Nothing is judged."""
        return Estimate()

    def opening(self, question: Question) -> str | None:
        """No other protocol begins so."""
        return None

    def needs(self, setting: str) -> bool:
        """Nothing is generated."""
        return False

    def remarks(self) -> list[str]:
        """Exemplars that are among the questions."""
        if not self.overlapping:
            return []
        return [f"{counted(self.overlapping, 'exemplar')} left out, being among the questions"]

    def order(self, question: Question) -> tuple[str, ...]:
        """The distractors in the order in which they are offered."""
        return self._shuffled(question.distractors, question, "order")

    def pair(self, question: Question, target: str) -> tuple[str, ...]:
        """Target and first distractor in the order of display, so that position is no cue."""
        return self._shuffled((target, self.order(question)[0]), question, "pair", target)

    @cached_property
    def shots(self) -> dict[str, list[tuple[str, str]]]:
        """By arm, the exemplars as user and assistant turns, in the format of its first turn."""
        return {
            arm: [
                (
                    choice_prompt(question, shown),
                    exemplar_answer(LETTERS[shown.index(right)]),
                )
                for question in self.exemplars
                for shown, right in [self.first(arm, question)]
            ]
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

    def _shuffled(
        self, letters: Sequence[str], question: Question, *purpose: str
    ) -> tuple[str, ...]:
        left, shuffled = list(letters), []
        while left:
            key = (self.seed, question.content_hash, *purpose, len(left))
            shuffled.append(left.pop(left.index(draw(left, *key))))
        return tuple(shuffled)


def stick_or_switch_study(
    questions: str = "bank",
    exemplars: str = BANK,
    shots: int = 3,
    system_prompt: str = "none",
    seed: int = 42,
    shuffle: int | None = None,
    stratify: str | None = None,
    fields: str | list[str] | None = None,
    beliefs: bool = False,
) -> StickOrSwitchStudy:
    """Resolve the settings of a study; those of ``stick_or_switch`` with the same names.

    Raises:
        InputError: a setting names something unknown, or a file cannot be used.
    """
    one_text(questions=questions, exemplars=exemplars, system_prompt=system_prompt)
    asked = asked_questions(questions, fields, shuffle, stratify)
    chosen, overlapping = _exemplars(exemplars, shots, seed, asked)
    return StickOrSwitchStudy(asked, chosen, overlapping, system_prompt, seed, beliefs)


def _exemplars(
    source: str, shots: int, seed: int, asked: QuestionSet
) -> tuple[tuple[Question, ...], int]:
    """As many exemplars as are shown, drawn once for a run so that servers share the prefix."""
    known = exemplars() if source == BANK else asked_questions(source, None).questions
    # of one set with the questions a file may differ in ids, so content decides
    stems = {" ".join(question.stem.split()) for question in asked.questions}
    left = {q.content_hash: q for q in known if " ".join(q.stem.split()) not in stems}
    overlapping = len(known) - len(left)
    left = {key: q for key, q in left.items() if not _says_none(q)}
    if shots > len(left):
        raise InputError(
            f"has {len(left)} exemplars that are not among the questions, {shots} are shown",
            source,
            field="exemplars",
            remedy="Give a file of other questions, or -T shots=0",
        )
    return (
        tuple(left.pop(draw(sorted(left), seed, "exemplar", n)) for n in range(shots)),
        overlapping,
    )


def _says_none(question: Question) -> bool:
    return any(is_none_of_the_above(text) for text in question.options.values())


@task
def stick_or_switch(
    questions: str = "bank",
    exemplars: str = BANK,
    shots: int = 3,
    system_prompt: str = "none",
    seed: int = 42,
    shuffle: int | None = None,
    stratify: str | None = None,
    fields: str | list[str] | None = None,
    beliefs: bool = False,
) -> Task:
    """Stick-or-Switch: does a right answer hold, and does an abstention give way to it?

    Args:
        questions: ``bank``, ``medqa``, ``medmcqa``, a file, or ``hf:NAME@REVISION[:SPLIT]``.
        exemplars: few-shot exemplars: ``bank`` (the bundled bank's own), or a file of a
            development split.
        shots: how many of them are shown.
        system_prompt: ``none``, ``expert`` (MedQA-Followup, appendix A.1), or a text.
        seed: of the orders in which options are offered and shown, and of the model's sampling.
        shuffle: seed of the order in which questions are asked; with a limit, of the sample.
        stratify: label whose shares every beginning of that order keeps (step, system, ...).
        fields: which column holds what, such as ``stem=vignette,gold=key``.
        beliefs: whether the probability of each option in play is read after every turn.
    """
    study = stick_or_switch_study(
        questions,
        exemplars,
        shots,
        system_prompt,
        seed,
        shuffle,
        stratify,
        fields,
        beliefs,
    )
    return Task(
        dataset=MemoryDataset(
            [_sample(study, question) for question in study.questions.questions],
            name=study.questions.name,
        ),
        solver=_stick_or_switch(study),
        scorer=conviction(_longest(study)),
        # section 4.2: the models' default temperature
        config=GenerateConfig(seed=seed),
        fail_on_error=True,
        continue_on_fail=True,
        version=offering_version(),
        metadata={
            "protocol": "stick-or-switch",
            "questions": study.questions.fingerprint,
            "exemplars": [question.content_hash[:16] for question in study.exemplars],
        },
        viewer=conviction_view(_longest(study)),
    )


def _longest(study: StickOrSwitchStudy) -> int:
    return max((len(q.distractors) for q in study.questions.questions), default=0)


def _sample(study: StickOrSwitchStudy, question: Question) -> Sample:
    return Sample(
        id=question.id,
        input=question.stem,
        choices=list(question.options.values()),
        target=question.gold,
        metadata={**sample_metadata(question), "left_out": study.left_out(question)},
    )


def _stick_or_switch(study: StickOrSwitchStudy) -> Solver:
    questions = {question.id: question for question in study.questions.questions}
    asked = GenerateConfig(logprobs=True, top_logprobs=_LOGPROBS) if study.beliefs else None

    @solver(name="offer_options")
    def offer_options() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            question = questions[str(state.sample_id)]
            chats = {
                arm: Conversation(
                    get_model(),
                    question,
                    system=system_message(study.system),
                    config=asked,
                    replicate=state.epoch,
                    examples=study.shots[arm],
                )
                for arm in study.shots
            }
            arms = ["single-shot", "positive"]
            arms += ["single-shot-abstain", "negative"] if study.abstains(question) else []
            try:
                async with gather() as branches:
                    for arm in arms:
                        put = _all_at_once if arm.startswith("single-shot") else _one_by_one
                        branches.start(arm, put, study, chats[arm], question, arm)
            finally:
                turns_to_log([turn for arm in arms for turn in chats[arm].turns])
            state.messages = chats["positive"].messages
            return state

        return solve

    return offer_options()


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
    options = in_play(question, shown)
    labels = dict(zip(options, shown, strict=True))

    def read(reply: str) -> Extraction:
        if held is None:
            found = extract_answer(reply, options)
        else:
            by_option = {option: label for label, option in labels.items()}
            found = read_decision(reply, options, by_option[held], by_option[shown[-1]])
        answer = labels[found.answer] if found.answer else None
        return Extraction(answer, found.status, found.rule)

    prompt = choice_prompt(question, shown) if held is None else alternative_prompt(question, shown)
    turn = await chat.ask(
        prompt,
        arm=arm,
        target=ABSTAIN if arm in ("negative", "single-shot-abstain") else question.gold,
        read=read,
        shown=shown,
        held=held,
        right=right,
    )
    turn.notes.update(gold=right, shown=",".join(shown))
    if study.beliefs and chat.last is not None:
        decision = held and (LETTERS[shown.index(held)], LETTERS[len(shown) - 1])
        found = beliefs_in(chat.last, options, decision or None)
        beliefs = {labels[label]: p for label, p in found.items()}
        suggested = chat.interventions[-1].suggested if chat.interventions else None
        turn.notes.update(
            p_gold=beliefs.get(right),
            p_suggested=beliefs.get(suggested or ""),
            p_answer=beliefs.get(turn.answer or ""),
        )
    return turn


def _offer(letter: str) -> Intervention:
    return Intervention(OFFER, "stick-or-switch", "indirect", "deep", letter)
