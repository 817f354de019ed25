"""Entry point of the command line: signals, exit codes and one-line errors."""

import gc
import os
import signal
import sys
import threading

from holdfast.errors import HoldfastError, IncompleteRunError, InterruptedRunError, printable

BAD_INPUT, INCOMPLETE, INTERRUPTED_CODE = 2, 3, 130

_GARBAGE = 10_000, 10, 10
"""Thresholds of Python's garbage collector, one for each generation of objects.

With Python's defaults, collection takes a sixth of a call's time, because loading the modules
triggers several full passes.
"""


def main() -> None:
    """Run the command line and exit with a documented exit code."""
    gc.set_threshold(*_GARBAGE)
    if threading.current_thread() is threading.main_thread():
        _end_as_by_ctrl_c()
    try:
        from .app import called  # imported here so that an interrupt while loading is caught too

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
    """Make SIGTERM from a scheduler and SIGHUP from a lost terminal act like Ctrl-C."""
    terminals = [stream for stream in (1, 2) if os.isatty(stream)]

    def interrupt(number: int, _: object) -> None:
        if number != signal.SIGTERM:  # writing to a lost terminal would fail
            null = os.open(os.devnull, os.O_WRONLY)
            for stream in terminals:
                os.dup2(null, stream)
        signal.raise_signal(signal.SIGINT)

    # a shell script starts background commands with SIGINT ignored, and the handlers raise SIGINT
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, interrupt)
    # nohup sets SIGHUP to ignored, and Windows lacks SIGHUP
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)


def _end(message: str, code: int) -> None:
    sys.stderr.write(f"holdfast: {printable(message)}\n")
    sys.exit(code)


__all__ = ["main"]
