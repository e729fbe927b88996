"""Verdicts that rescoring changed, each with the rule that changed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.results.document.rows import Row
from pytest_agenteval.results.journal.records import table_hash
from pytest_agenteval.types import Attempt

RULES = {
    "case": "the case is another one now",
    "reference": "the reference gives other rows",
    "leak": "what counts as reading the answer key",
    "extraction": "which table is taken from the answer",
    "reading": "how the values of the answer are read",
    "comparison": "when two tables are equal",
    "verdict": "how checks make a verdict",
}
"""The rules a verdict follows, in the order in which they are looked at, and what each decides."""


@dataclass(frozen=True, slots=True)
class Flip:
    """An attempt whose verdict is another one now: ``rule`` is a key of ``RULES`` or ``check TYPE``."""

    row: Row
    verdict: str
    rule: str
    message: str

    @property
    def text(self) -> str:
        """``failed -> passed by the rule comparison (when two tables are equal): match``."""
        what = RULES.get(self.rule, "what this check accepts")
        return f"{self.row.verdict} -> {self.verdict} by the rule {self.rule} ({what}): {self.message}"


def flip_of(row: Row, entry: Mapping[str, Any], attempt: Attempt, case_hash: str) -> Flip | None:
    """Return what changed the verdict of a saved attempt that was judged again (``None``: it is the same).

    ``case_hash`` is that of the case as it is now. The first rule whose outcome differs is named: what
    comes after it works on other input.
    """
    if attempt.verdict == row.verdict:
        return None
    return Flip(row, attempt.verdict, _rule(row, entry, attempt, case_hash), attempt.cause)


def _rule(row: Row, entry: Mapping[str, Any], attempt: Attempt, case_hash: str) -> str:
    if row.case_hash and row.case_hash != case_hash:
        return "case"
    hashes = [table_hash(table) for table in attempt.references]
    if row.reference_hashes and hashes and list(row.reference_hashes) != hashes:
        return "reference"
    if (entry.get("leak") is None) != (attempt.leak is None):
        return "leak"
    details = entry.get("details") or {}
    before, now = _taken(entry.get("extraction")), _taken_now(attempt)
    if before is not None and before != now:
        return "extraction"
    table = attempt.extraction.table if attempt.extraction else None
    held = (details.get("actual_table") or {}).get("sha256")
    if held and table is not None and table_hash(table) != held:
        return "reading"
    return _check_rule(entry, attempt)


def _taken(extraction: Mapping[str, Any] | None) -> tuple[Any, Any] | None:
    return None if extraction is None else (extraction["source"], extraction["query"])


def _taken_now(attempt: Attempt) -> tuple[Any, Any] | None:
    found = attempt.extraction
    return None if found is None else (found.source, found.query)


def _check_rule(entry: Mapping[str, Any], attempt: Attempt) -> str:
    """Return the first check that says something else than it did; the comparison is the check ``data``."""
    old = {_key(record): record["passed"] for record in entry.get("checks") or ()}
    new = {(check.type, check.name, check.turn): check.passed for check in attempt.checks}
    differing = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    if not differing:
        return "verdict"
    kinds = [key[0] for key in differing]
    return "comparison" if "data" in kinds else f"check {kinds[0]}"


def _key(record: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return record["type"], record.get("name"), record.get("turn")
