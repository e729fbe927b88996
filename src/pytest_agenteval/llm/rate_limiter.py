"""One pace per endpoint inside a process: after 429 everybody slows down, then speeds up again."""

from __future__ import annotations

import threading

from pytest_agenteval.support import clock

FIRST_GAP = 0.1  # seconds between two requests after the first 429
LARGEST_GAP = 10.0
SPEED_UP = 0.8


class RateLimiter:
    """Spaces the requests to one endpoint.

    ``slow_down`` doubles the gap between requests and holds everybody back for what the endpoint
    asked; each success shortens the gap until there is none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gap = 0.0
        self._next = 0.0

    @property
    def gap(self) -> float:
        """Seconds between two requests; 0 when nothing holds them back."""
        return self._gap

    @property
    def pause(self) -> float:
        """Seconds until a request may be sent again."""
        return max(0.0, self._next - clock.monotonic())

    def reserve(self, latest: float) -> float | None:
        """Return when the next request may be sent (``time.monotonic()``);
        ``None``: not before ``latest``.
        """
        with self._lock:
            start = max(clock.monotonic(), self._next)
            if start >= latest:
                return None
            self._next = start + self._gap
            return start

    def slow_down(self, wait: float) -> None:
        """Slow down after a 429 that asks for (or is given) a wait of ``wait`` seconds."""
        with self._lock:
            self._gap = min(LARGEST_GAP, max(FIRST_GAP, self._gap * 2))
            self._next = max(self._next, clock.monotonic() + wait)

    def speed_up(self) -> None:
        """Speed up after a request that succeeded."""
        with self._lock:
            self._gap = 0.0 if self._gap < FIRST_GAP / 2 else self._gap * SPEED_UP


class RateLimiters:
    """The limiters of this process, one per endpoint (scheme, host and port)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, RateLimiter] = {}

    def of(self, endpoint: str) -> RateLimiter:
        """Return the limiter of ``endpoint``, made on first use."""
        with self._lock:
            return self._known.setdefault(endpoint, RateLimiter())
