"""The first replies of a run: where none names an option, the user is told while it runs."""

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

FIRST = 20
"""Replies of a model after which it is told."""


@dataclass
class FirstReplies:
    """Counts the replies of each model until one is read, or ``FIRST`` are not.

    Attributes:
        say: tells the user a line.
        unread: replies without a readable answer, by model.
        settled: models of which enough is known.
    """

    say: Callable[[str], None]
    unread: Counter[str] = field(default_factory=Counter)
    settled: set[str] = field(default_factory=set)

    def note(self, model: str, *, is_read: bool) -> None:
        """Count a reply."""
        if model in self.settled:
            return
        self.unread[model] += not is_read
        if is_read or self.unread[model] == FIRST:
            self.settled.add(model)
        if not is_read and model in self.settled:
            self.say(
                f"{model}: none of the first {FIRST} replies names an option. They are kept. Stop, "
                "and repeat the command with --model-role reader=MODEL, which has a second model "
                "read them; or read them afterwards with 'holdfast score'"
            )


first_replies: ContextVar[FirstReplies | None] = ContextVar("first_replies", default=None)
"""Those of the run under way; None where nobody is told."""
