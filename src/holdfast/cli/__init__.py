"""The command line: one module for each command, thin."""

import gc
import sys

from holdfast.errors import HoldfastError, IncompleteRunError, InterruptedRunError, printable

BAD_INPUT, INCOMPLETE, INTERRUPTED = 2, 3, 130

_YOUNG = 20_000
"""Objects made before garbage is looked for; at Python's 700 that is a sixth of a call's time."""


def main() -> None:
    """Run the command line; exits with the codes that the documentation lists."""
    gc.set_threshold(10_000, 10, 3)
    try:
        from .app import app  # here, so that an interrupt while it loads ends in one line too

        app()
    except InterruptedRunError as error:
        _end(str(error), INTERRUPTED)
    except IncompleteRunError as error:
        _end(str(error), INCOMPLETE)
    except HoldfastError as error:
        _end(str(error), BAD_INPUT)
    except KeyboardInterrupt:
        _end(str(InterruptedRunError()), INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _end(message: str, code: int) -> None:
    sys.stderr.write(f"holdfast: {printable(message)}\n")
    sys.exit(code)


__all__ = ["main"]
