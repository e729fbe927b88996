"""References as sources write them: trimmed, checked to be one SELECT, moved to another dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LONGEST = 100_000
"""Characters of a statement; a longer one is not parsed."""

_OUTER = re.compile(r"\A(?>\s++|--[^\n]*+(?:\n|\Z)|/\*(?>.*?\*/))++", re.DOTALL)
_PARAMETER = re.compile(r"(?<![:\w'])(?::[A-Za-z_]\w*|\$\d+|\?)(?![\w'])")
_TEMPLATE = re.compile(r"\{\{|\{%|\[\[")


def trimmed(sql: str) -> str:
    """Return the statement without comments around it and without its last semicolons."""
    text = _OUTER.sub("", sql.replace("\r\n", "\n"))
    lines = text.rstrip("; \t\n").split("\n")
    while lines and lines[-1].lstrip().startswith("--"):
        lines.pop()
        text = "\n".join(lines)
        lines = text.rstrip("; \t\n").split("\n")
    text = "\n".join(lines)
    return "\n".join(line.rstrip().expandtabs(4) for line in text.splitlines())


def why_not(sql: str, dialect: str | None) -> str:
    """Return why a statement cannot be a reference ('': it can): it must be one SELECT without parameters."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(sql) > LONGEST:
        return f"its SQL has {len(sql):,} characters, more than {LONGEST:,}"
    if _TEMPLATE.search(sql):
        return "its SQL is a template: " + _shown(sql, _TEMPLATE)
    try:
        trees = [tree for tree in sqlglot.parse(sql, read=dialect) if tree is not None]
    except (SqlglotError, RecursionError) as wrong:
        return f"its SQL cannot be parsed: {' '.join(str(wrong).split())[:160]}"
    trees = [tree for tree in trees if not isinstance(tree, exp.Semicolon)]
    if len(trees) != 1:
        return f"its SQL is {len(trees)} statements" if trees else "its SQL is empty"
    (tree,) = trees
    if not isinstance(tree, exp.Query):
        word = sql.split(None, 1)[0].upper() if sql.split() else "nothing"
        return f"its SQL is no query but {word}"
    if any(tree.find(kind) for kind in (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into)):
        return "its SQL writes"
    if tree.find(exp.Placeholder) or tree.find(exp.Parameter) or tree.find(exp.SessionParameter):
        return "its SQL has a parameter: " + (_shown(sql, _PARAMETER) or "a value is missing")
    return ""


def _shown(sql: str, pattern: re.Pattern[str]) -> str:
    found = pattern.search(sql)
    return sql[found.start() : found.start() + 30].split("\n")[0] if found else ""


def translated(sql: str, source: str | None, target: str | None, renames: Mapping[str, str]) -> str:
    """Return the statement in the dialect ``target``, with the qualifiers of tables renamed.

    ``renames`` maps ``shop.main`` to ``main`` (or to nothing). Without ``source`` and renames the text
    is returned as it is. Raises ``ValueError`` for what cannot be translated.
    """
    if not source and not renames:
        return sql
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read=source or target)
        for old, new in renames.items():
            _rename(tree, old, new)
        return str(tree.sql(dialect=target or source, pretty=True))
    except SqlglotError as wrong:
        raise ValueError(" ".join(str(wrong).split())[:160]) from None


def _rename(tree: Any, old: str, new: str) -> None:
    """Rename a qualifier (``shop.main``), or a table with its qualifier (``shop.main.orders``)."""
    from sqlglot import exp

    wanted = [part.casefold() for part in old.split(".")]
    given = [part for part in new.split(".") if part]
    for node in [*tree.find_all(exp.Table), *tree.find_all(exp.Column)]:
        parts = [part.name for part in node.parts]
        kept = 0 if isinstance(node, exp.Table) else 1
        if [part.casefold() for part in parts[: len(wanted)]] != wanted:
            continue
        if len(parts) - len(wanted) < kept + (0 if given else 1) and not given:
            continue
        fresh = given + parts[len(wanted) :]
        build = exp.to_identifier
        keys = (
            ("this", "db", "catalog") if isinstance(node, exp.Table) else ("this", "table", "db", "catalog")
        )
        names = dict(zip(keys, [build(part) for part in reversed(fresh)], strict=False))
        for key in keys:
            node.set(key, names.get(key))


def fingerprint(sql: str, dialect: str | None) -> str | None:
    """Return the statement with its literals replaced, to group a log by; ``None``: not parsable."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read=dialect)
    except (SqlglotError, RecursionError):
        return None
    for literal in [
        *tree.find_all(exp.Literal),
        *tree.find_all(exp.Placeholder),
        *tree.find_all(exp.Parameter),
    ]:
        literal.replace(exp.Placeholder())
    return str(tree.sql(dialect=dialect, normalize=True))
