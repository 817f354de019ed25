"""Inert rewrites: the controls that add as many words as an attack, without bearing."""

from functools import lru_cache

from holdfast.challenges.texts import first_sentence
from holdfast.files import packaged
from holdfast.protocols.few_shot import shuffled
from holdfast.questions.question import Question

from .attack_arms import INERT
from .modification import naming_fault, word_count


def inert_rewrite(
    question: Question, seed: int, replicate: int, number: int, words: int
) -> tuple[Question, int]:
    """The question with sentences without bearing behind its first one.

    As many are added as come nearest to a number of words, one at the least. Each number begins
    with another sentence; one that names an option is passed over.

    Args:
        question: what is rewritten.
        seed: that of the study.
        replicate: each has an order of its own.
        number: of the rewrite in its replicate, from 1.
        words: how many are to be added, those that the attack adds.

    Returns:
        The rewritten question, and how many words were added.
    """
    sentences = _usable(question.stem, tuple(question.options.items()), question.gold)
    order = shuffled(sentences, seed, question.content_hash, replicate, INERT)
    start = (number - 1) % len(order)
    length, count = list[str](), 0
    for sentence in (*order[start:], *order[:start]):
        longer = count + word_count(sentence)
        if length and abs(longer - words) >= abs(count - words):
            break
        length.append(sentence)
        count = longer
    end = first_sentence(question.stem)
    stem = " ".join([question.stem[:end], *length]) + question.stem[end:]
    return question.changed(stem=stem), count


@lru_cache(1024)
def _usable(stem: str, options: tuple[tuple[str, str], ...], gold: str) -> tuple[str, ...]:
    """The sentences that name no option, or all of them where each does."""
    question = Question(id="inert", stem=stem, options=dict(options), gold=gold)
    sentences = tuple(str(text) for text in packaged(__package__, "inert.toml")["sentences"])
    return tuple(text for text in sentences if naming_fault([text], question) is None) or sentences
