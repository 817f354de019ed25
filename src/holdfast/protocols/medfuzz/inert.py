"""Inert rewrites: controls that add as many words as an attack, without relevance."""

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
    """Add sentences without relevance after the first sentence of a question.

    The number of sentences is the one that comes closest to the number of words, at least one. Each
    rewrite starts with another sentence. Sentences that name an option are skipped.

    Args:
        question: the question to rewrite.
        seed: seed of the study.
        replicate: replicate, which determines the order of the sentences.
        number: 1-based number of the rewrite in its replicate.
        words: number of words to add, as many as the attack adds.

    Returns:
        The rewritten question, and the number of added words.
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
    """Return the sentences that name no option, or all sentences if each names one."""
    question = Question(id="inert", stem=stem, options=dict(options), gold=gold)
    sentences = tuple(str(text) for text in packaged(__package__, "inert.toml")["sentences"])
    return tuple(text for text in sentences if naming_fault([text], question) is None) or sentences
