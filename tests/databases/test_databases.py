"""``Databases``: names, URLs, connections of fixtures, drivers that are missing."""

from __future__ import annotations

import datetime
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy
import sqlglot

from pytest_agenteval.databases import Databases, drivers, sources
from pytest_agenteval.databases.limits import decimal_type, type_of
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support.redaction import url_without_secrets


def opened(tmp_path: Path, sources: dict[str, Any], **options: Any) -> Databases:
    return Databases(sources, folder=tmp_path / "run", root=tmp_path, **options)


def test_names(tmp_path: Path):
    found = opened(tmp_path, {"shop": ":memory:", "crm": "sqlite://"})
    assert found.names == ("shop", "crm")
    assert found.urls == {"shop": "duckdb:///:memory:", "crm": "sqlite://"}
    assert found.get("crm").dialect == "sqlite"
    with pytest.raises(DatabaseError, match="which database\\? configured: shop, crm"):
        found.get()
    with pytest.raises(DatabaseError, match="unknown database 'shp', did you mean 'shop'\\?"):
        found.get("shp")
    assert opened(tmp_path, {"only": ":memory:"}).get().name == "only"
    with pytest.raises(DatabaseError, match="configured: none; set agenteval_databases"):
        opened(tmp_path, {}).get()


def test_memory_is_empty_and_locked(tmp_path: Path):
    with opened(tmp_path, {"m": "duckdb://"}) as found:
        assert found.get().query("SELECT 6 * 7 AS x").column(0) == [42]
        assert found.get().schema() == {}
        assert found.get().fingerprint() is None
        found.prepare()
        with pytest.raises(DatabaseError, match="disabled by configuration"):
            found.get().query("FROM 'x.csv'")


def test_paths_and_absolute_urls(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    with duckdb.connect(str(tmp_path / "sub" / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    sources = {
        "relative": "duckdb:///sub/x.duckdb?ignored=1",
        "absolute": f"duckdb:///{tmp_path}/sub/x.duckdb",
        "path": Path("sub/x.duckdb"),
    }
    with opened(tmp_path, sources) as found:
        for name in sources:
            assert found.get(name).query("SELECT a FROM t").column(0) == [1]
        assert len({found.get(name).fingerprint() for name in sources}) == 1
        assert found.urls["relative"] == f"duckdb:///{tmp_path}/sub/x.duckdb?ignored=1"
        assert found.urls["absolute"] == found.urls["path"] == f"duckdb:///{tmp_path}/sub/x.duckdb"
        assert found.get("relative").shown == "duckdb:///sub/x.duckdb?ignored=1"
    assert opened(tmp_path, {"s": tmp_path / "x.db"}).get().dialect == "sqlite"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("shop.duckdb", "database 'x': 'shop.duckdb' is not a URL; write for example duckdb:///shop.duckdb"),
        (7, "database 'x': builtins.int is neither a URL nor a connection; give a URL, a DuckDB or DB-API"),
    ],
)
def test_what_is_no_database(tmp_path: Path, value: Any, text: str):
    with pytest.raises(DatabaseError) as caught:
        opened(tmp_path, {"x": value})
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:pa:ss@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host/db?sslpassword=geheim&x=1", "postgresql://me@host/db?sslpassword=***&x=1"),
        ("snowflake://u:p@acc/db/s?token=abc", "snowflake://u:***@acc/db/s?token=***"),
        ("duckdb:///x.duckdb", "duckdb:///x.duckdb"),
        ("no url", "no url"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str):
    assert url_without_secrets(url) == shown


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("snowflake://u:geheim@acc/db", 'no driver for snowflake .*; pip install "snowflake-sqlalchemy"'),
        (
            "mysql+mysqlconnector://u@h/db",
            'no driver for mysql .*; pip install "mysql-connector-python", or write mysql:// in place of '
            'mysql[+]mysqlconnector:// and pip install "PyMySQL"$',
        ),
        (
            "postgresql+psycopg2://u@h/db",
            'pip install "psycopg2-binary", or write postgresql:// in place of postgresql[+]psycopg2:// and '
            r'pip install "psycopg\[binary\]"$',
        ),
        (
            "postgresql+asyncpg://u:geheim@h/db",
            "asyncpg works with asyncio alone, references are run without: write postgresql:// and "
            r'pip install "psycopg\[binary\]"$',
        ),
        ("oracle+oracledb_async://u@h/db", 'write oracle:// and pip install "oracledb"$'),
        ("redshift+redshift_connector://u@h/db", 'pip install "sqlalchemy-redshift redshift-connector"$'),
        ("bigquery://project", 'no driver for bigquery .*; pip install "sqlalchemy-bigquery"'),
        ("cobol://h/db", "no driver for cobol .*; install the SQLAlchemy dialect for cobol"),
        ("mysql://u:geheim@h:notaport/db", r": the URL cannot be read: (ValueError|ArgumentError)$"),
    ],
)
def test_a_missing_driver_is_named(tmp_path: Path, url: str, text: str):
    with pytest.raises(DatabaseError, match=text) as caught:
        opened(tmp_path, {"x": url}).get().query("SELECT 1")
    assert "geheim" not in str(caught.value)
    assert str(caught.value).startswith("database 'x' (")


