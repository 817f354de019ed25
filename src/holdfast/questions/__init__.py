"""Questions: what is asked. Loaders, validation and the bundled bank."""

from .bank import BANK_NAME, SYSTEMS, bank_items, exemplars
from .fields import Fields
from .loading import Problem, QuestionSet, check_questions, load_questions
from .none_of_the_above import is_none_of_the_above
from .question import LABELS, LETTERS, Question
from .reading import SUFFIXES, check_file, read_rows
from .sampling import shuffled
from .truth import RESAMPLE_SEEDS, Purpose, Truth, under_test

__all__ = [
    "BANK_NAME",
    "LABELS",
    "LETTERS",
    "RESAMPLE_SEEDS",
    "SUFFIXES",
    "SYSTEMS",
    "Fields",
    "Problem",
    "Purpose",
    "Question",
    "QuestionSet",
    "Truth",
    "bank_items",
    "check_file",
    "check_questions",
    "exemplars",
    "is_none_of_the_above",
    "load_questions",
    "read_rows",
    "shuffled",
    "under_test",
]
