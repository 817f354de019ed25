"""The command line: one module for each command, thin."""

import gc
import signal
import sys
import threading

from holdfast.errors import HoldfastError, IncompleteRunError, InterruptedRunError, printable

BAD_INPUT, INCOMPLETE, INTERRUPTED = 2, 3, 130

_GARBAGE = 10_000, 10, 10
"""How often garbage is looked for; as often as Python has it, it is a sixth of a call's time.

Among the youngest objects, after so many more; among older ones, after so many such looks. Of
all, the modules are most, and loading them would have them looked through several times.
"""


def main() -> None:
    """Run the command line; exits with the codes that the documentation lists."""
    gc.set_threshold(*_GARBAGE)
    if threading.current_thread() is threading.main_thread():
        # schedulers end a job with it; what Ctrl-C leaves behind, it leaves too
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        from .app import called  # here, so that an interrupt while it loads ends in one line too

        sys.exit(called())
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
