"""Readers of semantic models and of agents' evaluations: Cortex, Genie, Lightdash, promptfoo, dbt, Cube."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

from pytest_agenteval.authoring.importing.items import ImportedItem, LeftOut, ReadSource, clean_prompt
from pytest_agenteval.authoring.importing.sources import ImportFailed, SourceFile


def _mappings(held: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in held if isinstance(entry, Mapping)] if isinstance(held, list) else []


def _reviewed(entry: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """Return who verified a query and when; epoch seconds become a date."""
    at, by = entry.get("verified_at"), entry.get("verified_by")
    if at is None and by is None:
        return None
    if isinstance(at, int | float) or (isinstance(at, str) and at.isdigit()):
        at = datetime.fromtimestamp(int(at), UTC).date().isoformat()
    held = {"by": by, "at": str(at) if at is not None else None, "where": where}
    return {key: value for key, value in held.items() if value is not None}


def read_cortex(source: SourceFile) -> ReadSource:
    """Read Cortex semantic models: verified queries, their logical tables put before them as CTEs."""
    model = source.document
    tables = _mappings(model.get("tables"))
    items, left_out = [], []
    for at, entry in enumerate(_mappings(model.get("verified_queries")), 1):
        prompt = clean_prompt(str(entry.get("question") or ""))
        if not prompt:
            left_out.append(LeftOut(f"verified query {at}", "no question in it"))
            continue
        sql = str(entry.get("sql") or "")
        items.append(
            ImportedItem(
                f"verified query {at}", prompt, (with_logical_tables(sql, tables),) if sql.strip() else (),
                str(entry.get("name") or ""), name=str(entry.get("name") or ""),
                reviewed=_reviewed(entry, "cortex"), known=True,
                tags=("onboarding",) if entry.get("use_as_onboarding_question") is True else (),
            )
        )  # fmt: skip
    return ReadSource(items, left_out)


def with_logical_tables(sql: str, tables: Sequence[Mapping[str, Any]]) -> str:
    """Return a query over logical tables as one over the tables they stand for.

    A logical table is used as ``name`` or ``__name``; it becomes a CTE of the same name that gives the
    expressions of its columns their logical names. What cannot be parsed is returned as it is.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    from pytest_agenteval.authoring.importing.sql_text import trimmed

    text = trimmed(sql)
    try:
        tree = sqlglot.parse_one(text, read="snowflake")
    except (SqlglotError, RecursionError):
        return text
    own = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    used = {table.name.casefold() for table in tree.find_all(exp.Table) if not table.db} - own
    parts = []
    for table in tables:
        name = str(table.get("name") or "")
        for spelling in (name, f"__{name}"):
            if name and spelling.casefold() in used:
                parts.append(f"{spelling} AS (\n{_logical_table(table)}\n)")
    if not parts:
        return text
    head = re.match(r"with\s+(recursive\s+)?", text, re.IGNORECASE)
    if head:
        return f"WITH {head[1] or ''}{', '.join(parts)}, {text[head.end() :]}"
    return f"WITH {', '.join(parts)}\n{text}"


def _logical_table(table: Mapping[str, Any]) -> str:
    base = table.get("base_table") or {}
    parts = [base.get(key) for key in ("database", "schema", "table")] if isinstance(base, Mapping) else []
    place = ".".join(str(part) for part in parts if part)
    columns: dict[str, str] = {}
    for kind in ("dimensions", "time_dimensions", "facts", "measures"):
        for column in _mappings(table.get(kind)):
            name, expression = (
                str(column.get("name") or ""),
                str(column.get("expr") or column.get("name") or ""),
            )
            if name and not _aggregates(expression):
                columns.setdefault(name, expression)
    chosen = [
        name if name == expression else f"{expression} AS {name}" for name, expression in columns.items()
    ]
    return f"  SELECT {', '.join(chosen) or '*'}\n  FROM {place}"


