"""Checks that a model judges: factuality (A to E) and rules (0 to 1)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from pytest_agenteval.checks.base import Check, Text, Texts, _as_list
from pytest_agenteval.errors import JudgeFailed
from pytest_agenteval.types import CheckResult, Evidence

Letter = Literal["A", "B", "C", "D", "E"]
Letters = Annotated[
    tuple[Letter, ...],
    BeforeValidator(_as_list, json_schema_input_type=str | list[str]),
    Field(min_length=1),
]
Samples = Annotated[int, Field(ge=1, le=99)]


class FactualityCheck(Check):
    """A judge compares the answer with what is expected of it."""

    type: Literal["factuality"] = "factuality"
    expected: Texts | None = Field(
        default=None, description="the expected response, or a list of facts (default: expected_response)"
    )
    passing: Letters = Field(
        default=("A", "B", "C"),
        alias="pass",
        description="letters that pass: A subset, B superset, C equal, D contradiction, "
        "E unimportant difference",
    )
    samples: Samples = Field(default=1, description="how often the judge is asked; the majority decides")

    def check(self, evidence: Evidence) -> CheckResult:
        """Ask the judge."""
        raise JudgeFailed("factuality: not available yet")


class JudgeCheck(Check):
    """A judge scores the answer against a rule, from 0 to 1."""

    type: Literal["judge"] = "judge"
    rule: Text = Field(description="what must be true of the answer")
    min_score: Annotated[float, Field(ge=0, le=1)] = Field(default=0.5, description="score that passes")
    samples: Samples = Field(default=1, description="how often the judge is asked; the majority decides")

    def check(self, evidence: Evidence) -> CheckResult:
        """Ask the judge."""
        raise JudgeFailed("judge: not available yet")
