"""Errors a user can act on: what went wrong, where, and the remedy, in one line."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit


class HoldfastError(Exception):
    """Base of every error that the command line shows as a single line (exit code 2)."""


@dataclass(eq=False)
class InputError(HoldfastError):
    """Something the user handed in cannot be used.

    Attributes:
        fault: the fault, as a sentence without a full stop.
        file: the file or source it was found in.
        row: 1-based row (line of a JSONL file, data row of a table).
        field: the column or key.
        remedy: what to do about it, as a sentence without a full stop.
    """

    fault: str
    file: str | None = None
    row: int | None = None
    field: str | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        """One line: place, fault, remedy."""
        place = ", ".join(
            part
            for part in (
                self.file,
                f"row {self.row}" if self.row is not None else None,
                self._named_field(),
            )
            if part
        )
        sentences = [f"{place}: {self.fault}" if place else self.fault, self.remedy or ""]
        sentences_ended = (s if s.endswith(("?", "!")) else f"{s}." for s in sentences if s)
        return printable(" ".join(" ".join(sentences_ended).split()))

    def _named_field(self) -> str | None:
        if self.field is None or self.file is None:
            return self.field
        return f"field '{self.field}'"


class BudgetExceededError(HoldfastError):
    """The run's budget is spent; what is finished is kept and the run can be resumed."""


class IncompleteRunError(HoldfastError):
    """Some questions could not be finished; the same command resumes them (exit code 3)."""


class InterruptedRunError(HoldfastError):
    """The user stopped the run; the same command resumes it (exit code 130)."""

    def __str__(self) -> str:
        """One line."""
        return "Interrupted. Repeat the command to resume."


def printable(text: str, *, lines: bool = False) -> str:
    """The text with controls and lone surrogates escaped.

    What is quoted came from a file: it must not steer the terminal.

    Args:
        text: any string.
        lines: whether it may have several lines.
    """
    if text.isprintable():
        return text
    control_characters = "\n" if lines else ""
    return "".join(
        c if c.isprintable() or c in control_characters else f"\\u{ord(c):04x}" for c in text
    )


def unwritable(file: str, error: OSError, option: str = "--log-dir") -> InputError:
    """The error of a file or folder that cannot be written.

    Args:
        file: which.
        error: what the system says.
        option: what the user can give another of.
    """
    reason = error.strerror or error
    return InputError(f"cannot be written ({reason})", file, remedy=f"Give another {option}")


def redirected(url: str, location: str) -> tuple[str, str]:
    """What is wrong where a server redirects a request, and the remedy.

    Args:
        url: where the request went.
        location: where the server sends it, relative to the URL or not.
    """
    start = urlsplit(url)
    try:
        target = urlsplit(urljoin(url, location))
    except ValueError:  # brackets
        target = start
    source_host, target_host = (
        f"{p.scheme}://{p.netloc.rpartition('@')[2]}" for p in (start, target)
    )
    path = target.path[:200]
    base = f"{target_host}{path}".removesuffix("/").removesuffix("/chat/completions")
    return (
        printable(f"{source_host} redirects to {target_host}{path}"),
        "redirects are not followed, because prompts and keys would go to a server that you "
        f"did not name. If you trust it, set the base URL to {printable(base)}",
    )


def unknown(noun: str, name: str, names: Iterable[str], field: str) -> InputError:
    """The error of a name that nothing has, with the nearest of those that something has.

    Args:
        noun: kind of thing, such as ``table``.
        name: the name given.
        names: those that there are.
        field: the option that gave it.
    """
    return InputError(f"unknown {noun} '{name}'", field=field, remedy=did_you_mean(name, names))


def in_one_line(error: BaseException, limit: int = 200) -> str:
    """What an error of somebody else's says, to be quoted in a line of ours."""
    return " ".join(str(error).split())[:limit]


def counted(n: int, noun: str) -> str:
    """``1 question``, ``2 questions``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A remedy that offers the nearest known names, or all of them when few or none is near."""
    choices = sorted(names)
    near = difflib.get_close_matches(name, choices, n=3, cutoff=0.6)
    near = near or [choice for choice in choices if name and name in choice][:3]
    if near:
        return "Did you mean " + " or ".join(f"'{choice}'" for choice in near) + "?"
    return "Known: " + ", ".join(choices)
