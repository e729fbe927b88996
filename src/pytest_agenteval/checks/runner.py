"""Running checks: which there are, which part of the evidence one sees, what a crash in it becomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agenteval.errors import AgentEvalError, CheckFailed, StageError

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case, ParsedCheck
    from pytest_agenteval.table import Table
    from pytest_agenteval.types import CheckResult, Evidence, Services


def checks_of(case: Case) -> Iterable[tuple[ParsedCheck, int | None]]:
    """Yield every check of a case but those of data and outcome, each with its turn (from 0)."""
    if case.budget is not None:
        from pytest_agenteval.checks.usage import budget_check

        yield budget_check(case.budget), None
    several = len(case.turns) > 1
    for number, turn in enumerate(case.turns):
        for check in turn.assertions:
            yield check, number if several else None
        if turn.expected_response:
            yield _factuality(turn.expected_response), number if several else None
    yield from ((check, None) for check in case.assertions)
    if case.expected_response and not any(check.type == "factuality" for check in case.assertions):
        yield _factuality(case.expected_response), None


def _factuality(expected: tuple[str, ...]) -> ParsedCheck:
    from pytest_agenteval.checks.judge.checks import FactualityCheck

    return FactualityCheck(type="factuality", expected=expected)


def prepare_checks(case: Case, services: Services) -> None:
    """Look for what the checks of a case need, before its agent is asked and paid for.

    Raises ``CheckFailed`` (or another ``StageError``) when one could not be carried out.
    """
    for check, _ in checks_of(case):
        prepare = getattr(check, "prepare", None)
        try:
            if prepare is not None:
                prepare(services)
        except StageError:
            raise
        except AgentEvalError as error:
            raise CheckFailed(f"{check.type} check: {error}") from error


def run_check(check: ParsedCheck, evidence: Evidence, turn: int | None = None) -> CheckResult:
    """Run ``check`` on ``evidence``, narrowed to the check's own turn, else to ``turn``.

    Raises ``CheckFailed`` (or another ``StageError``) when it cannot be carried out; a check that
    crashes is one of these cases, and the text names the check.
    """
    number = check.turn if check.turn is not None else turn
    label = f"{check.type} check {check.name!r}" if check.name else f"{check.type} check"
    seen = evidence if number is None else evidence_of_turn(evidence, number, label)
    try:
        result = check.check(seen)
    except StageError:
        raise
    except Exception as error:
        raise CheckFailed(f"{label} crashed: {type(error).__name__}: {error}") from error
    if not hasattr(result, "passed"):
        raise CheckFailed(f"{label} returned {type(result).__name__}, expected a CheckResult")
    return replace(result, name=check.name, severity=check.severity, turn=number)


def evidence_of_turn(evidence: Evidence, turn: int, label: str = "check") -> Evidence:
    """Return what turn ``turn`` (from 0) of the conversation gave, as the evidence of a check.

    Raises ``CheckFailed`` when the conversation has no such turn.
    """
    if not evidence.turns and turn == 0:
        return evidence
    if turn >= len(evidence.turns):
        held = max(1, len(evidence.turns))
        raise CheckFailed(f"{label}: turn {turn} does not exist, the conversation had {held} (from 0)")
    part = evidence.turns[turn]
    return replace(
        evidence,
        prompt=part.prompt,
        text=part.text,
        value=first_cell(part.table),
        table=part.table,
        reference=part.references[0].table if part.references else None,
        references=part.references,
        called=tuple(call.name for call in part.tool_calls),
        asked=tuple(call.name for call in part.tool_calls if call.asked),
        tool_calls=part.tool_calls,
        statements=tuple(entry for entry in evidence.statements if entry.turn == turn),
        unread=tuple(entry for entry in evidence.unread if entry.turn == turn),
    )


def first_cell(table: Table | None) -> Any:
    """Return the first column of the first row, ``None`` where there is none."""
    if table is None or table.row_count == 0 or not table.columns:
        return None
    return table.head(1).column(0)[0]
