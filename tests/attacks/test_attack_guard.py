"""Statements that do more than read: refused before they run, and never passed by the sql check."""

from __future__ import annotations

import pytest

from pytest_agenteval.checks.sql.check import SqlCheck
from pytest_agenteval.databases.select_only import require_one_select
from pytest_agenteval.databases.sql_functions import danger_of
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.types import Consumption, Evidence, Statement


def ran(sql: str) -> Evidence:
    """Evidence of one executed statement."""
    return Evidence(
        prompt="How much?", text="", statements=(Statement(sql),), used=Consumption(sql_queries=1)
    )


BAD = [
    ("postgres", "SELECT dblink_connect('c','host=x')||dblink_send_query('c','delete from t')::text"),
    ("postgres", "SELECT U&\"dblink\\005fexec\"('delete')"),
    ("postgres", "SELECT u&\"pg\\005fread\\005ffile\"('/etc/passwd')"),
    ("postgres", "SELECT query_to_xml('select dblink_exec(1)', true, true, '')"),
    ("postgres", "SELECT \"query_to_xml\"('select 1', true, true, '')"),
    ("postgres", "SELECT pg_catalog.query_to_xml('select 1', true, true, '')"),
    ("postgres", "SELECT * FROM crosstab('delete from t returning 1,2,3') AS x(a int, b int)"),
    ("postgres", "SELECT * FROM ts_stat('select 1')"),
    ("postgres", "SELECT ts_rewrite('a'::tsquery, 'select 1')"),
    ("postgres", "SELECT * FROM xpath_table('id','x','customers','/a','true') AS t(a int)"),
    ("postgres", "SELECT table_to_xml('customers', true, true, '')"),
    ("postgres", "SELECT pg_advisory_lock(42)"),
    ("postgres", "SELECT pg_file_write('x','y',false)"),
    ("postgres", "SELECT pg_create_physical_replication_slot('s')"),
    ("postgres", "SELECT pg_stat_reset()"),
    ("postgres", "SELECT nextval('s')"),
    ("postgres", "SELECT * FROM my_function('x')"),
    ("mysql", "SELECT 1 /*!50000 INTO OUTFILE 'x' */ AS b"),
    ("mysql", "/*! CREATE TABLE pwned */ SELECT 1 AS i"),
    ("mysql", "/*! DELETE FROM orders WHERE order_id IN */ (SELECT 2)"),
    ("mysql", "SELECT 1 /*M!100100 FOR UPDATE */"),
    ("mysql", "SELECT get_lock('a', 1)"),
    ("mysql", "SELECT load_file('/etc/passwd')"),
    ("", "SELECT 1 /*! INTO OUTFILE 'x' */"),
    ("tsql", "SELECT 1\nDELETE FROM t"),
    ("tsql", "SELECT 1\nEXEC sp_who"),
    ("tsql", "SELECT 1 WAITFOR DELAY '0:1'"),
    ("tsql", "SELECT * FROM OPENROWSET('SQLNCLI', 'x', 'select 1')"),
    ("tsql", "SELECT * FROM OPENROWSET(BULK 'x', SINGLE_CLOB) a"),
    ("tsql", "SELECT * FROM OPENQUERY(s, 'delete')"),
    ("tsql", "SELECT NEXT VALUE FOR s"),
    ("clickhouse", "SELECT * FROM url('http://x', CSV)"),
    ("clickhouse", "SELECT * FROM file('/etc/passwd')"),
    ("clickhouse", "SELECT * FROM remote('h', db, t)"),
    ("clickhouse", "SELECT * FROM executable('x', 'TSV', 'a')"),
    ("databricks", "SELECT java_method('a','b')"),
    ("databricks", "SELECT reflect('a','b')"),
    ("databricks", "SELECT * FROM read_files('s3://x')"),
    ("snowflake", "SELECT SYSTEM$CANCEL_ALL_QUERIES(1)"),
    ("snowflake", "SELECT 1 ->> DELETE FROM t"),
    ("snowflake", "SELECT * FROM @stage/x"),
    ("snowflake", "SELECT seq.nextval"),
    ("oracle", "SELECT utl_http.request('http://x') FROM dual"),
    ("oracle", "SELECT s.nextval FROM dual"),
    ("trino", "SELECT * FROM TABLE(pg.system.query(query => 'DELETE FROM t'))"),
    ("bigquery", "SELECT * FROM EXTERNAL_QUERY('c','select 1')"),
]

