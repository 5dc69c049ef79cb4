"""Ends the whole process when one of its threads fails, or its terminal closes.

One that has lost a thread looks alive from outside and serves nobody; one that has ended is started again by the node.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import traceback

FAILED = 70
"""Exit code: a thread of the process met an error that nobody had thought of."""


def die_together() -> None:
    """From now on an error that ends a thread ends the process; what it was goes to standard error."""

    def end(failed: threading.ExceptHookArgs) -> None:
        name = failed.thread.name if failed.thread else "?"
        traceback.print_exception(failed.exc_type, failed.exc_value, failed.exc_traceback)
        print(f"the thread {name} has failed: {failed.exc_type.__name__}", file=sys.stderr, flush=True)
        os._exit(FAILED)

    threading.excepthook = end


def die_with_terminal() -> None:
    """From now on the end of the terminal is the end of the process.

    The kernel sees to that only where it is the controlling terminal; elsewhere a screen that nobody sees would be
    drawn for ever, and so it would be under `nohup`.
    """
    if not sys.stdin.isatty():
        return
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    gone = select.poll()
    gone.register(sys.stdin.fileno(), 0)  # a hang-up is told in any case

    def end() -> None:
        gone.poll()
        os.kill(os.getpid(), signal.SIGHUP)

    threading.Thread(target=end, name="terminal", daemon=True).start()