def test_postgres_without_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(drivers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DatabaseError, match=r"none of psycopg, psycopg2 is .*; pip install \"psycopg\["):
        opened(tmp_path, {"x": "postgres://h/db"}).get().query("SELECT 1")
    with pytest.raises(DatabaseError, match=r"none of MySQLdb, pymysql, .*; pip install \"PyMySQL\"$"):
        opened(tmp_path, {"x": "mysql://h/db"}).get().query("SELECT 1")


def test_the_driver_that_is_there_is_chosen(monkeypatch: pytest.MonkeyPatch):
    there = {"pymysql", "psycopg2"}

    def find(name: str) -> Any:
        if name == "mysql.connector":
            raise ModuleNotFoundError(name)
        return name if name in there else None

    monkeypatch.setattr(drivers.importlib.util, "find_spec", find)
    chosen = [drivers.chosen_driver(name) for name in ("mysql", "mariadb", "postgresql", "snowflake", "a+b")]
    assert chosen == ["mysql+pymysql", "mariadb+pymysql", "postgresql+psycopg2", "snowflake", "a+b"]
    there.remove("pymysql")
    with pytest.raises(ImportError, match=r"none of MySQLdb, pymysql, mysql\.connector is installed"):
        drivers.chosen_driver("mysql")


def test_dialects(tmp_path: Path):
    urls = {
        "postgres": "postgres://h/d",
        "redshift": "redshift+psycopg2://h/d",
        "tsql": "mssql+pyodbc://h/d",
        "mysql": "mariadb://h/d",
        "bigquery": "bigquery://p",
        "snowflake": "snowflake://a/d",
    }
    found = opened(tmp_path, urls)
    assert {name: found.get(name).dialect for name in found.names} == {name: name for name in urls}
    assert all(sqlglot.Dialect.get(name) is not None for name in sources._DIALECTS.values())
    assert opened(tmp_path, {"x": "cobol://h/d"}).get().dialect == ""


def test_a_duckdb_connection_of_a_fixture(tmp_path: Path):
    own = duckdb.connect()
    own.execute("CREATE TABLE t AS SELECT range AS i FROM range(3); CREATE SEQUENCE s")
    (tmp_path / "x.csv").write_text("a\n1\n")
    with opened(tmp_path, {"own": own}) as found:
        database = found.get()
        assert database.query("SELECT count(*) FROM t;").column(0) == [3]
        assert database.schema() == {"main.t": ("i",)}
        assert (database.url, database.fingerprint(), database.dialect) == (None, None, "duckdb")
        assert found.urls == {}
        for sql in ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", "SELECT nextval('s')"):
            with pytest.raises(DatabaseError, match=r"launched in read-only mode|A CTE needs a SELE"):
                database.query(sql)
        with pytest.raises(DatabaseError, match=r"'own' \(a duckdb connection\): refused, .*DROP"):
            database.query("DROP TABLE t")
        with pytest.raises(DatabaseError, match=r"ended after 0\.2 s"):
            database.query("SELECT pg_sleep(9)" if duckdb.__version__ >= "2" else SLOW, timeout=0.2)
        database.prepare()
        with pytest.raises(DatabaseError, match="isolate needs a DuckDB or SQLite file"):
            found.isolate()
    own.execute("INSERT INTO t VALUES (9)")
    assert own.execute("SELECT current_setting('enable_external_access')").fetchall() == [(True,)]
    own.close()
    with pytest.raises(DatabaseError, match=r"Connection (Error: Connection has )?already (been )?closed"):
        opened(tmp_path, {"own": own}).get().query("SELECT 1")


