"""The real clock, whatever freezegun or time-machine make of ``time`` and ``datetime`` while a case runs.

Questions about "last month" invite a frozen clock; durations, deadlines and the stamps of results are of
this world all the same, as pytest's own are. The functions are kept where freezegun does not look for them
(it replaces the names of modules), so this module must be loaded before any fixture runs.
"""

from __future__ import annotations

import datetime
import sys
import time
from typing import Any


class _Real:
    """What the clocks were when this module was loaded."""

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)
    utc = datetime.UTC
    datetime = datetime.datetime


def _escape() -> Any:
    """Return time-machine's way out of its own travels; ``None`` where it is not in use."""
    machine = sys.modules.get("time_machine")
    hatch = getattr(machine, "escape_hatch", None)
    return hatch if hatch is not None and hatch.is_travelling() else None


def monotonic() -> float:
    """Return the seconds of ``time.monotonic()``: deadlines and durations are in it."""
    return _Real.monotonic()


def epoch() -> float:
    """Return the seconds since 1970."""
    hatch = _escape()
    return float(_Real.time() if hatch is None else hatch.time.time())


def now() -> datetime.datetime:
    """Return the time now, in UTC and aware of it."""
    hatch = _escape()
    found: datetime.datetime = (_Real.datetime if hatch is None else hatch.datetime.datetime).now(_Real.utc)
    return found
