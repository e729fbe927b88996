"""The aligned sample of a failed comparison: at most 50 rows, cells marked, deltas worked out."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

from pytest_agenteval.compare.alignment import Alignment
from pytest_agenteval.compare.diagnosis.context import DiagnosisContext, number_of
from pytest_agenteval.compare.result import SampleCell, SampleRow
from pytest_agenteval.compare.values.numbers import WIDE, shortest
from pytest_agenteval.compare.values.temporal import DAY, show_clock

MOST_ROWS = 50


def sample_rows(context: DiagnosisContext[Any], alignment: Alignment) -> tuple[SampleRow, ...]:
    """Return differing rows first, then missing and extra ones, sharing the room that there is."""
    room = _shares(list(alignment.sizes))
    changed = alignment.changed[: room[0]]
    columns = [context.differ(position, changed) for position in range(len(context.pairs))]
    rows = [_pair(context, *pair, [flags[i] for flags in columns]) for i, pair in enumerate(changed)]
    rows += [_single(context, e, True) for e in alignment.unmatched_expected[: room[1]]]
    rows += [_single(context, a, False) for a in alignment.unmatched_actual[: room[2]]]
    return tuple(rows)


def _shares(sizes: list[int]) -> list[int]:
    """Return how many of each to show: all where they fit, else an even share."""
    shares = [0] * len(sizes)
    left = MOST_ROWS
    while left and any(share < size for share, size in zip(shares, sizes, strict=True)):
        open_ = [i for i, size in enumerate(sizes) if shares[i] < size]
        each = max(1, left // len(open_))
        for i in open_:
            more = min(each, sizes[i] - shares[i], left)
            shares[i] += more
            left -= more
    return shares


def _pair(context: DiagnosisContext[Any], e: int, a: int, flags: list[bool]) -> SampleRow:
    cells = []
    for position, differs in enumerate(flags):
        delta = _delta(context, position, e, a) if differs else ""
        values = context.value(position, e, True), context.value(position, a, False)
        cells.append(SampleCell(*values, differs, delta))
    return SampleRow("differs", e + 1, a + 1, tuple(cells))


def _single(context: DiagnosisContext[Any], row: int, expected: bool) -> SampleRow:
    values = [context.value(position, row, expected) for position in range(len(context.pairs))]
    if expected:
        cells = tuple(SampleCell(value, None, True) for value in values)
        return SampleRow("missing", row + 1, None, cells)
    return SampleRow("extra", None, row + 1, tuple(SampleCell(None, value, True) for value in values))


def _delta(context: DiagnosisContext[Any], position: int, e: int, a: int) -> str:
    """Return answered minus expected, for numbers, dates and times."""
    kind = context.kind(position)
    mine, theirs = context.cell(position, e, True), context.cell(position, a, False)
    if kind.numeric:
        x, y = number_of(mine), number_of(theirs)
        if x is None or y is None or any(isinstance(v, float) and abs(v) == float("inf") for v in (x, y)):
            return ""
        with localcontext(WIDE):
            return _short(shortest(y) - shortest(x))
    moments = kind.name in ("date", "timestamp", "instant", "time", "interval")
    if moments and isinstance(mine[0], int) and isinstance(theirs[0], int):
        return _span(theirs[0] - mine[0])
    return ""


def _short(gap: Decimal) -> str:
    if abs(gap.adjusted()) > 14:
        return f"{gap:+.6e}"
    text = f"{gap:+f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if len(text) <= 14 else f"{gap:+.6g}"


def _span(gap: int) -> str:
    days, clock = divmod(abs(gap), DAY)
    sign = "-" if gap < 0 else "+"
    text = f"{days} d" if days else ""
    return sign + " ".join(part for part in (text, show_clock(clock) if clock else "") if part) if gap else ""
