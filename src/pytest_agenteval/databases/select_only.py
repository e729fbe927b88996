"""Exactly one SELECT, whatever the dialect; and the outermost ORDER BY of one.

DuckDB's own parser decides for DuckDB (no other import on that path); sqlglot for the rest.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pytest_agenteval.databases.sql_dangers import Finding, disagreement, findings
from pytest_agenteval.errors import DatabaseError

_LEAD = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|(?>/\*.*?\*/)|\()*+", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
_QUERY_WORDS = frozenset({"select", "with", "from", "values", "table", "pivot", "unpivot"})
_ORDER_BY = re.compile(r"\border\s+(?:/\*.*?\*/\s*|--[^\n]*\n\s*)*by\b", re.IGNORECASE | re.DOTALL)

_ONE = "only one SELECT (or WITH ... SELECT) may run here"

_FORBIDDEN_WORDS = frozenset(
    re.findall(
        r"\w+",
        "insert update delete merge truncate create drop alter grant revoke copy call execute attach detach "
        "pragma vacuum install load into lock explain set begin commit rollback",
    )
)


def first_word(sql: str) -> str:
    """Return the statement's first word in lower case, comments and opening brackets skipped."""
    lead = _LEAD.match(sql)
    word = _WORD.match(sql, lead.end() if lead else 0)
    return word[0].lower() if word else ""


def require_one_select_duckdb(sql: str, where: str) -> None:
    """Refuse all but one SELECT, as DuckDB parses it. Raises ``DatabaseError`` saying what was found."""
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise DatabaseError(f"{where}: {str(error).strip()}\n{_ONE}") from error
    _require_one(len(statements), where)
    kind = statements[0].type.name.removesuffix("_STATEMENT")
    word = first_word(sql)
    if kind == "MULTI":
        raise DatabaseError(
            f"{where}: refused, PIVOT without its values is more than one statement; "
            "name them: PIVOT t ON c IN ('a', 'b')"
        )
    if kind != "SELECT" or word not in _QUERY_WORDS:
        found = kind if kind != "SELECT" else word.upper()
        raise DatabaseError(f"{where}: refused, the statement is {found}; {_ONE}")


