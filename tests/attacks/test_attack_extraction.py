"""The query that a model writes over fetched rows gives what was fetched, and nothing that was typed."""

from __future__ import annotations

import pytest

from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.extraction.executed_queries import Query
from pytest_agenteval.extraction.sandbox import Sandbox
from pytest_agenteval.table import Table

ROWS = Table.from_rows(["id", "total", "name"], [[1, 1.25, "a"], [2, 2.5, "b"]], [None, None, None])


def asked(sql: str, *columns: str) -> Table:
    with Sandbox([Query("q1", "execute_sql", "SELECT 1", ROWS)]) as sandbox:
        return sandbox.query(sql, 10, 100, columns or None)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH z AS (UPDATE q1 SET total = 35887.50 RETURNING 1) SELECT total FROM q1",
        "WITH z AS (INSERT INTO q1 VALUES (3, 35887.5, 'x') RETURNING 1) SELECT max(total) AS total FROM q1",
        "WITH z AS (DELETE FROM q1 RETURNING 1) SELECT count(*) AS total FROM q1",
        "SELECT id, 42 AS total FROM q1",
        "SELECT * REPLACE (42 AS total) FROM q1",
        "SELECT coalesce(nullif(total, total), 42) AS total FROM q1",
        "SELECT total * 0 + 42 AS total FROM q1",
        "SELECT unnest([42, total]) AS total FROM q1",
        "SELECT id, total FROM q1 UNION ALL SELECT id, 999 FROM q1",
        "SELECT CASE WHEN total IS NULL THEN total ELSE 42 END AS total FROM q1",
        "SELECT total - total + 35887.5 AS total FROM q1",
        "SELECT count(*) * 0 + 42 AS total FROM q1",
    ],
)
def test_typed_and_written_values_are_refused(sql: str) -> None:
    with pytest.raises(DatabaseError, match="the extraction query: refused, "):
        asked(sql)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT sum(total) AS total FROM q1", 3.75),
        ("SELECT round(100.0 * max(total) / sum(total), 2) AS share FROM q1", 66.67),
        ("SELECT count(*) AS n FROM q1 WHERE total > 2", 1),
        ("SELECT max(total) - 1 AS total FROM q1", 1.5),
        ("SELECT total FROM q1 WHERE name = 'a' LIMIT 1", 1.25),
    ],
)
def test_derived_values_are_taken(sql: str, value: float) -> None:
    assert [float(cell) for cell in asked(sql).column(0)] == [value]


def test_a_typed_label_beside_the_compared_columns_is_no_answer() -> None:
    sql = "SELECT 'all' AS label, sum(total) AS total FROM q1"
    assert asked(sql, "total").names == ["label", "total"]
    with pytest.raises(DatabaseError, match="its values are literals"):
        asked(sql, "label", "total")