GOOD = [
    ("postgres", "SELECT a.n, g FROM orders a, generate_series(1, 3) g WHERE a.n = 1 AND a.t & 4 = 4"),
    (
        "postgres",
        "SELECT date_trunc('month', d), regexp_replace(a, 'x', 'y'), random() FROM t, unnest(ARRAY[1]) u",
    ),
    ("mysql", "SELECT DATE_FORMAT(d, '%Y') /* the year */ FROM t"),
    ("tsql", "SELECT TOP 5 [delete], t.[update] FROM t WHERE a = 'exec'"),
    ("snowflake", "SELECT f.value FROM t, LATERAL FLATTEN(input => t.a) f"),
    ("snowflake", "SELECT * FROM TABLE(GENERATOR(ROWCOUNT => 3))"),
    ("bigquery", "SELECT * FROM UNNEST(GENERATE_ARRAY(1, 3)) AS n"),
    ("databricks", "SELECT transform(a, x -> x + 1), explode(b) FROM t"),
    ("clickhouse", "SELECT number FROM numbers(10)"),
    ("sqlite", "SELECT * FROM t, json_each(t.a) WHERE glob('a*', t.b)"),
    ("oracle", "SELECT nvl(a, 0) FROM t"),
    ("trino", "SELECT * FROM t CROSS JOIN UNNEST(a) AS u(x)"),
]


@pytest.mark.parametrize(("dialect", "sql"), BAD)
def test_what_does_more_than_read_is_refused_before_it_runs(dialect: str, sql: str) -> None:
    with pytest.raises(DatabaseError, match="refused, "):
        require_one_select(sql, dialect, "here")


@pytest.mark.parametrize(("dialect", "sql"), BAD)
def test_what_does_more_than_read_is_never_passed_by_the_check(dialect: str, sql: str) -> None:
    check = SqlCheck(type="sql", read_only=True, single_statement=True, dialect=dialect or "mysql")
    result = check.check(ran(sql))
    assert not result.passed, result.why


@pytest.mark.parametrize(("dialect", "sql"), GOOD)
def test_what_only_reads_is_let_through(dialect: str, sql: str) -> None:
    require_one_select(sql, dialect, "here")
    result = SqlCheck(type="sql", read_only=True, dialect=dialect).check(ran(sql))
    assert result.passed, result.why


BLIND = [
    ("duckdb", "SELECT * FROM query('select email from customers')"),
    ("duckdb", "SELECT * FROM query_table('cust' || 'omers')"),
    ("duckdb", "SELECT * FROM read_csv('x')"),
    ("duckdb", "SELECT * FROM duckdb_tables()"),
    ("postgres", "SELECT query_to_xml('select email from customers', true, true, '')"),
    ("postgres", "SELECT table_to_xml('customers', true, true, '')"),
    ("postgres", 'SELECT U&"em\\0061il" FROM orders'),
    ("postgres", "SELECT * FROM dblink('x', 'select email from customers') AS t(a text)"),
    ("postgres", "SELECT pg_read_file('x')"),
]


@pytest.mark.parametrize(("dialect", "sql"), BLIND)
@pytest.mark.parametrize(
    "rules",
    [{"allowed_tables": ("orders",)}, {"forbidden_columns": {"customers": ("email",)}}, {"read_only": True}],
    ids=["allowed", "columns", "reading"],
)
def test_what_cannot_be_told_never_passes(dialect: str, sql: str, rules: dict[str, object]) -> None:
    check = SqlCheck.model_validate({"type": "sql", "dialect": dialect, **rules})
    result = check.check(ran(sql))
    assert not result.passed, result.why


def test_the_two_lists_are_one() -> None:
    for name in (
        "pg_read_file",
        "get_lock",
        "dblink_send_query",
        "pg_advisory_lock",
        "query_to_xml",
        "xp_cmdshell",
    ):
        assert danger_of(name) is not None
    assert danger_of("pg_sleep") == "time"
    for name in (
        "sum",
        "coalesce",
        "date_trunc",
        "transform",
        "json_extract",
        "string_agg",
        "now",
        "net.host",
    ):
        assert danger_of(name) is None


@pytest.mark.parametrize(
    "sql", ["SELECT 1" + " OR 1=1" * 4000, "SELECT " + "(" * 3000 + "1" + ")" * 3000, "x" * 200_000]
)
def test_parsing_is_bounded(sql: str) -> None:
    import time

    began = time.process_time()
    with pytest.raises(DatabaseError, match=r"refused, the statement has (more than|200,000)"):
        require_one_select(sql, "postgres", "here")
    result = SqlCheck(type="sql", read_only=True, dialect="postgres").check(ran(sql))
    assert not result.passed
    assert time.process_time() - began < 1
