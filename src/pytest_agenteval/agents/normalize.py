"""Whatever an agent returns -> ``Answer`` with plain values: a ``Table`` or ``None``, real ``ToolCall``s."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from pytest_agenteval.agents.answer_tables import as_table, named
from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.support.result_shapes import failure_of
from pytest_agenteval.support.scalars import clean_text, plain_tree, safe_str
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, HttpAttempt, ToolCall, Usage

ALLOWED = (
    "text, rows (a list of dicts, a DataFrame, an Arrow table, a Table), one number or date, "
    'an Answer, or a dict {"text": ..., "data": rows}'
)
_SCALARS = (bool, int, float, Decimal, date, datetime, time, timedelta)
_ANSWER = [field.name for field in fields(Answer)]
_SAYING = {"text", "data", "value", "tool_calls"}
"""Fields of which a dict must have one to be an answer as a program writes it."""
_NO_COUNTS = ("model", "first_token_ms")
_USAGE = [field.name for field in fields(Usage) if field.name != "parts"]
_ALIASES: Mapping[str, str] = {
    "toolName": "name", "toolCallId": "id", "tool": "name", "arguments": "args", "input": "args",
    "output": "result", "tool_call_id": "id",
}  # fmt: skip


def normalize(raw: Any, place: str = "the agent") -> Answer:
    """Return ``raw`` as an ``Answer``. Raises ``AgentFailed`` naming its type and what is allowed."""
    if isinstance(raw, Answer):
        try:
            return _checked(raw, place)
        except AgentFailed as error:
            # it is paid for all the same, and counts against the budget
            error.answer = error.answer or _cost_of(raw)
            raise
    if isinstance(raw, str):
        return Answer(text=clean_text(raw))
    if isinstance(raw, Mapping) and raw and raw.keys() <= set(_ANSWER) and raw.keys() & _SAYING:
        return answer_from_mapping(raw, place)  # as a program writes it
    table = as_table(raw, place)
    if table is not None:
        return Answer(data=table)
    value = plain_tree(raw) if _is_scalar(raw) else None
    if value is not None:
        return Answer(text=safe_str(value), value=value)
    # put the problem first, long lines are truncated at the end
    source = "" if place == "the agent" else f": {place}"
    raise AgentFailed(f"the agent returned {named(raw)}{source}; allowed: {ALLOWED}")


def _is_scalar(raw: Any) -> bool:
    return isinstance(raw, _SCALARS) or (type(raw).__module__ == "numpy" and not hasattr(raw, "__len__"))


def _cost_of(answer: Answer) -> Answer:
    """Return what an answer of bad types says of its cost."""
    usage = answer.usage if isinstance(answer.usage, Usage) else None
    text = clean_text(answer.text) if isinstance(answer.text, str) else ""
    return Answer(text, usage=usage, cost=_number(answer.cost))


def _checked(answer: Answer, place: str) -> Answer:
    """Return the answer with every field in its documented type."""
    data = answer.data
    calls = tuple(tool_call(call, place) for call in answer.tool_calls or ())
    table = None if data is None else as_table(data, place, _last_statement(calls))
    if data is not None and table is None:
        raise AgentFailed(
            f"{place} returned an Answer whose data is {named(data)}; "
            "allowed: a list of dicts, a DataFrame, an Arrow table, a Table, or None"
        )
    value = answer.value
    return replace(
        answer,
        text=clean_text(answer.text) if isinstance(answer.text, str) else _text(answer.text),
        data=table,
        value=plain_tree(value),
        tool_calls=calls,
        usage=_usage(answer.usage, place),
        cost=_number(answer.cost),
        finish_reason=None if answer.finish_reason is None else safe_str(answer.finish_reason),
        conversation=plain_tree(answer.conversation),
        turns=tuple(normalize(turn, place) for turn in answer.turns or ()),
        wire_attempts=tuple(w for w in answer.wire_attempts or () if isinstance(w, HttpAttempt)),
        duration_ms=_number(answer.duration_ms),
        steps=_whole(answer.steps),
        logs=_text(answer.logs),
    )


def _last_statement(calls: tuple[ToolCall, ...]) -> str | None:
    """Return the SQL of the last call that carries some."""
    args = [call.args for call in calls if isinstance(call.args, Mapping)]
    found = [
        arg[key] for arg in args for key in ("sql", "sql_query", "query") if isinstance(arg.get(key), str)
    ]
    return found[-1] if found else None


def _text(value: Any) -> str:
    return "" if value is None else safe_str(value)


def _number(value: Any) -> float | None:
    """Return a count, a price, a duration; what cannot be one is unknown: less than 0 would free a budget."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def tool_call(call: Any, place: str = "the agent") -> ToolCall:
    """Return a ``ToolCall``, or a dict with its fields (also ``toolName``, ``toolCallId``), made plain."""
    if isinstance(call, Mapping):
        call = _call_from_mapping(call, place)
    if not isinstance(call, ToolCall):
        raise AgentFailed(
            f"{place} returned a tool call that is {named(call)}; "
            "allowed: a ToolCall, or a dict with name, args, result"
        )
    result = _result(call.result, place)
    error = failure_of(result) if call.error is None else call.error
    failed = call.status == "error" or error is not None
    return ToolCall(
        name=safe_str(call.name),
        args=plain_tree(call.args),
        result=result,
        id=None if call.id is None else safe_str(call.id),
        error=None if error is None else safe_str(error),
        status="error" if failed else "ok",
        asked=bool(call.asked),
        approved=None if call.approved is None else bool(call.approved),
        turn=_whole(call.turn) or 0,
    )


