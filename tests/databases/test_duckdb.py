"""DuckDB files: snapshots, one SELECT, limits, types."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from pytest_agenteval.databases import Databases
from pytest_agenteval.errors import DatabaseError

SLOW = "SELECT count(*) FROM range(100000) a, range(10000000) b"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE orders AS SELECT i AS id, i * 1.5 AS amount FROM range(10) t(i)")
        connection.execute("CREATE SEQUENCE numbers")
    return path


@pytest.fixture
def databases(shop: Path, tmp_path: Path):
    with Databases({"shop": "duckdb:///shop.duckdb"}, folder=tmp_path / "run", root=tmp_path) as found:
        yield found


def test_a_reference_gives_a_table(databases: Databases):
    table = databases.get().reference("SELECT count(*) AS n, sum(amount) AS total FROM orders;")
    assert table.names == ["n", "total"]
    assert table.types == ["BIGINT", "DECIMAL(38,1)"]
    assert list(table.rows()) == [(10, Decimal("67.5"))]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (
            "SELECT 1; SELECT 2",
            "refused, found 2 statements; only one SELECT (or WITH ... SELECT) may run here",
        ),
        ("-- nothing", "refused, found no statement"),
        ("WITH d AS (DELETE FROM orders RETURNING *) SELECT * FROM d", "read-only|A CTE needs a SELECT"),
        ("COPY orders TO 'x.csv'", "refused, the statement is COPY"),
        ("ATTACH 'other.db'", "refused, the statement is ATTACH"),
        ("PRAGMA table_info('orders')", "refused, the statement is PRAGMA"),
        ("SELECT * INTO copied FROM orders", 'syntax error at or near "INTO"|SELECT INTO not supported'),
        ("EXPLAIN ANALYZE DELETE FROM orders", "refused, the statement is EXPLAIN"),
        ("CALL duckdb_settings()", "refused, the statement is CALL"),
        ("SELECT nextval('numbers')", "read-only"),
        (
            "SELECT * FROM orders FOR UPDATE",
            'syntax error at or near "FOR"|locking clause is not supported',
        ),
        ("INSTALL httpfs", "refused, the statement is LOAD"),
        ("SELECT * FROM read_csv('any.csv')", "file system operations are disabled"),
        ("FROM 'any.csv'", "file system operations are disabled"),
        ("SELECT load_extension('x')", "load_extension does not exist"),
        ("DESCRIBE orders", "refused, the statement is DESCRIBE"),
        ("SET threads = 1", "refused, the statement is SET"),
        ("PIVOT orders ON id", "name them: PIVOT t ON c IN ('a', 'b')|refused, found 2 statements"),
    ],
)
def test_only_one_select(databases: Databases, tmp_path: Path, sql: str, text: str):
    with pytest.raises(DatabaseError) as caught:
        databases.get().query(sql)
    assert any(words in str(caught.value) for words in text.split("|"))  # by DuckDB's version
    assert str(caught.value).startswith("database 'shop' (duckdb:///shop.duckdb): ")
    assert not (tmp_path / "x.csv").exists()


def test_a_query_ends_at_its_time_limit(databases: Databases):
    with pytest.raises(DatabaseError, match=r"ended after 0\.3 s; make the query faster or raise"):
        databases.get().query("SELECT pg_sleep(5)" if duckdb.__version__ >= "2" else SLOW, timeout=0.3)
    with pytest.raises(DatabaseError, match=r"ended after 0\.3 s"):
        databases.get().query(SLOW, timeout=0.3)
    assert databases.get().query("SELECT 1").row_count == 1


def test_a_query_ends_at_its_row_limit(databases: Databases):
    with pytest.raises(DatabaseError, match="more than 5 rows; aggregate, add a LIMIT, or raise"):
        databases.get().query("SELECT id FROM orders", max_rows=5)
    assert databases.get().query("SELECT id FROM orders", max_rows=10).row_count == 10
    with pytest.raises(DatabaseError, match="more than 3,000 rows"):
        databases.get().query("SELECT * FROM range(3001)", max_rows=3000)
    with pytest.raises(DatabaseError, match="more than 3,000 rows"):
        databases.get().query("SELECT range::HUGEINT FROM range(3001)", max_rows=3000)


@pytest.mark.parametrize("rows", [1, 2_000, 2_001, 5_000])
def test_types_survive_in_small_and_large_results(databases: Databases, rows: int):
    table = databases.get().query(
        "SELECT range AS i, (range + 0.25)::DECIMAL(20,2) AS d, DATE '2024-02-03' AS day, "
        "TIMESTAMPTZ '2024-01-01 10:00:00+02' AS tz, 'x%y:name' AS s, range AS i, NULL AS n "
        f"FROM range({rows})"
    )
    assert table.row_count == rows
    assert table.names == ["i", "d", "day", "tz", "s", "i", "n"]
    assert table.types[:3] == ["BIGINT", "DECIMAL(20,2)", "DATE"]
    assert table.types[3:6] == ["TIMESTAMP WITH TIME ZONE", "VARCHAR", "BIGINT"]
    assert table.types[6] in (None, "INTEGER")
    last = list(table.rows())[-1]
    assert last[:3] == (rows - 1, Decimal(rows - 1) + Decimal("0.25"), datetime.date(2024, 2, 3))
    assert last[3] == datetime.datetime(2024, 1, 1, 8, tzinfo=datetime.UTC)
    assert last[4:] == ("x%y:name", rows - 1, None)
    assert {len(table.column(index)) for index in range(7)} == {rows}


def test_views_over_files_are_refused_with_a_way_out(shop: Path, databases: Databases, tmp_path: Path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    with duckdb.connect(str(shop)) as connection:
        connection.execute(f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path}/x.csv')")
    with pytest.raises(DatabaseError) as caught:
        databases.get().query("SELECT * FROM v")
    assert "file system operations are disabled by configuration" in str(caught.value)
    assert str(caught.value).endswith(
        "; references read no files, views over files included: load them into tables, or let the fixture "
        "agenteval_databases give a connection that may"
    )
    with duckdb.connect(str(shop), read_only=True) as own:
        given = databases.with_given({"own": own}, cached=True)
        assert given.get().query("SELECT * FROM v").column(0) == [1]
