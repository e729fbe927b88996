"""Ordered comparison: sort keys, runs of ties, and what is wrong when only the order is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_agenteval.compare.columns import ColumnMap
from pytest_agenteval.compare.options import ComparisonOptions, OrderKey
from pytest_agenteval.compare.pairing import PairedColumn, pair_bag, pair_list
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.compare.scene import Scene, listed, plural
from pytest_agenteval.table import Table


def order_indexes(expected: Table, options: ComparisonOptions) -> list[int] | None:
    """The expected columns that are the sort keys; ``None`` where one is not known: a strict list."""
    keys = [OrderKey.parse(text).name for text in options.order_by]
    found = [_find(key, expected.names) for key in keys]
    return [index for index in found if index is not None] if found and None not in found else None


def _find(key: str, names: Sequence[str]) -> int | None:
    if key in names:
        return names.index(key)
    folded = [name.lower() for name in names]
    if key.lower() in folded:
        return folded.index(key.lower())
    if key.isdigit() and key.isascii() and len(key) < 6 and 1 <= int(key) <= len(names):
        return int(key) - 1
    return None


def tie_runs(engine: Any, columns: ColumnMap, order: Sequence[int] | None) -> list[range]:
    """Runs of expected rows with equal sort keys; each row its own run where no key is known."""
    size = engine.expected.row_count
    partners = dict(columns.pairs)
    if order is None or any(e not in partners for e in order):
        return [range(i, i + 1) for i in range(size)]
    keys = [engine.column(e, partners[e]).expected for e in order]
    runs, start = [], 0
    for row in range(1, size + 1):
        if row == size or any(key[row] != key[start] for key in keys):
            runs.append(range(start, row))
            start = row
    return runs


def diagnose_order(scene: Scene) -> Diagnosis | None:
    """The words of order, in their order; only where rows are compared as a list or keys are known."""
    if scene.runs is None:
        return _limit_tie(scene)
    for word in (_reversed, _nulls, _limit_tie, _order):
        found = word(scene)
        if found:
            return found
    return None


def _sorted_by(scene: Scene) -> str:
    if scene.order is None:
        return ""
    return f" (sorted by {listed(scene.engine.expected.columns[e].name for e in scene.order)})"


def _reversed(scene: Scene) -> Diagnosis | None:
    if scene.runs is None or scene.actual_rows != scene.expected_rows:
        return None
    columns = [PairedColumn(c.expected, list(reversed(c.actual)), c.rule) for c in scene.paired]
    if not pair_list(columns, scene.runs, scene.actual_rows, scene.expected_rows).matched:
        return None
    text = f"all {plural(scene.expected_rows, 'row')} are there, in reverse order{_sorted_by(scene)}"
    return Diagnosis("order_reversed", text, (), {"rows": scene.expected_rows})


def _key_columns(scene: Scene) -> list[PairedColumn] | None:
    if not scene.order:
        return None
    partners = dict(scene.pairs)
    if any(e not in partners for e in scene.order):
        return None
    return [scene.engine.column(e, partners[e]) for e in scene.order]


def _nulls(scene: Scene) -> Diagnosis | None:
    keys = _key_columns(scene)
    if keys is None or scene.runs is None or not scene.bag.matched:
        return None
    es = [i for i in range(scene.expected_rows) if all(k.expected[i][0] is not None for k in keys)]
    as_ = [i for i in range(scene.actual_rows) if all(k.actual[i][0] is not None for k in keys)]
    if len(es) == scene.expected_rows or len(es) != len(as_):
        return None
    if not _list_of(scene, keys, es, as_):
        return None
    count = scene.expected_rows - len(es)
    text = f"{plural(count, 'row')} with a NULL sort key stand elsewhere; the other rows are in order"
    return Diagnosis("nulls_order", text, (), {"rows": count})


def _list_of(scene: Scene, keys: Sequence[PairedColumn], es: Sequence[int], as_: Sequence[int]) -> bool:
    """Whether the given rows match as a list with free ties."""
    columns = [
        PairedColumn([c.expected[i] for i in es], [c.actual[i] for i in as_], c.rule) for c in scene.paired
    ]
    runs, start = [], 0
    for row in range(1, len(es) + 1):
        if row == len(es) or any(k.expected[es[row]] != k.expected[es[start]] for k in keys):
            runs.append(range(start, row))
            start = row
    return pair_list(columns, runs, len(as_), len(es)).matched


def _limit_tie(scene: Scene) -> Diagnosis | None:
    keys = _key_columns(scene)
    if keys is None or not scene.expected_rows or scene.expected_rows != scene.actual_rows:
        return None
    last = [key.expected[scene.expected_rows - 1] for key in keys]
    es = [i for i in range(scene.expected_rows) if [k.expected[i] for k in keys] != last]
    as_ = [i for i in range(scene.actual_rows) if [k.actual[i] for k in keys] != last]
    tied = scene.expected_rows - len(es)
    if not es or len(es) != len(as_):
        return None
    if scene.runs is None:
        same = pair_bag(scene.paired, es, as_, scene.expected_rows).matched
    else:
        same = as_ == list(range(len(as_))) and _list_of(scene, keys, es, as_)
    if not same:
        return None
    text = (
        f"only rows that tie with the last one{_sorted_by(scene)} differ: {plural(tied, 'row')}; "
        "the LIMIT cuts through a tie"
    )
    return Diagnosis("limit_tie", text, (), {"tied": tied})


def _order(scene: Scene) -> Diagnosis | None:
    if not scene.bag.matched:
        return None
    moved = [row for row in range(scene.expected_rows) if not _in_place(scene, row)]
    first = f", the first at row {moved[0] + 1}" if moved else ""
    text = f"the same rows in another order{_sorted_by(scene)}: {len(moved):,} out of place{first}"
    return Diagnosis("order", text, (), {"out_of_place": len(moved)})


def _in_place(scene: Scene, row: int) -> bool:
    return all(column.grade(row, row) != 3 for column in scene.paired)
