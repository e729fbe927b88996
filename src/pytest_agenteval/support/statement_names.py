"""The names of the columns that a statement gives, and whether a text is one reading statement."""

from __future__ import annotations

from typing import Any

_DIALECTS = ("duckdb", "", "bigquery", "snowflake", "mysql", "tsql")


def column_names_of(sql: str, dialect: str | None = None) -> list[str] | None:
    """Return the names of a SELECT's columns as DuckDB spells them; ``None`` where they are not known.

    A star stands for columns that only the database knows.
    """
    tree = parsed_select(sql, dialect)
    if tree is None:
        return None
    from sqlglot import exp

    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select) or not tree.selects or any(_starred(node) for node in tree.selects):
        return None
    return [_name(node) for node in tree.selects]


def _name(node: Any) -> str:
    """Return the alias, the column's own name, else the expression: ``count(*)``."""
    from sqlglot import exp

    own = node.name if isinstance(node, exp.Column) else ""
    return str(node.alias or own or node.sql(dialect="duckdb").lower())


def _starred(node: Any) -> bool:
    from sqlglot import exp

    # COUNT(*) holds a star, and is one column
    return bool(node.is_star) and not isinstance(node.unalias(), exp.Func)


def parsed_select(sql: str, dialect: str | None = None) -> Any:
    """Return the only statement of ``sql`` where it is a query; ``None`` for all else."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    for read in _DIALECTS if dialect is None else (dialect,):
        try:
            trees = [tree for tree in sqlglot.parse(sql, read=read) if tree is not None]
        except (SqlglotError, RecursionError):
            continue
        if len(trees) == 1 and isinstance(trees[0], exp.Query):
            return trees[0]
    return None
