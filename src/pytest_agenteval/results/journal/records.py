"""The records of a journal: planned items, answers and attempts as plain JSON, and answers read back."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from pytest_agenteval.cases.model import PassRule
from pytest_agenteval.results.document.verdicts import parse_rule
from pytest_agenteval.support.json_codec import dumps, pack, plain_column, unpack
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, Attempt, CheckResult, HttpAttempt, Outcome, ToolCall, Usage

if TYPE_CHECKING:
    from pytest_agenteval.compare.result import Comparison, MappedColumn

TABLE_ROWS = 1000
"""Rows of a table kept in the results (rule: results.md, Files)."""


ALL = PassRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedItem:
    """One item of the run, as planned: a case with one model, asked ``k`` times.

    ``model`` is never null: without models it is the target's name. ``xfail`` is the reason of an
    expected failure for this model (``None``: none). ``case_hash`` and ``ask_hash`` are the case's.
    ``reviewed`` says whether a person approved the case (``None``: it does not say), ``known`` that the
    agent is shown the question, ``quarantined`` that the verdict counts nowhere.
    """

    nodeid: str
    path: str
    name: str
    model: str
    k: int = 1
    pass_rule: PassRule = ALL
    case_hash: str = ""
    ask_hash: str = ""
    prompt: str = ""
    turns: tuple[str, ...] = ()
    database: str | None = None
    tags: tuple[str, ...] = ()
    owner: str | None = None
    outcome: Outcome = "answer"
    xfail: str | None = None
    reviewed: bool | None = None
    known: bool = False
    quarantined: bool = False


def planned_record(item: PlannedItem, index: int, at: str) -> dict[str, Any]:
    """Return the line of a planned item."""
    values = {field.name: getattr(item, field.name) for field in fields(item) if field.name != "pass_rule"}
    values["turns"], values["tags"] = list(item.turns), list(item.tags)
    return {"kind": "planned", "at": at, "index": index, **values, "pass": item.pass_rule.text}


def planned_from(record: Mapping[str, Any]) -> PlannedItem:
    """Return the item of a planned line."""
    known = {field.name for field in fields(PlannedItem)} - {"pass_rule"}
    values = {key: value for key, value in record.items() if key in known}
    values["turns"], values["tags"] = tuple(record.get("turns", ())), tuple(record.get("tags", ()))
    return PlannedItem(**values, pass_rule=parse_rule(record.get("pass")))


def usage_record(usage: Usage | None, cost: float | None) -> dict[str, Any] | None:
    """Return tokens by kind, their total and the USD they cost; ``None`` where nothing is known."""
    if usage is None and cost is None:
        return None
    usage = usage or Usage()
    parts = {name: getattr(usage, name) for name in (*_USAGE, *_SAID) if getattr(usage, name) is not None}
    return {**parts, "total": usage.tokens, "cost": finite(cost)}


def finite(number: Any) -> float | None:
    """Return a number as JSON can hold it; NaN and infinities are unknown."""
    if number is None:
        return None
    value = float(number)
    return value if math.isfinite(value) else None


_USAGE = ("input", "output", "cache_read", "cache_write", "reasoning")
_SAID = ("model", "first_token_ms")


def _usage_raw(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    said = {name: getattr(usage, name) for name in _SAID if getattr(usage, name) is not None}
    return {name: getattr(usage, name) for name in (*_USAGE, "total")} | said


def answer_body(answer: Answer, *, finished: bool = True) -> dict[str, Any]:
    """Return an answer in the words of the document's details, with ``types`` to read it back.

    Not ``finished``: what an agent had said when it failed.
    """
    plain, kinds = pack(_answer_raw(answer))
    plain["answer"][FINISHED] = finished
    return {**plain, "types": kinds}


FINISHED = "finished"
"""The key of an answer's body: whether the agent's call returned it."""


def _answer_raw(answer: Answer) -> dict[str, Any]:
    rest = {
        "data": answer.data,
        "value": answer.value,
        "cost": answer.cost,
        "finish_reason": answer.finish_reason,
        "duration_ms": answer.duration_ms,
        "steps": answer.steps,
        "logs": answer.logs or None,
        "turns": [_answer_raw(turn) for turn in answer.turns] or None,
    }
    return {
        "response_text": answer.text,
        "tool_calls": [_call_raw(call) for call in answer.tool_calls],
        "conversation": answer.conversation,
        "usage": _usage_raw(answer.usage),
        "wire_attempts": [{f.name: getattr(w, f.name) for f in fields(w)} for w in answer.wire_attempts],
        "answer": {key: value for key, value in rest.items() if value is not None},
    }


def _call_raw(call: ToolCall) -> dict[str, Any]:
    raw = {"toolName": call.name, "toolCallId": call.id, "args": call.args}
    if call.status == "ok" or call.result is not None:
        raw["result"] = call.result
    for name, default in (
        ("error", None),
        ("status", "ok"),
        ("asked", False),
        ("approved", None),
        ("turn", 0),
    ):
        if getattr(call, name) != default:
            raw[name] = getattr(call, name)
    return raw


def answer_from(body: Mapping[str, Any]) -> Answer:
    """Return the answer of an :func:`answer_body`; ``body`` is used up."""
    return _answer_of(unpack({k: v for k, v in body.items() if k != "types"}, body.get("types") or {}))


def _answer_of(raw: Mapping[str, Any]) -> Answer:
    rest = dict(raw.get("answer") or {})
    turns = tuple(_answer_of(turn) for turn in rest.pop("turns", ()) or ())
    usage = raw.get("usage")
    return Answer(
        text=raw.get("response_text") or "",
        tool_calls=tuple(_call_of(call) for call in raw.get("tool_calls") or ()),
        usage=Usage(**usage) if usage else None,
        conversation=raw.get("conversation"),
        turns=turns,
        wire_attempts=tuple(HttpAttempt(**wire) for wire in raw.get("wire_attempts") or ()),
        **{key: rest[key] for key in _REST if rest.get(key) is not None},
    )


_REST = ("data", "value", "cost", "finish_reason", "duration_ms", "steps", "logs")


def _call_of(raw: Mapping[str, Any]) -> ToolCall:
    failed = raw.get("status") == "error" or (raw.get("status") is None and "result" not in raw)
    return ToolCall(
        name=str(raw.get("toolName") or ""),
        args=raw.get("args"),
        result=raw.get("result"),
        id=raw.get("toolCallId"),
        error=raw.get("error"),
        status="error" if failed else "ok",
        asked=bool(raw.get("asked", False)),
        approved=raw.get("approved"),
        turn=int(raw.get("turn") or 0),
    )


def tool_call_count(answer: Answer | None) -> int:
    """Return tool calls of the answer, of all its turns."""
    if answer is None:
        return 0
    return len(answer.tool_calls) or sum(len(turn.tool_calls) for turn in answer.turns)


def table_body(table: Table, digest: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return ``{columns [[name, SQL type]], rows, row_count, sha256}``, at most 1,000 rows, and its kinds."""
    plain, kinds = pack(table.head(TABLE_ROWS))
    return {**plain, "row_count": table.row_count, "sha256": digest}, kinds


