"""What an attempt may use: the words of ``budget``, as a case key and as a check."""

from __future__ import annotations

from typing import Protocol

from pytest_agenteval.types import Used

LIMITS = ("tokens", "cost", "duration_ms", "tool_calls", "sql_queries")


class Limited(Protocol):
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


def over_budget(limits: Limited, used: Used) -> list[str]:
    """What is over its limit, each ``61,200 of 60,000 tokens``; unknown use is not over."""
    return [
        _shown(name, getattr(used, name), getattr(limits, name))
        for name in LIMITS
        if getattr(limits, name) is not None
        and getattr(used, name) is not None
        and getattr(used, name) > getattr(limits, name)
    ]


def unknown_use(limits: Limited, used: Used) -> list[str]:
    """The limited things of which it is not known how much was used."""
    return [name for name in LIMITS if getattr(limits, name) is not None and getattr(used, name) is None]


def _shown(name: str, used: float, limit: float) -> str:
    if name == "cost":
        return f"${used:,.4f} of ${limit:,.4f}"
    unit = {"duration_ms": "ms", "tool_calls": "tool calls", "sql_queries": "SQL queries"}.get(name, name)
    return f"{used:,.0f} of {limit:,.0f} {unit}"
