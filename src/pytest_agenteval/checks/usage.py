"""What an attempt may use: the case key ``budget``, and what the check of that name shares with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pytest_agenteval.errors import CheckFailed
from pytest_agenteval.types import CheckResult, Consumption, Evidence, Severity

LIMITS = ("tokens", "cost", "duration_ms", "tool_calls", "sql_queries")


class HasLimits(Protocol):
    """Anything with the five limits (``cases.model.Budget``, the budget check); ``None``: no limit."""

    @property
    def tokens(self) -> int | None:
        """Tokens in and out."""
        ...

    @property
    def cost(self) -> float | None:
        """USD."""
        ...

    @property
    def duration_ms(self) -> float | None:
        """Milliseconds."""
        ...

    @property
    def tool_calls(self) -> int | None:
        """Calls of any tool."""
        ...

    @property
    def sql_queries(self) -> int | None:
        """Statements executed."""
        ...


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """The case key ``budget`` on one attempt; it says nothing about the answer itself."""

    limits: HasLimits
    type: str = "limit"
    name: str | None = None
    severity: Severity = "fail"
    turn: int | None = None

    def check(self, evidence: Evidence) -> CheckResult:
        """Compare with what was used. Raises ``CheckFailed`` when that is not known."""
        passed, why = judge_use(self.limits, evidence.used)
        return CheckResult(self.type, passed, why, score=float(passed), reason="budget")


def budget_check(limits: HasLimits) -> LimitCheck:
    """Return the check of a case's ``budget``; it loads no pydantic."""
    return LimitCheck(limits)


def judge_use(limits: HasLimits, used: Consumption) -> tuple[bool, str]:
    """Return whether the limits were kept, in words. Raises ``CheckFailed`` when that cannot be known."""
    over = over_budget(limits, used)
    if over:
        return False, f"budget: {', '.join(over)}"
    unknown = unknown_use(limits, used)
    if unknown:
        raise CheckFailed(f"budget: {' and '.join(unknown)} not known; {_remedy(unknown, used)}")
    return True, "budget: kept"


def _remedy(unknown: list[str], used: Consumption) -> str:
    if unknown == ["cost"] and used.tokens is not None:
        return (
            "the tokens are known: name their model (--agent-model, or Usage.model) and count input and "
            "output apart; a model without a published price needs its own in the project file "
            "(llm.providers[].models[].costs); or drop the limit"
        )
    return "let the agent report it (Answer.usage, Answer.cost), or drop the limit"


def over_budget(limits: HasLimits, used: Consumption) -> list[str]:
    """Return what is over its limit, each ``61,200 of 60,000 tokens``; unknown use is not over."""
    return [
        _shown(name, getattr(used, name), getattr(limits, name))
        for name in LIMITS
        if getattr(limits, name) is not None
        and getattr(used, name) is not None
        and getattr(used, name) > getattr(limits, name)
    ]


def unknown_use(limits: HasLimits, used: Consumption) -> list[str]:
    """Return the limited things of which it is not known how much was used."""
    return [name for name in LIMITS if getattr(limits, name) is not None and getattr(used, name) is None]


def _shown(name: str, used: float, limit: float) -> str:
    if name == "cost":
        return f"${used:,.4f} of ${limit:,.4f}"
    unit = {"duration_ms": "ms", "tool_calls": "tool calls", "sql_queries": "SQL queries"}.get(name, name)
    return f"{used:,.0f} of {limit:,.0f} {unit}"