SLOW = "SELECT count(*) FROM range(100000) a, range(10000000) b"


def test_a_sqlite_engine_and_connection_of_a_fixture(tmp_path: Path):
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/x.db")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (i INTEGER)")
        connection.exec_driver_sql("INSERT INTO t VALUES (1)")
    with engine.connect() as connection, opened(tmp_path, {"e": engine, "c": connection}) as found:
        for name in ("e", "c"):
            assert found.get(name).query("SELECT i FROM t").types == ["BIGINT"]
            assert found.get(name).schema() == {"main.t": ("i",)}
            with pytest.raises(DatabaseError, match=rf"'{name}' \(a sqlalchemy connection\): no such table"):
                found.get(name).query("SELECT * FROM u")
        found.interrupt()
    engine.dispose()


def test_running_queries_are_ended_from_outside(tmp_path: Path):
    own = duckdb.connect()
    found = opened(tmp_path, {"m": ":memory:", "own": own, "lite": "sqlite://"})
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
    failures: list[str] = []

    def run(name: str, sql: str) -> None:
        try:
            found.get(name).query(sql)
        except DatabaseError as error:
            failures.append(str(error))

    work = [("m", SLOW), ("own", SLOW), ("lite", endless)]
    threads = [threading.Thread(target=run, args=entry) for entry in work]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    for thread in threads:
        while thread.is_alive():
            found.interrupt()
            thread.join(0.2)
    assert len(failures) == 3
    assert all("nterrupt" in text for text in failures)
    found.close()
    own.close()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None], "BIGINT"),
        ([2**70], "HUGEINT"),
        ([True], "BOOLEAN"),
        ([1, 2.5], "DOUBLE"),
        ([Decimal("1.50"), Decimal("10")], "DECIMAL(38,2)"),
        ([datetime.datetime(2024, 1, 1)], "TIMESTAMP"),
        ([datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)], "TIMESTAMP WITH TIME ZONE"),
        ([datetime.date(2024, 1, 1)], "DATE"),
        (["a", 1], None),
        ([None], None),
        ([object()], None),
    ],
)
def test_types_from_values(values: list[Any], kind: str | None):
    assert type_of(values) == kind


def test_decimals_wider_than_usual():
    assert decimal_type([Decimal("1" * 40 + ".5"), Decimal("NaN"), None]) == "DECIMAL(41,1)"
    assert decimal_type([Decimal("1E+3")]) == "DECIMAL(38,0)"


@pytest.mark.parametrize("rows", [1, 3000])
def test_dates_beyond_python(tmp_path: Path, rows: int):
    sql = (
        "SELECT CASE WHEN i < 0 THEN DATE '2024-01-01' WHEN i % 3 = 0 THEN DATE '290000-01-01' "
        "WHEN i % 3 = 1 THEN 'infinity'::DATE ELSE '-infinity'::DATE END AS d, "
        "CASE WHEN i % 2 = 0 THEN TIMESTAMP '290000-01-01 10:00:00' ELSE 'infinity'::TIMESTAMP END AS ts, "
        f"DATE '2024-01-01' AS plain FROM range({rows}) AS r(i)"
    )
    with opened(tmp_path, {"m": ":memory:"}) as found:
        small = found.get().query(sql.replace(f"range({rows})", "range(6)"))
        table = found.get().query(sql)
    assert table.types == ["DATE", "TIMESTAMP", "DATE"]
    assert [str(value) for value in table.column(0)[:6]] == [str(value) for value in small.column(0)[:rows]]
    assert [str(value) for value in table.column(1)[:6]] == [str(value) for value in small.column(1)[:rows]]
    assert [str(value) for value in table.column(0)[-6:]] == [
        str(small.column(0)[(rows - 6 + i) % 6]) for i in range(6) if rows > 6
    ] or rows == 1
    assert table.column(2)[-1] == datetime.date(2024, 1, 1)