def require_one_select(sql: str, dialect: str, where: str) -> None:
    """Refuse all but one reading SELECT of ``dialect`` (sqlglot). Raises ``DatabaseError``.

    What cannot be analysed is refused, too: text that is run as SQL, code in comments, a second statement.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    unclear = disagreement(sql, dialect)
    if unclear is not None:
        raise DatabaseError(f"{where}: refused, the statement {unclear}; {_ONE}")
    try:
        with quiet_parser():
            trees = [tree for tree in sqlglot.parse(sql, read=dialect or None) if tree is not None]
    except (SqlglotError, RecursionError):
        _require_one_by_words(sql, dialect, where)
        return
    trees = [tree for tree in trees if not isinstance(tree, exp.Semicolon)]
    _require_one(len(trees), where)
    if not isinstance(trees[0], exp.Query | exp.Values) or first_word(sql) not in _QUERY_WORDS:
        raise DatabaseError(f"{where}: refused, the statement is {_kind(trees[0], sql)}; {_ONE}")
    writes = _writing(trees[0])
    if writes:
        raise DatabaseError(f"{where}: refused, the statement holds {writes}; {_ONE}")
    _require_harmless(findings(sql, dialect, trees[0]), where)


def _require_harmless(found_in: Iterable[Finding], where: str) -> None:
    for found in found_in:
        if found.kind != "time":  # a limit of time holds for every query
            unknown = found.verb == "reads from"
            does = "what it reads or runs cannot be told" if unknown else _DOES[found.kind]
            name = found.what if found.verb != "calls" or " " in found.what else f"{found.what}()"
            raise DatabaseError(f"{where}: refused, the statement holds {name}: {does}; {_ONE}")


_DOES = {
    "text": "it runs text as SQL",
    "reach": "it reads files or reaches elsewhere",
    "code": "it runs code",
    "state": "it changes the state of the server or the session",
}


@contextmanager
def quiet_parser() -> Iterator[None]:
    """Keep the parser from warning on stderr of statements it only keeps as text; we say so ourselves."""
    logger = logging.getLogger("sqlglot")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _require_one(count: int, where: str) -> None:
    if count != 1:
        found = f"{count} statements" if count else "no statement"
        raise DatabaseError(f"{where}: refused, found {found}; {_ONE}")


def _kind(tree: Any, sql: str) -> str:
    word = first_word(sql)
    return str(tree.key).upper() if word in ("with", "") else word.upper()


def _writing(tree: Any) -> str | None:
    """Return what in a query tree writes or locks (``None``: nothing)."""
    from sqlglot import exp

    writing = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Copy, exp.Drop, exp.Alter, exp.Attach)
    for node in tree.walk():
        if isinstance(node, exp.Lock):
            return "FOR UPDATE / FOR SHARE"
        if isinstance(node, writing) and not isinstance(node, exp.Query):
            return str(node.key).upper()
    return None


def bare(sql: str, dialect: str) -> str:
    """Return ``sql`` up to the end of its last word: without the semicolons and comments behind it."""
    import sqlglot

    tokens = sqlglot.tokenize(sql, read=dialect or None)
    last = next((token for token in reversed(tokens) if token.token_type.name != "SEMICOLON"), None)
    return sql if last is None else sql[: last.end + 1]


def uncoloured(error: Exception) -> str:
    """Return sqlglot's message without the terminal codes it underlines with."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def _require_one_by_words(sql: str, dialect: str, where: str) -> None:
    """Require, of SQL that sqlglot cannot parse, one statement without any writing word."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tokens = sqlglot.tokenize(sql, read=dialect or None)
    except SqlglotError as error:
        raise DatabaseError(f"{where}: refused, this is no SQL: {uncoloured(error)}; {_ONE}") from error
    words = [token.text.lower() for token in tokens if token.token_type.name not in ("STRING", "IDENTIFIER")]
    while words and words[-1] == ";":
        words.pop()
    _require_one(0 if not words else 2 if ";" in words else 1, where)
    if first_word(sql) not in _QUERY_WORDS:
        raise DatabaseError(f"{where}: refused, the statement is {first_word(sql).upper()}; {_ONE}")
    if dialect in ("tsql", "fabric"):  # where no semicolon need stand between two statements
        raise DatabaseError(f"{where}: refused, the statement cannot be parsed as {dialect}; {_ONE}")
    for word in words:
        if word in _FORBIDDEN_WORDS:
            raise DatabaseError(f"{where}: refused, the statement holds {word.upper()}; {_ONE}")
    _require_harmless(findings(sql, dialect), where)


def outermost_order_by(sql: str, dialect: str | None) -> tuple[str, ...] | None:
    """Return the sort keys of the outermost ORDER BY: ``name [asc|desc] [nulls first|last]`` each.

    A key is an output name or alias, a position, or the exact select expression, as written. ``None``
    when the statement has no outermost ORDER BY or cannot be parsed; SQL without the words is not parsed.
    """
    if not _ORDER_BY.search(sql):
        return None
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        # sqlglot reads the two words as one token, which a comment between them breaks
        tree = sqlglot.parse_one(_ORDER_BY.sub("ORDER BY", sql), read=dialect or None)
    except SqlglotError:
        return None
    while isinstance(tree, exp.Subquery) and tree.args.get("order") is None:
        tree = tree.this
    order = tree.args.get("order") if isinstance(tree, exp.Query) else None
    if order is None:
        return None
    return tuple(_key(ordered, tree, dialect) for ordered in order.expressions)


def _key(ordered: Any, tree: Any, dialect: str | None) -> str:
    from sqlglot import exp

    key = ordered.this
    name = key.sql(dialect=dialect or None)
    if isinstance(key, exp.Column) and not key.table:
        name = key.name
    elif not isinstance(key, exp.Literal):
        name = _output_name(key, tree) or name
    words = [name, "desc" if ordered.args.get("desc") else "asc"]
    nulls_first = ordered.args.get("nulls_first")
    if nulls_first is not None:
        words.append("nulls first" if nulls_first else "nulls last")
    return " ".join(words)


def _output_name(key: Any, tree: Any) -> str | None:
    """Return the output column that a sort expression is: its alias, or its position."""
    written = key.sql().lower()
    for number, selected in enumerate(getattr(tree, "selects", []), start=1):
        if selected.is_star:
            return None
        if selected.unalias().sql().lower() == written:
            return str(selected.alias) if selected.alias else str(number)
    return None
