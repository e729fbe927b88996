"""Real servers: nothing that a model writes changes them, reads their files, or outlasts its time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from services import MariaDb, Postgres

from pytest_agenteval.databases import Databases
from pytest_agenteval.errors import DatabaseError


def opened(url: object, folder: Path, **limits: float) -> Databases:
    return Databases({"shop": url}, folder=folder, root=folder, **limits)  # type: ignore[arg-type]


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create(
        "attacked",
        "CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 100) i; CREATE SEQUENCE s;"
        "CREATE FUNCTION mine(a int) RETURNS int LANGUAGE sql AS 'SELECT a';"
        "CREATE FUNCTION fine(a int) RETURNS int LANGUAGE sql STABLE AS 'SELECT a';",
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT query_to_xml('select setval(''s'', 999)', true, true, '')",
        "SELECT U&\"pg\\005fread\\005ffile\"('/etc/passwd')",
        "SELECT pg_advisory_lock(42)",
        "SELECT pg_stat_reset()",
        "SELECT mine(1)",
        "SELECT public.mine(id) FROM t",
        "SELECT pg_catalog.set_config('transaction_read_only', 'off', true)",
        "SELECT pg_rotate_logfile_old()",
        "SELECT lo_get(1), loread(1, 2)",
    ],
)
def test_postgres_runs_nothing_that_may_change_it(shop: str, tmp_path: Path, sql: str) -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine(shop.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        for given in (shop, engine, connection):
            with opened(given, tmp_path) as databases, pytest.raises(DatabaseError, match="refused, "):
                databases.get().query(sql)
    engine.dispose()


def test_postgres_functions_that_only_read_are_run(shop: str, tmp_path: Path) -> None:
    with opened(shop, tmp_path) as databases:
        assert (
            databases.get().query("SELECT fine(2) AS a, random() < 2 AS b, now() IS NULL AS c").row_count == 1
        )
        for _ in range(3):  # sessions are reset in between
            assert databases.get().query("SELECT count(*) AS n FROM t").column(0) == [100]
        assert databases.get().query("SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory'").column(
            0
        ) == [0]


def test_postgres_rows_of_any_length_end_in_time(shop: str, tmp_path: Path) -> None:
    with opened(shop, tmp_path, timeout=2) as databases:
        with pytest.raises(DatabaseError, match="more than 256 MB of values; select fewer columns"):
            databases.get().query("SELECT repeat('x', 10000000) AS a FROM generate_series(1, 60)", timeout=60)
        began = time.monotonic()
        with pytest.raises(DatabaseError, match="ended after 1 s"):
            databases.get().query("SELECT pg_sleep(30)", timeout=1)
        assert time.monotonic() - began < 6


@pytest.fixture(scope="module")
def maria(mariadb: MariaDb) -> MariaDb:
    mariadb.run("CREATE TABLE IF NOT EXISTS test.orders ENGINE=Aria AS SELECT 1 AS id, 'web' AS channel")
    return mariadb


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 /*!50000 INTO OUTFILE '{home}/x' */ AS b",
        "/*! CREATE TABLE test.pwned */ SELECT 1 AS i",
        "SELECT 1 AS i /*M! FOR UPDATE */",
        "SELECT get_lock('a', 1)",
        "SELECT load_file('/etc/hostname')",
        "SELECT 1 INTO @x",
        "SELECT id FROM orders FOR UPDATE",
    ],
)
def test_mariadb_runs_nothing_that_may_change_it(maria: MariaDb, tmp_path: Path, sql: str) -> None:
    with opened(maria.url(), tmp_path) as databases:
        with pytest.raises(DatabaseError, match="refused, "):
            databases.get().query(sql.format(home=tmp_path))
        tables = databases.get().query(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'test'"
        )
        assert tables.column(0) == ["orders"]


def test_mariadb_reads_in_a_transaction_that_cannot_write(maria: MariaDb, tmp_path: Path) -> None:
    import sqlalchemy

    with opened(maria.url(), tmp_path) as databases:
        engine = databases.get()._open()
        with (
            engine._transaction(5) as connection,
            pytest.raises(sqlalchemy.exc.SQLAlchemyError, match="READ ONLY"),
        ):  # type: ignore[attr-defined]
            connection.exec_driver_sql("INSERT INTO orders VALUES (2, 'x')")
        assert databases.get().query("SELECT count(*) AS n FROM orders").column(0) == [1]


@pytest.mark.parametrize("sql", ["SELECT SLEEP(30) AS s", "SELECT BENCHMARK(1000000000, md5(1)) AS b"])
def test_mariadb_keeps_the_limit_of_time(maria: MariaDb, tmp_path: Path, sql: str) -> None:
    began = time.monotonic()
    with opened(maria.url(), tmp_path, timeout=1) as databases:
        with pytest.raises(DatabaseError, match="ended after 1 s; make the query faster or raise"):
            databases.get().query(sql)
        assert time.monotonic() - began < 6
        assert databases.get().query("SELECT 1 AS n").column(0) == [1]


def test_a_server_that_never_answers_is_an_error_in_time(tmp_path: Path) -> None:
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"mysql+pymysql://u:p@127.0.0.1:{silent.getsockname()[1]}/x"
        began = time.monotonic()
        with (
            opened(url, tmp_path, timeout=0.5) as databases,
            pytest.raises(DatabaseError, match=r"ended after 0\.5 s"),
        ):
            databases.get().query("SELECT 1 AS n")
        assert time.monotonic() - began < 6


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT damerau_levenshtein(repeat('a', 20000), repeat('b', 20000)) AS d",
        "SELECT length(repeat('x', 3000000000)) AS n",
        "SELECT list_reduce(range(100000000), lambda a, b : a + b) AS n",
    ],
    ids=["one call", "one value", "one list"],
)
def test_duckdb_ends_in_time_whatever_one_call_takes(tmp_path: Path, sql: str) -> None:
    import duckdb

    duckdb.connect(str(tmp_path / "shop.duckdb")).close()
    began = time.monotonic()
    with opened(f"duckdb:///{tmp_path}/shop.duckdb", tmp_path) as databases:
        with pytest.raises(DatabaseError, match=r"ended after 0\.5 s|[Mm]emory|Out of Range"):
            databases.get().query(sql, timeout=0.5)
        assert time.monotonic() - began < 8
        assert databases.get().query("SELECT 1 AS n").column(0) == [1]


def test_sqlite_ends_in_time_whatever_one_call_takes(tmp_path: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(tmp_path / "shop.sqlite")
    connection.execute("create table t as select 1 as n")
    connection.close()
    began = time.monotonic()
    with opened(f"sqlite:///{tmp_path}/shop.sqlite", tmp_path) as databases:
        with pytest.raises(DatabaseError, match=r"ended after 0\.2 s|too big"):
            databases.get().query("SELECT length(printf('%.*c', 120000000, 'x')) AS n", timeout=0.2)
        assert time.monotonic() - began < 6
