"""Texts into statements: parsed in a dialect, with what they are and why they cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialects
from sqlglot.errors import SqlglotError

from pytest_agenteval.checks.sql.names import Node
from pytest_agenteval.databases.select_only import quiet_parser
from pytest_agenteval.databases.sql_dangers import disagreement, findings

_HARMLESS = (
    "SHOW",
    "SET",
    "USE",
    "DESCRIBE",
    "PRAGMA",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "VACUUM",
    "CHECKPOINT",
)
"""Statements that name no table a rule could speak of, though the parser does not take them apart."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text of one or more statements. ``error`` says why it (or a part of it) cannot be read."""

    sql: str
    trees: tuple[Node, ...]
    error: str | None = None


def known_dialects() -> tuple[str, ...]:
    """Return the dialects sqlglot speaks."""
    return tuple(entry.value for entry in Dialects if entry.value)


def parse(sql: str, dialect: str | None) -> Parsed:
    """Return the statements of ``sql``; comments and a trailing ``;`` are none."""
    unclear = disagreement(sql, dialect)
    if unclear is not None:
        return Parsed(sql, (), unclear)
    try:
        with quiet_parser():
            found = sqlglot.parse(sql, dialect=dialect)
    except (SqlglotError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0] or type(error).__name__
        return Parsed(sql, (), f"cannot be parsed as {dialect or 'SQL'}: {_plain(reason)}")
    trees = tuple(tree for tree in found if tree is not None and not isinstance(tree, exp.Semicolon))
    if not trees:
        return Parsed(sql, (), "holds no statement")
    opaque = next((kind(tree) for tree in trees if _opaque(tree)), None)
    if opaque:
        return Parsed(sql, trees, f"{opaque} cannot be taken apart")
    hidden = next((f for tree in trees for f in findings(sql, dialect, tree) if f.opaque), None)
    return Parsed(sql, trees, f"{hidden.text}, and what that reads cannot be told" if hidden else None)


def unwrapped(tree: Node, dialect: str | None) -> Node:
    """Return the statement an EXPLAIN is about, where it can be parsed; else the tree itself."""
    if not (isinstance(tree, exp.Command) and tree.name.upper() == "EXPLAIN"):
        return tree
    words = _command_text(tree).split()
    while words and words[0].strip("(),").upper() in (
        "ANALYZE",
        "VERBOSE",
        "QUERY",
        "PLAN",
        "FORMAT",
        "JSON",
    ):
        words = words[1:]
    inner = parse(" ".join(words), dialect)
    return inner.trees[0] if len(inner.trees) == 1 and inner.error is None else tree


def kind(tree: Node) -> str:
    """Return the statement's word: ``SELECT``, ``DELETE``, ``EXPLAIN``, ``ATTACH``, ..."""
    if isinstance(tree, exp.Command):
        return tree.name.upper()
    if isinstance(tree, exp.Query | exp.Values | exp.Pivot):
        return "SELECT"
    if isinstance(tree, exp.Column | exp.Alias):
        return str(tree.sql()).split()[0].upper()
    return {"TruncateTable": "TRUNCATE"}.get(type(tree).__name__, type(tree).__name__.upper())


def part(node: Node, name: str) -> Any:
    """Return an argument of a node; sqlglot spells ``from`` and ``with`` in two ways, by version."""
    return node.args.get(name) or node.args.get(f"{name}_")


def written_name(function: Node, sql: str) -> set[str]:
    """Return all names of a called function, lower case: as written, and as sqlglot knows it."""
    names = {function.name} if isinstance(function, exp.Anonymous) else set()
    if isinstance(function, exp.Func) and not isinstance(function, exp.Anonymous):
        names |= set(type(function).sql_names())
    start, end = function.meta.get("start"), function.meta.get("end")
    if isinstance(start, int) and isinstance(end, int):
        names.add(sql[start : end + 1])
    return {name.lower() for name in names if name}


def called_names(sql: str, dialect: str | None) -> set[str]:
    """Return every word of a text that an opening parenthesis follows, lower case."""
    tokens = sqlglot.tokenize(sql, dialect=dialect)
    pairs = pairwise(tokens)
    return {token.text.lower() for token, after in pairs if after.text == "("}


def _opaque(tree: Node) -> bool:
    if isinstance(tree, exp.Command):
        word = tree.name.upper()
        return word not in _HARMLESS and not (word == "EXPLAIN" and unwrapped(tree, None) is not tree)
    return isinstance(tree, exp.Alias | exp.Column)


def _command_text(tree: exp.Command) -> str:
    inner = tree.args.get("expression")
    return str(inner.name) if isinstance(inner, exp.Literal) else str(inner or "")


def _plain(text: str) -> str:
    """Remove the terminal codes with which the parser underlines the place."""
    return text.replace("\x1b[4m", "").replace("\x1b[0m", "")
