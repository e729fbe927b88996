"""Postgres through SQLAlchemy: a real server."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.databases import Databases
from pytest_agenteval.errors import DatabaseError

pytestmark = pytest.mark.postgres

SHOP = """
CREATE TABLE orders (id integer PRIMARY KEY, amount numeric(10,2), placed date);
INSERT INTO orders SELECT i, i * 1.5, date '2024-01-01' + i FROM generate_series(1, 10) AS t(i);
CREATE SEQUENCE numbers;
CREATE SCHEMA sales;
CREATE VIEW sales.big AS SELECT id, amount FROM orders WHERE amount > 10;
CREATE TYPE mood AS ENUM ('glad', 'sad');
"""


@pytest.fixture(scope="module")
def shop(postgres: Any) -> str:
    return str(postgres.create("shop", SHOP))


@pytest.fixture
def databases(shop: str, tmp_path: Path) -> Iterator[Databases]:
    with Databases({"shop": shop}, folder=tmp_path / "run", root=tmp_path) as found:
        yield found


def test_a_reference_gives_a_table(databases: Databases):
    table = databases.get().reference("SELECT count(*) AS n, sum(amount) AS total FROM orders;  -- all\n")
    assert table.names == ["n", "total"]
    assert table.types == ["BIGINT", "DECIMAL(38,2)"]
    assert list(table.rows()) == [(10, Decimal("82.50"))]


TYPES = """
SELECT 1::int AS i, 2::bigint AS b, 3::smallint AS s, 1.5::real AS r, 2.5::float8 AS f,
  12.50::numeric(10,2) AS d, 123456789012345678901234567890::numeric AS n, true AS t, 'x'::text AS x,
  'y'::varchar(3) AS v, 'z'::char(2) AS c, date '2024-02-03' AS day,
  timestamp '2024-01-01 10:00:00.000001' AS at, timestamptz '2024-01-01 10:00:00+02' AS tz,
  time '10:11:12' AS clock, interval '1 day 2 hours' AS span, '\\xDEAD'::bytea AS raw,
  '00000000-0000-0000-0000-000000000001'::uuid AS u, '{"a": [1, null]}'::jsonb AS j,
  ARRAY[1, 2] AS ints, ARRAY['a'] AS texts, 'glad'::mood AS mood, NULL AS nothing, 1 AS i,
  'NaN'::numeric AS nan, 'NaN'::float8 AS fnan, '100%s :name' AS percent
