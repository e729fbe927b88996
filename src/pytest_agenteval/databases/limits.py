"""What the engines share: the time limit, the row limit, and the type of a column from its values."""

from __future__ import annotations

import contextvars
import datetime
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar

from pytest_agenteval.errors import DatabaseError, QueryLimitReached

T = TypeVar("T")


class QueryTimer:
    """Whether the time of a query ran out."""

    __slots__ = ("fired",)

    def __init__(self) -> None:
        self.fired = False


@contextmanager
def time_limit(seconds: float, interrupt: Callable[[], Any] | None) -> Iterator[QueryTimer]:
    """Call ``interrupt`` when the body takes longer than ``seconds``; the watch says that it did."""
    watch = QueryTimer()

    def end() -> None:
        watch.fired = True
        if interrupt is not None:
            interrupt()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield watch
    finally:
        timer.cancel()
        if watch.fired:
            timer.join()  # an interrupt still under way would hit what comes next on this connection


GRACE = 3.0
"""Seconds that a query has to end after it was interrupted; then nobody waits for it any longer."""

MAX_BYTES = 256 * 1024**2
"""Bytes of texts and blobs that a query may return."""


def within(seconds: float, where: str, body: Callable[[], T], late: Callable[[], Any] | None = None) -> T:
    """Return what ``body`` gives, and wait no longer for it than ``seconds`` and a little.

    It runs in a thread of its own: a driver that cannot be interrupted, or a function inside an engine that
    does not look whether it was, must not hold the run up. ``late`` is called when it is left behind.
    Raises ``QueryLimitReached``, and what ``body`` raises.
    """
    done = threading.Event()
    made: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            made.append(context.run(body))
        except BaseException as error:
            raised.append(error)
        finally:
            done.set()

    context = contextvars.copy_context()
    threading.Thread(target=work, name="agenteval-query", daemon=True).start()
    if not done.wait(seconds + GRACE):
        if late is not None:
            late()
        raise too_slow(where, seconds)
    if raised:
        raise raised[0]
    return made[0]


def rows_within(
    fetch: Callable[[int], Sequence[Any]], where: str, max_rows: int, before: int = 0
) -> list[Any]:
    """Return all rows that ``fetch(count)`` gives, within the limits of rows and bytes.

    ``before`` rows were fetched before, and count. Raises ``QueryLimitReached``.
    """
    rows: list[Any] = []
    size = 0
    while before + len(rows) <= max_rows:
        part = fetch(min(_PART, max_rows + 1 - before - len(rows)))
        if not part:
            return rows
        rows.extend(part)
        size += sum(len(cell) for row in part for cell in row if isinstance(cell, str | bytes | memoryview))
        if size > MAX_BYTES:
            raise too_large(where)
    raise too_many(where, max_rows)


_PART = 500


def too_large(where: str) -> DatabaseError:
    """Return that the query gave more bytes than allowed."""
    return QueryLimitReached(
        f"{where}: more than {MAX_BYTES // 1024**2} MB of values; select fewer columns or shorter ones"
    )


def too_slow(where: str, seconds: float) -> DatabaseError:
    """Return the error of a query that was ended after ``seconds``."""
    return QueryLimitReached(
        f"{where}: ended after {seconds:g} s; make the query faster or raise agenteval_sql_timeout"
    )


def too_many(where: str, limit: int) -> DatabaseError:
    """Return the error of a query that gave more rows than allowed."""
    return QueryLimitReached(
        f"{where}: more than {limit:,} rows; aggregate, add a LIMIT, or raise agenteval_sql_max_rows"
    )


def failed(where: str, error: BaseException) -> DatabaseError:
    """Return the database refused: its own words, without the driver's decoration."""
    text = str(getattr(error, "orig", None) or error).strip()
    return DatabaseError(f"{where}: {text or type(error).__name__}")


def type_of(values: Sequence[Any]) -> str | None:
    """Return the SQL type that all values of a column have (``None``: mixed or no values)."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds and kinds & {datetime.date, datetime.datetime}:
        # infinity and the year 20000 have no other form in Python than their text
        values = [None if isinstance(value, str) and _far_date(value) else value for value in values]
        kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return "DOUBLE"
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    if kind is int:
        return "BIGINT" if all(-(2**63) <= v < 2**63 for v in values if v is not None) else "HUGEINT"
    if kind is Decimal:
        return decimal_type(values)
    if kind is datetime.datetime:
        aware = any(value.tzinfo is not None for value in values if value is not None)
        return "TIMESTAMP WITH TIME ZONE" if aware else "TIMESTAMP"
    return _TYPES.get(kind)


def _far_date(text: str) -> bool:
    return bool(re.fullmatch(r"-?infinity|[0-9]{4,}-[0-9]{2}-[0-9]{2}(?: .*)?", text))


_TYPES: dict[type, str] = {
    bool: "BOOLEAN",
    float: "DOUBLE",
    str: "VARCHAR",
    bytes: "BLOB",
    datetime.date: "DATE",
    datetime.time: "TIME",
    datetime.timedelta: "INTERVAL",
    uuid.UUID: "UUID",
    dict: "JSON",
    list: "JSON",
}


def decimal_type(values: Sequence[Any]) -> str:
    """Return ``DECIMAL(p,s)`` wide enough for every value; NaN and infinities do not count."""
    digits, scale = 1, 0
    for value in values:
        if isinstance(value, Decimal) and value.is_finite():
            _, figures, exponent = value.as_tuple()
            scale = max(scale, -int(exponent))
            digits = max(digits, len(figures) + int(exponent))
    return f"DECIMAL({max(38, digits + scale)},{scale})"
