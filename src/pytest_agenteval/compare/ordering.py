"""Ordered comparison: sort keys, runs of ties, and what is wrong when only the order is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pytest_agenteval.compare.diagnosis.context import DiagnosisContext, listed
from pytest_agenteval.compare.engine import ComparisonEngine
from pytest_agenteval.compare.options import ComparisonOptions, OrderKey
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.support.column_names import find_name
from pytest_agenteval.support.text import counted
from pytest_agenteval.table import Table


def order_indexes(expected: Table, options: ComparisonOptions) -> list[int] | None:
    """Return the expected columns that are the sort keys; ``None`` where one is not known: a strict list."""
    keys = [OrderKey.parse(text).name for text in options.order_by]
    found = [_find(expected.names, key) for key in keys]
    return [index for index in found if index is not None] if found and None not in found else None


def _find(names: Sequence[str], key: str) -> int | None:
    """Return the index of the column that a sort key means: its name, else its number from 1."""
    index = find_name(names, key)
    if index is None and key.isdigit() and key.isascii() and len(key) < 6 and 1 <= int(key) <= len(names):
        return int(key) - 1
    return index


def tie_runs(engine: ComparisonEngine[Any, Any], order: Sequence[int] | None) -> list[range]:
    """Return runs of expected rows with equal sort keys; each row its own run where no key is known."""
    size = engine.expected.row_count
    if order is None:
        return [range(i, i + 1) for i in range(size)]
    starts = engine.run_starts(order)
    return [range(a, b) for a, b in itertools.pairwise([*starts, size])]


def diagnose_order(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose the order; without ``ordered`` only a LIMIT through a tie is a diagnosis."""
    words = (_reversed, _nulls, _limit_tie, _order) if context.runs is not None else (_limit_tie,)
    return next((found for word in words if (found := word(context)) is not None), None)


def _sorted_by(context: DiagnosisContext[Any]) -> str:
    if not context.order:
        return ""
    return f" (sorted by {listed(context.expected.columns[e].name for e in context.order)})"


def _reversed(context: DiagnosisContext[Any]) -> Diagnosis | None:
    rows = context.expected_rows
    if context.actual_rows != rows or not context.list_match(range(rows), range(rows - 1, -1, -1)):
        return None
    text = f"all {counted(rows, 'row')} are there, in reverse order{_sorted_by(context)}"
    return Diagnosis("order_reversed", text, (), {"rows": rows})


def _nulls(context: DiagnosisContext[Any]) -> Diagnosis | None:
    if not context.order or not context.matched:
        return None
    expected_part, actual_part = context.without_nulls(True), context.without_nulls(False)
    if (
        len(expected_part) == context.expected_rows
        or len(expected_part) != len(actual_part)
        or not context.list_match(expected_part, actual_part)
    ):
        return None
    count = context.expected_rows - len(expected_part)
    text = f"{counted(count, 'row')} with a NULL sort key elsewhere; the other rows are in order"
    return Diagnosis("nulls_order", text, (), {"rows": count})


def _limit_tie(context: DiagnosisContext[Any]) -> Diagnosis | None:
    if not context.order or not context.expected_rows or context.expected_rows != context.actual_rows:
        return None
    expected_part, actual_part = context.before_last(True), context.before_last(False)
    if not len(expected_part) or len(expected_part) != len(actual_part):
        return None
    if context.runs is None:
        same = context.bag_match(expected_part, actual_part)
    else:
        same = (not len(actual_part) or actual_part[-1] == len(actual_part) - 1) and context.list_match(
            expected_part, actual_part
        )
    if not same:
        return None
    tied = context.expected_rows - len(expected_part)
    text = (
        f"only rows that tie with the last one{_sorted_by(context)} differ: {counted(tied, 'row')}; "
        "the LIMIT cuts through a tie"
    )
    return Diagnosis("limit_tie", text, (), {"tied": tied})


def _order(context: DiagnosisContext[Any]) -> Diagnosis | None:
    if not context.matched:
        return None
    moved = context.moved()
    first = f", the first at row {moved[0] + 1}" if moved else ""
    text = f"the same rows in another order{_sorted_by(context)}: {len(moved):,} out of place{first}"
    return Diagnosis("order", text, (), {"out_of_place": len(moved)})
