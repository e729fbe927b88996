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


def limit_without_order(tree: Any) -> bool:
    """Return whether the outermost query is cut (LIMIT, TOP, FETCH) and gives any rows it likes.

    A query of one row by construction (aggregates without GROUP BY) is not cut.
    """
    from sqlglot import exp

    if not (tree.args.get("limit") or tree.args.get("fetch")) or tree.args.get("order"):
        return False
    return not (isinstance(tree, exp.Select) and _is_one_row(tree))


def _is_one_row(tree: Any) -> bool:
    from sqlglot import exp

    if tree.args.get("group") or tree.args.get("distinct"):
        return False
    return bool(tree.expressions) and all(
        entry.find(exp.AggFunc) and not entry.find(exp.Window) for entry in tree.expressions
    )


def selects_star(tree: Any) -> bool:
    """Return whether the outermost list has a `*`."""
    from sqlglot import exp

    return isinstance(tree, exp.Select) and any(
        isinstance(entry, exp.Star) or (isinstance(entry, exp.Column) and isinstance(entry.this, exp.Star))
        for entry in tree.expressions
    )


def unnamed(tree: Any) -> str:
    """Return the first expression of the outermost list that has no name of its own ('': all have)."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select):
        return ""
    for entry in tree.expressions:
        if not isinstance(entry, exp.Alias | exp.Column | exp.Star) and not entry.alias:
            return str(entry.sql())
    return ""


_UNIT_NAMED = ("pct", "percent", "share", "rate", "ratio", "fraction")


def share_without_unit(tree: Any) -> str:
    """Return a result column that is a quotient or the mean of a condition and whose name has no unit."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select):
        return ""
    for entry in tree.expressions:
        value = entry.unalias()
        while isinstance(value, exp.Cast | exp.Round | exp.Paren):
            value = value.this
        is_share = isinstance(value, exp.Div) or (isinstance(value, exp.Avg) and _is_condition(value.this))
        name = entry.alias.lower()
        if is_share and not any(word in name for word in _UNIT_NAMED):
            return entry.alias or str(entry.sql())
    return ""


def _is_condition(node: Any) -> bool:
    from sqlglot import exp

    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Case):
        ends = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
        return all(end is None or (isinstance(end, exp.Literal) and end.name in ("0", "1")) for end in ends)
    return isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Boolean)


def identifiers(tree: Any) -> set[str]:
    """Return what a question should not say: `table.column`, and tables and columns with a `_`."""
    from sqlglot import exp

    tables = {table.name for table in tree.find_all(exp.Table) if table.name}
    columns = {column.name for column in tree.find_all(exp.Column) if column.name}
    dotted = {f"{table}.{column}" for table in tables for column in columns}
    return {name.lower() for name in tables | columns if "_" in name} | {name.lower() for name in dotted}


def shape_of(sql: str, tree: Any) -> str:
    """Return the statement without its literals, to find references that differ in nothing else."""
    from sqlglot import exp

    copy = tree.copy()
    for literal in list(copy.find_all(exp.Literal)):
        literal.replace(exp.Placeholder())
    return str(copy.sql(normalize=True))
