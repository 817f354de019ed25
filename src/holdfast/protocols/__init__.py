"""Protocols: a folder for each system of the source papers, and what they share.

What a protocol is made of is imported from here: a package of your own needs nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .installed import GENERATIONS as GENERATIONS
    from .installed import PROTOCOLS as PROTOCOLS
    from .protocol import JUDGE as JUDGE
    from .protocol import READER as READER
    from .protocol import READER_ALL as READER_ALL
    from .protocol import CallCount as CallCount
    from .protocol import Protocol as Protocol
    from .protocol import Study as Study
    from .protocol import StudyPlan as StudyPlan
    from .scoring import PREPARED_KEY as PREPARED_KEY
    from .second_reading import Reader as Reader
    from .second_reading import Rereading as Rereading
    from .second_reading import check_reader as check_reader
    from .second_reading import counting as counting
    from .second_reading import diverged as diverged
    from .second_reading import logged_question as logged_question
    from .second_reading import read_again as read_again
    from .second_reading import read_by as read_by
    from .second_reading import readings_of as readings_of
    from .settings import QuestionSettings as QuestionSettings
    from .settings import Settings as Settings
    from .settings import TestedSettings as TestedSettings
    from .settings import setting as setting
    from .task import DEFENCE as DEFENCE
    from .task import loaded as loaded
    from .task import task_of as task_of

_FROM = {
    "protocol": (
        "JUDGE", "READER", "READER_ALL", "CallCount", "Protocol", "Study", "StudyPlan",
    ),
    "installed": ("GENERATIONS", "PROTOCOLS"),
    "scoring": ("PREPARED_KEY",),
    "second_reading": (
        "Rereading", "Reader", "check_reader", "counting", "diverged", "logged_question",
        "read_again", "read_by", "readings_of",
    ),
    "settings": ("QuestionSettings", "Settings", "TestedSettings", "setting"),
    "task": ("DEFENCE", "loaded", "task_of"),
}  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # the published figures of a protocol are read where the framework is not yet loaded
        for module, names in _FROM.items():
            if name in names:
                return getattr(import_module(f".{module}", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
