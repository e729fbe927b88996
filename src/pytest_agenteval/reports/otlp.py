"""A document as OpenTelemetry traces: one span per attempt, in the JSON encoding of OTLP."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pytest_agenteval import __version__
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.rows import Row


def otlp_document(document: Document, run: str) -> dict[str, Any]:
    """Return an ``ExportTraceServiceRequest``; ``run`` names the run (the stem of its file).

    One trace per run. Names of attributes are those of the GenAI conventions where there is one, else
    they begin with ``agenteval.``. A failed attempt and one in error have the status ERROR.
    """
    trace = hashlib.sha256(run.encode()).hexdigest()[:32]
    end = _moment(document.header.get("timestamp")) or datetime.fromtimestamp(0, UTC)
    scope = {"name": "pytest_agenteval", "version": __version__}
    spans = [_span(row, trace, end) for row in document.rows]
    resource = {"attributes": _attributes({"service.name": "agenteval", "agenteval.run": run})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def _span(row: Row, trace: str, default: datetime) -> dict[str, Any]:
    end = _moment(row.answered_at) or default
    stop = int(end.timestamp() * 1_000_000) * 1000
    key = f"{trace}|{row.nodeid or row.path}|{row.name}|{row.model}|{row.attempt}"
    span: dict[str, Any] = {
        "traceId": trace,
        "spanId": hashlib.sha256(key.encode()).hexdigest()[:16],
        "name": f"case {row.name}",
        "kind": 1,
        "startTimeUnixNano": str(stop - int(row.duration_ms * 1_000_000)),
        "endTimeUnixNano": str(stop),
        "attributes": _attributes(dict(_facts(row))),
        "status": {"code": 1},
    }
    if row.verdict in ("failed", "error"):
        span["status"] = {"code": 2, "message": row.why}
    return span


def _facts(row: Row) -> Iterator[tuple[str, Any]]:
    agent = row.usage.get("agent") or {}
    yield "gen_ai.operation.name", "invoke_agent"
    yield "gen_ai.request.model", row.model or None
    yield "gen_ai.usage.input_tokens", agent.get("input")
    yield "gen_ai.usage.output_tokens", agent.get("output")
    yield "agenteval.case", row.name
    yield "agenteval.path", row.path
    yield "agenteval.attempt", row.attempt
    yield "agenteval.verdict", row.verdict
    yield "agenteval.message", row.message
    yield "agenteval.reason", row.reason
    yield "agenteval.stage", row.stage
    yield "agenteval.score", row.score
    yield "agenteval.tokens", row.tokens
    yield "agenteval.cost_usd", row.cost
    yield "agenteval.tool_calls", row.tool_call_count
    yield "agenteval.tags", list(row.tags) or None


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in facts.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(entry) for entry in value]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}


def _moment(text: str | None) -> datetime | None:
    """Read an ISO time; one without a zone is local time, as results files write it."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
