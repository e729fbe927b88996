"""Large results, on every DuckDB that may be installed (tox -e lowest runs this file too)."""

from __future__ import annotations

import duckdb
import pytest

from pytest_agenteval.databases.duckdb_engine import fetch


@pytest.mark.parametrize("rows", [2_000, 2_001, 2_048, 2_049, 5_000])
@pytest.mark.parametrize("where", ["true", "i % 3 <> 1"])
def test_no_row_is_lost_where_a_result_becomes_large(rows: int, where: str) -> None:
    cursor = duckdb.connect().cursor()
    cursor.execute(
        f"SELECT i, (i * 0.25)::DECIMAL(10, 2) AS d FROM range({rows}) AS t(i) WHERE {where} ORDER BY i"
    )
    table = fetch(cursor, "here", 100_000)
    wanted = [i for i in range(rows) if where == "true" or i % 3 != 1]
    assert table.row_count == len(wanted)
    assert table.column(0) == wanted
    assert [float(value) for value in table.column(1)] == [i * 0.25 for i in wanted]
    assert table.types == ["BIGINT", "DECIMAL(10,2)"]
