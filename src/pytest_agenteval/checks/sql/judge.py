"""The sql check at work: all of its rules over all executed statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_agenteval.checks.sql import rules
from pytest_agenteval.checks.sql.rules import Call, ColumnRules, ExecutedStatement, examine
from pytest_agenteval.errors import CheckFailed
from pytest_agenteval.support.text import cut_line
from pytest_agenteval.types import Evidence

if TYPE_CHECKING:
    from pytest_agenteval.checks.sql.check import SqlCheck

SHOWN = 100
"""Characters of a statement that a message shows."""

DEFAULT_POLICY = "policies/policy.yml"


def judge_sql(check: SqlCheck, evidence: Evidence) -> tuple[bool, str, list[str]]:
    """Return (passed, why, every fault) of a sql check."""
    calls = _calls(check, evidence)
    if not calls:
        refuse_unread(evidence, "sql")
        return _without_statements(check)
    faults: list[str] = []
    unread: list[str] = []
    pii = _pii(check, evidence) if check.select_star == "forbid_on_pii" else {}
    for call in calls:
        label = f" [statement {call.number}]" if len(calls) > 1 else ""
        if call.error is not None:
            unread.append(f"a statement {call.error}{label}")
        faults += [f"{fault}{label}" for fault in dict.fromkeys(_of_call(check, call, pii))]
    missing = rules.unread(calls, check.required_tables or ())
    faults += [f"required table {table} is not read" for table in missing]
    if check.on_unparsable == "fail":
        faults += unread
    notes = f" (not judged: {'; '.join(unread)})" if unread and check.on_unparsable == "warn" else ""
    if faults:
        return False, f"sql: {'; '.join(faults)}{notes}", faults
    count = f"{len(calls)} statements" if len(calls) > 1 else "1 statement"
    return True, f"sql: {count} ok{notes}", []


def refuse_unread(evidence: Evidence, check: str) -> None:
    """Raise ``CheckFailed`` where no statement is known, and a tool we know nothing of was given SQL.

    It may have run it: to find nothing wrong would mean that nothing was looked at.
    """
    if evidence.statements or not evidence.unread:
        return
    names = list(dict.fromkeys(call.tool for call in evidence.unread))
    tools = f"{', '.join(names)} {'was' if len(names) == 1 else 'were'}"
    shown = cut_line(evidence.unread[0].sql, SHOWN)
    raise CheckFailed(
        f"{check}: nothing was checked: {tools} called with SQL ({shown}), and nothing says whether that "
        "ran; name the tools that run SQL in agenteval_sql_tools"
    )


def touched(check: SqlCheck, evidence: Evidence) -> str | None:
    """Return the first forbidden table or column that a statement touched; what cannot be read counts."""
    for call in examine(evidence.statements, *_surroundings(check, evidence)):
        if call.error is not None and check.on_unparsable == "fail":
            return f"a statement {call.error}"
        for entry in call.statements:
            for fault in _forbidden(check, entry):
                return fault
    return None


def _surroundings(check: SqlCheck, evidence: Evidence) -> tuple[Mapping[str, Sequence[str]], str | None]:
    if evidence.services is None:
        return {}, check.dialect
    return evidence.services.schema(), check.dialect or evidence.services.dialect()


def _calls(check: SqlCheck, evidence: Evidence) -> list[Call]:
    calls = examine(evidence.statements, *_surroundings(check, evidence))
    return calls[-1:] if check.scope == "last" else calls


def _without_statements(check: SqlCheck) -> tuple[bool, str, list[str]]:
    needed = [*(check.required_tables or ()), *(check.required_filters or {})]
    if not needed:
        return True, "sql: no statement was executed", []
    fault = f"no statement was executed, required: {', '.join(dict.fromkeys(needed))}"
    return False, f"sql: {fault}", [fault]


def _forbidden(check: SqlCheck, entry: ExecutedStatement) -> Iterator[str]:
    if check.allowed_tables:
        yield from rules.allowed_tables(entry, check.allowed_tables)
    if check.forbidden_tables:
        yield from rules.forbidden_tables(entry, check.forbidden_tables)
    if check.allowed_columns:
        yield from rules.allowed_columns(entry, check.allowed_columns)
    if check.forbidden_columns:
        yield from rules.forbidden_columns(entry, check.forbidden_columns)


def _of_call(check: SqlCheck, call: Call, pii: ColumnRules) -> Iterator[str]:
    if check.single_statement:
        yield from rules.single_statement(call)
    for entry in call.statements:
        if check.read_only:
            yield from rules.read_only(entry)
        yield from _forbidden(check, entry)
        yield from _shape(check, entry, pii)
    if check.forbidden_columns:
        yield from rules.returned_columns(call, check.forbidden_columns)
    if check.max_rows is not None:
        yield from rules.max_rows(call, check.max_rows)


def _shape(check: SqlCheck, entry: ExecutedStatement, pii: ColumnRules) -> Iterator[str]:
    if check.select_star == "forbid":
        yield from rules.stars(entry)
    if pii:
        yield from rules.stars_on(entry, pii)
    if check.required_filters:
        yield from rules.required_filters(entry, check.required_filters)
    if check.time_filter:
        yield from rules.time_filter(entry, check.time_filter)
    if check.allowed_joins is not None:
        yield from rules.allowed_joins(entry, check.allowed_joins)
    if check.forbidden_functions:
        yield from rules.forbidden_functions(entry, check.forbidden_functions)
    if check.require_limit:
        yield from rules.require_limit(entry)
    if check.max_limit is not None:
        yield from rules.max_limit(entry, check.max_limit)


def _pii(check: SqlCheck, evidence: Evidence) -> ColumnRules:
    """Return the check's forbidden columns and the policy's PII columns."""
    columns: dict[str, tuple[str, ...]] = dict(check.forbidden_columns or {})
    if evidence.services is not None:
        from pytest_agenteval.governance.files import policy_at

        policy = policy_at(evidence.services.root, DEFAULT_POLICY)
        for table, names in policy.pii_columns.items() if policy is not None else ():
            columns[table] = (*columns.get(table, ()), *names)
    if not columns:
        raise CheckFailed(
            "sql: select_star: forbid_on_pii needs to know the PII columns: give forbidden_columns, "
            f"or pii.columns in {DEFAULT_POLICY}"
        )
    return columns