def _aggregates(expression: str) -> bool:
    """Return whether an expression sums over rows: then it is not a column of the logical table."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(expression, read="snowflake").find(exp.AggFunc) is not None
    except (SqlglotError, RecursionError):
        return False


_WHOOP = re.compile(r"\{\{\s*(table|column)\(\s*'([^']+)'\s*(?:,\s*'([^']+)'\s*)?\)\s*\}\}")


def read_whoop(source: SourceFile) -> ReadSource:
    """Read Dbt projects with ``snowflake_verified_queries``: ``{{ table('x') }}`` becomes the model's
    name.
    """
    items = []
    for at, entry in enumerate(_mappings(source.document.get("snowflake_verified_queries")), 1):
        prompt = clean_prompt(str(entry.get("question") or ""))
        sql = _WHOOP.sub(
            lambda hit: hit[2] if hit[1] == "table" else f"{hit[2]}.{hit[3]}", str(entry.get("sql") or "")
        )
        if prompt:
            items.append(
                ImportedItem(
                    f"verified query {at}", prompt, (sql,) if sql.strip() else (),
                    str(entry.get("name") or ""), name=str(entry.get("name") or ""),
                    reviewed=_reviewed(entry, "dbt"), known=True,
                    tags=("onboarding",) if entry.get("use_as_onboarding_question") is True else (),
                )
            )  # fmt: skip
    return ReadSource(items)


def _joined(held: Any) -> str:
    return "".join(str(part) for part in held) if isinstance(held, list) else str(held or "")


def read_genie(source: SourceFile) -> ReadSource:
    """Read Genie spaces: benchmarks (not shown to the agent), example SQL and sample questions (shown)."""
    space = source.document
    while isinstance(space, Mapping) and isinstance(space.get("serialized_space"), str | Mapping):
        inner = space["serialized_space"]
        try:
            space = json.loads(inner) if isinstance(inner, str) else inner
        except ValueError as wrong:
            raise ImportFailed(f"{source.name}: serialized_space is not JSON: {wrong}") from None
    items, left_out = [], []
    for entry in _mappings((space.get("benchmarks") or {}).get("questions")):
        sql = next(
            (
                _joined(part.get("content"))
                for part in _mappings(entry.get("answer"))
                if part.get("format") == "SQL"
            ),
            "",
        )
        items.append(_genie_item(entry, "benchmark", sql, known=False))
    for entry in _mappings((space.get("instructions") or {}).get("example_question_sqls")):
        items.append(_genie_item(entry, "example", _joined(entry.get("sql")), known=True))
    for entry in _mappings((space.get("config") or {}).get("sample_questions")):
        items.append(_genie_item(entry, "sample", "", known=True))
    for item in [item for item in items if not item.prompt]:
        items.remove(item)
        left_out.append(LeftOut(item.place, "no question in it"))
    return ReadSource(items, left_out)


def _genie_item(entry: Mapping[str, Any], kind: str, sql: str, known: bool) -> ImportedItem:
    identity = str(entry.get("id") or "")
    return ImportedItem(
        f"{kind} {identity}".strip(), clean_prompt(_joined(entry.get("question"))),
        (sql,) if sql.strip() else (), identity, tags=(kind,), known=known, dialect="databricks",
    )  # fmt: skip


def read_cube(source: SourceFile) -> ReadSource:
    """Read Cube's ``eval_questions``; SQL with ``MEASURE()`` runs on Cube's SQL API alone."""
    items = []
    for at, entry in enumerate(_mappings(source.document.get("eval_questions")), 1):
        prompt = clean_prompt(str(entry.get("question") or ""))
        sql = str(entry.get("sql") or "")
        only_cube = "its SQL calls MEASURE(), which runs on Cube's SQL API alone"
        if prompt:
            certified = entry.get("certifiedQuery")
            items.append(
                ImportedItem(
                    f"question {at}", prompt, (sql,) if sql.strip() else (), str(entry.get("name") or ""),
                    name=str(entry.get("name") or ""),
                    note=only_cube if re.search(r"\bMEASURE\s*\(", sql, re.IGNORECASE) else "",
                    metadata={"certified_query": certified} if certified else {},
                )
            )  # fmt: skip
    return ReadSource(items)


def read_dbt(source: SourceFile) -> ReadSource:
    """Read Dbt saved queries with a question in ``config.meta``; the metrics they name are checked."""
    items, left_out = [], []
    for at, entry in enumerate(_mappings(source.document.get("saved_queries")), 1):
        meta = (entry.get("config") or {}).get("meta") or entry.get("meta") or {}
        name = str(entry.get("name") or f"saved query {at}")
        prompt = clean_prompt(str(meta.get("question") or ""))
        metrics = [str(metric) for metric in (entry.get("query_params") or {}).get("metrics") or []]
        if not prompt:
            left_out.append(LeftOut(name, "no question in its config.meta.question"))
            continue
        keys = {"assertions": [{"type": "metric", "metrics": metrics}]} if metrics else {}
        note = "checks of dbt metrics need `model.measure`" if any("." not in m for m in metrics) else ""
        items.append(
            ImportedItem(
                f"saved query {name}", prompt, key=name, name=name,
                owner=str(meta["owner"]) if meta.get("owner") else None,
                keys={} if note else keys, metadata={"metrics": metrics} if note else {},
            )
        )  # fmt: skip
    for entry in _mappings(source.document.get("metrics")):
        left_out.append(LeftOut(f"metric {entry.get('name')}", "is a definition, not a question"))
    return ReadSource(items, left_out)


def read_lightdash(source: SourceFile) -> ReadSource:
    """Read Lightdash agents: the prompts of their evaluations and the responses they should give."""
    items, left_out = [], []
    for group in _mappings(source.document.get("evaluations")):
        title = str(group.get("title") or "")
        for at, entry in enumerate(_mappings(group.get("prompts")), 1):
            prompt = clean_prompt(str(entry.get("prompt") or ""))
            place = f"{title or 'evaluation'} {at}"
            if not prompt:
                reason = "is a thread, named by its id" if entry.get("threadUuid") else "no prompt in it"
                left_out.append(LeftOut(place, reason))
                continue
            response = str(entry.get("expectedResponse") or "").strip()
            items.append(
                ImportedItem(
                    place, prompt, tags=(title,) if title else (),
                    keys={"expected_response": response} if response else {},
                )
            )  # fmt: skip
    return ReadSource(items, left_out)


_VAR = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")


def read_promptfoo(source: SourceFile) -> ReadSource:
    """Read promptfoo: prompts x tests, variables put in; assertions that have a counterpart here."""
    config = source.document
    default = config.get("defaultTest") if isinstance(config.get("defaultTest"), Mapping) else {}
    raw = config.get("prompts")
    prompts = [raw] if isinstance(raw, str) else raw if isinstance(raw, list) else []
    templates = [
        text
        for entry in prompts
        if isinstance(text := entry if isinstance(entry, str) else (entry or {}).get("raw"), str)
        and not text.startswith("file://")
    ] or ["{{question}}"]
    items: list[ImportedItem] = []
    left_out: list[LeftOut] = []
    for at, test in enumerate(_mappings(config.get("tests")), 1):
        variables = {**(default.get("vars") or {}), **(test.get("vars") or {})}
        wanted = [*_mappings(default.get("assert")), *_mappings(test.get("assert"))]
        keys, unread = _assertions(wanted)
        left_out += [LeftOut(f"test {at}", f"assertion {kind} has no counterpart here") for kind in unread]
        asked = [(template, values) for values in _choices(variables) for template in templates]
        for number, (template, values) in enumerate(asked, 1):
            prompt = clean_prompt(_rendered(template, values))
            place = f"test {at}" + (f".{number}" if len(asked) > 1 else "")
            if not prompt or _VAR.search(prompt):
                left_out.append(LeftOut(place, f"a variable of its prompt has no value: {prompt[:60]}"))
                continue
            name = str(test.get("description") or "")
            items.append(
                ImportedItem(place, prompt, name=name, keys=keys, metadata=dict(test.get("metadata") or {}))
            )
    return ReadSource(items, left_out)


def _choices(variables: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one choice of values for every combination of the lists among the variables."""
    names = list(variables)
    lists = [value if isinstance(value, list) else [value] for value in variables.values()]
    for values in product(*lists):
        yield dict(zip(names, values, strict=True))


