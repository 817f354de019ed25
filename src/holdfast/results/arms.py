"""Arms: properties of a protocol's turns that general measures and exports need."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import polars as pl

from holdfast.lookups import until_declared
from holdfast.registry import declaring, found_in


@dataclass(frozen=True)
class TurnsOf:
    """Description of a protocol's turns, beyond plain questions and challenges to their answers.

    Attributes:
        protocol: name of the protocol in the turns table.
        title: heading of the protocol in a table of accuracies. Empty means the protocol's name.
        stops_early: whether an answer other than the target ends the conversation early. Tables
            count an ended conversation with its last answer.
        abstains: whether ``NA`` (none of the above) can be an answer.
        helpers: arms with replies of helper models, which contain no answer.
        apart: arms that only the protocol's own measures use, including helpers. Each value is the
            reason that an export of training data gives for skipping the arm. The arms contain
            replies of helpers, probes, and answers to texts shown only while an answer was right.
            An average over these replies does not measure a challenge.
        review_exclusions: arms of ``apart`` that change no answer, each with the reason for a
            review sheet.
        by_arm: arms that are separate conversations, whose turns offer options one after another.
            Empty if every path is a conversation. Only some conversations have later turns.
        whole: function from a turns table to the complete conversations of ``by_arm``, as rows
            with the columns ``TURN`` and ``arm``.
        continues: arms that continue from a turn of another arm, or of the same arm at another
            path.
        plain: arms whose answers ``compare`` counts as accuracy, starting with the arms that serve
            as first answers. None means all arms.
        outcomes: function from a turns table to further outcomes for ``compare``, as rows with the
            columns ``UNIT`` and ``hit``.
        held: measure of ``outcomes`` for right answers after the whole conversation, at the last
            attempt if there are several.
        flipped: measure of ``outcomes`` for wrong options chosen instead of the earlier answer.
        updated: measure of ``outcomes`` for right options chosen instead of the earlier answer.
        outcome_words: sentence that explains these three measures.
    """

    protocol: str
    title: str = ""
    stops_early: bool = False
    abstains: bool = False
    helpers: tuple[str, ...] = ()
    apart: Mapping[str, str] = field(default_factory=dict)
    review_exclusions: Mapping[str, str] = field(default_factory=dict)
    by_arm: tuple[str, ...] = ()
    whole: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    continues: Mapping[str, str] = field(default_factory=dict)
    plain: tuple[str, ...] | None = None
    outcomes: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    held: str = ""
    flipped: str = ""
    updated: str = ""
    outcome_words: str = ""


@until_declared
def every() -> Mapping[str, TurnsOf]:
    """Return the declarations of all protocols, by protocol name."""
    return {declaration.protocol: declaration for declaration in found_in(declaring(), TurnsOf)}


def turns_of(protocol: str) -> TurnsOf:
    """Return a protocol's declaration, or an empty one if the protocol declares nothing."""
    return every().get(protocol) or TurnsOf(protocol)


def in_arms(arms: Callable[[TurnsOf], Collection[str]]) -> pl.Expr:
    """Whether a turn belongs to certain arms of its protocol, from ``protocol`` and ``arm``.

    Args:
        arms: function from a protocol's declaration to these arms.
    """
    conditions = (
        (pl.col("protocol") == name) & pl.col("arm").is_in(list(arms(declaration)))
        for name, declaration in every().items()
        if arms(declaration)
    )
    return pl.any_horizontal(pl.lit(value=False), *conditions)


def protocols(condition: Callable[[TurnsOf], object]) -> list[str]:
    """Return the names of the protocols whose declaration meets a condition.

    Args:
        condition: function from a protocol's declaration to a truth value.
    """
    return [name for name, declaration in every().items() if condition(declaration)]
