"""Questions: what is asked. Loaders, validation and the bundled bank."""

from .bank import BANK_NAME as BANK_NAME
from .bank import SYSTEMS as SYSTEMS
from .bank import bank_items as bank_items
from .bank import exemplars as exemplars
from .fields import Fields as Fields
from .loading import Problem as Problem
from .loading import QuestionSet as QuestionSet
from .loading import check_questions as check_questions
from .loading import load_questions as load_questions
from .loading import options_of as options_of
from .question import LABELS as LABELS
from .question import LETTERS as LETTERS
from .question import Question as Question
from .question import digest_of as digest_of
from .question import digest_of_each as digest_of_each
from .question import is_none_of_the_above as is_none_of_the_above
from .reading import SUFFIXES as SUFFIXES
from .reading import check_file as check_file
from .reading import csv_rows as csv_rows
from .reading import json_rows as json_rows
from .reading import read_rows as read_rows
from .sampling import shuffled as shuffled
from .truth import RESAMPLE_SEEDS as RESAMPLE_SEEDS
from .truth import Purpose as Purpose
from .truth import Truth as Truth
from .truth import under_test as under_test
