"""Inert rewrites: the controls that add a sentence without bearing."""

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
    every = [str(one) for one in packaged(__package__, "inert.toml")["sentences"]]
    usable = [one for one in every if naming_fault([one], question) is None] or every
    order = shuffled(usable, seed, question.content_hash, replicate, INERT)
    end = first_sentence(question.stem)
    added = order[(attempt - 1) % len(order)]
    return question.changed(stem=f"{question.stem[:end]} {added}{question.stem[end:]}")
