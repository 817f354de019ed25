"""MedFuzz: an attacker rewrites the question until the answer turns (MedFuzz, section 3).

Algorithm 1: a question that the model answers right is modified by another model so that an
assumption of the examination no longer holds, while the right answer stays right. The model is
asked anew; if it still answers right, the attacker is shown its reasoning and tries again.
"""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from inspect_ai import Task, task
from inspect_ai.model import ChatMessage, GenerateConfig, Model

from holdfast.challenges import (
    Fault,
    Fuzz,
    again_fuzz_prompt,
    attack_prompt,
    faithfulness_prompt,
    fuzz_version,
    mentions,
    next_attack_prompt,
    question_prompt,
    read_faithfulness,
    read_fuzz,
    read_review,
    review_prompt,
)
from holdfast.challenges import system_prompt as system_message
from holdfast.dialogue import Conversation, Intervention, Turn, beliefs_in
from holdfast.errors import InputError
from holdfast.questions import Question, QuestionSet

from .estimate import Estimate
from .fuzzing import attackers_conversation, modify
from .preparing import AGAIN
from .roles import ATTACKER, JUDGE, bound
from .scoring import attacks, attacks_view
from .sitting import Sitting, sitting_solver
from .study import Study, asked_questions, history, one_text, protocol_task, settings_of

FUZZ = "fuzz"
"""The one intervention: a modified question."""

ADDED_TOKENS = 160
"""What a modification adds to a question, at most (120 words)."""


@dataclass(frozen=True)
class MedFuzzStudy(Study):
    """A MedFuzz study with every setting resolved.

    Attributes:
        questions: what is asked.
        attempts: attacks on one answer at the most, K.
        assumption: what the attacker is to violate, its name or a text.
        confidence: whether the attacker is told how sure the model was.
        system: ``expert``, ``none``, or the system prompt itself.
        seed: of the sampling of the first replicate.
        history: whether hidden reasoning of earlier turns is sent again.
    """

    questions: QuestionSet
    attempts: int
    assumption: str
    confidence: bool
    system: str
    seed: int
    history: GenerateConfig

    epochs = 5
    """Replicates, R (section 4)."""

    required = (ATTACKER,)
    exact = False

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """Generations of one replicate at the most; one where the first answer is wrong."""
        n = 1 + self.attempts
        system = len(system_message(self.system) or "") // 4
        asked = len(question_prompt(question)) // 4 + system
        return Estimate(n, n * asked + self.attempts * ADDED_TOKENS, n * reply_tokens, 1)

    def helped(self, question: Question, reply_tokens: int) -> dict[str, Estimate]:
        """Attacks of one replicate with every try, and the judgement of a success."""
        tries = self.attempts * (1 + AGAIN)
        first = len(attack_prompt(question, "", "", None, self.assumption)) // 4
        said = len(question.stem) // 4 + ADDED_TOKENS + 200
        # each try reads all earlier ones
        read = sum(first + try_number * (said + reply_tokens) for try_number in range(tries))
        judged = len(question.stem) // 4 + ADDED_TOKENS + reply_tokens + 200
        return {
            ATTACKER: Estimate(tries, read, tries * said, 0),
            JUDGE: Estimate(2, 2 * judged, 40, 0),
        }


def medfuzz_study(
    questions: str = "bank",
    attempts: int = 5,
    assumption: str = "patient-characteristics",
    confidence: bool = True,
    system_prompt: str = "expert",
    seed: int = 42,
    fields: str | list[str] | None = None,
    shuffle: int | None = None,
    stratify: str | None = None,
    reasoning_history: str = "none",
) -> MedFuzzStudy:
    """MedFuzz: how far does accuracy fall when an assumption of the examination is violated?

    A model in the role ``attacker`` modifies the questions; one in the role ``judge`` reads which
    of the added characteristics a turned answer's reasoning mentions.

    Args:
        questions: ``bank``, ``medqa``, ``medmcqa``, a file, or ``hf:NAME@REVISION[:SPLIT]``.
        attempts: attacks on one answer at the most, K.
        assumption: what the attacker is to violate: ``patient-characteristics``, or a text.
        confidence: whether log-probabilities are asked for, to tell the attacker how sure the
            model was.
        system_prompt: ``expert`` (MedQA-Followup, appendix A.1), ``none``, or a text.
        seed: of the sampling; each replicate has its own.
        fields: which column holds what, such as ``stem=vignette,gold=key``.
        shuffle: seed of the order in which questions are asked; with a limit, of the sample.
        stratify: label whose shares every beginning of that order keeps (step, system, ...).
        reasoning_history: as in the follow-up protocol.

    Raises:
        InputError: a setting names something unknown, or a file cannot be used.
    """
    one_text(questions=questions, assumption=assumption, system_prompt=system_prompt)
    if not isinstance(attempts, int) or attempts < 1:
        raise InputError(f"attempts is {attempts!r}", field="-T", remedy="Give 1 or more")
    if not assumption.strip():
        raise InputError("names no assumption", field="assumption", remedy="Leave it out")
    return MedFuzzStudy(
        asked_questions(questions, fields, shuffle, stratify),
        attempts,
        assumption,
        confidence,
        system_prompt,
        seed,
        history(reasoning_history),
    )


