"""One results entry: the scalars of an attempt, then what a report shows of it, ``details`` last."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from decimal import Decimal
from typing import Any

from pytest_agenteval.results.document.rows import Row, usage_of
from pytest_agenteval.results.journal.records import TABLE_ROWS, PlannedItem
from pytest_agenteval.support.json_codec import SAFE_INTEGER, unpack

DATA_ROWS = 100
"""Rows of nao's ``expected_data`` and ``actual_data``."""

LOST = "the process ended before this attempt had an answer"
UNJUDGED = "answered, but the process ended before the verdict; --agent-resume judges it without a call"
NOT_RUN = "the run ended before it"
RUNNING = "it is being asked now"
JUDGING = "answered, it is being judged"
WAITING = "it waits for its turn"
ASKED_EARLY = "not run, but answered (asked early); --agent-resume judges it without a call"


def scalars_of(
    item: PlannedItem,
    number: int,
    rerun: int | None,
    attempt: Mapping[str, Any] | None,
    answer: Mapping[str, Any] | None,
    *,
    live: bool = False,
) -> dict[str, Any]:
    """Return the scalars of attempt ``number``, from the heads of its journal lines.

    An item that was ``started`` (``rerun`` is known) without an attempt is error, stage worker; one
    that was not is not_run. While the run is ``live`` the first is running, and the second waits.
    """
    head = dict(attempt["head"]) if attempt else _without_verdict(rerun, answer, live)
    usage = head.pop("usage", None) or {}
    scalars = {
        "name": item.name,
        "model": item.model,
        "passed": head["verdict"] == "passed",
        **{key: head.get(key) for key in _NAO},
        "attempt": number,
        "nodeid": item.nodeid,
        "path": item.path,
        "case_hash": item.case_hash,
        "ask_hash": item.ask_hash,
        "reference_hash": head.get("reference_hash"),
        "reference_hashes": head.get("reference_hashes") or [],
        "reference": "frozen" if head.get("frozen") else "live",
        "prompt": item.prompt,
        "database": item.database,
        "owner": item.owner,
        "outcome": item.outcome,
        **{key: head.get(key) for key in _OURS},
        "k": item.k,
        "pass": item.pass_rule.text,
        "xfail": item.xfail,
        "reviewed": item.reviewed,
        "known": item.known,
        "quarantined": item.quarantined,
        "rerun": rerun,
        "answered_at": answer["at"] if answer else None,
        "leak": head.get("leak"),
        "turns": list(item.turns),
        "tags": list(item.tags),
        "usage": {part: usage.get(part) for part in ("agent", "extraction", "judge")},
    }
    return scalars


_NAO = ("message", "tokens", "cost", "duration_ms", "tool_call_count", "error")
_OURS = ("observed", "verdict", "stage", "reason", "why", "score", "cause", "sql_difference", "luck")


def _without_verdict(rerun: int | None, answer: Mapping[str, Any] | None, live: bool) -> dict[str, Any]:
    head = dict(answer["head"]) if answer else {"duration_ms": 0, "tool_call_count": 0}
    head["duration_ms"] = round(head.get("duration_ms") or 0)
    if live and rerun is not None:
        return {**head, "verdict": "running", "message": JUDGING if answer else RUNNING}
    if live:
        return {**head, "verdict": "not_run", "message": WAITING}
    if rerun is None:
        return {**head, "verdict": "not_run", "message": ASKED_EARLY if answer else NOT_RUN}
    text = UNJUDGED if answer else LOST
    return {**head, "verdict": "error", "stage": "worker", "reason": "worker", "message": text, "error": text}


