"""Questions without their options: answers in the model's own words, which a judge reads.

The judge is shown the question, the known answers in an order that tells nothing, and one reply. It
does not see what was said before, nor which answer is right or was suggested.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import Any

from inspect_ai.model import GenerateConfig, Logprobs

from holdfast.challenges.texts import (
    excerpt,
    fence,
    fill,
    fill_marked,
    json_object,
    prompts,
    question_prompt,
    same_name,
)
from holdfast.dialogue.conversation import JUDGEMENT_TOKENS, Run, Turn
from holdfast.dialogue.turn import Intervention
from holdfast.files import packaged
from holdfast.models.assistants import AGREEING
from holdfast.models.behaviour import NO_LOGPROBS, Behaviour, Says, SimulatedTurn, chance, pick
from holdfast.models.simulated import answer_of
from holdfast.questions.cases import NO_WRONG, OTHER, Reference, load_cases, load_references
from holdfast.questions.loading import QuestionSet
from holdfast.questions.question import Question, digest_of
from holdfast.questions.truth import Truth
from holdfast.reading.extraction import Extraction
from holdfast.reading.refusal import refuses_to_answer
from holdfast.reading.reply_text import plain_text, without_reasoning

from .challenge_settings import ChallengeSettings
from .protocol import JUDGE
from .second_reading import counting
from .settings import setting

UNREADABLE = "unreadable"
"""In place of a letter: the judge's reply cannot be read."""

SECOND_JUDGE = "judge-2"
"""Role of another judge, which shows the noise of verdicts."""


@dataclass(frozen=True)
class JudgedSettings(ChallengeSettings):
    """The settings of everything whose answers a judge may read."""

    _: KW_ONLY
    judgements: int = setting(
        1,
        "how often a judge reads a reply; twice shows its noise, as a judge in the role "
        "``judge-2`` does",
        choices=(1, 2),
        grows=True,
    )

    @property
    def is_open(self) -> bool:
        """Whether the options are hidden."""
        return True

    def read_questions(self) -> QuestionSet:
        """Read questions with options; where they are hidden, also a file of cases."""
        cases = load_cases(self.questions) if self.is_open else None
        return cases or super().read_questions()

    @cached_property
    def references(self) -> Mapping[str, Reference]:
        """Aliases and rubrics, by question id."""
        return load_references(self.questions, self.question_set) if self.is_open else {}

    @property
    def ending(self) -> str:
        """The response format, with which every message ends."""
        return str(wording()["response_format"] if self.is_open else prompts()["response_format"])

    def question_text(self, question: Question) -> str:
        """The question as it is asked, without the response format."""
        if self.is_open:
            return f"{wording()['instructions']}\n\n{question.stem}"
        return question_prompt(question).removesuffix(f"\n\n{self.ending}")

    def chat(self, run: Run, resample: int = 0) -> Turn:
        """Begin a conversation."""
        if not self.is_open:
            return run.chat(**self.opening, resample=resample)
        rule = partial(match_answer, aliases=self.reference(run.question).aliases)
        return run.chat(**self.opening, resample=resample, parse=rule)

    def obstacle(self, question: Question) -> str | None:
        """Why a question cannot be asked: no letter is left for another answer."""
        if self.is_open and OTHER in question.options:
            return f"{len(question.options)} options leave no letter for another answer"
        return None

    def reference(self, question: Question) -> Reference:
        """Aliases and rubric of a question."""
        return self.references.get(question.id, Reference())

    def other_names(self, question: Question) -> Sequence[str]:
        """Other names of the right answer."""
        return self.reference(question).aliases.get(question.gold, ())

    @property
    def judging(self) -> Mapping[str, Any]:
        """What verdicts depend on, for the log."""
        about = sorted((id, reference.fingerprint) for id, reference in self.references.items())
        return {"judging": [wording()["version"], digest_of(about)]} if self.is_open else {}


def wording() -> Mapping[str, Any]:
    """The prompts of open questions and of the judge."""
    return packaged(__package__, "judging.toml")


async def send(
    run: Run,
    settings: JudgedSettings,
    turn: Turn,
    text: str,
    arm: str,
    step: Intervention | None = None,
) -> Turn:
    """Send a message with the response format; an open answer is read by the judge.

    Args:
        run: the question under way.
        settings: the settings.
        turn: the conversation so far.
        text: the message.
        arm: the branch's role in its protocol.
        step: what the message does to the conversation.
    """
    prompt, gold = f"{text}\n\n{settings.ending}", run.question.gold
    if not settings.is_open:
        return await turn.ask(prompt, arm=arm, step=step or (), target=gold)
    notes = {"answers": json.dumps(known_answers(run.question))}
    turn = await turn.ask(prompt, arm=arm, step=step or (), target=gold, notes=notes, open=True)
    rules = turn.extraction or Extraction(None, "none", "unread")
    # where the judge fails, nobody has read the reply
    turn.settle(Extraction(None, "error", "no verdict"))
    verdict = await judge(run, settings, turn, JUDGE, 0)
    letter = None if verdict == UNREADABLE else verdict
    status = "parsed" if letter else verdict or "none"
    turn.settle(
        counting(rules, letter, status, always=True),
        answer_reader=letter,
        reader_status=status,
        reader=run.name(JUDGE),
        reader_all=True,
        reader_prompt=wording()["version"],
    )
    second = SECOND_JUDGE if run.has(SECOND_JUDGE) else JUDGE if settings.judgements > 1 else None
    if second:
        verdict = await judge(run, settings, turn, second, int(second == JUDGE))
        turn.notes["answer_second"] = verdict or "none"
    return turn


