"""The governance check: a policy applied to what the agent did, and the decision observed."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from pytest_agenteval.checks.base import Check, Text, Texts, require_one
from pytest_agenteval.types import CheckResult, Evidence, Services

Decision = Literal["allow", "block", "needs_clarification"]


class GovernanceCheck(Check):
    """What the agent executed keeps to the policy, and it decided as expected."""

    type: Literal["governance"] = "governance"
    policy: Text | None = Field(default=None, description="path of the policy, relative to rootdir")
    bundle: Text | None = Field(
        default=None, description="a bundle's id, or the path of its dataset.yaml, relative to rootdir"
    )
    decision: Decision | None = Field(default=None, description="what the agent must have decided")
    check_failed: Text | None = Field(
        default=None, description="the policy check that must have stopped it, `pii_block` for example"
    )
    rules: Texts | None = Field(default=None, description="business rules the answer must cite")

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        require_one(self, "policy", "bundle", "decision", "check_failed", "rules")
        if self.check_failed is not None and self.decision == "allow":
            raise ValueError(
                "'check_failed' contradicts decision 'allow': an allowed request failed no check"
            )
        return self

    @field_validator("check_failed")
    @classmethod
    def _is_no_slip(cls, value: str | None) -> str | None:
        from pytest_agenteval.governance.policy_checks import CHECKS
        from pytest_agenteval.support.text import closest

        known = [name for name, _ in CHECKS]
        # an agent may have checks of its own; a name close to a known one is a slip
        if value is not None and value not in known and (near := closest(value, known, 0.8)) is not None:
            raise ValueError(f"unknown policy check {value!r}, did you mean {near!r}?")
        return value

    def prepare(self, services: Services) -> None:
        """Read the files. Raises ``CheckFailed`` for missing or faulty ones, or without one dialect."""
        if self.policy is None and self.bundle is None:
            return
        from pytest_agenteval.governance.judge import read_files

        read_files(self, services)
        services.dialect()

    def check(self, evidence: Evidence) -> CheckResult:
        """Apply the policy, then compare the decision. Raises ``CheckFailed`` for missing files."""
        from pytest_agenteval.governance.judge import judge_governance

        passed, why, details = judge_governance(self, evidence)
        return self.result(passed, why, details=details)

    def forbidden_touch(self, evidence: Evidence) -> str | None:
        """Return the first table or column the policy forbids that a statement touched, in words."""
        from pytest_agenteval.governance.judge import touched

        return touched(self, evidence)
