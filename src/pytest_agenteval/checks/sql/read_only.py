"""Why a statement is not read-only: what it is, what it holds, and the functions it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from pytest_agenteval.checks.sql.names import Node, table_name
from pytest_agenteval.checks.sql.parsing import kind
from pytest_agenteval.databases.sql_dangers import findings

_FILE = re.compile(
    r"(?:[/\\*?]|^s3:|^https?:|\.(?:csv|tsv|txt|json|jsonl|ndjson|parquet|xlsx?|avro|arrow|feather|orc|gz|zst|bz2"
    r"|db|duckdb|sqlite3?)$)",
    re.IGNORECASE,
)


def not_read_only(tree: Node, sql: str, dialect: str | None) -> list[str]:
    """Return everything in one statement that a reading one must not have, each in a few words."""
    word = kind(tree)
    if word != "SELECT":
        return [word]
    more = [finding.text for finding in findings(sql, dialect, tree)]
    return list(dict.fromkeys([*_nested(tree), *_files(tree), *more]))


def _nested(tree: Node) -> Iterator[str]:
    for node in tree.find_all(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into, exp.Lock):
        if isinstance(node, exp.Into):
            yield "SELECT INTO"
        elif isinstance(node, exp.Lock):
            yield f"FOR {'UPDATE' if node.args.get('update') else 'SHARE'}"
        else:
            cte = node.find_ancestor(exp.CTE)
            yield f"{kind(node)} in CTE {cte.alias}" if cte is not None else kind(node)


def _files(tree: Node) -> Iterator[str]:
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and _FILE.search(table.name):
            yield f"reads the file {table_name(table)!r}"