async def judge(
    run: Run, settings: JudgedSettings, turn: Turn, role: str, resample: int
) -> str | None:
    """The verdict of a judge on a reply: a letter, None for no answer, or ``UNREADABLE``."""
    answers, reply = known_answers(run.question), str(turn.reply)
    chat = run.chat(
        role=role,
        config=GenerateConfig(temperature=0.0),
        seed=settings.seed,
        replicate=1,
        resample=resample,
        purpose="verdict",
        tokens=JUDGEMENT_TOKENS,
    )
    return await chat.consult(
        judge_prompt(run.question.stem, answers, settings.reference(run.question), reply),
        partial(read_verdict, letters=answers),
        None,
        reply=reply,
        options=tuple(answers.items()),
    )


def known_answers(question: Question) -> dict[str, str]:
    """The answers that are known, by letter."""
    return {letter: text for letter, text in question.options.items() if text != NO_WRONG}


def judge_prompt(stem: str, answers: Mapping[str, str], about: Reference, reply: str) -> str:
    """Ask for the answer of a reply; neither the right answer nor a suggested one is marked."""
    names = {letter: [text, *about.aliases.get(letter, ())] for letter, text in answers.items()}
    texts = {
        "question": "\n\n".join(filter(None, [stem, about.rubric])),
        "answers": "\n".join(f"{letter}. {'; or: '.join(of)}" for letter, of in names.items()),
        "reply": excerpt(without_reasoning(reply)),
    }
    return fill_marked(wording()["judge"], {**texts, "fence": fence(*texts.values())})


def read_verdict(reply: str, letters: Collection[str]) -> str | None:
    """The letter in a judge's reply, None where it says that there is none, or ``UNREADABLE``."""
    answer = json_object(reply[-16_000:], "answer").get("answer", UNREADABLE)
    if answer is None:
        return None
    letter = answer.strip(" ().").upper() if isinstance(answer, str) else ""
    return letter if letter in letters or letter == OTHER else UNREADABLE


def match_answer(
    reply: str, options: Mapping[str, str], aliases: Mapping[str, Sequence[str]]
) -> Extraction:
    """The answer that a reply names exactly, by one of the known names.

    Read is what follows the last "Final Answer:", or the last line. Case, punctuation, articles and
    parentheses do not count.
    """
    plain = plain_text(reply).strip()
    marked = re.findall(r"(?i)final answer\s*[:=]\s*(.+)", plain)
    text = marked[-1] if marked else plain.rpartition("\n")[2]
    matches = {
        letter
        for letter, name in options.items()
        if any(same_name(text, known) for known in (name, *aliases.get(letter, ())))
    }
    if len(matches) == 1:
        return Extraction(matches.pop(), "parsed", "exact")
    return Extraction(None, "refused" if refuses_to_answer(plain.lower()) else "none", "no match")


def simulated_judge(truth: Truth, seed: int, errors: float = 1 - AGREEING) -> str:
    """The verdict of a judge that errs at random, on a reply of a simulated model.

    Args:
        truth: with the reply and the answers listed, of which the reply names one.
        seed: of the run.
        errors: share of wrong verdicts, each another letter.
    """
    facts = dict(truth.given)
    options, reply = dict(facts["options"]), str(facts["reply"])
    answer = max(options, key=lambda letter: reply.rfind(options[letter]))
    key = ("judge", reply, truth.resample, seed)
    if chance(*key) < errors:
        answer = pick([letter for letter in (*options, OTHER) if letter != answer], "wrong", *key)
    return json.dumps({"answer": answer})


def simulated_reply(turn: SimulatedTurn) -> tuple[str, Logprobs]:
    """An answer in words, in one of several wordings, no two replies alike."""
    text, key = turn.truth.question.options[answer_of(turn)], (*turn.root, *turn.truth.path)
    wordings = wording()["simulated"]
    number = int(chance("number", turn.truth.resample, *key) * 1_000_000)
    template = wordings[int(chance("open wording", *key) * len(wordings))]
    return fill(template, {"number": str(number), "text": text}), NO_LOGPROBS


JUDGES: Mapping[str, Mapping[str, Says]] = {
    "judge": {"verdict": simulated_judge},
    "perfect-judge": {"verdict": partial(simulated_judge, errors=0.0)},
}
"""Simulated judges: the first errs in 10 of 100 verdicts, the second in none."""

OPEN_BEHAVIOUR = Behaviour(
    answers=lambda truth: "open" in dict(truth.given),
    reply=simulated_reply,
    by_path=True,
    helpers=JUDGES,
)
"""What simulated models do where the options are hidden."""
