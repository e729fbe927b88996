"""Which answered columns could stand for an expected one, as far as kinds and first values tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pytest_agenteval.compare.engine import ComparisonEngine
from pytest_agenteval.compare.values.cells import ColumnReading, Unreadable, read_cell
from pytest_agenteval.compare.values.sql_types import Kind, kind_of, kind_of_values
from pytest_agenteval.support.scalars import is_null, plain
from pytest_agenteval.table import Table

HEAD = 200
MOMENTS = ("date", "timestamp", "instant")
"""Kinds of values that name a day."""
_DATE_LIKE = re.compile(
    r"\d{1,4}\s?[-/. ]\s?(\d{1,2}|[A-Za-z]{3,9})([-/. ,]\s?\d{1,4})?|[A-Za-z]{3,9} \d{1,4}.*|\d{8}"
)
_PLAIN = re.compile(r"-?\d+(\.\d+)?|true|false")


class Fitting:
    """Which answered columns could stand for an expected one: their values can be read as such."""

    def __init__(self, engine: ComparisonEngine[Any, Any]) -> None:
        self.engine = engine
        self._heads: dict[int, tuple[Kind, list[Any]]] = {}
        self._fits: dict[tuple[Kind, bool, int], bool] = {}
        self._codes: dict[int, bool] = {}

    def head(self, a: int) -> tuple[Kind, list[Any]]:
        """Return the kind of an answered column and its first values, NULLs left out."""
        if a not in self._heads:
            column, values = self.engine.actual.columns[a], self.engine.actual.values[a]
            head = Table((column,), (values,), self.engine.actual.row_count).head(HEAD).column(0)
            found = [value for value in map(plain, head) if not is_null(value)]
            self._heads[a] = kind_of(column.type) or kind_of_values(found), found
        return self._heads[a]

    def fits(self, e: int, a: int) -> bool:
        """Return whether column ``a`` could be column ``e``."""
        kind = self.engine.kind(e)
        codes = kind.name == "text" and self._digits(e)
        key = kind, codes, a
        if key not in self._fits:
            self._fits[key] = _readable(kind, codes, *self.head(a))
        return self._fits[key]

    def _digits(self, e: int) -> bool:
        if e not in self._codes:
            texts = [v for v in self.engine.expected.head(HEAD).column(e) if isinstance(v, str)]
            self._codes[e] = bool(texts) and all(_PLAIN.fullmatch(text.strip()) for text in texts)
        return self._codes[e]


def _readable(kind: Kind, codes: bool, other: Kind, values: list[Any]) -> bool:
    """Return whether values of kind ``other`` can be read as ``kind``;
    ``codes``: texts of plain numbers are expected.
    """
    if not values:
        return True
    if kind.name == "text":
        return other.name in ("text", "uuid", "json") or (
            codes and (other.numeric or other.name == "boolean")
        )
    if kind.name in MOMENTS and other.name == "text":
        texts = [value.strip()[:40] for value in values if isinstance(value, str)]
        return _mostly([_DATE_LIKE.fullmatch(text) is not None for text in texts])
    if kind.name in MOMENTS or other.name in MOMENTS:
        return kind.name in MOMENTS and other.name in MOMENTS
    if kind.name == "boolean" and other.numeric:
        return all(value in (0, 1) for value in values)
    if kind.numeric and other.name == "boolean":
        return False
    reading = ColumnReading(kind)
    return _mostly([not isinstance(read_cell(value, reading)[0], Unreadable) for value in values])


def _mostly(flags: Sequence[bool]) -> bool:
    return bool(flags) and sum(flags) * 2 > len(flags)
