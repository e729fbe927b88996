"""Ordered comparison: sort keys, runs of ties, and what is wrong when only the order is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pytest_agenteval.compare.columns import ColumnMap
from pytest_agenteval.compare.diagnosis.context import DiagnosisContext, listed
from pytest_agenteval.compare.options import ComparisonOptions, OrderKey
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.support.column_names import find_name
from pytest_agenteval.support.text import counted
from pytest_agenteval.table import Table


def order_indexes(expected: Table, options: ComparisonOptions) -> list[int] | None:
    """The expected columns that are the sort keys; ``None`` where one is not known: a strict list."""
    keys = [OrderKey.parse(text).name for text in options.order_by]
    found = [_find(expected.names, key) for key in keys]
    return [index for index in found if index is not None] if found and None not in found else None


def _find(names: Sequence[str], key: str) -> int | None:
    """Return the index of the column that a sort key means: its name, else its number from 1."""
    index = find_name(names, key)
    if index is None and key.isdigit() and key.isascii() and len(key) < 6 and 1 <= int(key) <= len(names):
        return int(key) - 1
    return index


def tie_runs(engine: Any, columns: ColumnMap, order: Sequence[int] | None) -> list[range]:
    """Runs of expected rows with equal sort keys; each row its own run where no key is known."""
    size = engine.expected.row_count
    partners = dict(columns.pairs)
    if order is None or any(e not in partners for e in order):
        return [range(i, i + 1) for i in range(size)]
    starts = engine.run_starts([(e, partners[e]) for e in order])
    return [range(a, b) for a, b in itertools.pairwise([*starts, size])]


def diagnose_order(scene: DiagnosisContext) -> Diagnosis | None:
    """The words of order, in their order; without ``ordered`` only a LIMIT through a tie is one."""
    words = (_reversed, _nulls, _limit_tie, _order) if scene.runs is not None else (_limit_tie,)
    return next((found for word in words if (found := word(scene)) is not None), None)


def _sorted_by(scene: DiagnosisContext) -> str:
    if not scene.order:
        return ""
    return f" (sorted by {listed(scene.expected.columns[e].name for e in scene.order)})"


def _reversed(scene: DiagnosisContext) -> Diagnosis | None:
    rows = scene.expected_rows
    if scene.actual_rows != rows or not scene.list_match(range(rows), range(rows - 1, -1, -1)):
        return None
    text = f"all {counted(rows, 'row')} are there, in reverse order{_sorted_by(scene)}"
    return Diagnosis("order_reversed", text, (), {"rows": rows})


def _nulls(scene: DiagnosisContext) -> Diagnosis | None:
    if not scene.order or not scene.matched:
        return None
    es, as_ = scene.without_nulls(True), scene.without_nulls(False)
    if len(es) == scene.expected_rows or len(es) != len(as_) or not scene.list_match(es, as_):
        return None
    count = scene.expected_rows - len(es)
    text = f"{counted(count, 'row')} with a NULL sort key elsewhere; the other rows are in order"
    return Diagnosis("nulls_order", text, (), {"rows": count})


def _limit_tie(scene: DiagnosisContext) -> Diagnosis | None:
    if not scene.order or not scene.expected_rows or scene.expected_rows != scene.actual_rows:
        return None
    es, as_ = scene.before_last(True), scene.before_last(False)
    if not len(es) or len(es) != len(as_):
        return None
    if scene.runs is None:
        same = scene.bag_match(es, as_)
    else:
        same = (not len(as_) or as_[-1] == len(as_) - 1) and scene.list_match(es, as_)
    if not same:
        return None
    tied = scene.expected_rows - len(es)
    text = (
        f"only rows that tie with the last one{_sorted_by(scene)} differ: {counted(tied, 'row')}; "
        "the LIMIT cuts through a tie"
    )
    return Diagnosis("limit_tie", text, (), {"tied": tied})


def _order(scene: DiagnosisContext) -> Diagnosis | None:
    if not scene.matched:
        return None
    moved = scene.moved()
    first = f", the first at row {moved[0] + 1}" if moved else ""
    text = f"the same rows in another order{_sorted_by(scene)}: {len(moved):,} out of place{first}"
    return Diagnosis("order", text, (), {"out_of_place": len(moved)})
