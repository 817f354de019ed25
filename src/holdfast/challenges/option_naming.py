"""Options named in a text that must not name them: by text, by letter or as a list."""

import re
from collections.abc import Sequence

from holdfast.questions import Question

from .generation import Fault
from .insertion import IDEOGRAPHS
from .mentions import is_function_word
from .naming import without_parentheses, words_of


def naming_fault(added: Sequence[str], question: Question) -> Fault | None:
    """What is wrong with added text that names an option by its text or letter, or lists them.

    Args:
        added: the runs of text; time grows with their length times the number of options.
        question: whose options may not be named.
    """
    letters = "".join(question.options)
    for run in added:
        if re.search(r"(?:^|[\s(])A[.):]\)?\s[^\n]{1,400}?\s\(?B[.):]\)?\s", run):
            return Fault("an option list", "writes out options, and they are not part of it")
        if re.search(
            rf"\b(?i:options?|choices?|answers?|letters?|choos(?:e|ing)|select(?:ing)?|pick(?:ing)?)"
            rf"[\s:(*\"'“\[]{{1,5}}[{letters}]\b",
            run,
        ):
            return Fault("an option letter", "refers to an option by its letter")
        plain = f" {words_of(run)} "
        for letter, option in question.options.items():
            if _is_named(option, run, plain):
                return Fault("an option's text", f"names option {letter} in what it adds")
    return None


def _is_named(option: str, run: str, plain: str) -> bool:
    """Whether a run names an option, in whole words and whatever their case.

    One of figures alone is looked for as it is written, with its sign, and a single letter in its
    own case and not as an article or pronoun. One of function words alone, such as "None", is in
    every text and not looked for.
    """
    option = option.strip()
    if re.search(rf"[{IDEOGRAPHS}]", option):
        return option in run
    if not any(c.isalpha() for c in option):
        figures = re.escape(option)
        return bool(re.search(rf"(?<![\w.,%]){figures}(?![\w%]|[.,]\d)", run))
    if len(option) == 1:
        found = re.finditer(rf"(?<![\w'’-]){re.escape(option)}(?![\w'’-])", run)
        return any(not _is_small_word(option, run, match.start()) for match in found)
    for name in (words_of(option), words_of(without_parentheses(option))):
        bare = re.sub(r"^(?:an?|the) (?=\S)", "", name)
        if bare and not all(map(is_function_word, bare.split())) and f" {bare} " in plain:
            return True
    return False


def _is_small_word(letter: str, run: str, place: int) -> bool:
    """Whether a letter is the article that begins a sentence, or the pronoun."""
    if not re.match(r" [a-z]", run[place + 1 :]):
        return False
    before = run[:place].rstrip()
    return letter == "I" or (letter == "A" and (not before or not before[-1].isalnum()))
