"""SQLite files through SQLAlchemy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from pytest_agenteval.compare import compare
from pytest_agenteval.databases import Databases
from pytest_agenteval.databases.column_types import sqlite_column, sqlite_types
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.table import Table


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop's.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, amount DECIMAL(10,2), placed DATE, at DATETIME, "
            "paid BOOLEAN, code VARCHAR(5), raw BLOB, loose)"
        )
        connection.executemany(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (1, 10.5, "2024-01-01", "2024-01-01 10:00:00", 1, "00123", b"\x01", "x"),
                (2, 7, "2024-01-02", "2024-01-02T11:30:00.5", 0, "00124", None, 5),
                (3, None, None, None, None, None, None, None),
            ],
        )
        connection.execute("CREATE VIEW big AS SELECT id FROM orders WHERE amount > 8")
    connection.close()
    return path


@pytest.fixture
def databases(shop: Path, tmp_path: Path) -> Iterator[Databases]:
    with Databases({"shop": f"sqlite:///{shop.name}"}, folder=tmp_path / "run", root=tmp_path) as found:
        yield found


def test_types_survive(databases: Databases):
    sql = "SELECT *, amount * 2, id AS id, '100%s :name' AS t FROM orders; -- all\n"
    table = databases.get().reference(sql)
    assert table.names == [
        "id", "amount", "placed", "at", "paid", "code", "raw", "loose", "amount * 2", "id", "t"
    ]  # fmt: skip
    assert table.types == [
        "BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN", "VARCHAR", "BLOB", None, None, "BIGINT", None
    ]  # fmt: skip
    rows = list(table.rows())
    first_at, second_at = datetime(2024, 1, 1, 10), datetime(2024, 1, 2, 11, 30, 0, 500000)
    assert rows[0][:6] == (1, 10.5, date(2024, 1, 1), first_at, True, "00123")
    assert rows[0][6:] == (b"\x01", "x", 21.0, 1, "100%s :name")
    assert rows[1][:6] == (2, 7, date(2024, 1, 2), second_at, False, "00124")
    assert rows[1][6:9] == (None, 5, 14)
    assert rows[2][1:9] == (None,) * 8


@pytest.mark.parametrize(
    ("declared", "values", "kind", "kept"),
    [
        ("INTEGER", [1, "x"], None, True),
        ("TEXT", [1, "x"], None, True),
        ("BLOB", ["x"], None, True),
        ("REAL", [1.5, 2], "DOUBLE", True),
        ("NUMERIC", ["x"], None, True),
        ("BOOLEAN", [1, 2], None, True),
        ("DATE", ["2024-01-01", "soon"], None, True),
        ("DATE", ["2024-13-01"], None, True),
        ("DATE", [20240101], None, True),
        ("DATETIME", ["2024-01-01 10:00:00", "2024-01-01 10:00:00+02:00"], None, True),
        ("TIMESTAMP", [None], "TIMESTAMP", True),
        ("GEOMETRY", ["x"], None, True),
        (None, [1], None, True),
    ],
)
def test_a_type_is_only_given_to_values_that_have_it(declared, values, kind, kept):
    assert sqlite_column(declared, values) == (kind, values)


def test_timestamps_with_a_zone():
    kind, values = sqlite_column("TIMESTAMP", ["2024-01-01 10:00:00+02:00", None])
    assert kind == "TIMESTAMP WITH TIME ZONE"
    assert values[0].utcoffset() == timedelta(hours=2)


def test_types_that_cannot_be_asked_are_unknown():
    connection = sqlite3.connect(":memory:")
    assert sqlite_types(connection, "SELECT 1, 2", 2) == [None, None]
    assert sqlite_types(connection, "SELECT 1, 2", 3) == [None, None, None]
    assert sqlite_types(connection, "not sql", 1) == [None]
    connection.close()


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT 1; SELECT 2", "refused, found 2 statements; only one SELECT (or WITH ... SELECT) may"),
        ("WITH d AS (SELECT 1) DELETE FROM orders", "refused, the statement is DELETE"),
        ("COPY orders TO 'x.csv'", "refused, the statement is COPY"),
        ("ATTACH 'other.db' AS o", "refused, the statement is ATTACH"),
        ("PRAGMA table_info(orders)", "refused, the statement is PRAGMA"),
        ("SELECT * INTO copied FROM orders", "refused, the statement holds INTO"),
        ("EXPLAIN QUERY PLAN DELETE FROM orders", "refused, the statement is EXPLAIN"),
        ("CALL cleanup()", "refused, the statement is CALL"),
        ("SELECT nextval('numbers')", "refused, the statement holds nextval()"),
        ("SELECT * FROM orders FOR UPDATE", "refused, the statement holds FOR UPDATE / FOR SHARE"),
        ("INSTALL httpfs", "refused, the statement is INSTALL"),
        ("SELECT pg_sleep(1)", "no such function: pg_sleep"),
        ("SELECT * FROM read_csv('any.csv')", "holds read_csv(): it reads files"),
        ("SELECT * FROM 'any.csv'", "no such table: any.csv"),
        ("SELECT load_extension('x')", "refused, the statement holds load_extension()"),
        ("VACUUM INTO 'x.db'", "refused, the statement is VACUUM"),
        ("", "refused, found no statement"),
    ],
)
def test_only_one_reading_select(databases: Databases, tmp_path: Path, sql: str, text: str):
    before = sorted(entry.name for entry in tmp_path.iterdir() if entry.name != "run")
    with pytest.raises(DatabaseError) as caught:
        databases.get().query(sql)
    assert text in str(caught.value)
    assert str(caught.value).startswith("database 'shop' (sqlite:///shop's.db): ")
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name != "run") == before


def test_what_passes_the_parser_meets_a_read_only_file(databases: Databases):
    with databases.get()._open()._engine.connect() as connection:
        for sql in ("DELETE FROM orders", "CREATE TABLE x (a)", "ATTACH 'x.db' AS x"):
            with pytest.raises(Exception, match=r"readonly database|too many attached databases"):
                connection.exec_driver_sql(sql)


def test_a_query_ends_at_its_limits(databases: Databases):
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT {} FROM r"
    with pytest.raises(DatabaseError, match=r"ended after 0\.3 s; make the query faster"):
        databases.get().query(endless.format("count(*)"), timeout=0.3)
    with pytest.raises(DatabaseError, match="more than 100 rows; aggregate"):
        databases.get().query(endless.format("n"), max_rows=100)


def test_schema_dialect_and_fingerprint(databases: Databases):
    found = databases.get()
    assert found.schema()["main.big"] == ("id",)
    assert found.schema()["main.orders"][:3] == ("id", "amount", "placed")
    assert found.dialect == "sqlite"
    assert str(found.fingerprint()).startswith("sha256:")


def test_a_log_is_part_of_the_snapshot(shop: Path, databases: Databases):
    writer = sqlite3.connect(shop)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("INSERT INTO orders (id) VALUES (4)")
    writer.commit()
    assert shop.with_name(shop.name + "-wal").stat().st_size > 0
    assert databases.get().query("SELECT count(*) FROM orders").column(0) == [4]
    writer.execute("INSERT INTO orders (id) VALUES (5)")
    writer.commit()
    writer.close()
    assert databases.get().query("SELECT count(*) FROM orders").column(0) == [4]


def test_what_is_no_sqlite_file_is_said_so(tmp_path: Path):
    (tmp_path / "x.db").write_text("no database at all, but long enough to be looked at" * 20)
    found = Databases({"x": "sqlite:///x.db"}, folder=tmp_path / "run", root=tmp_path)
    with pytest.raises(DatabaseError, match="no snapshot, cannot be read as a SQLite database: file is"):
        found.get().query("SELECT 1")


def test_memory_and_connections(tmp_path: Path, shop: Path):
    raw = sqlite3.connect(shop)
    raw.execute("CREATE TEMP TABLE own (a INTEGER)")
    raw.execute("INSERT INTO own VALUES (7)")
    given = {"raw": raw, "memory": "sqlite://"}
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT sum(n) FROM r"
    with Databases(given, folder=tmp_path, root=tmp_path) as found:
        assert found.get("raw").query("SELECT a FROM own").types == ["BIGINT"]
        assert found.get("raw").schema()["main.big"] == ("id",)
        with pytest.raises(DatabaseError, match=r"ended after 0\.3 s"):
            found.get("raw").query(endless, timeout=0.3)
        with pytest.raises(DatabaseError, match=r"'raw' \(a sqlite3 connection\): no such table: nope"):
            found.get("raw").query("SELECT * FROM nope")
        assert found.get("memory").query("SELECT 1 AS x").column(0) == [1]
    assert raw.execute("SELECT a FROM own").fetchall() == [(7,)]
    raw.close()


def test_text_that_is_no_utf_8_and_dates_of_expressions(tmp_path: Path):
    with sqlite3.connect(tmp_path / "odd.db") as connection:
        connection.executescript(
            "create table p(id int, name text, day date, at timestamp);"
            "insert into p values (1, cast(x'4d61726961204ac3' as text), '2024-01-03', "
            "'2024-01-03 10:00:00');"
            "insert into p values (2, 'Ana', '2024-01-02', '2024-01-02 10:00:00');"
        )
    found = Databases({"lite": "sqlite:///odd.db"}, folder=tmp_path / "run", root=tmp_path)
    with found:
        query = found.get().query
        assert query("SELECT name FROM p ORDER BY id").column(0) == ["Maria J\ufffd", "Ana"]
        both = query("SELECT max(day) AS a, max(at) AS b, date(at) AS c, datetime(day) AS d FROM p")
        assert both.types == ["DATE", "TIMESTAMP", "DATE", "TIMESTAMP"]
        assert list(both.rows()) == [(date(2024, 1, 3), datetime(2024, 1, 3, 10), date(2024, 1, 3),
                                      datetime(2024, 1, 3))]  # fmt: skip
        texts = query("SELECT strftime('%Y-%m', day) AS m, max(name) AS n, NULL AS z, max(id) AS i FROM p")
        assert texts.types == [None, None, None, None]
        # an answer in any form equals both, the column and what is made of it
        answer = Table.from_records([{"d": "2024-01-03T00:00:00"}])
        for sql in ("SELECT max(day) AS d FROM p", "SELECT day AS d FROM p WHERE id = 1"):
            assert compare(query(sql), answer).matched
    own = sqlite3.connect(tmp_path / "odd.db")
    with Databases({"own": own}, folder=tmp_path / "given", root=tmp_path) as given:
        assert given.get().query("SELECT name FROM p ORDER BY id").column(0)[0] == "Maria J\ufffd"
    assert own.text_factory is str
    own.text_factory = bytes
    with Databases({"own": own}, folder=tmp_path / "given", root=tmp_path) as given:
        assert given.get().query("SELECT name FROM p WHERE id = 2").column(0) == [b"Ana"]
    own.close()