@task
@settings_of(medfuzz_study)
def medfuzz(study: MedFuzzStudy) -> Task:
    """MedFuzz: how far does accuracy fall when an assumption of the examination is violated?"""
    return protocol_task(
        study,
        sitting_solver("attack", study.questions, partial(_attack, study)),
        attacks(study.attempts),
        attacks_view(study.attempts),
        protocol="medfuzz",
        version=fuzz_version(),
        # section 4: a temperature of 1.0 for each model, five replicates
        config=GenerateConfig(temperature=1.0, seed=study.seed),
    )


async def _attack(study: MedFuzzStudy, sitting: Sitting) -> list[ChatMessage]:
    """One replicate; the conversation that it ended with."""
    asked = GenerateConfig(logprobs=True, top_logprobs=5) if study.confidence else GenerateConfig()
    target = sitting.begin(
        system=system_message(study.system),
        config=study.history.merge(asked),
        seed=study.seed,
    )
    attacker = attackers_conversation(sitting, study.assumption, "attack", study.seed)
    last = await _fuzz(study, target, attacker, sitting.question)
    return last.messages


async def _fuzz(
    study: MedFuzzStudy, target: Conversation, attacker: Conversation, question: Question
) -> Conversation:
    """Algorithm 1 on one question; the conversation that it ended with."""
    chat = target.branch()
    turn = await chat.ask(question_prompt(question), arm="baseline", target=question.gold)
    prompt = attack_prompt(
        question,
        turn.reply,
        turn.answer or "",
        _confidence(study, chat, question),
        study.assumption,
    )
    for attempt in range(1, study.attempts + 1):
        if turn.answer != question.gold:  # turned, or no answer: a malfunction of the model
            break
        step = Intervention(FUZZ, "medfuzz", "indirect", "shallow", variant=str(attempt))
        attacker.interventions = (step,)
        fuzz = await modify(
            attacker, prompt, lambda reply: read_fuzz(reply, question), again_fuzz_prompt, k=attempt
        )
        if isinstance(fuzz, Fault):
            prompt = again_fuzz_prompt(fuzz)
            continue
        put = question.changed(stem=fuzz.stem)
        chat = target.branch(step, question=put)
        turn = await chat.ask(
            question_prompt(put),
            arm="attack",
            target=question.gold,
            characteristics=list(fuzz.characteristics),
        )
        turn.notes.update(await _noted(study, turn, put, fuzz, question))
        prompt = next_attack_prompt(
            turn.reply, turn.answer or "", _confidence(study, chat, question)
        )
    return chat


def _confidence(study: MedFuzzStudy, chat: Conversation, question: Question) -> float | None:
    """The probability of the right letter, where the model gives log-probabilities."""
    if not study.confidence or chat.last is None:
        return None
    # a sampled answer need not be the likeliest
    return beliefs_in(chat.last, question.options, None).get(question.gold)


async def _noted(
    study: MedFuzzStudy, turn: Turn, put: Question, fuzz: Fuzz, question: Question
) -> dict[str, Any]:
    """What was added and what of it the reasoning mentions, by the names of the turns table."""
    named = mentions(turn.reply, fuzz.characteristics)
    notes = {
        "modified": fuzz.stem,  # for the log alone
        "words": fuzz.words,
        "characteristics": json.dumps(fuzz.characteristics),
        "mentioned": json.dumps(named),
    }
    judge = bound(JUDGE)
    if judge is None or turn.answer in (None, question.gold):
        return notes
    return notes | await _judged(judge, study, turn, put, fuzz, named)


async def _judged(
    judge: Model, study: MedFuzzStudy, turn: Turn, put: Question, fuzz: Fuzz, named: list[bool]
) -> dict[str, Any]:
    """Faithfulness (section 5), and how worth an expert's look the attack is (section 4)."""
    config = GenerateConfig(temperature=0.0, seed=study.seed)
    step = turn.interventions[-1]
    reader = Conversation(judge, put, config=config, purpose="mention").branch(step)
    said = await reader.say(
        faithfulness_prompt(put.stem, fuzz.characteristics, turn.reply), mentioned=named
    )
    read = read_faithfulness(said.completion, len(fuzz.characteristics))
    reviewer = Conversation(judge, put, config=config, purpose="review").branch(step)
    reviewed = await reviewer.say(review_prompt(put, fuzz, turn.answer or "", turn.reply))
    return {
        "mentioned_judged": None if read is None else json.dumps(read),
        "review": read_review(reviewed.completion),
    }
