"""Wrong options made more plausible (KGGD, Yang et al., 2025b; MedQA-Followup, section 2)."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from inspect_ai import Task, task

from holdfast.challenges import (
    GENERATE,
    GENERATED,
    Fault,
    draw,
    fill,
    is_valid_text,
    json_object,
    option_lines,
    origin_of,
    same_name,
)
from holdfast.dialogue import Conversation
from holdfast.errors import InputError, did_you_mean
from holdfast.files import named_path, packaged
from holdfast.protocols.preparing import Preparation, Row, obtain, preparation
from holdfast.protocols.protocol import Protocol, settings_of
from holdfast.protocols.settings import QuestionSettings, setting
from holdfast.protocols.study import Estimate, tested
from holdfast.questions import (
    BANK_NAME,
    SUFFIXES,
    Problem,
    Question,
    QuestionSet,
    bank_items,
    read_rows,
)

from .graph import candidates, load_graph


def distractor_version() -> int:
    """Version of the prompt that asks for wrong options."""
    return int(packaged(__package__, "distractors.toml")["version"])


@dataclass(frozen=True)
class Distractors:
    """More plausible wrong options for a question set.

    Attributes:
        name: ``bank``, ``none`` or the file they came from.
        by_question: by question id, the new text of each replaced option.
        faults: by question id, why there is none.
        unused: rows of the file for questions that are not in the set.
        origin: how a generator made them, for a study that has them made as it grows.
    """

    name: str
    by_question: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    unused: int = 0
    origin: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex, 16 characters) over the texts, or their origin where they have one."""
        texts = [(id, sorted(new.items())) for id, new in sorted(self.by_question.items())]
        content = self.origin or json.dumps(texts)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def obstacle(self, question: Question) -> str | None:
        """Why the question has no new options; None where it has."""
        if question.id in self.by_question:
            return None
        return self.faults.get(question.id, "no replacement for a wrong option")

    def replaced(self, question: Question) -> Question:
        """The question with its new wrong options; gold and letters stay where they are."""
        texts = self.by_question[question.id]
        options = {letter: texts.get(letter, text) for letter, text in question.options.items()}
        return Question.model_validate({**question.model_dump(), "options": options})


def load_distractors(source: str, questions: QuestionSet) -> Distractors:
    """New wrong options for a question set.

    Args:
        source: ``auto`` (the bank's own for the bank, else none), ``bank``, ``none``,
            ``generate`` (placeholders, to plan with), a file with the columns question and
            distractors (letter to text), or one generated for this study (``generated:FILE``).
        questions: the questions they are for.

    Raises:
        InputError: the file cannot be read, a row is bad, or no row is for these questions.
    """
    match source:
        case "none":
            return Distractors("none")
        case "auto":
            found = _bank(questions)
            return found if found.by_question else Distractors("none")
        case "bank":
            return _matching(_bank(questions), questions, source)
        case "generate":
            return Distractors(
                GENERATE,
                {
                    q.id: {letter: f"placeholder {letter}" for letter in q.distractors}
                    for q in questions.questions
                },
            )
        case _ if source.startswith(GENERATED):
            file = source.removeprefix(GENERATED)
            return replace(check_distractors(file, questions)[0], origin=origin_of(file))
        case _ if not source.endswith(SUFFIXES) and not os.path.exists(source):
            raise InputError(
                f"no such distractors '{source}'",
                field="distractors",
                remedy=did_you_mean(source, ("auto", BANK_NAME, GENERATE, "none")),
            )
        case _:
            found, problems = check_distractors(source, questions)
            if problems:
                worst = problems[0]
                raise InputError(worst.message, source, worst.row, worst.field, "Mend the row")
            return _matching(found, questions, source)


def check_distractors(
    source: str, questions: QuestionSet | None = None
) -> tuple[Distractors, list[Problem]]:
    """Read what can be read of a file of wrong options, and report every bad row.

    Raises:
        InputError: the file as a whole cannot be read.
    """
    problems: list[Problem] = []
    texts: dict[str, dict[str, str]] = {}
    faults: dict[str, str] = {}
    unused = 0
    for number, row in read_rows(named_path(source)):
        if isinstance(row, str):
            problems.append(Problem(number, None, row))
            continue
        id = str(row.get("question", row.get("id")) or "")
        given = row.get("distractors")
        if isinstance(given, str):
            given = json_object(given)
        if not id or id in texts or id in faults:
            message = f"'{id}' was given before" if id else "is missing"
            problems.append(Problem(number, "question", message))
            continue
        if not given and row.get("missing"):
            faults[id] = f"no replacement for a wrong option ({row['missing']})"
            continue
        if not isinstance(given, dict) or not given:
            problems.append(Problem(number, "distractors", "is no object of letter and text"))
            continue
        question = questions.named(id) if questions else None
        unused += questions is not None and question is None
        id = question.id if question else id
        if question and row.get("content_hash") not in (None, "", question.content_hash):
            faults[id] = "the new options are for another question under this id"
            continue
        fault = replacement_fault(given, question) if question else None
        if fault:
            problems.append(Problem(number, "distractors", fault.detail))
            continue
        texts[id] = {str(letter): str(text) for letter, text in given.items()}
    return Distractors(Path(source).name, texts, faults, unused), problems


def distractor_prompt(
    question: Question, letters: Sequence[str], candidates: Sequence[str] = ()
) -> str:
    """Asks for new texts of wrong options."""
    listed = "\n".join(f"- {candidate}" for candidate in candidates)
    offered = (
        fill(packaged(__package__, "distractors.toml")["candidates"], {"listed": listed})
        if candidates
        else ""
    )
    return fill(
        packaged(__package__, "distractors.toml")["replace"].removeprefix("\n"),
        {
            "gold": question.gold,
            "letters": ", ".join(letters),
            "question": question.stem,
            "options_text": option_lines(question.options),
            "candidates": offered,
            "example": json.dumps({letter: "new text" for letter in letters}),
        },
    )


