"""SIGTERM and SIGHUP end a run as Ctrl-C does: results written, programs, copies and folders gone.

Stands apart: it is loaded by runs with cases only.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class EndSignals:
    """Turns the signals of a cancelled job, ``timeout``, ``docker stop`` and a closed terminal into Ctrl-C.

    A handler of somebody else stays. A second signal ends the process at once.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        """Take over the signals that nobody handles; harmless when that was done."""
        if threading.current_thread() is not threading.main_thread():
            return
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                self._before[number] = signal.signal(number, self._interrupt)

    def restore(self) -> None:
        """Give the signals back."""
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)
        self._before.clear()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.restore()
        raise KeyboardInterrupt(signal.Signals(number).name)
