"""The budget check: the case key ``budget``, checked after the fact.

Stands apart from ``usage``: that is loaded for every case, without pydantic.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pytest_agenteval.checks.base import Check, require_one
from pytest_agenteval.checks.usage import LIMITS, judge_use
from pytest_agenteval.types import CheckResult, Evidence

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BudgetCheck(Check):
    """The attempt used no more than this."""

    type: Literal["budget"] = "budget"
    tokens: Count | None = Field(default=None, description="tokens in and out")
    cost: Amount | None = Field(default=None, description="USD")
    duration_ms: Amount | None = Field(default=None, description="milliseconds")
    tool_calls: Count | None = Field(default=None, description="calls of any tool")
    sql_queries: Count | None = Field(default=None, description="statements executed")

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        require_one(self, *LIMITS)
        return self

    def check(self, evidence: Evidence) -> CheckResult:
        """Compare with what was used. Raises ``CheckFailed`` when the agent does not say."""
        passed, why = judge_use(self, evidence.used)
        return self.result(passed, why, reason="budget")
