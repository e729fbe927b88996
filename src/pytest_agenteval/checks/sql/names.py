"""Names of tables and columns, as statements and rules write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlglot import exp

Node: TypeAlias = Any
"""A node of a syntax tree; the name of its base class differs between versions of sqlglot."""

Schema = Mapping[str, Sequence[str]]
"""Column names by ``schema.table``."""


def table_name(table: exp.Table) -> str:
    """Return ``catalog.schema.table`` as far as it is written."""
    return ".".join(part for part in (table.catalog, table.db, table.name) if part)


def parts(name: str) -> list[str]:
    """Return the parts of a dotted name, without quotes, case folded."""
    return [part.strip().strip('"`[]').casefold() for part in name.split(".")]


def same_table(a: str, b: str) -> bool:
    """Return whether two names mean one table: ``main.orders`` and ``orders`` do,
    ``other.orders`` does not.
    """
    one, two = parts(a), parts(b)
    short = min(len(one), len(two))
    return one[-short:] == two[-short:]


def listed(name: str, names: Iterable[str]) -> str | None:
    """Return the entry of ``names`` that is this table."""
    return next((entry for entry in names if same_table(name, entry)), None)


def columns_of(schema: Schema, table: str) -> list[str] | None:
    """Return the table's columns; ``None`` where the schema does not know it."""
    known = listed(table, schema)
    return None if known is None else list(schema[known])


def has_column(columns: Iterable[str], name: str) -> bool:
    """Return whether ``name`` is one of ``columns``, case aside."""
    return name.casefold() in {column.casefold() for column in columns}


def split_column(name: str) -> tuple[str, str]:
    """Return ``main.orders.id`` as (``main.orders``, ``id``)."""
    table, _, column = name.rpartition(".")
    return table, column.strip().strip('"`[]')
