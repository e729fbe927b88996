"""A counterexample down to the rows it needs."""

from __future__ import annotations

import time
from collections.abc import Callable

from pytest_agenteval.trust.schema import Rows


def shrink(rows: Rows, valid: Callable[[Rows], Rows], holds: Callable[[Rows], bool], deadline: float) -> Rows:
    """Return a smallest part of ``rows`` (no single row can go) for which ``holds``, or what time allows.

    ``valid`` drops what a deletion leaves without its parents.
    """
    best = rows
    for part in (2, 3, 1):
        best = _deleted(best, part, valid, holds, deadline)
    return best


def _deleted(
    rows: Rows, parts: int, valid: Callable[[Rows], Rows], holds: Callable[[Rows], bool], deadline: float
) -> Rows:
    """Delete a table's rows in ``parts`` pieces (1: row by row) as long as the difference stays."""
    best, changed = rows, True
    while changed and time.monotonic() < deadline:
        changed = False
        for table in sorted(best, key=lambda name: -len(best[name])):
            count = len(best[table])
            step = 1 if parts == 1 else max(1, count // parts)
            start = 0
            while start < len(best[table]) and time.monotonic() < deadline:
                kept = best[table][:start] + best[table][start + step :]
                candidate = valid({**best, table: kept})
                if holds(candidate):
                    best, changed = candidate, True
                else:
                    start += step
    return best
