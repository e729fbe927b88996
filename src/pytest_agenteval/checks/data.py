"""The data check: the agent's table against the accepted references. It loads no pydantic."""

from __future__ import annotations

from pytest_agenteval.checks.running import evidence_of_turn
from pytest_agenteval.compare import Comparison, compare, parse_options
from pytest_agenteval.types import CheckResult, Evidence


def check_data(evidence: Evidence, turn: int | None = None) -> CheckResult:
    """Compare the table with each accepted reference; the first that matches decides.

    ``details``: ``comparison`` (of the reference that matched, else of the one it is nearest to) and
    ``reference``, its place from 0. With several references the message says which it was. Raises
    ``ValueError`` when ``evidence`` has no reference.
    """
    seen = evidence if turn is None else evidence_of_turn(evidence, turn, "data check")
    if not seen.references:
        raise ValueError("there is no reference to compare with")
    options = parse_options(seen.comparison)
    found: list[Comparison] = []
    for reference in seen.references:
        found.append(compare(reference.table, seen.table, options.with_order(reference.order_by)))
        if found[-1].matched:
            break
    place = _told(found)
    told = found[place]
    why = told.message
    if len(seen.references) > 1:
        why += f" (reference {place + 1} of {len(seen.references)})"
    word = told.diagnosis.word if told.diagnosis is not None else "values_differ"
    return CheckResult(
        "data",
        told.matched,
        why,
        score=float(told.matched),
        turn=turn,
        reason="match" if told.matched else word,
        details={"comparison": told, "reference": place},
    )


def _told(found: list[Comparison]) -> int:
    """The comparison to tell of: the match, else the one in which most rows are equal."""
    if found[-1].matched:
        return len(found) - 1
    return max(range(len(found)), key=lambda place: (found[place].counts.equal, -place))
