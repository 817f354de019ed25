"""Errors that users can act on, each with place, fault and remedy in one line."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit


class HoldfastError(Exception):
    """Base class of errors that the command line shows as one line (exit code 2)."""


@dataclass(eq=False)
class InputError(HoldfastError):
    """Error in something that the user provided.

    Attributes:
        fault: the fault, as a sentence or predicate without a full stop.
        file: file or source with the fault.
        row: 1-based row (line of a JSONL file, data row of a table).
        field: column, key or option with the fault.
        remedy: an instruction that fixes the fault, without a full stop.
    """

    fault: str
    file: str | None = None
    row: int | None = None
    field: str | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        """Return place, fault and remedy in one line."""
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
    """Error if the budget of the run is spent. Finished work is kept and the run is resumable."""


class IncompleteRunError(HoldfastError):
    """Error if some questions are unfinished. The same command resumes them (exit code 3)."""


class InterruptedRunError(HoldfastError):
    """Error if the user stopped the run. The same command resumes it (exit code 130)."""

    def __str__(self) -> str:
        """Return the message in one line."""
        return "Interrupted. Repeat the command to resume."


def printable(text: str, *, lines: bool = False) -> str:
    """Return the text with control characters and lone surrogates escaped.

    Text from a file must not control the terminal.

    Args:
        text: any string.
        lines: whether to keep line breaks.
    """
    if text.isprintable():
        return text
    control_characters = "\n" if lines else ""
    return "".join(
        c if c.isprintable() or c in control_characters else f"\\u{ord(c):04x}" for c in text
    )


def unwritable(file: str, error: OSError, option: str = "--log-dir") -> InputError:
    """Return the error for a file or folder that cannot be written.

    Args:
        file: the file or folder.
        error: error of the operating system.
        option: option that names the file or folder.
    """
    reason = error.strerror or error
    return InputError(f"cannot be written ({reason})", file, remedy=f"Give another {option}")


def redirected(url: str, location: str) -> tuple[str, str]:
    """Return fault and remedy for a request that a server redirects.

    Args:
        url: URL of the request.
        location: target of the redirect, absolute or relative to the URL.
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
        "holdfast does not follow redirects, because prompts and keys would go to a server that "
        f"you did not name. If you trust the server, set the base URL to {printable(base)}",
    )


def unknown(noun: str, name: str, names: Iterable[str], field: str) -> InputError:
    """Return the error for an unknown name, with the nearest known names as remedy.

    Args:
        noun: kind of thing, such as ``table``.
        name: unknown name.
        names: known names.
        field: option with the unknown name.
    """
    return InputError(f"unknown {noun} '{name}'", field=field, remedy=did_you_mean(name, names))


def in_one_line(error: BaseException, limit: int = 200) -> str:
    """Return the message of another library's error in one line, cut at ``limit`` characters."""
    return " ".join(str(error).split())[:limit]


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 question`` or ``2 questions``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a remedy with the nearest known names, or with all names if none is near."""
    choices = sorted(names)
    near = difflib.get_close_matches(name, choices, n=3, cutoff=0.6)
    near = near or [choice for choice in choices if name and name in choice][:3]
    if near:
        return "Did you mean " + " or ".join(f"'{choice}'" for choice in near) + "?"
    return "Known: " + ", ".join(choices)
