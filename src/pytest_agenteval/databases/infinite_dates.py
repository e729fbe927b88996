"""Infinite dates of DuckDB: its Python client gives the first and the last date of Python for them.

Only Arrow tells them apart, so a result that holds such a date is read once more, as Arrow.
"""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Sequence
from typing import Any

from pytest_agenteval.table import Table, arrow_values

_MOMENT = re.compile(r"\b(DATE|TIMESTAMP)")
_EXTREMES = frozenset((datetime.date.min, datetime.date.max, datetime.datetime.min, datetime.datetime.max))


def maybe_infinite(table: Table) -> list[int]:
    """Return the columns of dates or timestamps in which one is Python's first or last."""
    return [
        index
        for index, column in enumerate(table.columns)
        if _MOMENT.search(column.type or "") and any(map(_extreme, table.column(index)))
    ]


def _extreme(value: Any) -> bool:
    if isinstance(value, datetime.date):
        naive = value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
        return naive in _EXTREMES
    if isinstance(value, list | tuple):
        return any(map(_extreme, value))
    return isinstance(value, dict) and any(map(_extreme, (*value, *value.values())))


def with_infinities(cursor: Any, sql: str, table: Table, doubtful: Sequence[int]) -> Table:
    """Return ``table`` with the ``doubtful`` columns as Arrow gives them when ``sql`` is run once more.

    Where the second run gives other rows (``random()``), they are taken whole: a table is of one run.
    """
    cursor.execute(sql)
    again = arrow_reader(cursor).read_all()
    values = list(table.values)
    for index in doubtful:
        before, after = table.column(index), arrow_values(again.column(index))
        same = len(before) == len(after) and all(
            _extreme(one) or type(one) in (list, tuple, dict) or _same(one, two)
            for one, two in zip(before, after, strict=True)
        )
        if not same:
            columns = tuple(again.columns)
            return Table(table.columns, tuple(arrow_values(data) for data in columns), again.num_rows)
        values[index] = [two if _extreme(one) else one for one, two in zip(before, after, strict=True)]
    return Table(table.columns, tuple(values), table.row_count)


def _same(one: Any, two: Any) -> bool:
    return one is two is None or (one is not None and two is not None and str(one)[:10] == str(two)[:10])


def arrow_reader(cursor: Any) -> Any:
    """Return the Arrow batches of an executed cursor."""
    with warnings.catch_warnings():
        # DuckDB 2.0 advises against Arrow on a cursor; a relation has neither a time nor a row limit
        warnings.simplefilter("ignore")
        to_reader = getattr(cursor, "to_arrow_reader", None) or cursor.fetch_record_batch
        return to_reader()
