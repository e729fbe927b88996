"""Readers of dashboards and query logs: Metabase, Superset, Snowflake, BigQuery, Postgres."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_agenteval.authoring.importing.items import (
    ImportedItem,
    LeftOut,
    LoggedQuery,
    ReadSource,
    clean_prompt,
)
from pytest_agenteval.authoring.importing.sources import SourceFile

_OPTIONAL = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_TAG = re.compile(r"\{\{\s*([\w ]+?)\s*\}\}")


def read_metabase(source: SourceFile) -> ReadSource:
    """Read Metabase cards with native SQL; cards of the query builder only Metabase can compile."""
    items, left_out = [], []
    for place, card in source.rows:
        name = str(card.get("name") or "")
        where = f"card {card.get('id') or card.get('entity_id') or place} {name}".strip()
        query = card.get("dataset_query")
        native = _native(query if isinstance(query, Mapping) else {})
        prompt = clean_prompt(str(card.get("description") or "") or name)
        if card.get("archived"):
            left_out.append(LeftOut(where, "is archived"))
        elif native is None:
            left_out.append(LeftOut(where, "is of the query builder: convert it to SQL in Metabase first"))
        elif not prompt:
            left_out.append(LeftOut(where, "has neither a name nor a description"))
        else:
            sql, missing = _filled(*native)
            items.append(_card(card, where, name, prompt, sql, missing))
    return ReadSource(items, left_out)


def _card(
    card: Mapping[str, Any], where: str, name: str, prompt: str, sql: str, missing: str
) -> ImportedItem:
    creator = card.get("creator")
    owner = creator.get("email") or creator.get("common_name") if isinstance(creator, Mapping) else None
    verified = any(
        isinstance(review, Mapping) and review.get("status") == "verified" and review.get("most_recent", True)
        for review in card.get("moderation_reviews") or ()
    )
    return ImportedItem(
        where, prompt, (sql,), str(card.get("id") or card.get("entity_id") or ""), name=name,
        owner=owner if isinstance(owner, str) else None,
        reviewed={"where": "metabase"} if verified else None,
        note=f"the template tag {missing} has no default" if missing else "",
    )  # fmt: skip


def _native(query: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the SQL of a card, in the old form (``native``) or the new one (``stages``), and its tags."""
    held = query.get("native")
    if isinstance(held, Mapping) and isinstance(held.get("query"), str):
        return held["query"], held.get("template-tags") or {}
    stages = query.get("stages")
    if isinstance(stages, list) and len(stages) == 1 and isinstance(stages[0], Mapping):
        text = stages[0].get("native")
        if isinstance(text, str):
            return text, stages[0].get("template-tags") or {}
    return None


def _filled(sql: str, tags: Mapping[str, Any]) -> tuple[str, str]:
    """Return the SQL with the defaults of its tags, and the first tag that has none ('': all have)."""

    def default(name: str) -> str | None:
        tag = tags.get(name)
        value = tag.get("default") if isinstance(tag, Mapping) else None
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is None or isinstance(value, list | Mapping):
            return None
        kind = str(tag.get("type")) if isinstance(tag, Mapping) else ""
        return str(value) if kind == "number" else "'" + str(value).replace("'", "''") + "'"

    def optional(hit: re.Match[str]) -> str:
        return hit[1] if all(default(name) is not None for name in _TAG.findall(hit[1])) else ""

    text = _OPTIONAL.sub(optional, sql)
    missing = next((name for name in _TAG.findall(text) if default(name) is None), "")
    return _TAG.sub(lambda hit: default(hit[1]) or hit[0], text), missing


def read_superset(source: SourceFile) -> ReadSource:
    """Read a saved query of Superset."""
    held = source.document
    name = str(held.get("label") or "")
    prompt = clean_prompt(str(held.get("description") or "") or name)
    if not prompt:
        return ReadSource((), [LeftOut(source.name, "has neither a label nor a description")])
    return ReadSource(
        [ImportedItem("saved query", prompt, (str(held["sql"]),), str(held.get("uuid") or ""), name=name)]
    )


