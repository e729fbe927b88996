"""What in a SELECT does more than read tables, for the guard before a database and the sql check.

A name is looked for in the tokens, where quotes and qualifiers stand as they were written; what has no
brackets (``NEXT VALUE FOR s``, ``@stage``) in the tree. Where parser and server disagree on what is code,
nothing can be said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.databases.sql_functions import Danger, danger_of, makes_rows_of_arguments

LONGEST = 100_000
"""Characters of a statement that is parsed; sqlglot takes seconds for more."""

DEEPEST = 2_000
"""AND, OR, UNION and opening brackets of a statement: the parser's time grows with their square."""

_EXECUTABLE = ("mysql", "mariadb", "singlestore", "starrocks", "doris", "tidb", "")
_NESTING = re.compile(r"\b(?:and|or|union|case|select)\b|[(\[{+*/|-]", re.IGNORECASE)

_STARTS = frozenset(
    re.findall(
        r"\w+",
        "DELETE INSERT UPDATE MERGE EXEC EXECUTE DROP CREATE ALTER TRUNCATE WAITFOR DECLARE USE BACKUP "
        "RESTORE GRANT DENY REVOKE KILL SHUTDOWN DBCC BULK PRINT RAISERROR THROW GO WHILE RECONFIGURE SAVE "
        "COMMIT ROLLBACK",
    )
)
"""Words that begin a statement of T-SQL, which needs no semicolon before them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``what`` was found, ``verb`` before it in a sentence.

    ``opaque``: what it reads or runs cannot be read from the statement.
    """

    verb: str
    what: str
    kind: Danger
    opaque: bool = False

    @property
    def text(self) -> str:
        """What was found, in words."""
        return f"{self.verb} {self.what}"


def disagreement(sql: str, dialect: str | None) -> str | None:
    """Return why the parser's reading of ``sql`` may not be the server's (``None``: it is)."""
    if len(sql) > LONGEST:
        return f"has {len(sql):,} characters; more than {LONGEST:,} are not parsed"
    if len(_NESTING.findall(sql)) > DEEPEST:
        return f"has more than {DEEPEST:,} operators and brackets; that is not parsed"
    if (dialect or "") in _EXECUTABLE and re.search(r"/\*M?!", sql):
        return "holds an executable comment (/*! ... */), which the server runs and the parser does not read"
    tokens = tokens_of(sql, dialect)
    for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if one.text in ("U", "u") and two.text == "&" and three.start == two.end + 1 == one.end + 2:
            return 'holds a name in escapes (U&"..."), which the parser does not read'
    if dialect == "snowflake" and any(token.text == "->>" for token in tokens):
        return "chains statements with ->>"
    if dialect in ("tsql", "fabric"):
        return _second_statement(tokens)
    return None


def _second_statement(tokens: Sequence[Any]) -> str | None:
    """Return what begins a second statement: T-SQL needs no semicolon between two."""
    for number, token in enumerate(tokens[1:], start=1):
        word = token.text.upper()
        if token.token_type.name in ("STRING", "IDENTIFIER") or tokens[number - 1].text == ".":
            continue
        if word in _STARTS:
            return f"holds {word}, which begins a statement of its own"
    return None


def tokens_of(sql: str, dialect: str | None) -> list[Any]:
    """Return the tokens of ``sql``; none where they cannot be read."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return list(sqlglot.tokenize(sql, read=dialect or None))
    except (SqlglotError, RecursionError):
        return []


def called_names(sql: str, dialect: str | None) -> list[str]:
    """Return every name that an opening bracket follows, with its qualifiers, quotes taken off."""
    tokens = tokens_of(sql, dialect)
    found = []
    for number, token in enumerate(tokens[:-1]):
        if tokens[number + 1].text != "(" or token.token_type.name in ("STRING", "NUMBER", "L_PAREN"):
            continue
        name, place = token.text, number
        while place >= 2 and tokens[place - 1].text == ".":
            place -= 2
            name = f"{tokens[place].text}.{name}"
        found.append(name)
    return list(dict.fromkeys(found))


def findings(sql: str, dialect: str | None, tree: Any = None) -> Iterator[Finding]:
    """Yield all that does more than read tables; ``tree`` is the parsed statement, where there is one."""
    for name in called_names(sql, dialect):
        kind = danger_of(name)
        if kind is not None:
            yield Finding("calls", name.lower(), kind, kind in ("text", "reach", "code"))
    if tree is not None:
        yield from _in_tree(tree, dialect)


def _in_tree(tree: Any, dialect: str | None) -> Iterator[Finding]:
    from sqlglot import exp

    for node in tree.find_all(exp.NextValueFor):
        yield Finding("calls", node.sql().lower(), "state")
    if dialect in ("oracle", "snowflake", "db2", "databricks", "postgres", "", None):
        for column in tree.find_all(exp.Column):
            if column.table and column.name.lower() == "nextval":
                yield Finding("takes", column.sql().lower(), "state")
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Var) and table.name.startswith("@"):
            yield Finding("reads", f"the stage {table.name}", "reach")
        name = table_function(table)
        if name is None or danger_of(name) is not None or makes_rows_of_arguments(name):
            continue
        if name.lower() != "query_table" or not _plainly_named(table.this):
            yield Finding("reads from", f"{name.lower()}()", "text", opaque=True)


def _plainly_named(call: Any) -> bool:
    """Return whether DuckDB's ``query_table`` is given names, and nothing that makes one."""
    from sqlglot import exp

    plain = (exp.Literal, exp.Column, exp.Identifier, exp.Boolean, exp.Array)
    return all(isinstance(node, (*plain, exp.Anonymous)) for node in call.walk())


def table_function(table: Any) -> str | None:
    """Return the name of the function that a source in FROM is (``None``: it is a table)."""
    from sqlglot import exp

    call = table.this
    if isinstance(call, exp.Anonymous):
        inner = call.expressions[0] if call.name.upper() == "TABLE" and call.expressions else None
        if isinstance(inner, exp.Dot):
            return str(inner.sql().partition("(")[0])
        return str(inner.name if isinstance(inner, exp.Anonymous) else call.name)
    if isinstance(call, exp.Dot):
        return str(call.sql().partition("(")[0])
    return str(call.sql_name()) if isinstance(call, exp.Func) else None
