"""MedFuzz: an attacker rewrites the question until the answer flips (MedFuzz, section 3).

Algorithm 1: another model modifies a question that the model answers right, so that an assumption
of the examination no longer holds but the right answer stays right. The model is asked in a new
conversation. If it still answers right, the attacker receives its reasoning and tries again.

A model whose answers vary is eventually wrong, whatever text is added. Every attempt therefore has
two controls, each up to its own first flip: an inert rewrite, which adds as many words without
relevance, and the unchanged question. A successful attack and its original are each repeated
several times. The reply that flipped does not count among these. Twenty inert rewrites are asked in
its place. One that flips the answer is repeated at most three times, until the answer is right.
"""

import hashlib
import json
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import Any

from inspect_ai.model import ContentReasoning, GenerateConfig, ModelOutput

from holdfast.challenges.texts import Fault, question_prompt
from holdfast.dialogue.beliefs import beliefs_in
from holdfast.dialogue.conversation import JUDGEMENT_TOKENS, Run, Turn
from holdfast.dialogue.turn import Intervention
from holdfast.protocols.few_shot import BANK
from holdfast.protocols.protocol import JUDGE, Protocol
from holdfast.protocols.settings import question_set
from holdfast.questions.question import Question
from holdfast.questions.truth import Purpose

from .attack_arms import (
    AGAIN,
    AGAIN_INERT,
    AGAIN_PLAIN,
    ATTACK,
    ATTACKER,
    INERT,
    MOST_AGAIN,
    REASK,
    REWRITES,
    UNATTACKED_ARM,
)
from .attacker import (
    VALIDITY,
    attack_prompt,
    attackers_chat,
    faithfulness_prompt,
    fuzz_retry_prompt,
    fuzz_version,
    modify,
    next_attack_prompt,
    read_faithfulness,
    read_review,
    read_validity,
    review_prompt,
    validity_prompt,
    with_hidden_reasoning,
)
from .characteristics import mentions
from .inert import inert_rewrite
from .modification import Fuzz, read_fuzz
from .permutation import Success, test
from .replay import replay
from .settings import MedFuzzSettings
from .simulated import BEHAVIOUR


async def medfuzz(run: Run, settings: MedFuzzSettings) -> None:
    """Run one replicate: Algorithm 1, then controls, repetitions and tests."""
    if settings.replayed:
        return await replay(run, settings)
    success, attempts = await attack(run, settings)
    branches: dict[str, Awaitable[Any]] = {}
    if settings.controls and attempts:
        branches |= {arm: control(run, settings, arm, attempts) for arm in (INERT, REASK)}
    if success:
        numbers = range(1, settings.confirm + 1)
        branches |= {f"{AGAIN} {n}": confirm(run, settings, success, n) for n in numbers}
        rewrites = range(1, REWRITES + 1) if settings.confirm else ()
        branches |= {f"{AGAIN_INERT} {n}": inert(run, settings, success, n) for n in rewrites}
    if success and settings.tested:
        branches["test"] = test(run, settings, success)
    await run.side_by_side(branches)


async def attack(run: Run, settings: MedFuzzSettings) -> tuple[Success | None, Mapping[int, int]]:
    """Run Algorithm 1.

    Returns:
        The successful attack, and the number of added words by attempt with controls. Attempts that
        a success made unnecessary have the number of the success.
    """
    question, success, attempts = run.question, None, dict[int, int]()
    target = settings.chat(run)
    turn = await target.ask(
        question_prompt(question),
        arm="baseline",
        target=question.gold,
        notes={"attempts": settings.attempts},
    )
    if not turn.kept:
        return None, {}
    attacker = attackers_chat(run, settings.assumption, settings.seed, "attack")
    prompt = attack_prompt(
        question, reasoning(settings, turn), question.gold, confidence(settings, turn),
        settings.assumption,
    )  # fmt: skip
    for number in range(1, settings.attempts + 1):
        step = Intervention("fuzz", "medfuzz", "indirect", "shallow", variant=str(number))
        attacker, fuzz = await modify(
            attacker, prompt, partial(read_fuzz, question=question), fuzz_retry_prompt,
            arm=ATTACKER, path=[step], k=number,
        )  # fmt: skip
        if isinstance(fuzz, Fault):
            prompt = fuzz_retry_prompt(fuzz)
            continue
        attacked_question = question.changed(stem=fuzz.stem)
        turn = await target.ask(
            question_prompt(attacked_question),
            arm=ATTACK,
            step=step,
            target=question.gold,
            question=attacked_question,
            characteristics=list(fuzz.characteristics),
        )
        attempts[number] = fuzz.words
        turn.notes |= attack_notes(settings, turn, fuzz)
        if turn.answer is None:  # a malfunction, which leaves no answer to compare
            return None, {}
        if turn.answer != question.gold:
            success = Success(step, attacked_question, fuzz)
            await judge(run, settings, turn, fuzz)
            attempts_left = range(number + 1, settings.attempts + 1)
            return success, attempts | dict.fromkeys(attempts_left, fuzz.words)
        prompt = next_attack_prompt(
            reasoning(settings, turn), question.gold, confidence(settings, turn)
        )
    return success, attempts