def read_snowflake_log(source: SourceFile) -> ReadSource:
    """Read Snowflake's QUERY_HISTORY."""
    rows = [{str(key).lower(): value for key, value in row.items()} for _, row in source.rows]
    ran = [row for row in rows if str(row.get("execution_status", "SUCCESS")).upper().startswith("SUCC")]
    entries = [
        (row.get("query_text"), 1, row.get("user_name"), str(row.get("start_time") or ""))
        for row in ran
        if str(row.get("query_type", "SELECT")).upper() == "SELECT"
    ]
    return _log(entries, len(rows), "snowflake")


def read_bigquery_log(source: SourceFile) -> ReadSource:
    """Read BigQuery's INFORMATION_SCHEMA.JOBS."""
    rows = [row for _, row in source.rows]
    entries = [
        (row.get("query"), 1, row.get("user_email"), str(row.get("creation_time") or ""))
        for row in rows
        if str(row.get("statement_type", "SELECT")).upper() == "SELECT"
        and str(row.get("state", "DONE")).upper() == "DONE"
        and not row.get("error_result")
    ]
    return _log(entries, len(rows), "bigquery")


def read_postgres_log(source: SourceFile) -> ReadSource:
    """Read Postgres' pg_stat_statements: its parameters are gone, so it gives shapes and weights alone."""
    rows = [row for _, row in source.rows]
    entries = [(row.get("query"), _whole(row.get("calls")), row.get("userid"), "") for row in rows]
    return _log(entries, len(rows), "postgres")


def read_gold(source: SourceFile) -> ReadSource:
    """Read Spider's gold file: SQL without its questions."""
    return ReadSource((), (), [LoggedQuery(str(row["gold_sql"])) for _, row in source.rows])


def _whole(text: Any) -> int:
    try:
        return int(float(text))
    except (TypeError, ValueError):
        return 1


def _log(entries: Iterable[tuple[Any, int, Any, str]], rows: int, dialect: str) -> ReadSource:
    """Group the statements that answer a question: SELECT with an aggregate, of ordinary tables."""
    from pytest_agenteval.authoring.importing.sql_text import fingerprint

    groups: dict[str, list[tuple[str, int, Any, str]]] = {}
    used = 0
    for sql, runs, user, moment in entries:
        text = str(sql or "")
        shape = fingerprint(text, dialect) if _answers(text, dialect) else None
        if shape is not None:
            groups.setdefault(shape, []).append((text, runs, user, moment))
            used += 1
    queries = [
        LoggedQuery(
            max(held, key=lambda entry: entry[3])[0],
            sum(entry[1] for entry in held),
            len({entry[2] for entry in held if entry[2]}) or 1,
            max(entry[3] for entry in held),
            runnable="$1" not in held[0][0],
        )
        for held in groups.values()
    ]
    queries.sort(key=lambda query: (-query.users * query.runs, query.sql))
    dropped = rows - used
    left_out = [LeftOut(f"{dropped} rows of the log", "no SELECT that succeeded and summarises a table")]
    return ReadSource((), left_out if dropped else (), queries)


_METADATA = re.compile(r"^(?:pg_catalog|information_schema|account_usage|pg_)", re.IGNORECASE)


def _answers(sql: str, dialect: str) -> bool:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        trees = sqlglot.parse(sql, read=dialect)
    except (SqlglotError, RecursionError):
        return False
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return False
    tables = [table for table in trees[0].find_all(exp.Table) if table.name]
    if not tables or any(_METADATA.match(table.db or table.name) for table in tables):
        return False
    return bool(trees[0].find(exp.AggFunc) or trees[0].find(exp.Group))


def worksheet(queries: Sequence[LoggedQuery], tables: Mapping[str, str]) -> str:
    """Return the queries as CSV with an empty question column, for an analyst to fill and import again."""
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["question", "sql", "runs", "users", "tables", "last run"])
    for query in queries:
        shape = (
            query.sql
            if query.runnable
            else f"-- a shape, its values are gone\n-- {' '.join(query.sql.split())}"
        )
        writer.writerow(["", shape, query.runs, query.users, tables.get(query.sql, ""), query.last_run])
    return out.getvalue()


def tables_of(sql: str, dialect: str | None) -> str:
    """Return the tables that a statement reads, separated by blanks."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read=dialect)
    except (SqlglotError, RecursionError):
        return ""
    own = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    return " ".join(sorted({table.name for table in tree.find_all(exp.Table)} - own))