def entry_of(
    scalars: dict[str, Any], attempt: dict[str, Any] | None, answer: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the whole entry, from the scalars and the bodies of the attempt's and the answer's lines."""
    body, said = attempt or {}, answer or {}
    return {
        **scalars,
        "asked": body.get("asked", []),
        "leniencies": body.get("leniencies", []),
        "extraction": body.get("extraction"),
        "checks": body.get("checks", []),
        "wire_attempts": said.get("wire_attempts", []),
        "diff": body.get("diff"),
        "mapping": body.get("mapping"),
        "traceback": body.get("traceback"),
        "details": _details(body, said),
    }


def _details(body: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    extraction = body.get("extraction") or {}
    # those of an imported attempt stand with its answer
    kinds = {**(said.get("types") or {}), **(body.get("types") or {})}
    details = {
        "response_text": said.get("response_text"),
        "actual_data": _data(body, "actual", kinds),
        "expected_data": _data(body, "expected", kinds),
        "expected_table": body.get("expected_table"),
        "actual_table": body.get("actual_table"),
        "comparison": body.get("comparison"),
        "tool_calls": said.get("tool_calls") or [],
        "reference_sql": body.get("reference_sql"),
        "verification_sql": extraction.get("query"),
        "conversation": said.get("conversation"),
        "answer": said.get("answer") or {},
        "types": kinds,
    }
    if masked := (body.get("masked") or 0) + (said.get("masked") or 0):
        details["masked"] = masked
    cut = {**(said.get("cut") or {}), **_cut_tables(details)}
    return {**details, "cut": cut} if cut else details


def upgraded(entry: dict[str, Any], row: Row) -> dict[str, Any]:
    """Return an entry as this version writes it, with the verdict and number of ``row``.

    Entries of this plugin keep all they have; those of nao, dazense and pda get the keys they lack.
    """
    scalars = {
        "name": row.name,
        "model": row.model,
        "passed": row.verdict == "passed",
        **{key: entry.get(key) for key in _NAO},
        "attempt": row.attempt,
        **{key: entry.get(key) for key in _IDENTITY},
        **{key: entry.get(key) for key in _OURS},
        "verdict": row.verdict,
        "k": row.k,
        "pass": row.pass_rule,
        **{key: entry.get(key) for key in ("xfail", "rerun", "answered_at", "leak")},
        "reference_hashes": list(row.reference_hashes),
        "turns": entry.get("turns") or [],
        "tags": list(row.tags),
        "usage": usage_of(entry),
        "asked": entry.get("asked") or [],
        "leniencies": entry.get("leniencies") or [],
        "extraction": entry.get("extraction"),
        "checks": entry.get("checks") or [],
    }
    rest = {key: entry.get(key) for key in ("wire_attempts", "diff", "mapping", "traceback")}
    more = {key: value for key, value in entry.items() if key not in scalars and key not in rest}
    more.pop("details", None)
    return {**scalars, **rest, **more, "details": entry.get("details") or {}}


_IDENTITY = (
    "nodeid",
    "path",
    "case_hash",
    "ask_hash",
    "reference_hash",
    "prompt",
    "database",
    "owner",
    "outcome",
)


def parts_of(entry: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the reverse of :func:`entry_of`: head and body of the answer's line (or ``None``),
    of the attempt's.
    """
    details = entry.get("details") or {}
    answer = None
    if entry.get("answered_at") is not None or has_answer(details):
        names = ("tokens", "cost", "duration_ms", "tool_call_count", "usage")
        body = {name: details.get(name) for name in _SAID}
        body["wire_attempts"] = entry.get("wire_attempts") or []
        answer = {"head": {name: entry.get(name) for name in names}, "body": body}
    head = {
        name: entry.get(name)
        for name in (*_NAO, *_OURS, "reference_hash", "reference_hashes", "leak", "usage")
    }
    parts = ("asked", "leniencies", "extraction", "checks", "diff", "mapping", "traceback")
    shown = {name: entry.get(name) for name in parts}
    tables = ("comparison", "expected_table", "actual_table", "reference_sql", "expected_data", "actual_data")
    return answer, {"head": head, "body": {**shown, **{name: details.get(name) for name in tables}}}


def has_answer(details: Mapping[str, Any]) -> bool:
    """Return whether the details of an entry hold what an agent said; an entry of any program."""
    return bool(
        details.get("response_text") is not None or details.get("tool_calls") or details.get("answer")
    )


_SAID = ("response_text", "tool_calls", "conversation", "answer", "types", "cut", "masked")


def _data(body: Mapping[str, Any], which: str, kinds: Mapping[str, str]) -> Any:
    """Return ``actual_data`` or ``expected_data``; that of a file of another program is taken over as it
    is.
    """
    table = body.get(f"{which}_table")
    return body.get(f"{which}_data") if table is None else records_of(table, kinds, f"/{which}_table")


def records_of(table: Mapping[str, Any], kinds: Mapping[str, str], place: str) -> list[dict[str, Any]]:
    """Return what nao keeps of a table: a list of dicts, at most 100; of a repeated name the last wins.

    Decimals are numbers there, as in nao's files; ``kinds`` says which values are, by paths that begin
    with ``place``. The exact value stands in the table itself.
    """
    names = [name for name, _ in table["columns"]]
    rows = {"rows": deepcopy(table["rows"][:DATA_ROWS])}
    decimals = {path.removeprefix(place): kind for path, kind in kinds.items() if kind == "decimal"}
    found = unpack(rows, {path: kind for path, kind in decimals.items() if path.startswith("/rows/")})
    return [dict(zip(names, map(_number, row), strict=True)) for row in found["rows"]]


def _number(value: Any) -> Any:
    """Return a value with decimals as JSON numbers, also inside lists and structs."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        if abs(value) <= SAFE_INTEGER and value == value.to_integral_value():
            return int(value)
        number = float(value)
        return number if math.isfinite(number) else str(value)  # 1e400 is no JSON number
    if isinstance(value, list):
        return [_number(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _number(entry) for key, entry in value.items()}
    return value


def _cut_tables(details: dict[str, Any]) -> dict[str, int]:
    """Cut rows of tool results and of handed-over data at 1,000; returns how many there were."""
    found: dict[str, int] = {}
    for number, call in enumerate(details["tool_calls"]):
        if isinstance(call.get("result"), dict):
            _cut(call["result"], f"/tool_calls/{number}/result", found)
        _cut(call, f"/tool_calls/{number}", found)
    _cut(details["answer"], "/answer", found)
    return found


def _cut(holder: dict[str, Any], place: str, found: dict[str, int]) -> None:
    for name in ("data", "rows", "result"):
        held = holder.get(name)
        if isinstance(held, dict) and "columns" in held and isinstance(held.get("rows"), list):
            _cut(held, f"{place}/{name}", found)
        elif isinstance(held, list) and len(held) > TABLE_ROWS:
            found[f"{place}/{name}"] = len(held)
            holder[name] = held[:TABLE_ROWS]