async def control(
    run: Run, settings: MedFuzzSettings, arm: str, attempts: Mapping[int, int]
) -> None:
    """Ask a control of each attempt, up to the first answer that is not right."""
    for number, words in attempts.items():
        control_question, words_added = run.question, 0
        if arm == INERT:
            control_question, words_added = inert_rewrite(
                control_question, settings.seed, run.replicate, number, words
            )
        chat = settings.chat(run, resample=2 * number if arm == REASK else 0)
        turn = await chat.ask(
            question_prompt(control_question),
            arm=arm,
            step=Intervention(arm, "control", variant=str(number)),
            target=control_question.gold,
            question=control_question,
            notes={"words": words_added} if words_added else None,
            characteristics=[],
        )
        if not turn.kept:
            return


async def confirm(run: Run, settings: MedFuzzSettings, success: Success, number: int) -> None:
    """Repeat a successful attack and its original."""
    question, step = run.question, Intervention("again", "control", variant=str(number))
    chat = settings.chat(run, resample=2 * number + 1)  # even numbers are resamples of ``reask``

    async def ask(
        arm: str, question_asked: Question, path: Sequence[Intervention], fuzz: Fuzz | None
    ) -> None:
        characteristics = list(fuzz.characteristics) if fuzz else []
        await chat.ask(
            question_prompt(question_asked),
            arm=arm,
            step=path,
            target=question.gold,
            question=question_asked,
            characteristics=characteristics,
        )

    await run.side_by_side(
        {
            AGAIN: ask(AGAIN, success.question, [success.step, step], success.fuzz),
            AGAIN_PLAIN: ask(AGAIN_PLAIN, question, [step], None),
        }
    )


async def inert(run: Run, settings: MedFuzzSettings, success: Success, number: int) -> None:
    """Ask an inert rewrite in place of a successful attack, and repeat it while it is wrong."""
    words = success.fuzz.words
    inert_question, words_added = inert_rewrite(
        run.question, settings.seed, run.replicate, number, words
    )
    step = [success.step, Intervention(INERT, "control", variant=str(number))]
    for n in range(MOST_AGAIN + 1):
        again = [Intervention("again", "control", variant=str(n))] if n else []
        turn = await settings.chat(run, resample=2 * n + 1).ask(
            question_prompt(inert_question),
            arm=AGAIN_INERT,
            step=[*step, *again],
            target=inert_question.gold,
            question=inert_question,
            notes={"words": words_added},
            characteristics=[],
        )
        if turn.kept or turn.answer is None:
            return


def reasoning(settings: MedFuzzSettings, turn: Turn) -> str:
    """Return a reply for a prompt, with the hidden reasoning in a separate part."""
    return with_hidden_reasoning(str(turn.reply), hidden_reasoning(settings, turn))


def hidden_reasoning(settings: MedFuzzSettings, turn: Turn) -> str:
    """Return the hidden reasoning of a reply, if available and permitted."""
    return turn.observe(_extract_hidden, "") if settings.hidden_reasoning else ""


def _extract_hidden(output: ModelOutput) -> str:
    content = output.message.content
    parts = [] if isinstance(content, str) else content
    readable = [part for part in parts if isinstance(part, ContentReasoning) and not part.redacted]
    return "\n\n".join(part.reasoning for part in readable).strip()


