"""A pool of daemon threads for ``--agent-concurrency``, and how a process ends when calls do not."""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pytest_agenteval.support import clock

T = TypeVar("T")


class CallFuture(Future[T], Generic[T]):
    """A future that knows its key and whether anyone took its result."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self.used = False

    def result(self, timeout: float | None = None) -> T:
        """Return the result as ``Future.result`` does; a result that was asked for counts as used."""
        self.used = True
        return super().result(timeout)


@dataclass(frozen=True, slots=True)
class PoolReport:
    """How a pool ended, by the keys of its calls.

    ``cancelled`` never began, ``abandoned`` were still running, ``unused`` were finished (and paid)
    but no one asked for them.
    """

    cancelled: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return ``2 calls cancelled, 1 abandoned (total_revenue), 3 finished unused``; '' for none."""
        parts = [f"{len(self.cancelled)} cancelled" if self.cancelled else ""]
        if self.abandoned:
            parts.append(f"{len(self.abandoned)} abandoned ({', '.join(self.abandoned)})")
        if self.unused:
            parts.append(f"{len(self.unused)} finished unused")
        shown = ", ".join(part for part in parts if part)
        return f"agent calls: {shown}" if shown else ""


class CallPool:
    """At most ``size`` calls at once, in order of ``submit``, in daemon threads.

    ``window`` is how many items may have been submitted beyond the running one: 4 x size, or size
    when the run stops at a failure, since calls begun for nothing are paid for.
    """

    def __init__(self, size: int, *, stops_early: bool = False) -> None:
        self.size = size
        self.window = size if stops_early else 4 * size
        self._lock = threading.Condition()
        self._waiting: deque[tuple[CallFuture[Any], contextvars.Context, Callable[[], Any]]] = deque()
        self._futures: list[CallFuture[Any]] = []
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._stopped = False

    def submit(self, key: str, fn: Callable[[], T]) -> CallFuture[T]:
        """Run ``fn`` in a copy of this context as soon as a thread is free.

        After ``stop`` the future is cancelled at once.
        """
        future: CallFuture[T] = CallFuture(key)
        with self._lock:
            # drop consumed results, answers may be large
            self._futures = [entry for entry in self._futures if not (entry.used and entry.done())]
            self._futures.append(future)
            if self._stopped:
                future.cancel()
                return future
            self._waiting.append((future, contextvars.copy_context(), fn))
            if len(self._waiting) > self._idle and len(self._threads) < self.size:
                number = len(self._threads)
                thread = threading.Thread(target=self._serve, name=f"agenteval-pool-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._lock.notify()
        return future

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
                while not self._waiting and not self._stopped:
                    self._lock.wait()
                self._idle -= 1
                if self._stopped:
                    return
                future, context, fn = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = context.run(fn)
            except BaseException as error:  # the thread that waits for the future gets it
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
            del future, context, fn

    def stop(self) -> None:
        """Begin no further call: -x, Ctrl-C, an exhausted budget. What runs goes on."""
        with self._lock:
            self._stopped = True
            waiting = [future for future, _, _ in self._waiting]
            self._waiting.clear()
            self._lock.notify_all()
        for future in waiting:
            future.cancel()

    def shutdown(self, wait: float = 2.0) -> PoolReport:
        """Stop, wait at most ``wait`` seconds for what runs, and say what became of every call."""
        self.stop()
        end = clock.monotonic() + wait
        for thread in self._threads:
            thread.join(max(end - clock.monotonic(), 0))
        return PoolReport(
            cancelled=tuple(f.key for f in self._futures if f.cancelled()),
            abandoned=tuple(f.key for f in self._futures if not f.done()),
            unused=tuple(f.key for f in self._futures if f.done() and not f.cancelled() and not f.used),
        )


def leave_hard_at_exit(status: Callable[[], int]) -> None:
    """Register the last word of a process in which abandoned calls still run.

    Flushes logging and the standard streams, then ``os._exit(status())``: a C extension in an
    abandoned daemon thread aborts the interpreter otherwise while it shuts down.
    """

    def leave() -> None:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(status())

    atexit.register(leave)
