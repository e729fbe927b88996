"""Names of tables and columns in a sql check that the database does not have: a rule that never strikes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_agenteval.checks.sql.filters_and_joins import wanted_filter
from pytest_agenteval.checks.sql.names import Schema, has_column, listed, parts, split_column
from pytest_agenteval.support.text import did_you_mean

if TYPE_CHECKING:
    from pytest_agenteval.checks.sql.check import SqlCheck

_TABLES = ("allowed_tables", "forbidden_tables", "required_tables")
_COLUMNS = ("allowed_columns", "forbidden_columns")
_FILTERS = ("required_filters", "time_filter")
_CATALOGUES = ("information_schema", "pg_catalog", "sqlite_master", "sqlite_schema")


def unknown_names(check: SqlCheck, schema: Schema) -> list[str]:
    """Return what is not in ``schema`` of the names in a check, in words, with the nearest that is."""
    found = []
    for field, table, column in _names(check):
        known = listed(table, schema)
        if known is None and not any(part in _CATALOGUES for part in parts(table)):
            tables = schema if "." in table else [name.rpartition(".")[2] for name in schema]
            near = did_you_mean(table, tables, otherwise="")
            found.append(f"sql: {field}: the database has no table {table!r}{near}")
        elif known is not None and column is not None and not has_column(schema[known], column):
            near = did_you_mean(column, schema[known], otherwise="")
            found.append(f"sql: {field}: table {known} has no column {column!r}{near}")
    return list(dict.fromkeys(found))


def _names(check: SqlCheck) -> Iterator[tuple[str, str, str | None]]:
    """Yield every (field, table, column) that a check names."""
    for field in _TABLES:
        yield from ((field, table, None) for table in getattr(check, field) or ())
    for field in _COLUMNS:
        for table, columns in (getattr(check, field) or {}).items():
            yield from ((field, table, column) for column in columns)
    for field in _FILTERS:
        for table, texts in (getattr(check, field) or {}).items():
            for text in texts:
                yield from ((field, table, wanted.column) for wanted in wanted_filter(table, text, None))
    for side in (side for pair in check.allowed_joins or () for side in pair):
        yield "allowed_joins", *split_column(side)
