"""Where calls overlap, what an agent prints and logs belongs to its own case, not to the running item."""

from __future__ import annotations

import contextlib
import contextvars
import io
import logging
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, TextIO

LARGEST = 200_000
"""Characters kept of one call's output: the first half and the last half."""


class Output:
    """What one call printed and logged, in order; thread-safe.

    An agent may stream gigabytes: no more than the first and the last half of ``LARGEST`` are held.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: list[str] = []
        self._room = LARGEST // 2
        self._last: deque[str] = deque()
        self._held = self._left_out = 0

    def write(self, text: str) -> None:
        """Add ``text``."""
        half = LARGEST // 2
        with self._lock:
            if self._room:
                self._first.append(text[: self._room])
                text = text[self._room :]
                self._room -= len(self._first[-1])
            if len(text) > half:
                self._left_out += len(text) - half
                text = text[-half:]
            self._last.append(text)
            self._held += len(text)
            while self._held - len(self._last[0]) >= half:
                self._held -= len(self._last[0])
                self._left_out += len(self._last.popleft())

    def text(self) -> str:
        """Return all of it, the middle left out when it is very long."""
        half = LARGEST // 2
        with self._lock:
            first, last = "".join(self._first), "".join(self._last)
            left_out = self._left_out + max(len(last) - half, 0)
        if not left_out:
            return first + last
        return f"{first}\n... {left_out} characters ...\n{last[-half:]}"


class OutputRouter:
    """Sends prints and log records made inside ``capture()`` to that call's ``Output``.

    Works by context variable, so it follows ``asyncio`` tasks and ``copy_context``. pytest replaces
    ``sys.stdout`` whenever it switches its capturing: ``install`` is called again then.

    A stream gets one ``Routed`` for the life of the router. ``print`` uses ``sys.stdout`` without holding
    a reference: an object that is freed while another thread prints through it crashes the process.
    """

    def __init__(self) -> None:
        self._current: contextvars.ContextVar[Output | None] = contextvars.ContextVar(
            "agenteval_output", default=None
        )
        self._handler = _Handler(self._current)
        self._filter = _Elsewhere(self._current)
        self._filtered: list[logging.Handler] = []
        self._routed: dict[int, Routed] = {}
        self._lock = threading.Lock()
        self._removed = False

    @contextlib.contextmanager
    def capture(self) -> Iterator[Output]:
        """Send this context's prints and log records to the ``Output`` that is given."""
        self.install()
        output = Output()
        token = self._current.set(output)
        try:
            yield output
        finally:
            self._current.reset(token)

    def install(self) -> None:
        """Put the router in place; harmless when it is there already."""
        with self._lock:
            if self._removed:
                return
            for name in ("stdout", "stderr"):
                self.route(sys, name)
            root = logging.getLogger()
            if self._handler not in root.handlers:
                root.addHandler(self._handler)
            for handler in root.handlers:
                if handler is not self._handler and handler not in self._filtered:
                    handler.addFilter(self._filter)
                    self._filtered.append(handler)

    def route(self, holder: Any, name: str) -> None:
        """Put the router before the stream that is an attribute of ``holder``."""
        stream = getattr(holder, name)
        if stream is None or isinstance(stream, Routed):
            return
        # it holds its target, so the target's id is never given to another object
        routed = self._routed.setdefault(id(stream), Routed(stream, self._current))
        setattr(holder, name, routed)

    def remove(self) -> None:
        """Take everything out again, for good."""
        with self._lock:
            self._removed = True
            for name in ("stdout", "stderr"):
                stream = getattr(sys, name)
                if isinstance(stream, Routed):
                    setattr(sys, name, stream.target)
            logging.getLogger().removeHandler(self._handler)
            for handler in self._filtered:
                handler.removeFilter(self._filter)
            self._filtered.clear()


class Routed(io.TextIOBase):
    """A text stream that writes to the current call's output, else to ``target``."""

    def __init__(self, target: TextIO, current: contextvars.ContextVar[Output | None]) -> None:
        self.target = target
        self._current = current

    def write(self, text: str) -> int:
        """Write ``text`` where it belongs; returns its length."""
        output = self._current.get()
        if output is None:
            return self.target.write(text)
        output.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the target, unless pytest has closed it meanwhile."""
        if not self.target.closed:
            self.target.flush()

    def writable(self) -> bool:
        """Return true."""
        return True

    def isatty(self) -> bool:
        """Ask the target."""
        return self.target.isatty()

    def fileno(self) -> int:
        """Ask the target."""
        return self.target.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Ask the target."""
        return self.target.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """Ask the target."""
        return self.target.errors

    @property
    def closed(self) -> bool:
        """Never: code that closes it means the target."""
        return False

    def close(self) -> None:
        """Do nothing: the target stays open."""


class _Handler(logging.Handler):
    def __init__(self, current: contextvars.ContextVar[Output | None]) -> None:
        super().__init__()
        self._current = current
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        output = self._current.get()
        if output is not None:
            output.write(self.format(record) + "\n")


class _Elsewhere(logging.Filter):
    """Keeps records of a routed call out of the running item's handlers."""

    def __init__(self, current: contextvars.ContextVar[Output | None]) -> None:
        super().__init__()
        self._current = current

    def filter(self, record: logging.LogRecord) -> bool:
        return self._current.get() is None
