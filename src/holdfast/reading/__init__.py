"""Reading: what a reply says, of the options it was asked about or instead of an answer."""

from .answers import extract_answer, first_character
from .decisions import is_negated, read_decision
from .extraction import READING_VERSION, Extraction, Fault, Status
from .refusal import is_refusal
from .reply_text import plain_text, without_reasoning

__all__ = [
    "READING_VERSION",
    "Extraction",
    "Fault",
    "Status",
    "extract_answer",
    "first_character",
    "is_negated",
    "is_refusal",
    "plain_text",
    "read_decision",
    "without_reasoning",
]
