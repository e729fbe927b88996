"""Asking a judge: what it is given, what it may reply, and how several replies become one.

What the agent said travels as a JSON string inside one user message; the system message is fixed
text. A reply in another form than asked for is an error, never a verdict.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.checks.tool_arguments import arguments
from pytest_agenteval.errors import AgentFailed, BudgetSpent, JudgeFailed
from pytest_agenteval.support.text import cut_line
from pytest_agenteval.table import Table
from pytest_agenteval.types import ChatModel, Evidence, Services, ToolCall, Usage

CELLS = 50
"""So many cells of each result a judge gets to see."""
_TEXT = 2_000
_MAX_TOKENS = 1_024
_HIDDEN = re.compile("[\ud800-\udfff\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One reply of a judge: a letter or a score, why, and what it took (``None``: unknown)."""

    value: Any
    rationale: str
    usage: Usage | None
    cost: float | None


def require_judge(services: Services | None, kind: str) -> ChatModel:
    """Return the configured judge. Raises ``JudgeFailed`` saying how to configure one."""
    judge = services.judge if services is not None else None
    if judge is None:
        raise JudgeFailed(
            f"{kind} needs a judge and none is configured: name one with --agent-judge-model provider:model "
            "(ini agenteval_judge_model, environment AGENTEVAL_JUDGE_MODEL, project file `judge:`)"
        )
    return judge


def ask_letter(judge: ChatModel, system: str, payload: Mapping[str, Any], letters: str) -> JudgeReply:
    """Return one of ``letters``. Raises ``JudgeFailed`` for a reply without exactly one of them."""
    schema = _schema("letter", {"type": "string", "enum": list(letters)})
    return _ask(judge, system, payload, schema, lambda text: _letter(text, letters))


def ask_score(judge: ChatModel, system: str, payload: Mapping[str, Any]) -> JudgeReply:
    """Return a score from 0 to 1. Raises ``JudgeFailed`` for any other reply."""
    schema = _schema("score", {"type": "number", "minimum": 0, "maximum": 1})
    return _ask(judge, system, payload, schema, _score)


def _schema(name: str, kind: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"rationale": {"type": "string"}, name: kind},
        "required": ["rationale", name],
        "additionalProperties": False,
    }


def _ask(
    judge: ChatModel,
    system: str,
    payload: Mapping[str, Any],
    schema: Mapping[str, Any],
    read: Callable[[str], tuple[Any, str]],
) -> JudgeReply:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": as_json(payload)}]
    try:
        completion = judge.complete(messages, schema=schema, max_tokens=_MAX_TOKENS)
    except BudgetSpent:
        raise  # the attempt is not_run, not broken
    except AgentFailed as error:
        raise JudgeFailed(f"judge {judge.name}: {error}") from error
    try:
        value, rationale = read(completion.text)
    except ValueError as error:
        raise JudgeFailed(f"judge {judge.name} replied {cut_line(completion.text, 120)!r}: {error}") from None
    return JudgeReply(value, rationale, completion.usage, completion.cost)


def as_json(payload: Mapping[str, Any]) -> str:
    """Return ``payload`` as JSON text in which nothing is invisible: hidden characters are escaped."""
    text = json.dumps(payload, ensure_ascii=False, default=str)
    return _HIDDEN.sub(lambda match: json.dumps(match.group())[1:-1], text)


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object a reply is, fences around it dropped; ``None`` when it is none."""
    plain = re.sub(r"^\s*```\w*\s*|\s*```\s*$", "", text)
    try:
        value = json.loads(plain)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _letter(text: str, letters: str) -> tuple[str, str]:
    reply = _object(text)
    given = text if reply is None else reply.get("letter")
    found = (
        set(re.findall(rf"(?<![A-Za-z])[{letters}](?![A-Za-z'])", given)) if isinstance(given, str) else set()
    )
    if len(found) != 1:
        raise ValueError(f"expected exactly one of the letters {', '.join(letters)}")
    return found.pop(), _rationale(reply)


def _score(text: str) -> tuple[float, str]:
    reply = _object(text)
    given = reply.get("score") if reply is not None else _only_number(text)
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise ValueError("expected a score from 0 to 1")
    return float(given), _rationale(reply)


def _only_number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*+(?:\d++(?:\.\d++)?+|\.\d++)\s*+", text) else None


def _rationale(reply: Mapping[str, Any] | None) -> str:
    return str((reply or {}).get("rationale") or "")


def majority(votes: Sequence[bool]) -> bool:
    """Return whether more than half of the samples pass."""
    return 2 * sum(votes) > len(votes)


def most_common(values: Sequence[Any]) -> Any:
    """Return the value given most often; of several the one given first."""
    return Counter(values).most_common(1)[0][0]


def total_usage(replies: Iterable[JudgeReply]) -> Usage | None:
    """Return the tokens of all replies; unknown when none of them says."""
    known = [reply.usage for reply in replies if reply.usage is not None]
    return sum(known[1:], known[0]) if known else None


def total_cost(replies: Sequence[JudgeReply]) -> float | None:
    """Return USD of all replies; unknown as soon as one is."""
    costs = [reply.cost for reply in replies if reply.cost is not None]
    return sum(costs) if len(costs) == len(replies) else None


def material(evidence: Evidence) -> dict[str, Any]:
    """Return what every judge is given: question, answer, tool calls with at most 50 cells of each result."""
    given: dict[str, Any] = {"question": _questions(evidence), "answer": evidence.text}
    if evidence.answer is not None and evidence.answer.data is not None and evidence.table is not None:
        given["answer_table"] = table_cells(evidence.table)
    given["tool_calls"] = [_call(call) for call in evidence.tool_calls]
    return given


def _questions(evidence: Evidence) -> Any:
    """Return the prompt; of a conversation every turn with its answer."""
    if len(evidence.turns) < 2:
        return evidence.prompt
    return [{"user": turn.prompt, "assistant": turn.text} for turn in evidence.turns]


def _call(call: ToolCall) -> dict[str, Any]:
    shown = {"name": call.name, "arguments": arguments(call)}
    if call.error is not None or call.status == "error":
        return {**shown, "error": _cut(call.error or "failed")}
    return {**shown, "result": result_cells(call.result)}


def result_cells(result: Any) -> Any:
    """Return at most 50 cells of a tool's result: rows of a table, else a piece of its text."""
    rows = result.get("data") if isinstance(result, Mapping) else result
    if isinstance(rows, Table):
        return table_cells(rows)
    if isinstance(rows, list) and rows and all(isinstance(row, Mapping) for row in rows):
        return table_cells(Table.from_records(rows))
    if result is None or isinstance(result, bool | int | float):
        return result
    return _cut(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str))


def table_cells(table: Table) -> dict[str, Any]:
    """Return column names, the first rows (at most 50 cells in all) and how many rows there are."""
    width = min(len(table.columns), CELLS)
    rows = [list(row[:width]) for row in table.rows(CELLS // width)] if width else []
    return {"columns": table.names[:width], "rows": rows, "row_count": table.row_count}


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}... ({len(text):,} characters)"
