"""One SELECT, whatever the dialect; and the outermost ORDER BY."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from pytest_agenteval.databases.select_only import bare, first_word, outermost_order_by, require_one_select
from pytest_agenteval.errors import DatabaseError


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("select 1", "select"),
        ("  -- a comment\n /* and /* one\n more */ ((SELECT 1) UNION SELECT 2)", "select"),
        ("-- only a comment", ""),
        ("", ""),
        ("'text'", ""),
        ("WITHOUT", "without"),
    ],
)
def test_the_first_word(sql: str, word: str):
    assert first_word(sql) == word


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        ("SELECT 'a;b', \"c;d\" FROM t; -- end", "postgres"),
        ("SELECT 1;", "mysql"),
        ("(SELECT 1) UNION ALL (SELECT 2)", "postgres"),
        ("VALUES (1), (2)", "postgres"),
        ("WITH a AS (SELECT 1 AS x) SELECT x FROM a", "snowflake"),
        ("SELECT update_time, insert_date, copy FROM t", "postgres"),
        ("SELECT replace(a, 'delete', '') FROM t", "sqlite"),
        ("SELECT * FROM t, LATERAL (SELECT 1) x", ""),
    ],
)
def test_reading_statements_pass(sql: str, dialect: str):
    require_one_select(sql, dialect, "here")


@pytest.mark.parametrize(
    ("sql", "dialect", "text"),
    [
        ("SELECT ( ; DROP TABLE t", "postgres", "here: refused, found 2 statements; only one SELECT"),
        ("SELECT ((1) INTO x", "postgres", "here: refused, the statement holds INTO; only one SELECT"),
        (
            "SELECT ((nextval('s'))",
            "postgres",
            "the statement holds nextval(): it changes",
        ),
        ("DELETE (( FROM t", "postgres", "here: refused, the statement is DELETE; only one SELECT"),
        ("SELECT 'unfinished", "postgres", "here: refused, this is no SQL: "),
        ("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", "snowflake", "the statement is MERGE"),
        ("CREATE TABLE x AS SELECT 1", "bigquery", "the statement is CREATE"),
        ("GRANT SELECT ON t TO x", "postgres", "the statement is GRANT"),
        ("WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a", "postgres", "holds INSERT"),
        ("SELECT * FROM t LOCK IN SHARE MODE", "mysql", "holds FOR UPDATE / FOR SHARE"),
        ("SELECT LOAD_FILE('/etc/passwd')", "mysql", "holds load_file()"),
        ("SELECT 1 INTO OUTFILE '/tmp/x'", "mysql", "the statement holds INTO"),
    ],
)
def test_all_else_is_refused(sql: str, dialect: str, text: str):
    with pytest.raises(DatabaseError) as caught:
        require_one_select(sql, dialect, "here")
    assert text in str(caught.value)


def test_what_cannot_be_parsed_yet_holds_no_writing_word_is_left_to_the_database():
    require_one_select("SELECT (1;", "postgres", "here")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT ';' AS a ; ; -- end", "SELECT ';' AS a"),
        ("SELECT 1 -- why\n /* and */ ;", "SELECT 1"),
        ("/* ü */ SELECT 'ü--' ;", "/* ü */ SELECT 'ü--'"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql", ""])
def test_what_stands_behind_a_statement_is_cut_off(sql: str, expected: str, dialect: str):
    assert bare(sql, dialect) == expected


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT a FROM t", None),
        ("SELECT a FROM t ORDER BY a", ("a asc nulls last",)),
        ("SELECT a, b FROM t ORDER BY b DESC NULLS FIRST, 1", ("b desc nulls first", "1 asc nulls last")),
        ("SELECT sum(x) AS total FROM t ORDER BY SUM(x) DESC", ("total desc nulls last",)),
        ("SELECT c.name, n FROM c ORDER BY c.name", ("1 asc nulls last",)),
        ("SELECT *, c.name FROM c ORDER BY c.name", ("c.name asc nulls last",)),
        ("SELECT a FROM t ORDER BY lower(b)", ("LOWER(b) asc nulls last",)),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a) s", None),
        ("SELECT a, row_number() OVER (ORDER BY b) AS r FROM t", None),
        ("WITH w AS (SELECT 1 AS a ORDER BY 1) SELECT a FROM w ORDER  /* x */ BY a", ("a asc nulls last",)),
        ("SELECT a FROM t UNION SELECT b FROM u ORDER BY a", ("a asc nulls last",)),
        ("(SELECT a FROM t ORDER BY a LIMIT 5)", ("a asc nulls last",)),
        ("(SELECT a FROM t) ORDER BY a", ("a asc nulls last",)),
        ('SELECT a AS "Total Revenue" FROM t ORDER BY "Total Revenue"', ("Total Revenue asc nulls last",)),
        ("SELECT 'order by' FROM t", None),
        ("SELECT FROM WHERE ORDER BY (", None),
        ("DELETE FROM t ORDER BY a", None),
    ],
)
def test_the_outermost_order_by(sql: str, keys: tuple[str, ...] | None):
    assert outermost_order_by(sql, "duckdb") == keys


def test_each_dialect_has_its_own_place_for_nulls():
    sql = "SELECT a FROM t ORDER BY a"
    assert outermost_order_by(sql, "sqlite") == ("a asc nulls first",)
    assert outermost_order_by(sql, "postgres") == ("a asc nulls last",)
    assert outermost_order_by(sql, None) is not None


def test_the_plain_path_loads_nothing_heavy(tmp_path):
    code = """
    import sys
    import duckdb
    from pathlib import Path
    root = Path(sys.argv[1])
    with duckdb.connect(str(root / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1.5::DECIMAL(9,2) AS a, now() AS b")
    from pytest_agenteval.databases import Databases, outermost_order_by
    with Databases({"x": "duckdb:///x.duckdb"}, folder=root / "run", root=root) as found:
        found.get().reference("SELECT * FROM t")
        found.get().schema(), found.get().fingerprint()
        outermost_order_by("SELECT * FROM t", "duckdb")
    print(sorted({"pyarrow", "numpy", "pandas", "sqlalchemy", "sqlglot"} & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_importing_databases_loads_no_driver():
    code = "import sys, pytest_agenteval.databases, pytest_agenteval.extraction; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"duckdb", "pyarrow", "numpy", "sqlalchemy", "sqlglot", "httpx"} & set(done.stdout.split())