"""


def test_types_survive(databases: Databases):
    table = databases.get().query(TYPES)
    found = {
        (name, kind): value
        for name, kind, value in zip(table.names, table.types, next(table.rows()), strict=True)
    }
    assert table.names.count("i") == 2
    zone = datetime.timezone(datetime.timedelta(hours=2))
    expected = {
        ("i", "INTEGER"): 1,
        ("b", "BIGINT"): 2,
        ("s", "SMALLINT"): 3,
        ("r", "FLOAT"): 1.5,
        ("f", "DOUBLE"): 2.5,
        ("d", "DECIMAL(10,2)"): Decimal("12.50"),
        ("n", "DECIMAL(38,0)"): Decimal("123456789012345678901234567890"),
        ("t", "BOOLEAN"): True,
        ("x", "VARCHAR"): "x",
        ("v", "VARCHAR"): "y",
        ("c", "VARCHAR"): "z ",
        ("day", "DATE"): datetime.date(2024, 2, 3),
        ("at", "TIMESTAMP"): datetime.datetime(2024, 1, 1, 10, 0, 0, 1),
        ("tz", "TIMESTAMP WITH TIME ZONE"): datetime.datetime(2024, 1, 1, 10, tzinfo=zone),
        ("clock", "TIME"): datetime.time(10, 11, 12),
        ("span", "INTERVAL (year = 365 days)"): datetime.timedelta(days=1, hours=2),
        ("u", "UUID"): uuid.UUID(int=1),
        ("raw", "BLOB"): b"\xde\xad",
        ("j", "JSON"): {"a": [1, None]},
        ("ints", "INTEGER[]"): [1, 2],
        ("texts", "VARCHAR[]"): ["a"],
        ("mood", "VARCHAR"): "glad",
        ("nothing", "VARCHAR"): None,
        ("percent", "VARCHAR"): "100%s :name",
    }
    nan = found.pop(("nan", "DECIMAL(38,0)"))
    assert isinstance(nan, Decimal)
    assert nan.is_nan()
    assert str(found.pop(("fnan", "DOUBLE"))) == "nan"
    assert found == expected


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (
            "SELECT 1; SELECT 2",
            "refused, found 2 statements; only one SELECT (or WITH ... SELECT) may",
        ),
        ("WITH d AS (DELETE FROM orders RETURNING *) SELECT * FROM d", "refused, the statement holds DELETE"),
        ("COPY orders TO '/tmp/x.csv'", "refused, the statement is COPY"),
        ("ATTACH 'x.db'", "refused, the statement is ATTACH"),
        ("PRAGMA version", "refused, the statement is PRAGMA"),
        ("SELECT * INTO copied FROM orders", "refused, the statement holds INTO"),
        ("EXPLAIN ANALYZE DELETE FROM orders", "refused, the statement is EXPLAIN"),
        ("CALL cleanup()", "refused, the statement is CALL"),
        ("SELECT nextval('numbers')", "refused, the statement holds nextval()"),
        ("SELECT * FROM orders FOR UPDATE", "refused, the statement holds FOR UPDATE / FOR SHARE"),
        ("INSTALL httpfs", "refused, the statement is INSTALL"),
        ("SELECT * FROM read_csv('any.csv')", "holds read_csv(): it reads files or reaches elsewhere"),
        ("FROM 'any.csv'", "any.csv"),
        ("SELECT load_extension('x')", "refused, the statement holds load_extension()"),
        ("SET TRANSACTION READ WRITE", "refused, the statement is SET"),
        ("SELECT set_config('transaction_read_only', 'off', false)", "holds set_config()"),
        ("SELECT pg_read_file('/etc/passwd')", "holds pg_read_file()"),
        ("-- nothing", "refused, found no statement"),
        ("SELECT * FROM nope", 'relation "nope" does not exist'),
    ],
)
def test_only_one_reading_select(databases: Databases, sql: str, text: str):
    with pytest.raises(DatabaseError) as caught:
        databases.get().query(sql)
    assert text in str(caught.value)
    assert str(caught.value).startswith("database 'shop' (postgresql://agenteval@127.0.0.1:")
    assert databases.get().query("SELECT count(*) FROM orders").column(0) == [10]


def test_what_no_parser_sees_is_refused_by_the_transaction(databases: Databases, postgres: Any, shop: str):
    postgres.run(
        "CREATE OR REPLACE FUNCTION sneaky() RETURNS integer LANGUAGE sql AS "
        "$$ INSERT INTO orders VALUES (99, 1, now()) RETURNING id $$; "
        "CREATE SCHEMA IF NOT EXISTS hidden; CREATE OR REPLACE VIEW hidden.v AS SELECT sneaky() AS x",
        "shop",
    )
    with pytest.raises(DatabaseError, match=r"refused, the statement holds sneaky\(\), which is VOLATILE"):
        databases.get().query("SELECT sneaky()")
    with pytest.raises(DatabaseError, match="cannot execute INSERT in a read-only transaction"):
        databases.get().query("SELECT x FROM hidden.v")
    postgres.run("DROP SCHEMA hidden CASCADE", "shop")
    assert databases.get().query("SELECT count(*) FROM orders").column(0) == [10]


def test_a_query_ends_at_its_limits(databases: Databases):
    with pytest.raises(DatabaseError, match=r"ended after 0\.3 s; make the query faster or raise agent"):
        databases.get().query("SELECT pg_sleep(20)", timeout=0.3)
    series = "generate_series(1, 100000)"
    with pytest.raises(DatabaseError, match="more than 1,000 rows; aggregate, add a LIMIT"):
        databases.get().query(f"SELECT a FROM {series} AS a(a), {series} AS b(b)", max_rows=1000)
    assert databases.get().query("SELECT * FROM generate_series(1, 1000)", max_rows=1000).row_count == 1000


def test_schema_dialect_and_fingerprint(databases: Databases):
    found = databases.get()
    assert found.schema() == {"public.orders": ("id", "amount", "placed"), "sales.big": ("id", "amount")}
    assert found.dialect == "postgres"
    assert found.fingerprint() is None


def test_isolation_needs_a_file(databases: Databases):
    with pytest.raises(DatabaseError, match="isolate needs a DuckDB or SQLite file to copy for each attempt"):
        databases.isolate()


def test_a_reference_runs_once_per_run(shop: str, tmp_path: Path):
    sql = "SELECT random() AS x, now() AS at"

    def answer(folder: str) -> list[Any]:
        with Databases({"shop": shop}, folder=tmp_path / folder, root=tmp_path, shared=True) as found:
            return list(found.get().reference(sql).rows())

    assert answer("run") == answer("run") != answer("later")


def test_a_server_that_is_not_there(tmp_path: Path):
    url = "postgresql://someone:geheim@127.0.0.1:1/shop"
    found = Databases({"shop": url}, folder=tmp_path, root=tmp_path)
    with pytest.raises(DatabaseError) as caught:
        found.get().query("SELECT 1")
    text = str(caught.value)
    assert text.startswith("database 'shop' (postgresql://someone:***@127.0.0.1:1/shop): ")
    assert "is it running and may we connect?" in text
    assert "geheim" not in text


def test_connections_of_a_fixture(shop: str, tmp_path: Path):
    import psycopg
    import sqlalchemy

    engine = sqlalchemy.create_engine(shop.replace("postgresql:", "postgresql+psycopg:"))
    raw = psycopg.connect(shop)
    with engine.connect() as connection:
        given = {"engine": engine, "connection": connection, "raw": raw}
        with Databases(given, folder=tmp_path, root=tmp_path) as found:
            for name in given:
                database = found.get(name)
                assert database.dialect == "postgres"
                table = database.query("SELECT sum(amount) AS total, max(placed) AS last FROM orders;")
                assert list(table.rows()) == [(Decimal("82.50"), datetime.date(2024, 1, 11))]
                assert table.types == ["DECIMAL(38,2)", "DATE"]
                assert database.schema()["public.orders"] == ("id", "amount", "placed")
                with pytest.raises(DatabaseError, match=r"ended after 0\.3 s"):
                    database.query("SELECT pg_sleep(20)", timeout=0.3)
                raw.rollback()
                with pytest.raises(DatabaseError, match="refused, the statement is DELETE"):
                    database.query("DELETE FROM orders")
                with pytest.raises(DatabaseError, match='relation "nope" does not exist'):
                    database.query("SELECT * FROM nope")
                raw.rollback()
        assert not connection.closed
        assert not connection.in_transaction()
    assert not raw.closed
    raw.close()
    engine.dispose()


def test_an_open_transaction_of_the_user_is_seen_and_left_alone(shop: str, tmp_path: Path):
    import sqlalchemy

    engine = sqlalchemy.create_engine(shop.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        connection.exec_driver_sql("INSERT INTO orders VALUES (77, 1, now())")
        with Databases({"c": connection}, folder=tmp_path, root=tmp_path, cached=False) as found:
            assert found.get().query("SELECT count(*) FROM orders").column(0) == [11]
        assert connection.in_transaction()
        connection.rollback()
    engine.dispose()
