"""Running one call within its deadline: in pytest's main thread, or in a thread that may be left behind."""

from __future__ import annotations

import contextlib
import contextvars
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from pytest_agenteval.agents.runtime.agent_errors import overdue, where, where_now
from pytest_agenteval.errors import AgentTimeout

T = TypeVar("T")

WATCHDOG_GRACE = 5.0
"""Seconds past the deadline after which the watchdog speaks, and after which the alarm repeats."""

CANCEL_GRACE = 1.0
"""Seconds a cancelled async agent has to end before its event loop counts as stuck."""


class Overdue(BaseException):
    """Raised inside the agent by the alarm; no ``except Exception`` of the agent stops it."""


def in_main_thread(
    work: Callable[[], T],
    deadline: float,
    timeout: float,
    *,
    grace: float = 0.0,
    on_overdue: Callable[[], None] | None = None,
    root: Path | None = None,
) -> T:
    """Run ``work`` here; an alarm ends it at ``deadline + grace`` (a ``time.monotonic()`` value).

    Best effort inside C code: Python delivers signals between bytecodes. ``on_overdue`` is called by a
    watchdog thread 5 s past the deadline when ``work`` still runs. Raises ``AgentTimeout``; also when
    ``work`` returned too late (no SIGALRM, an earlier alarm of somebody else, a swallowed ``Overdue``).
    """
    watchdog = _watchdog(deadline + grace, on_overdue)
    try:
        with _alarm(deadline + grace):
            result = work()
    except Overdue as error:
        raise overdue(timeout, where(error.__traceback__, root)) from None
    except Exception as error:
        if time.monotonic() > deadline + max(grace, 0.05) and not isinstance(error, AgentTimeout):
            raise overdue(timeout, where(error.__traceback__, root)) from error
        raise
    finally:
        if watchdog is not None:
            watchdog.cancel()
    if time.monotonic() > deadline + max(grace, 0.05):
        raise overdue(timeout, None)
    return result


def _watchdog(deadline: float, on_overdue: Callable[[], None] | None) -> threading.Timer | None:
    if on_overdue is None:
        return None
    timer = threading.Timer(max(deadline + WATCHDOG_GRACE - time.monotonic(), 0), on_overdue)
    timer.daemon = True
    timer.name = "agenteval-watchdog"
    timer.start()
    return timer


@contextlib.contextmanager
def _alarm(deadline: float) -> Iterator[None]:
    """SIGALRM at ``deadline``, unless somebody's earlier alarm is pending; theirs is restored after."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    started = time.monotonic()
    pending, interval = signal.getitimer(signal.ITIMER_REAL)
    seconds = max(deadline - started, 0.001)
    if 0 < pending <= seconds:
        yield
        return
    armed = True

    def ring(signum: int, frame: FrameType | None) -> None:
        if armed:
            raise Overdue

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, WATCHDOG_GRACE)
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
        left = pending - (time.monotonic() - started)
        if pending and left > 0:
            signal.setitimer(signal.ITIMER_REAL, left, interval)


class Worker(threading.Thread):
    """One call in a daemon thread of its own, in a copy of the caller's context."""

    def __init__(self, work: Callable[[], Any], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self._context = contextvars.copy_context()
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the call; its result or error stays here for whoever waits."""
        try:
            self.result = self._context.run(self._work)
        except BaseException as error:  # handed to the waiting thread, which raises it
            self.error = error
        finally:
            self.done.set()


def in_a_thread(
    work: Callable[[], T],
    deadline: float,
    timeout: float,
    *,
    name: str,
    grace: float = 0.0,
    started: Callable[[Worker], None] | None = None,
    root: Path | None = None,
) -> T:
    """Run ``work`` in a thread and wait until ``deadline + grace``; then it is left behind.

    ``started`` is told the thread. Raises ``AgentTimeout`` or what ``work`` raised.
    """
    worker = Worker(work, name)
    worker.start()
    if started is not None:
        started(worker)
    if not worker.done.wait(max(deadline + grace - time.monotonic(), 0)):
        frame = sys._current_frames().get(worker.ident or 0)
        raise overdue(timeout, where_now(frame, root))
    if worker.error is not None:
        raise worker.error
    result: T = worker.result
    return result
