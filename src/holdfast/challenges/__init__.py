"""Challenges: what is put to the model. The catalogue, the contexts and their wording."""

from .catalogue import (
    FAMILIES,
    Catalogue,
    Chain,
    built_in,
    choose,
    choose_chains,
    load_catalogue,
    paper_chains,
)
from .contexts import SYNTHETIC, Context, Contexts, load_contexts
from .suggestion import SuggestRule, draw, suggest_rule, suggested_letter
from .technique import CONTEXTS, LETTER, Technique
from .wording import challenge_prompt, fit_options, question_prompt, system_prompt

__all__ = [
    "CONTEXTS",
    "FAMILIES",
    "LETTER",
    "SYNTHETIC",
    "Catalogue",
    "Chain",
    "Context",
    "Contexts",
    "SuggestRule",
    "Technique",
    "built_in",
    "challenge_prompt",
    "choose",
    "choose_chains",
    "draw",
    "fit_options",
    "load_catalogue",
    "load_contexts",
    "paper_chains",
    "question_prompt",
    "suggest_rule",
    "suggested_letter",
    "system_prompt",
]
