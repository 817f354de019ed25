"""The command line: one module for each command, thin."""

import gc
import os
import signal
import sys
import threading

from holdfast.errors import HoldfastError, IncompleteRunError, InterruptedRunError, printable

BAD_INPUT, INCOMPLETE, INTERRUPTED_CODE = 2, 3, 130

_GARBAGE = 10_000, 10, 10
"""How often garbage is looked for; as often as Python has it, it is a sixth of a call's time.

Among the youngest objects, after so many more; among older ones, after so many such looks. Of
all, the modules are most, and loading them would have them looked through several times.
"""


def main() -> None:
    """Run the command line; exits with the codes that the documentation lists."""
    gc.set_threshold(*_GARBAGE)
    if threading.current_thread() is threading.main_thread():
        _end_as_by_ctrl_c()
    try:
        from .app import called  # here, so that an interrupt while it loads ends in one line too

        sys.exit(called())
    except InterruptedRunError as error:
        _end(str(error), INTERRUPTED_CODE)
    except IncompleteRunError as error:
        _end(str(error), INCOMPLETE)
    except HoldfastError as error:
        _end(str(error), BAD_INPUT)
    except KeyboardInterrupt:
        _end(str(InterruptedRunError()), INTERRUPTED_CODE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _end_as_by_ctrl_c() -> None:
    """Have a scheduler's SIGTERM, and SIGHUP of a lost terminal, end a command as Ctrl-C does."""
    terminals = [stream for stream in (1, 2) if os.isatty(stream)]

    def interrupt(number: int, _: object) -> None:
        if number != signal.SIGTERM:  # writing to a lost terminal would fail
            null = os.open(os.devnull, os.O_WRONLY)
            for stream in terminals:
                os.dup2(null, stream)
        signal.raise_signal(signal.SIGINT)

    # a script's shell has what it starts in the background ignore Ctrl-C, by which the others end
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, interrupt)
    # nohup has a command ignore it, and Windows has none
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)


def _end(message: str, code: int) -> None:
    sys.stderr.write(f"holdfast: {printable(message)}\n")
    sys.exit(code)


__all__ = ["main"]