def _call_from_mapping(call: Mapping[Any, Any], place: str) -> ToolCall:
    names = [field.name for field in fields(ToolCall)]
    found = {_ALIASES.get(str(key), str(key)): value for key, value in call.items()}
    unknown = [key for key in found if key not in names]
    if "name" not in found or unknown:
        what = (
            f"has no name but {sorted(found)}"
            if "name" not in found
            else f"has an unknown key {unknown[0]!r}"
        )
        hint = did_you_mean(unknown[0], names) if unknown else f"; known: {', '.join(names)}"
        raise AgentFailed(f"{place} returned a tool call that {what}{hint}")
    return ToolCall(**found)


def _result(result: Any, place: str, depth: int = 0) -> Any:
    """Return a tool's result; tables in it become ``{"columns", "data", "row_count"}`` of plain values."""
    if isinstance(result, Mapping) and depth < 3:
        return {safe_str(key): _result(item, place, depth + 1) for key, item in result.items()}
    if isinstance(result, list | tuple | str | Mapping) or result is None:
        return plain_tree(result)
    table = as_table(result, place)
    if table is None:
        return plain_tree(result)
    records = [{name: plain_tree(cell) for name, cell in row.items()} for row in table.records()]
    return {"columns": table.names, "data": records, "row_count": table.row_count}


def _usage(usage: Any, place: str) -> Usage | None:
    if usage is None:
        return None
    if isinstance(usage, list | tuple) and usage:
        made = [one for one in (_usage(item, place) for item in usage) if one is not None]
        return functools.reduce(operator.add, made) if made else None
    if isinstance(usage, Mapping):
        unknown = [str(key) for key in usage if key not in _USAGE]
        if unknown:
            raise AgentFailed(
                f"{place} returned usage with an unknown key {unknown[0]!r}{did_you_mean(unknown[0], _USAGE)}"
            )
        usage = Usage(**{str(key): value for key, value in usage.items()})
    if not isinstance(usage, Usage):
        allowed = "a Usage, a dict of counts, or a list of these, one for each model"
        raise AgentFailed(f"{place} returned usage that is {named(usage)}; allowed: {allowed}")
    parts = tuple(part for part in (_usage(part, place) for part in usage.parts) if part is not None)
    counts = {name: _whole(getattr(usage, name)) for name in _USAGE if name not in _NO_COUNTS}
    model = safe_str(usage.model) if usage.model else None
    return Usage(**counts, model=model, first_token_ms=_number(usage.first_token_ms), parts=parts)


def answer_from_mapping(form: Mapping[str, Any], place: str) -> Answer:
    """Return an answer written as JSON by a program: the fields of ``Answer``, ``data`` a list of objects.

    ``data`` may also be ``{columns, rows}`` (with ``types``). Raises ``AgentFailed`` for unknown keys.
    """
    unknown = [str(key) for key in form if key not in _ANSWER]
    if unknown:
        raise AgentFailed(
            f"{place} answered with an unknown key {unknown[0]!r}{did_you_mean(unknown[0], _ANSWER)}"
        )
    values = dict(form)
    if isinstance(values.get("data"), Mapping):
        values["data"] = _table_form(values["data"], place)
    turns = values.pop("turns", None) or ()
    made = tuple(answer_from_mapping(turn, place) if isinstance(turn, Mapping) else turn for turn in turns)
    return normalize(Answer(**values, turns=made), place)


def _table_form(form: Mapping[str, Any], place: str) -> Table:
    columns, rows = form.get("columns"), form.get("rows", form.get("data"))
    try:
        if not isinstance(columns, list) or not isinstance(rows, list):
            raise ValueError(f"found the keys {sorted(map(str, form))}")
        pairs = [(c, None) if isinstance(c, str) else (c[0], c[1]) for c in columns]
        types = dict(form.get("types") or {})
        if rows and all(isinstance(row, Mapping) for row in rows):
            if not any(name in row for name, _ in pairs for row in rows):
                raise ValueError(f"no row has one of the columns {', '.join(n for n, _ in pairs)}")
            rows = [[row.get(name) for name, _ in pairs] for row in rows]
        return Table.from_rows([n for n, _ in pairs], rows, [types.get(n, kind) for n, kind in pairs])
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise AgentFailed(
            f"{place} answered with data that is no table: {error}; "
            "allowed: a list of objects, or {columns: [names], rows: [lists]}"
        ) from error