def table_hash(table: Table) -> str:
    """Return sha256 of a table: column names and rows, whatever the rows' order.

    Floats count with 12 digits: the last ones change with the order in which a database sums.
    """
    columns = []
    for number in range(len(table.columns)):
        values = table.column(number)
        if float in set(map(type, values)):
            values = [f"{v:.12g}" if type(v) is float else v for v in values]
        columns.append(plain_column(values)[0])
    lines = sorted(map(dumps, zip(*columns, strict=True)))
    digest = hashlib.sha256(dumps([table.names, table.row_count]).encode())
    for line in lines:
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def attempt_head(attempt: Attempt, hashed: Mapping[int, str]) -> dict[str, Any]:
    """Return the scalars of an attempt: all that totals, tables and gates need.

    ``hashed`` maps ``id(table)`` to its hash, for every reference of the attempt.
    """
    answer, extraction = attempt.answer, attempt.extraction
    judged = [check for check in attempt.checks if check.usage is not None or check.cost is not None]
    usage = {
        "agent": usage_record(answer.usage, answer.cost) if answer else None,
        "extraction": usage_record(extraction.usage, extraction.cost) if extraction else None,
        "judge": usage_record(*_sum(judged)) if judged else None,
    }
    return {
        "verdict": attempt.verdict,
        "message": attempt.message,
        "tokens": answer.usage.tokens if answer and answer.usage else None,
        "cost": finite(answer.cost) if answer else None,
        "duration_ms": round(finite(attempt.duration_ms) or 0),
        "tool_call_count": tool_call_count(answer),
        "error": attempt.error,
        "observed": attempt.observed,
        "stage": attempt.stage,
        "reason": attempt.reason,
        "why": attempt.cause if attempt.cause != attempt.message else None,
        **_findings(attempt.findings),
        "score": finite(attempt.score),
        "leak": attempt.leak,
        "reference_hash": None if attempt.reference is None else hashed[id(attempt.reference)],
        "reference_hashes": [hashed[id(table)] for table in attempt.references],
        "frozen": attempt.frozen,
        "usage": usage,
    }


