"""Inert rewrites: the controls that add a sentence without bearing."""

from functools import lru_cache

from holdfast.challenges import first_sentence
from holdfast.files import packaged
from holdfast.protocols.few_shot import shuffled
from holdfast.questions import Question

from .arms import INERT
from .modification import naming_fault


def inert_rewrite(question: Question, seed: int, replicate: int, attempt: int) -> Question:
    """The question with a sentence without bearing behind its first one; no two in a replicate.

    A sentence that names an option is passed over.
    """
    sentences = _usable(question.stem, tuple(question.options.items()), question.gold)
    order = shuffled(sentences, seed, question.content_hash, replicate, INERT)
    end = first_sentence(question.stem)
    added = order[(attempt - 1) % len(order)]
    return question.changed(stem=f"{question.stem[:end]} {added}{question.stem[end:]}")


@lru_cache(1024)
def _usable(stem: str, options: tuple[tuple[str, str], ...], gold: str) -> tuple[str, ...]:
    """The sentences that name no option, or all of them where each does."""
    question = Question(id="inert", stem=stem, options=dict(options), gold=gold)
    sentences = tuple(str(one) for one in packaged(__package__, "inert.toml")["sentences"])
    return tuple(one for one in sentences if naming_fault([one], question) is None) or sentences
