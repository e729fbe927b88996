"""The data check: the agent's table against the accepted references. It loads no pydantic."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_agenteval.checks.runner import evidence_of_turn
from pytest_agenteval.compare import Comparison, ComparisonOptions, compare, parse_options
from pytest_agenteval.databases.select_only import outermost_order_by
from pytest_agenteval.errors import ComparisonFailed
from pytest_agenteval.support.column_names import fold_name
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.types import CheckResult, Evidence, Reference

# the words of agents.http
_MISS = re.compile(r"http\.\w+: \S+ found nothing; ")
UNORDERED = "the reference is ordered; add `ordered: true` if order matters"


def check_data(evidence: Evidence, turn: int | None = None) -> CheckResult:
    """Compare the table with each accepted reference; the first that matches decides.

    ``details``: ``comparison`` (of the reference that matched, else of the one it is nearest to) and
    ``reference``, its place from 0. With several references the message says which it was. Raises
    ``ValueError`` when ``evidence`` has no reference, ``ComparisonFailed`` when the comparison breaks.
    """
    seen = evidence if turn is None else evidence_of_turn(evidence, turn, "data check")
    if not seen.references:
        raise ValueError("there is no reference to compare with")
    options = parse_options(seen.comparison)
    found: list[Comparison] = []
    for reference in seen.references:
        found.append(_compare(reference, seen, options))
        if found[-1].matched:
            break
    place = _reported(found)
    reported = found[place]
    why = reported.message
    if len(seen.references) > 1:
        why += f" (reference {place + 1} of {len(seen.references)})"
    word = reported.diagnosis.word if reported.diagnosis is not None else "values_differ"
    return CheckResult(
        "data",
        reported.matched,
        why,
        score=float(reported.matched),
        turn=turn,
        reason="match" if reported.matched else word,
        details={"comparison": reported, "reference": place},
    )


def _compare(reference: Reference, evidence: Evidence, options: ComparisonOptions) -> Comparison:
    ignored = set(map(fold_name, options.ignore_columns))
    if ignored and all(fold_name(name) in ignored for name in reference.table.names):
        raise ComparisonFailed(
            f"ignore_columns leaves out every expected column ({', '.join(reference.table.names)}): "
            "nothing would be compared"
        )
    try:
        comparison = compare(reference.table, evidence.table, options.with_order(reference.order_by))
    except Exception as error:
        raise ComparisonFailed(f"the comparison broke: {type(error).__name__}: {error}") from error
    if evidence.table is None and comparison.diagnosis is not None:
        note = evidence.extraction.note if evidence.extraction is not None else ""
        told = [comparison.diagnosis.sentence, *misses(evidence), *([note] if note else [])]
        return replace(comparison, diagnosis=replace(comparison.diagnosis, sentence="; ".join(told)))
    counts = comparison.counts
    # with other counts the order is not what a reader looks for
    if comparison.matched or options.ordered or counts.expected != counts.actual:
        return comparison
    if not _is_ordered(reference, evidence):
        return comparison
    return replace(comparison, notes=(*comparison.notes, UNORDERED))


def misses(evidence: Evidence) -> list[str]:
    """Return what an agent by HTTP has logged of paths of its configuration that found nothing."""
    logs = evidence.answer.logs if evidence.answer is not None else ""
    return list(dict.fromkeys(line for line in logs.splitlines() if _MISS.match(line)))


def _is_ordered(reference: Reference, evidence: Evidence) -> bool:
    """Return whether the reference has an outermost ORDER BY; parsed only where the words stand in it."""
    if reference.sql is None:
        return False
    dialect = evidence.services.dialect() if evidence.services is not None else None
    return outermost_order_by(reference.sql, dialect) is not None


def suite_options(suite: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a suite with those of a case over them, ``per_column`` merged by column."""
    columns = {**suite.get("per_column", {}), **own.get("per_column", {})}
    return {**suite, **own, **({"per_column": columns} if columns else {})}


def unknown_columns(comparison: Mapping[str, Any], references: Sequence[Sequence[str]]) -> str | None:
    """Return what a case's own options say of columns that no reference has; ``None``: there is nothing.

    ``references`` holds the column names of each. A misspelled name would leave its rule out of use.
    """
    names = list(dict.fromkeys(name for reference in references for name in reference))
    known = set(map(fold_name, names))
    for option in ("per_column", "column_aliases"):
        for name in comparison.get(option, {}):
            if names and fold_name(name) not in known:
                hint = did_you_mean(name, names)
                return f"comparison.{option}: the reference has no column {name!r}{hint}"
    return None


def _reported(found: list[Comparison]) -> int:
    """Return the comparison to report: the match, else one with all columns,
    the one with most rows equal.
    """
    if found[-1].matched:
        return len(found) - 1
    return max(range(len(found)), key=lambda place: _nearness(found[place], place))


def _nearness(comparison: Comparison, place: int) -> tuple[bool, int, int]:
    return not comparison.missing_columns, comparison.counts.equal, -place
