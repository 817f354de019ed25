"""Wrong options made more plausible (KGGD, Yang et al., 2025b; MedQA-Followup, section 2)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from inspect_ai import Task, task

from holdfast.challenges import (
    GENERATE,
    Fault,
    Prepared,
    draw,
    fill,
    is_valid_text,
    json_object,
    option_lines,
    prepared,
    same_name,
)
from holdfast.dialogue import Conversation
from holdfast.files import named_path, packaged
from holdfast.protocols.preparing import Preparation, Row, obtain, preparation
from holdfast.protocols.protocol import Protocol, settings_of
from holdfast.protocols.settings import QuestionSettings, setting
from holdfast.protocols.study import Estimate, tested
from holdfast.questions import (
    BANK_NAME,
    Problem,
    Question,
    QuestionSet,
    bank_items,
    digest_of,
    read_rows,
)

from .graph import candidates, load_graph


@dataclass(frozen=True)
class Distractors(Prepared[Mapping[str, str]]):
    """More plausible wrong options: by question id, the new text of each replaced option.

    Attributes:
        faults: by question id, why there is none.
    """

    faults: Mapping[str, str] = field(default_factory=dict)

    setting = "distractors"
    noun = "distractors"
    missing = "wrong options"
    remedy = "Give the file that was built for this question set"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex, 16 characters) over the texts, or their origin where they have one."""
        texts = [(id, sorted(new.items())) for id, new in sorted(self.by_question.items())]
        return digest_of(self.origin or texts)

    def covers(self, questions: QuestionSet) -> bool:
        """Whether the source says anything of one of the questions."""
        return any(q.id in self.by_question or q.id in self.faults for q in questions.questions)

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

    def own() -> Distractors:
        found = _bank(questions)
        return found if found.by_question else Distractors("none")

    def placeholders() -> Distractors:
        asked = questions.questions
        texts = {q.id: {letter: f"placeholder {letter}" for letter in q.distractors} for q in asked}
        return Distractors(GENERATE, texts)

    named = {
        "none": lambda: Distractors("none"),
        "auto": own,
        BANK_NAME: lambda: _bank(questions),
        GENERATE: placeholders,
    }
    return prepared(
        Distractors, source, questions, named, lambda file: check_distractors(file, questions)
    )


def check_distractors(
    source: str, questions: QuestionSet | None = None
) -> tuple[Distractors, list[Problem]]:
    """Read what can be read of a file of wrong options, and report every bad row."""
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
            problems.append(Problem(number, "distractors", "is not an object of letters and texts"))
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
    return Distractors(Path(source).name, texts, unused, faults=faults), problems


def distractor_version() -> int:
    """Version of the prompt that asks for wrong options."""
    return int(_wording()["version"])


def _wording() -> Mapping[str, Any]:
    return packaged(__package__, "distractors.toml")


def distractor_prompt(
    question: Question, letters: Sequence[str], candidates: Sequence[str] = ()
) -> str:
    """Asks for new texts of wrong options."""
    listed = "\n".join(f"- {candidate}" for candidate in candidates)
    values = {
        "gold": question.gold,
        "letters": ", ".join(letters),
        "question": question.stem,
        "options_text": option_lines(question.options),
        "candidates": fill(_wording()["candidates"], {"listed": listed}) if candidates else "",
        "example": json.dumps({letter: "new text" for letter in letters}),
    }
    return fill(_wording()["replace"].removeprefix("\n"), values)


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
    ours = [
        q
        for q in questions.questions
        if q.id in items and (q.options, q.gold) == (items[q.id]["options"], items[q.id]["gold"])
    ]
    texts = {
        q.id: dict(zip(q.distractors, items[q.id]["replacement_distractors"], strict=True))
        for q in ours
    }
    return Distractors(BANK_NAME, texts)


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
    seed: int = setting(42, "seed of the options to replace and of the model's sampling")

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
        graph=digest_of(sorted(study.graph.edges(data="relation")) if study.graph else []),
    )


PROTOCOL = Protocol(DistractorSettings, distractors)