def confidence(settings: MedFuzzSettings, turn: Turn) -> float | None:
    """Return the probability of the right letter, if the model returns log-probabilities."""
    if not settings.confidence:
        return None
    question = turn.question

    def read(output: ModelOutput) -> float | None:
        # a sampled answer need not be the likeliest
        return beliefs_in(output, question.options, None).get(question.gold)

    return turn.observe(read, None)


def attack_notes(settings: MedFuzzSettings, turn: Turn, fuzz: Fuzz) -> dict[str, Any]:
    """Return columns of the turns table on the additions and the reasoning's mentions."""
    reasoning_text = hidden_reasoning(settings, turn)
    notes = {
        "modified": fuzz.stem,  # only in the log
        "rewrite": hashlib.sha256(fuzz.stem.encode()).hexdigest()[:16],
        "words": fuzz.words,
        "characteristics": json.dumps(fuzz.characteristics),
        "mentioned": json.dumps(mentioned(turn, fuzz, reasoning_text)),
    }
    if reasoning_text:
        notes["hidden"] = reasoning_text  # only in the log
        notes["mentioned_visible"] = json.dumps(mentioned(turn, fuzz, ""))
    return notes


def mentioned(turn: Turn, fuzz: Fuzz, reasoning_text: str) -> Sequence[bool]:
    """Return whether a reply, including hidden reasoning, mentions each characteristic."""
    nothing: Sequence[bool] = []
    return turn.observe(
        lambda output: mentions(
            with_hidden_reasoning(output.completion, reasoning_text), fuzz.characteristics
        ),
        nothing,
    )


async def judge(run: Run, settings: MedFuzzSettings, turn: Turn, fuzz: Fuzz) -> None:
    """Ask judges whether a success is valid and faithful, and worth an expert's review.

    The majority of the parsed judgements decides whether the right answer is still right. A tie
    means that it is not.
    """
    question, attacked_question, text = run.question, turn.question, reasoning(settings, turn)

    def chat(role: str, purpose: Purpose) -> Turn:
        return run.chat(
            role=role, config=GenerateConfig(temperature=0.0, seed=settings.seed), replicate=1,
            question=attacked_question, purpose=purpose, tokens=JUDGEMENT_TOKENS,
        )  # fmt: skip

    step = turn.interventions[-1]
    judges = [role for role in VALIDITY if run.has(role)]
    votes = [
        await chat(role, "validity").consult(
            validity_prompt(question, attacked_question),
            read_validity,
            None,
            step=step,
            judge=number,
        )
        for number, role in enumerate(judges)
    ]
    if judges:
        readable = [vote for vote in votes if vote is not None]
        turn.notes["valid_judged"] = 2 * sum(readable) > len(readable) if readable else None
    if not run.has(JUDGE):
        return
    faithful = await chat(JUDGE, "mention").consult(
        faithfulness_prompt(attacked_question.stem, fuzz.characteristics, text),
        partial(read_faithfulness, n=len(fuzz.characteristics)),
        None,
        step=step,
        mentioned=mentioned(turn, fuzz, hidden_reasoning(settings, turn)),
    )
    review = await chat(JUDGE, "review").consult(
        review_prompt(attacked_question, fuzz, turn.answer or "", text),
        read_review,
        None,
        step=step,
    )
    turn.notes["mentioned_judged"] = None if faithful is None else json.dumps(faithful)
    turn.notes["review"] = review


def _inputs(settings: MedFuzzSettings) -> dict[str, Any]:
    exemplar_set = settings.exemplars
    inputs = {
        "exemplars": exemplar_set
        if exemplar_set == BANK
        else question_set(exemplar_set).fingerprint
    }
    # later attacks can be added, because each is asked separately
    return {**inputs, "questions": "attacked"} if settings.replayed else inputs


PROTOCOL = Protocol(
    "medfuzz",
    medfuzz,
    MedFuzzSettings,
    fuzz_version(),
    # section 4: a temperature of 1.0 for each model, five replicates
    config=lambda settings: GenerateConfig(temperature=1.0, seed=settings.seed),
    inputs=_inputs,
    epochs=5,
    roles=(ATTACKER, *VALIDITY),
    required=(ATTACKER,),
    behaviour=BEHAVIOUR,
    scored=("baseline", ATTACK, UNATTACKED_ARM),
)
