"""Our comparison in the form that the shared harness and the corpus test call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agenteval.compare import compare as compare_tables
from pytest_agenteval.compare import parse_options
from pytest_agenteval.table import Table


def compare(
    expected: Mapping[str, Any], actual: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[str, str | None]:
    """``(verdict, diagnosis word)`` for one example."""
    columns = expected["columns"]
    wanted = Table.from_rows(
        [column["name"] for column in columns], expected["rows"], [column["type"] for column in columns]
    )
    found = compare_tables(wanted, answered(actual), parse_options(options))
    return ("match" if found.matched else "differ", found.diagnosis.word if found.diagnosis else None)


def answered(actual: Mapping[str, Any]) -> Table | None:
    """The answer as a table; ``rows: None`` is no answer."""
    if actual["rows"] is None:
        return None
    names, types = actual["names"], actual["types"] or {}
    rows = [[row.get(name) for name in names] for row in actual["rows"]]
    return Table.from_rows(names, rows, [types.get(name) for name in names])