def _rendered(template: str, values: Mapping[str, Any]) -> str:
    """Put the values in, twice: a value may name a variable itself."""
    text = template
    for _ in range(2):
        text = _VAR.sub(lambda hit: str(values[hit[1]]) if hit[1] in values else hit[0], text)
    return text


def _assertions(held: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Return the keys of a case that promptfoo's assertions stand for, and the types that have none."""
    checks: list[dict[str, Any]] = []
    budget: dict[str, Any] = {}
    unread: list[str] = []
    for entry in held:
        kind, value, limit = str(entry.get("type")), entry.get("value"), entry.get("threshold")
        texts = value if isinstance(value, list) else [value]
        same = {} if kind.startswith("i") or kind.startswith("not-i") else {"ignore_case": False}
        match kind:
            case "contains" | "icontains" if isinstance(value, str):
                checks.append({"type": "text", "contains": value, **same})
            case "contains-all" | "icontains-all" if value:
                checks.append({"type": "text", "contains": list(map(str, texts)), **same})
            case "contains-any" | "icontains-any" if value:
                checks.append({"type": "text", "contains_any": list(map(str, texts)), **same})
            case "not-contains" | "not-icontains" if isinstance(value, str):
                checks.append({"type": "text", "not_contains": value, **same})
            case "regex" if isinstance(value, str):
                checks.append({"type": "text", "pattern": value, "ignore_case": False})
            case "llm-rubric" if isinstance(value, str):
                checks.append({"type": "judge", "rule": value})
            case "factuality" if isinstance(value, str):
                checks.append({"type": "factuality", "expected": value})
            case "cost" if isinstance(limit, int | float):
                budget["cost"] = limit
            case "latency" if isinstance(limit, int | float):
                budget["duration_ms"] = limit
            case _:
                unread.append(kind)
    keys: dict[str, Any] = {"assertions": checks} if checks else {}
    return keys | ({"budget": budget} if budget else {}), unread
