"""Questions: what is asked. Loaders, validation and the bundled bank."""

from .bank import BANK_NAME, SYSTEMS, bank_items, exemplars
from .loading import Fields, Problem, QuestionSet, check_questions, load_questions
from .question import LETTERS, Question
from .reading import read_rows
from .truth import Truth, under_test

__all__ = [
    "BANK_NAME",
    "LETTERS",
    "SYSTEMS",
    "Fields",
    "Problem",
    "Question",
    "QuestionSet",
    "Truth",
    "bank_items",
    "check_questions",
    "exemplars",
    "load_questions",
    "read_rows",
    "under_test",
]