def read_distractors(
    reply: str, question: Question, letters: Sequence[str]
) -> dict[str, str] | Fault:
    """The new texts in a generator's reply, or what is wrong with them."""
    if not reply.strip():
        return Fault("empty", "is empty")
    found = json_object(reply, *letters) or json_object(reply)
    if not found:
        return Fault("no JSON", "is no JSON object of letters and texts")
    if set(found) != set(letters):
        return Fault("other letters", f"does not give a text for each of {', '.join(letters)}")
    return replacement_fault(found, question) or {
        letter: found[letter].strip() for letter in letters
    }


def replacement_fault(texts: Mapping[str, Any], question: Question) -> Fault | None:
    """What keeps these texts from taking the place of wrong options."""
    for letter, text in texts.items():
        if letter not in question.distractors:
            return Fault("no wrong option", f"replaces '{letter}', which is no wrong option")
        if not isinstance(text, str) or not text.strip():
            return Fault("empty", f"has no text for {letter}")
        if not is_valid_text(text):
            return Fault("no valid text", f"holds a character for {letter} that is no valid text")
        others = [t for other, t in texts.items() if other != letter and isinstance(t, str)]
        for other in (*question.options.values(), *others):
            if same_name(other, text):
                return Fault("an option again", f"repeats the option '{text.strip()[:80]}'")
    return None


def _bank(questions: QuestionSet) -> Distractors:
    items = {item["id"]: item for item in bank_items()}
    return Distractors(
        BANK_NAME,
        {
            q.id: dict(zip(q.distractors, items[q.id]["replacement_distractors"], strict=True))
            for q in questions.questions
            if q.id in items
            and (q.options, q.gold) == (items[q.id]["options"], items[q.id]["gold"])
        },
    )


def _matching(found: Distractors, questions: QuestionSet, source: str) -> Distractors:
    if not any(q.id in found.by_question or q.id in found.faults for q in questions.questions):
        raise InputError(
            f"has no wrong options for any of the {len(questions.questions)} questions of "
            f"'{questions.name}'",
            source,
            field="question",
            remedy="Give the file that was built for this question set",
        )
    return found


@dataclass(frozen=True)
class DistractorStudy(Preparation):
    """Wrong options with every setting resolved.

    ``walked`` is what the graph offered, by the question's content: a walk in a large one is long.
    """

    questions: QuestionSet
    replace: int
    seed: int
    graph: Any
    walked: dict[str, list[str]] = field(default_factory=dict, compare=False)

    def estimate(self, question: Question, reply_tokens: int) -> Estimate:
        """One generation where the first reply can be used."""
        return Estimate(1, len(self.prompt(question)) // 4, min(reply_tokens, 100))

    def letters(self, question: Question) -> tuple[str, ...]:
        """The wrong options that are replaced, drawn where they are not all."""
        left = list(question.distractors)
        chosen: list[str] = []
        while left and (not self.replace or len(chosen) < self.replace):
            key = (self.seed, question.content_hash, "replaced", len(chosen))
            chosen.append(left.pop(left.index(draw(left, *key))))
        return tuple(sorted(chosen))

    def prompt(self, question: Question) -> str:
        """What the generator is asked."""
        return distractor_prompt(question, self.letters(question), self.candidates(question))

    def candidates(self, question: Question) -> list[str]:
        """What the graph offers, each with how it is related."""
        if self.graph is None:
            return []
        if question.content_hash not in self.walked:
            self.walked[question.content_hash] = [
                f"{near.text} ({near.why})" for near in candidates(self.graph, question)
            ]
        return self.walked[question.content_hash]


@dataclass(frozen=True)
class DistractorSettings(QuestionSettings[DistractorStudy]):
    """Wrong options for the single-turn protocol, written by the model as generator."""

    replace: int = setting(0, "how many wrong options of each question; 0 for all", at_least=0)
    graph: str | None = setting(
        None,
        "a CSV file of a knowledge graph (head, relation, tail) to take candidates from",
        input=True,
    )
    seed: int = setting(42, "of which options are replaced and of the model's sampling")

    def study(self) -> DistractorStudy:
        """What will be asked."""
        graph = load_graph(self.graph) if self.graph else None
        return DistractorStudy(self.asked(), self.replace, self.seed, graph)


@task
@settings_of(DistractorSettings)
def distractors(study: DistractorStudy) -> Task:
    """Wrong options for the single-turn protocol, written by the model as generator."""

    async def rows(question: Question) -> list[Row]:
        letters = study.letters(question)
        found = await obtain(
            Conversation(tested(), question, purpose="distractors"),
            study.prompt(question),
            lambda reply: read_distractors(reply, question, letters),
            letters=letters,
        )
        texts = {"missing": found.kind} if isinstance(found, Fault) else {"distractors": found}
        return [
            {
                "question": question.id,
                "content_hash": question.content_hash,
                **texts,
                "candidates": study.candidates(question),
            }
        ]

    return preparation(
        "distractors",
        study.questions,
        rows,
        seed=study.seed,
        version=distractor_version(),
        graph=_digest(study.graph),
    )


def _digest(graph: Any) -> str:
    edges = sorted(graph.edges(data="relation")) if graph is not None else []
    return hashlib.sha256(json.dumps(edges).encode()).hexdigest()[:16]


PROTOCOL = Protocol(DistractorSettings, distractors)