def _findings(findings: Any) -> dict[str, Any]:
    """What was found out about the verdict; {} where nothing was."""
    names = ("cause", "sql_difference", "luck")
    found = {name: getattr(findings, name, None) for name in names}
    return {name: value for name, value in found.items() if value}


def _sum(checks: Iterable[Any]) -> tuple[Usage | None, float | None]:
    usage: Usage | None = None
    cost: float | None = None
    for check in checks:
        if check.usage is not None:
            usage = check.usage if usage is None else usage + check.usage
        if check.cost is not None:
            cost = (cost or 0.0) + check.cost
    return usage, cost


def attempt_body(attempt: Attempt, hashed: Mapping[int, str], shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a report shows of an attempt beside its scalars and its answer.

    ``hashed`` maps ``id(table)`` to its hash; ``shown`` is what :func:`comparison_parts` gave. The
    tables' ``types`` have paths relative to the document's ``details``.
    """
    extraction = attempt.extraction
    actual = extraction.table if extraction else None
    types: dict[str, str] = {}
    tables: dict[str, Any] = {}
    for name, table in (("expected_table", attempt.reference), ("actual_table", actual)):
        tables[name] = None
        if table is not None:
            tables[name], kinds = table_body(table, hashed[id(table)])
            types.update({f"/{name}{path}": kind for path, kind in kinds.items()})
    return {
        "asked": list(attempt.asked),
        "extraction": {"source": extraction.source, "query": extraction.query} if extraction else None,
        "checks": [check_record(check, attempt.comparison) for check in attempt.checks],
        "reference_sql": attempt.reference_sql,
        "traceback": attempt.traceback,
        **shown,
        **tables,
        "types": types,
    }


def check_record(check: CheckResult, shown: Any = None) -> dict[str, Any]:
    """Return ``{type, name, passed, score, why, severity}`` and, where there are any, turn, reason, details.

    A comparison among the details stands there as JSON, unless it is the one ``shown`` by the attempt.
    """
    record = {
        "type": check.type,
        "name": check.name,
        "passed": check.passed,
        "score": finite(check.score),
        "why": check.why,
        "severity": check.severity,
    }
    if check.turn is not None:
        record["turn"] = check.turn
    if not check.passed:
        record["reason"] = check.reason
    details = {key: value for key, value in check.details.items() if value is not shown or shown is None}
    if details:
        values = {k: v.to_json() if hasattr(v, "to_json") else v for k, v in details.items()}
        record["details"] = pack(values)[0]
    return record


def check_of(record: Mapping[str, Any]) -> CheckResult:
    """Return the result of a :func:`check_record`, without its details."""
    return CheckResult(
        record["type"],
        record["passed"],
        record["why"],
        record.get("name"),
        score=record.get("score") or 0.0,
        severity=record.get("severity") or "fail",
        turn=record.get("turn"),
        reason=record.get("reason") or "assertion",
    )


def comparison_parts(comparison: Comparison | None) -> dict[str, Any]:
    """Return ``{comparison (text), diff (structure), mapping, leniencies}`` of a ``Comparison`` or ``None``.

    The text is there for a difference only, as in nao's files.
    """
    if comparison is None:
        return {"comparison": None, "diff": None, "mapping": None, "leniencies": []}
    from pytest_agenteval.compare import render

    return {
        "comparison": None if comparison.matched else "\n".join(render(comparison)),
        "diff": pack(comparison.to_json())[0],
        "mapping": pack([_mapped(column) for column in comparison.mapping])[0],
        "leniencies": list(comparison.leniencies),
    }


def _mapped(column: MappedColumn) -> dict[str, Any]:
    return {name: getattr(column, name) for name in ("expected", "actual", "how", "type")}
