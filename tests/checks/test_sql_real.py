"""The sql check on 140 real queries over five real databases: no false alarm, every name resolved."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import duckdb
import pytest
import yaml
from checks_kit import House, evidence, judged

from pytest_agenteval.checks.sql.names import columns_of, has_column
from pytest_agenteval.checks.sql.rules import examine
from pytest_agenteval.types import Statement

DEFOG = Path(__file__).resolve().parents[3] / "shared" / "data" / "defog"
NAMES = ("academic", "broker", "car_dealership", "ewallet", "restaurants")
pytestmark = [
    pytest.mark.defog,
    pytest.mark.skipif(not DEFOG.is_dir(), reason="needs ../shared/data/defog (140 real questions)"),
    pytest.mark.skipif(duckdb.__version__ < "2", reason="needs DuckDB 2, which wrote the defog files"),
]


@pytest.fixture(scope="module", params=NAMES)
def database(request: pytest.FixtureRequest) -> tuple[list[str], dict[str, list[str]]]:
    """The reference queries of one database, and its columns by table."""
    name = request.param
    queries = [
        str(yaml.safe_load(path.read_text())["sql"])
        for path in sorted((DEFOG / "tests" / name).glob("*.yml"))
    ]
    schema: dict[str, list[str]] = defaultdict(list)
    with duckdb.connect(str(DEFOG / "db" / f"{name}.duckdb"), read_only=True) as connection:
        listed = "SELECT table_schema || '.' || table_name, column_name FROM information_schema.columns"
        for table, column in connection.execute(listed).fetchall():
            schema[table].append(column)
    return queries, dict(schema)


def test_real_queries_only_read(database):
    queries, schema = database
    for query in queries:
        seen = evidence(sql=[query], services=House(schema))
        result = judged(seen, type="sql", read_only=True, single_statement=True, allowed_tables=list(schema))
        assert result.passed, (query, result.why)


def test_every_column_belongs_to_one_table_that_has_it(database):
    queries, schema = database
    calls = examine([Statement(query) for query in queries], schema, "duckdb")
    uses = [use for call in calls for entry in call.statements for use in entry.analysis.columns]
    assert len(uses) > len(queries)
    for use in uses:
        known = [columns_of(schema, table) for table in use.tables]
        assert all(columns is not None and has_column(columns, use.column) for columns in known), use
        assert len(use.tables) == 1 or use.clause == "JOIN", use


def test_a_forbidden_table_is_seen_exactly_where_its_name_is_written(database):
    queries, schema = database
    for table in schema:
        bare = table.partition(".")[2]
        for query in queries:
            (call,) = examine([Statement(query)], schema, "duckdb")
            read = {use.name.rpartition(".")[2] for entry in call.statements for use in entry.analysis.tables}
            if bare in read:
                assert bare in query
