"""Agents that cannot be reached: after a few equal errors in a row nobody is asked any more.

A server that is down, or a key that is not there, fails every case alike; the cases left are ``not_run``
instead of waiting for their own retries and filling the screen with one text.
"""

from __future__ import annotations

import re
import threading

from pytest_agenteval.errors import AgentFailed, AgentTimeout, RunStopped, SettingsError

ENOUGH = 3
"""Equal errors in a row after which the agent of a model is given up."""
GIVEN_UP = "not asked: the agent could not be reached"
_NO_WAY_IN = (401, 403)
_UNSET = re.compile(r"environment variable \S+ is not set|no API key")
_CONNECTING = ("Connect", "Authentication", "PermissionDenied")


class UnreachableAgents:
    """Counts, for each model, how often its agent could not be reached in a row."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_a_row: dict[str | None, tuple[str, int]] = {}

    def ended(self, model: str | None, why: str | None) -> None:
        """Count a case that has ended; ``why`` its agent could not be reached (``None``: it could)."""
        with self._lock:
            if why is None:
                self._in_a_row.pop(model, None)
                return
            same = re.sub(r"\d+", "#", why)
            before, count = self._in_a_row.get(model, ("", 0))
            self._in_a_row[model] = (why, count + 1 if re.sub(r"\d+", "#", before) == same else 1)

    def check(self, model: str | None) -> None:
        """Check that the agent was not given up. Raises ``RunStopped``."""
        with self._lock:
            why, count = self._in_a_row.get(model, ("", 0))
        if count >= ENOUGH:
            raise RunStopped(f"{GIVEN_UP} {count} times in a row ({why.splitlines()[0]})")


def is_unreachable(error: Exception) -> bool:
    """Return whether an error says that nobody was there, or let nobody in, rather than what went wrong."""
    if isinstance(error, SettingsError):
        return True
    if not isinstance(error, AgentFailed) or isinstance(error, AgentTimeout):
        return False
    requests = error.answer.wire_attempts if error.answer is not None else ()
    if requests:
        return all(request.status is None or request.status in _NO_WAY_IN for request in requests)
    cause: BaseException | None = error.__cause__
    while cause is not None:
        if isinstance(cause, ConnectionError | SettingsError):
            return True
        if any(word in type(cause).__name__ for word in _CONNECTING):
            return True
        cause = cause.__cause__
    return _UNSET.search(str(error)) is not None
