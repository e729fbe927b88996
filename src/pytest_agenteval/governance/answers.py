"""Policy answers: what the tools of a governed agent say about a request, in the forms that are in use.

A stored contract holds ``policy: {decision, checks}``. dazense's ``build_contract`` returns it inside
``contract`` when it allows; when it blocks or asks back it returns ``status`` and ``checks`` at the top
(ai4data/dazense, apps/shared/src/tools/build-contract.ts).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.types import Evidence

DECISIONS = ("allow", "block", "needs_clarification")
_HOLDERS = ("contract", "provenance", "result", "data", "output")
"""Keys under which a tool result holds another one."""
_BESIDE_STATUS = ("checks", "contract_id", "contract", "reason", "fixes", "questions")
"""What stands beside a ``status`` that is a decision, and not that of something else."""


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """One answer: its ``decision`` (``None``: it gives none) and its ``checks``, as they came."""

    decision: str | None
    checks: Any = ()


def policy_answers(evidence: Evidence) -> Iterator[PolicyAnswer]:
    """Yield the policy answers of a run, in the order of its tool calls."""
    for call in evidence.tool_calls:
        yield from _answers_in(call.result, depth=0)


def has_contract(evidence: Evidence) -> bool:
    """Return whether a tool result allowed the request, or did not say otherwise."""
    return any(answer.decision in (None, "allow") for answer in policy_answers(evidence))


def _answers_in(result: Any, depth: int) -> Iterator[PolicyAnswer]:
    held = _mapping(result)
    if held is None:
        return
    policy = held.get("policy")
    if isinstance(policy, Mapping):
        yield PolicyAnswer(_decision(policy), policy.get("checks") or ())
        return
    inside = [held[key] for key in _HOLDERS if key in held] if depth < 2 else []
    found = [answer for value in inside for answer in _answers_in(value, depth + 1)]
    if found:
        yield from found
    elif any(key in held for key in _BESIDE_STATUS) and (decision := _decision(held)) in DECISIONS:
        yield PolicyAnswer(decision, held.get("checks") or ())


def _mapping(result: Any) -> Mapping[str, Any] | None:
    """Return the mapping behind a result: itself, JSON text, or content blocks that hold such a text."""
    if isinstance(result, list) and len(result) == 1:
        result = result[0]
    if isinstance(result, Mapping) and result.get("type") == "text":
        result = result.get("text")
    if isinstance(result, str) and result.lstrip().startswith("{"):
        try:
            result = json.loads(result)
        except ValueError:
            return None
    return result if isinstance(result, Mapping) else None


def _decision(policy: Mapping[str, Any]) -> str | None:
    said = policy.get("decision") or policy.get("status")
    return said.strip().casefold() if isinstance(said, str) else None


def failed_checks(answer: PolicyAnswer) -> Iterator[str]:
    """Yield names of failed checks: ``[{name, status}]``, ``{name: status}``, or ``[name]`` of a block."""
    checks = answer.checks
    if isinstance(checks, Mapping):
        checks = [
            {"name": name, **value} if isinstance(value, Mapping) else {"name": name, "status": value}
            for name, value in checks.items()
        ]
    for entry in checks if isinstance(checks, list | tuple) else ():
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, Mapping):
            status = entry.get("status", entry.get("result", entry.get("passed")))
            if status is False or str(status).casefold() in ("fail", "failed", "block", "blocked"):
                yield str(entry.get("name", entry.get("check")))
