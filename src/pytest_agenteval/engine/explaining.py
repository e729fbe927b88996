"""From a judged attempt to what is found out about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.types import Attempt, Evidence, Findings

if TYPE_CHECKING:
    from pytest_agenteval.engine.case_runner import CaseRunner

_THE_REFERENCE: Mapping[str, Any] = {
    "checked": True,
    "found": False,
    "assumption": "strict",
    "kind": None,
    "tables": {},
    "reference": None,
    "answer": None,
    "trials": 0,
    "why_not": None,
}
"""Luck of an agent that wrote the reference itself."""


def explained(runner: CaseRunner, attempt: Attempt, evidence: Evidence) -> Attempt:
    """Return the attempt with its findings: of passed ones luck, of failed ones causes.

    Only an answer of one turn with a table that was compared with a reference's is looked at. With
    ``--agent-luck=fail`` an attempt that passed by luck has failed.
    """
    settings = runner.context.settings
    comparison, extraction = attempt.comparison, attempt.extraction
    if comparison is None or attempt.reference_sql is None or len(runner.case.turns) > 1:
        return attempt
    if extraction is None or extraction.table is None or attempt.verdict not in ("passed", "failed"):
        return attempt
    if attempt.verdict == "passed" and (settings.luck == "off" or not evidence.statements):
        return attempt
    if attempt.verdict == "passed" and any(_same(s.sql, attempt.reference_sql) for s in evidence.statements):
        return replace(attempt, findings=Findings(luck=_THE_REFERENCE))
    if attempt.verdict == "failed" and (comparison.matched or not (evidence.statements or settings.cause)):
        return attempt
    from pytest_agenteval.compare import parse_options
    from pytest_agenteval.databases import outermost_order_by
    from pytest_agenteval.trust.explain import Question

    try:
        database = runner.database
    except DatabaseError as error:
        if attempt.verdict == "failed":
            return attempt
        why = "references are frozen" if attempt.frozen else str(error)
        not_checked = {**_THE_REFERENCE, "checked": False, "why_not": why}
        return replace(attempt, findings=Findings(luck=not_checked))
    options = parse_options(evidence.comparison)
    if options.ordered:
        options = options.with_order(outermost_order_by(attempt.reference_sql, database.dialect) or ())
    question = Question(
        reference=attempt.reference_sql,
        statements=[(statement.sql, statement.table) for statement in evidence.statements],
        answer=extraction.table,
        passed=attempt.verdict == "passed",
        database=database,
        options=options,
    )
    findings = runner.run.explainer.explain(question)
    if findings.lucky and settings.luck == "fail":
        message = f"right by luck: the SQL differs from the reference on other data; {attempt.message}"
        return replace(attempt, verdict="failed", reason="luck", message=message, findings=findings)
    return replace(attempt, findings=findings)


def _same(sql: str, reference: str) -> bool:
    """Whether a statement is the reference, blanks aside; no parser is loaded to say so."""
    return " ".join(sql.split()).rstrip("; ") == " ".join(reference.split()).rstrip("; ")
