"""Run one call within its deadline: in pytest's main thread, or in a thread that may be left behind."""

from __future__ import annotations

import contextlib
import contextvars
import faulthandler
import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from pytest_agenteval.agents.runtime.agent_errors import ends_run, overdue, where, where_now
from pytest_agenteval.errors import AgentTimeout
from pytest_agenteval.support import clock

T = TypeVar("T")

INTERRUPT_GRACE = 0.5
"""Seconds past the deadline after which the watchdog interrupts queries."""

WATCHDOG_GRACE = 5.0
"""Seconds past the deadline after which the timeout is written down, and after which the alarm repeats."""

STUCK_GRACE = 30.0
"""Seconds past the deadline after which code in the main thread that does not come back ends the process."""

LOCK_GRACE = 60.0
"""Seconds past all deadlines after which code that holds the interpreter's lock ends the process."""

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
    on_stuck: Callable[[], None] | None = None,
    root: Path | None = None,
) -> T:
    """Run ``work`` here; an alarm ends it at ``deadline + grace`` (a ``time.monotonic()`` value).

    Python delivers signals between bytecodes, so code in C may not notice: a watchdog thread interrupts
    the database connections that ``work`` is in, calls ``on_overdue`` 5 s past the deadline, and
    ``on_stuck``, which ends the process, 30 s past it. Raises ``AgentTimeout``; also when ``work``
    returned too late (no SIGALRM, an earlier alarm of someone else, a swallowed ``Overdue``), and
    whatever a library makes of the alarm.
    """
    alarm = _Alarm(deadline + grace)
    watchdog = Watchdog(deadline + grace, on_overdue, on_stuck)
    watchdog.start()
    try:
        with alarm.set():
            result = work()
    except Overdue as error:
        raise overdue(timeout, where(error.__traceback__, root)) from None
    except BaseException as error:
        late = alarm.rang or clock.monotonic() > deadline + max(grace, 0.05)
        if late and not ends_run(error) and not isinstance(error, AgentTimeout):
            raise overdue(timeout, where(error.__traceback__, root)) from error
        raise
    finally:
        watchdog.cancel()
    if alarm.rang or clock.monotonic() > deadline + max(grace, 0.05):
        raise overdue(timeout, None)
    return result


class Watchdog(threading.Thread):
    """Looks after code in the main thread that does not come back to Python at its deadline."""

    def __init__(
        self,
        deadline: float,
        on_overdue: Callable[[], None] | None = None,
        on_stuck: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(name="agenteval-watchdog", daemon=True)
        self._deadline = deadline
        self._on_overdue = on_overdue
        self._on_stuck = on_stuck
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Stop: the code has come back."""
        self._cancelled.set()

    def run(self) -> None:
        """Wait for the next measure, until the code comes back."""
        measures = [
            (INTERRUPT_GRACE, interrupt_connections),
            (WATCHDOG_GRACE, self._on_overdue),
            (STUCK_GRACE, self._on_stuck),
        ]
        for seconds, measure in sorted(measures, key=lambda entry: entry[0]):
            if self._cancelled.wait(max(self._deadline + seconds - clock.monotonic(), 0)):
                return
            if measure is not None:
                measure()


def interrupt_connections() -> None:
    """Interrupt the DuckDB and SQLite connections that the frames of the main thread hold.

    DuckDB notices a signal between two tasks of a query, and not while it waits for them.
    """
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None:
        with contextlib.suppress(Exception):  # an embedded query may hold or have closed it
            duckdb.default_connection().interrupt()
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        held = list(frame.f_locals.values())
        for value in (*held, *itertools.chain.from_iterable(map(vars_of, held)), *frame.f_globals.values()):
            if type(value).__name__ in _CONNECTIONS and type(value).__module__ in _DATABASE_MODULES:
                with contextlib.suppress(Exception):  # closed by now
                    value.interrupt()
        frame = frame.f_back


def vars_of(value: Any) -> list[Any]:
    """Return what the attributes of an object hold, without running any of its code."""
    attributes = getattr(value, "__dict__", None) if not isinstance(value, type(sys)) else None
    return list(attributes.values()) if isinstance(attributes, dict) else []


_CONNECTIONS = ("DuckDBPyConnection", "Connection")
_DATABASE_MODULES = ("_duckdb", "duckdb", "duckdb.duckdb", "sqlite3")


class _Alarm:
    """SIGALRM at ``deadline``, unless somebody's earlier alarm is pending; theirs is restored after.

    ``rang``: it went off, whatever became of the exception that it raised in the agent.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self.rang = False

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        """Set it for as long as the block runs."""
        if not hasattr(signal, "setitimer"):
            yield
            return
        started = clock.monotonic()
        pending, interval = signal.getitimer(signal.ITIMER_REAL)
        seconds = max(self._deadline - started, 0.001)
        if 0 < pending <= seconds:
            yield
            return
        armed = True

        def ring(signum: int, frame: FrameType | None) -> None:
            if armed:
                self.rang = True
                raise Overdue

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, WATCHDOG_GRACE)
        try:
            yield
        finally:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
            left = pending - (clock.monotonic() - started)
            if pending and left > 0:
                signal.setitimer(signal.ITIMER_REAL, left, interval)


class ProcessLimit:
    """Ends the process when a call is far past its deadline and holds the interpreter's lock.

    No thread of Python runs then, no deadline holds, no signal is handled: a regular expression that
    backtracks in a thread is enough. ``faulthandler`` has a thread in C. It writes where all threads are
    to ``report``, a file descriptor, and exits with status 1.
    """

    def __init__(self, report: int) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._deadlines: list[float] = []

    @contextlib.contextmanager
    def around(self, deadline: float) -> Iterator[None]:
        """Provide guard a call that is to end at ``deadline``."""
        with self._lock:
            self._deadlines.append(deadline)
            self._arm()
        try:
            yield
        finally:
            with self._lock:
                self._deadlines.remove(deadline)
                self._arm()

    def _arm(self) -> None:
        if not self._deadlines:
            faulthandler.cancel_dump_traceback_later()
            return
        seconds = max(self._deadlines) + LOCK_GRACE - clock.monotonic()
        faulthandler.dump_traceback_later(max(seconds, 1.0), exit=True, file=self._report)


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
        """Run the call; its result or error stays here for the thread that waits."""
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

    ``started`` is called with the thread. Raises ``AgentTimeout`` or what ``work`` raised.
    """
    worker = Worker(work, name)
    worker.start()
    if started is not None:
        started(worker)
    if not worker.done.wait(max(deadline + grace - clock.monotonic(), 0)):
        frame = sys._current_frames().get(worker.ident or 0)
        raise overdue(timeout, where_now(frame, root))
    if worker.error is not None:
        raise worker.error
    result: T = worker.result
    return result
