"""Arms: what measures and exports that serve every protocol must know of its turns."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import polars as pl

from holdfast.lookups import until_declared
from holdfast.registry import declaring, found_in


@dataclass(frozen=True)
class TurnsOf:
    """A protocol's turns, where they are not plain questions and challenges to their answers.

    Attributes:
        protocol: its name in the turns table.
        title: heading of its part of a table of accuracies; without one its name.
        stops_early: whether an answer that is not the target ends its conversation, so that what
            would have followed is not asked. Tables count a conversation that has ended with its
            last answer.
        abstains: whether ``NA`` (none of the above) can be an answer.
        helpers: arms of the replies of models that help with the study, which hold no answer.
        apart: arms that its own measures alone read, helpers among them, each with the words in
            which an export of training data says why it leaves them out. They are replies of
            helpers, probes, and answers to texts that were put because an answer had been right so
            far: whatever averages over them says nothing of a challenge.
        review_exclusions: those of ``apart`` that move no answer, with the words of a sheet for
            review.
        by_arm: arms that are conversations of their own, whose turns put one thing after another;
            none where every path is a conversation. Later turns are asked of a selection.
        whole: rows with the columns ``TURN`` and ``arm`` of those conversations of ``by_arm`` that
            are whole, from a turns table.
        continues: arms that go on from a turn of another arm, or of themselves at another path.
        plain: arms whose answers ``compare`` counts as accuracy, first of all those that stand for
            first answers; all, with None.
        outcomes: what else ``compare`` counts, from a turns table: rows with the columns ``UNIT``
            and ``hit``.
        held: the measure of ``outcomes`` that is right answers after all that is put to them, at
            its last attempt where there are several.
        flipped: that of wrong options taken in place of what was answered.
        updated: that of right options taken so.
        outcome_words: what these three are, in words.
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
    """What is declared of the turns of protocols, by protocol."""
    return {declaration.protocol: declaration for declaration in found_in(declaring(), TurnsOf)}


def turns_of(protocol: str) -> TurnsOf:
    """What is declared of a protocol's turns; nothing, of one that declares nothing."""
    return every().get(protocol) or TurnsOf(protocol)


def in_arms(arms: Callable[[TurnsOf], Collection[str]]) -> pl.Expr:
    """Whether a turn is of certain arms of its protocol, from ``protocol`` and ``arm``.

    Args:
        arms: these, from what is declared of a protocol.
    """
    conditions = (
        (pl.col("protocol") == name) & pl.col("arm").is_in(list(arms(declaration)))
        for name, declaration in every().items()
        if arms(declaration)
    )
    return pl.any_horizontal(pl.lit(value=False), *conditions)


def protocols(condition: Callable[[TurnsOf], object]) -> list[str]:
    """The protocols whose turns are declared to be so.

    Args:
        condition: what is looked for in what is declared of a protocol.
    """
    return [name for name, declaration in every().items() if condition(declaration)]
