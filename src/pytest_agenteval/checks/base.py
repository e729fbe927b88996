"""The base of all checks: a frozen model whose fields are its YAML keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from pytest_agenteval.types import CheckResult, Evidence, Services, Severity, Usage

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""Text that says something; blanks around it are dropped."""


def _as_list(value: Any) -> Any:
    """Return one text, or a list, as the tuple the models keep."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Texts = Annotated[
    tuple[Text, ...], BeforeValidator(_as_list, json_schema_input_type=str | list[str]), Field(min_length=1)
]
"""One text or a list of them, never empty."""

Phrases = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1)], ...],
    BeforeValidator(_as_list, json_schema_input_type=str | list[str]),
    Field(min_length=1),
]
"""Like ``Texts``, blanks kept: they are looked for as they are written."""

Columns = Annotated[dict[Text, Texts], Field(min_length=1)]
"""``{table: [columns]}``."""


class Check(BaseModel):
    """One thing to check about an answer.

    Subclasses give ``type`` as a ``Literal`` (its word in YAML), one field per YAML key, and
    ``check``. Values are strict: ``"2"`` is not a number, ``true`` is not 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    type: Any
    name: Text | None = Field(default=None, description="what the report calls this check")
    severity: Severity = Field(default="fail", description="`warn`: reported, never decides the verdict")
    turn: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="look only at this turn of the conversation (they count from 0)"
    )

    def prepare(self, services: Services) -> None:
        """Look for what ``check`` needs, before an agent is asked and paid for.

        Raises ``CheckFailed`` when the check could not be carried out whatever the answer is.
        """

    def check(self, evidence: Evidence) -> CheckResult:
        """Judge ``evidence``. Raises ``CheckFailed`` when the check cannot be carried out."""
        raise NotImplementedError(f"{type(self).__name__} has no check method")

    def result(
        self,
        passed: bool,
        why: str,
        *,
        score: float | None = None,
        reason: str = "assertion",
        details: Mapping[str, Any] | None = None,
        usage: Usage | None = None,
        cost: float | None = None,
    ) -> CheckResult:
        """Return a result of this check; the score (0 to 1) is 1 or 0 unless given.

        ``usage`` and ``cost`` (USD) are those of model calls that the check made.
        """
        return CheckResult(
            type=self.type,
            passed=passed,
            why=why,
            name=self.name,
            score=float(passed) if score is None else score,
            severity=self.severity,
            turn=self.turn,
            reason=reason,
            details=details or {},
            usage=usage,
            cost=cost,
        )


def require_one(check: Check, *fields: str) -> None:
    """Raise ``ValueError`` unless at least one of ``fields`` was given: it would check nothing."""
    if not any(field in check.model_fields_set for field in fields):
        raise ValueError(f"{check.type} checks nothing: give at least one of {', '.join(fields)}")


def refuse_both(check: Check, field: str, *others: str) -> None:
    """Raise ``ValueError`` when ``field`` and one of ``others`` were given: they contradict."""
    given = [other for other in others if other in check.model_fields_set]
    if field in check.model_fields_set and given:
        raise ValueError(f"{field!r} and {given[0]!r} contradict each other: give one of them")


def ordered_bounds(low: Any, high: Any, names: tuple[str, str] = ("min", "max")) -> None:
    """Raise ``ValueError`` when the lower bound lies above the upper one."""
    if low is not None and high is not None and low > high:
        raise ValueError(f"{names[0]} {low} is above {names[1]} {high}: nothing can satisfy both")
