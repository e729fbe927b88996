"""What the text of a reference says about the case: does its answer move, is it cut without an order."""

from __future__ import annotations

from typing import Any

_MOVING = frozenset(
    (
        "now", "today", "getdate", "getutcdate", "sysdate", "systimestamp", "current_date", "current_time",
        "current_timestamp", "curdate", "curtime", "localtime", "localtimestamp", "clock_timestamp",
        "statement_timestamp", "transaction_timestamp", "utc_timestamp", "utc_date", "unix_timestamp",
        "random", "rand", "uuid", "gen_random_uuid", "newid", "uuid_string", "get_current_timestamp",
    )
)  # fmt: skip
_MOVING_WORDS = frozenset(("now", "today", "yesterday", "tomorrow"))


def parsed(sql: str, dialect: str | None) -> Any:
    """Return the tree of one statement, ``None`` where it cannot be parsed."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(sql, read=dialect or None)
    except (SqlglotError, RecursionError):
        return None


def moves_with_time(sql: str, dialect: str | None) -> str:
    """Return the first function or word by which a reference gives other rows another day ('': none)."""
    from sqlglot import exp

    tree = parsed(sql, dialect)
    if tree is None:
        return ""
    for node in tree.walk():
        if isinstance(node, exp.Func):
            name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
            if name in _MOVING or type(node).__name__.lower() in ("currentdate", "currenttimestamp", "rand"):
                return str(node.sql(dialect=dialect or None)).lower()
        held = node.this if isinstance(node, exp.Cast) else None
        if isinstance(held, exp.Literal) and held.is_string and held.name.lower() in _MOVING_WORDS:
            return f"'{held.name}'"
    return ""
