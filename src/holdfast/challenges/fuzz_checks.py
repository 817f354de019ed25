"""Which modifications of a question are valid: what MedFuzz leaves alone and what it may add."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import counted
from holdfast.questions import Question

from .generation import Fault, is_valid_text, json_object
from .insertion import Insertion, LostSentence, with_insertions, word_count
from .mentions import stems, telling_stems
from .naming import words_of
from .option_naming import naming_fault

MOST_WORDS = 120
"""Words that a modification may add."""

# a word of prose has fewer letters on average, so that no wall of text passes as a few words
_LETTERS = 20
_SHOWN = 160


@dataclass(frozen=True)
class Fuzz:
    """A valid modification of a question.

    Attributes:
        stem: the modified stem: the original's own sentences and what was added between them.
        characteristics: what was added, item by item, as the attacker names it.
        analysis: of the model's last reply; empty where the attacker gave none.
        plan: of the attack; empty where the attacker gave none.
        added: the runs of text that were added, in order.
        words: how many words were added.
    """

    stem: str
    characteristics: tuple[str, ...]
    analysis: str
    plan: str
    added: tuple[str, ...]
    words: int


def read_fuzz(reply: str, question: Question) -> Fuzz | Fault:
    """The modification in an attacker's reply, if it is valid.

    Valid is what holds every sentence of the stem word for word and in its order, adds whole
    sentences of at most 120 words in all, names no option by text or letter, and lists
    characteristics that share words with what was added. White space and quotation marks may
    differ, and the options written out behind the stem are dropped: the stem that is given back
    has the original's own characters, so that only what was added is new.

    Args:
        reply: the attacker's reply without its reasoning.
        question: the original.
    """
    if not reply.strip():
        return Fault("empty", "is empty")
    found = json_object(reply, "modified_question")
    modified = found.get("modified_question")
    if not isinstance(modified, str):
        return Fault(
            "no JSON", 'is no JSON object with the text "modified_question" and the list '
            '"characteristics"',
        )  # fmt: skip
    return _checked(modified, found.get("characteristics"), question, found)


def read_control(reply: str, question: Question, fuzz: Fuzz) -> Fuzz | Fault:
    """The control in an attacker's reply, if it is valid (MedFuzz, section 3.4).

    Valid is what `read_fuzz` holds valid and what adds as many words as the attack, in the same
    places, and not in its words.

    Args:
        reply: the attacker's reply without its reasoning.
        question: the original.
        fuzz: the attack that it is a control of.
    """
    control = read_fuzz(reply, question)
    if isinstance(control, Fault):
        return control
    attack = _runs(question, fuzz.stem)
    runs = _runs(question, control.stem)
    if [run.place for run in runs] != [run.place for run in attack]:
        return Fault(
            "other places",
            f"adds text in {counted(len(runs), 'place')} that are not just the "
            f"{counted(len(attack), 'place')} where the modified question has its additions",
        )
    if control.words != fuzz.words:
        sizes = ", ".join(str(word_count(run.text)) for run in runs)
        wanted = ", ".join(str(word_count(run.text)) for run in attack)
        return Fault(
            "other length",
            f"adds {counted(control.words, 'word')} (run by run {sizes}), not exactly "
            f"{fuzz.words} ({wanted})",
        )
    if [words_of(run.text) for run in runs] == [words_of(run.text) for run in attack]:
        return Fault("same text", "adds the same text as the modified question")
    return control


def fuzz_of(question: Question, stem: str, characteristics: Sequence[str]) -> Fuzz | Fault:
    """A modification known by its stem, as a log holds it; checked as if it were read."""
    return _checked(stem, list(characteristics), question, {})


def _runs(question: Question, stem: str) -> Sequence[Insertion]:
    found = with_insertions(question.stem, stem)
    return () if isinstance(found, LostSentence) else found[1]


def _checked(
    modified: str, characteristics: object, question: Question, found: Mapping[str, Any]
) -> Fuzz | Fault:
    if not is_valid_text(modified) or "\0" in modified:
        return _no_text()
    listed = sum(map(len, question.options.values()))
    # what is far too long is not taken apart
    if _signs(modified) - _signs(question.stem) - listed > 10 * MOST_WORDS * _LETTERS:
        return _too_long()
    modified = _without_options(modified, question)
    if fault := _size_fault(modified, question):
        return fault
    read = with_insertions(question.stem, modified)
    if isinstance(read, LostSentence):
        return _lost_fault(read)
    stem, runs = read
    added = tuple(run.text for run in runs)
    words = sum(map(word_count, added))
    if not words:
        return Fault("nothing added", "adds nothing to the question")
    if fault := naming_fault(added, question):
        return fault
    names = _listed(characteristics, added)
    if isinstance(names, Fault):
        return names
    analysis, plan = (_text(found.get(name)) for name in ("analysis", "plan"))
    if not is_valid_text(analysis + plan):
        return _no_text()
    return Fuzz(stem, names, analysis, plan, added, words)


def _size_fault(modified: str, question: Question) -> Fault | None:
    stem = question.stem
    words = word_count(modified) - word_count(stem)
    spare = len(modified.split()) - len(stem.split()) - words
    signs = _signs(modified) - _signs(stem)
    if words > MOST_WORDS:
        return Fault("too long", f"adds {words} words, and at most {MOST_WORDS} may be added")
    if spare > MOST_WORDS or signs > MOST_WORDS * _LETTERS:
        return _too_long()
    return None


def _too_long() -> Fault:
    return Fault("too long", f"adds more signs than {MOST_WORDS} words can have")


def _no_text() -> Fault:
    return Fault("no valid text", "holds a character that is no valid text")


def _signs(text: str) -> int:
    """Characters that are no white space."""
    return sum(map(len, text.split()))


def _lost_fault(lost: LostSentence) -> Fault:
    text = " ".join(lost.text.split())
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    if lost.elsewhere:
        return Fault("another order", f"does not keep the sentence “{shown}” once in its order")
    return Fault("a lost sentence", f"does not keep the sentence “{shown}” word for word")


def _listed(characteristics: object, added: Sequence[str]) -> tuple[str, ...] | Fault:
    """The characteristics, each of which must share a telling word with what was added."""
    if not isinstance(characteristics, list) or not characteristics:
        return Fault("no characteristics", 'lists nothing under "characteristics"')
    names = [_text(one) for one in characteristics]
    if not all(names):
        return Fault("no characteristics", 'holds something empty under "characteristics"')
    if not is_valid_text("".join(names)) or any("\0" in name for name in names):
        return _no_text()
    if sum(map(len, names)) > MOST_WORDS * _LETTERS:
        return Fault("no characteristics", 'says more under "characteristics" than it can add')
    said = stems(" ".join(added))
    for name in names:
        if not telling_stems(name) & said:
            return Fault(
                "a characteristic not added",
                f"lists the characteristic “{name[:_SHOWN]}” but adds no text that says so in any "
                "of its words",
            )
    return tuple(dict.fromkeys(names))


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _without_options(modified: str, question: Question) -> str:
    """The text without the options written out at its end, where the original has none there."""
    end = _before_options(modified, question)
    if end is None or _before_options(question.stem, question) is not None:
        return modified
    kept = modified[:end].rstrip()
    heading = re.search(r"(?i)(?:\banswer )?\b(?:options|choices):?\Z", kept[-40:])
    return kept.removesuffix(heading[0]) if heading else kept


def _before_options(text: str, question: Question) -> int | None:
    """Where the options begin that a text ends with, as ``A. text``; None where it does not."""
    found = list(re.finditer(r"\S+", text))
    at = len(found)
    for letter, option in reversed(question.options.items()):
        words = option.split()
        at -= len(words) + 1
        if at < 0 or found[at][0].strip("().:[]*-") != letter:
            return None
        written = [match[0].casefold() for match in found[at + 1 : at + 1 + len(words)]]
        if written != option.casefold().split():
            return None
    return found[at].start()
