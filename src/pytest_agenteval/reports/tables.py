"""The tables of a report as data: terminal and markdown lay out the same sheets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_agenteval.reports.text import cost_text, percent_text, rate_text, time_text, tokens_text
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.rows import CaseRow
from pytest_agenteval.results.document.totals import known_cost, known_tokens, mean_per_attempt
from pytest_agenteval.support.text import counted

STATUS = {
    "passed": "passed",
    "failed": "FAILED",
    "error": "ERROR",
    "review": "review",
    "not_run": "not run",
    "running": "running",
    "xfailed": "xfail",
    "quarantined": "quarant.",
}
STYLE = {
    "passed": "green",
    "failed": "red",
    "error": "red",
    "review": "yellow",
    "not_run": "yellow",
    "running": "yellow",
}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: numbers stand right; ``flexible`` ones shrink first when there is no room, and what
    ``names`` something loses its middle then, since names that begin alike differ at their ends.
    """

    name: str
    right: bool = False
    flexible: bool = False
    names: bool = False


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table with a title; ``styles`` has one style name per row ('' is plain)."""

    title: str
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[str]]
    styles: Sequence[str]
    note: str = ""


def status_of(case: CaseRow) -> str:
    """Return ``passed``, ``FAILED``, ``ERROR``, ``review``, ``not run``, ``xfail``."""
    return STATUS[case.status]


def style_of(case: CaseRow) -> str:
    """Return the colour of a case's line."""
    return "yellow" if not case.counts_in_rates else STYLE[case.verdict]


def results_sheet(
    document: Document, cases: Sequence[CaseRow], hidden: int = 0, *, why: bool = False
) -> ReportTable:
    """Test, Model, Status, Message, Tokens, Cost, Time, Tools; one row per case, then the totals.

    ``why``: messages with what the comparison found, where there is room for them.
    """
    columns = (
        TableColumn("Test", flexible=True, names=True),
        TableColumn("Model", flexible=True),
        TableColumn("Status"),
        TableColumn("Message", flexible=True),
        TableColumn("Tokens", right=True),
        TableColumn("Cost", right=True),
        TableColumn("Time", right=True),
        TableColumn("Tools", right=True),
    )
    rows = [_case_cells(case, why) for case in cases]
    summary = document.header["summary"]
    total = [
        "Total",
        "",
        "",
        passed_text(document.header["cases"]),
        tokens_text(known_tokens(summary)),
        cost_text(known_cost(summary)),
        time_text(summary["total_duration_ms"]),
        str(summary["total_tool_calls"]),
    ]
    note = f"{hidden} more passed (all with -v)" if hidden else ""
    return ReportTable("Results", columns, [*rows, total], [*map(style_of, cases), "bold"], note)


def _case_cells(case: CaseRow, why: bool) -> list[str]:
    tokens = [row.tokens for row in case.rows if row.tokens is not None]
    costs = [row.cost for row in case.rows if row.cost is not None]
    return [
        case.key[1],
        case.key[2],
        status_of(case),
        case.why if why else case.message,
        tokens_text(sum(tokens) if tokens else None),
        cost_text(sum(costs) if costs else None),
        time_text(sum(row.duration_ms for row in case.rows)),
        str(sum(row.tool_call_count for row in case.rows)),
    ]


def passed_text(cases: dict[str, float]) -> str:
    """Return ``9 of 12 passed``: of those that pass_rate counts."""
    judged = cases["passed"] + cases["failed"] + cases["errors"]
    return f"{cases['passed']} of {judged} passed"


def model_sheet(document: Document) -> ReportTable:
    """Return the table Performance by Model, ranked."""
    columns = (
        TableColumn("Model", flexible=True),
        TableColumn("Pass Rate", right=True),
        TableColumn("Passed", right=True),
        TableColumn("Tokens", right=True),
        TableColumn("Cost", right=True),
        TableColumn("Avg Time", right=True),
        TableColumn("Avg Tools", right=True),
    )
    rows, styles = [], []
    for entry in document.header["by_model"]:
        own = entry["cases"]
        rows.append(
            [
                entry["model"],
                rate_text(own["pass_rate"]),
                f"{own['passed']}/{own['passed'] + own['failed'] + own['errors']}",
                tokens_text(known_tokens(entry)),
                cost_text(known_cost(entry)) + ("+" if entry["unpriced"] and entry["total_cost"] else ""),
                time_text(mean_per_attempt(entry, "total_duration_ms")),
                f"{mean_per_attempt(entry, 'total_tool_calls'):.1f}",
            ]
        )
        styles.append("green" if own["pass_rate"] == 100 else "")
    return ReportTable("Performance by Model", columns, rows, styles)


def attempts_sheet(document: Document) -> ReportTable:
    """Return success %, pass@k and pass^k by model, with the 95 % interval of the success rate.

    ``of`` is the number of cases with k judged attempts, which the two are means over; ``Errors`` are
    attempts without a verdict, which none of the figures counts.
    """
    k = document.header["pass_metrics"]["k"]
    columns = (
        TableColumn("Model", flexible=True),
        TableColumn("Success %", right=True),
        TableColumn("95 %", right=True),
        TableColumn(f"pass@{k}", right=True),
        TableColumn(f"pass^{k}", right=True),
        TableColumn("of", right=True),
        TableColumn("Errors", right=True),
    )
    rows = []
    for entry in document.header["by_model"]:
        ends = entry["interval"]
        whole = entry if entry["k"] == k else {**entry, "pass_at_k": None, "pass_hat_k": None, "k_cases": 0}
        rows.append(
            [
                entry["model"],
                percent_text(entry["pass_at_1"]),
                f"{ends[0]:.0f} to {ends[1]:.0f}" if ends else "-",
                percent_text(whole["pass_at_k"]),
                percent_text(whole["pass_hat_k"]),
                counted(whole["k_cases"], "case") if "k_cases" in whole else "-",
                str(entry["errors"]),
            ]
        )
    return ReportTable(f"Attempts (k = {k})", columns, rows, [""] * len(rows))


def models_of(document: Document) -> list[str]:
    """Return the models of a run, in the order given."""
    return list(dict.fromkeys(row.model for row in document.rows))


def matrix_sheet(
    document: Document, only: Sequence[CaseRow] | None = None, models: Sequence[str] | None = None
) -> ReportTable:
    """Pass / Fail by Test and Model: verdict and passed attempts of all in the cells.

    ``only`` are the cases to show, ``models`` the columns; by default all.
    """
    cases = document.cases
    models = models_of(document) if models is None else models
    shown = dict.fromkeys(case.key[:2] for case in (cases if only is None else only))
    found = {case.key: case for case in cases}
    rows, styles = [], []
    for path, name in shown:
        own = [found.get((path, name, model)) for model in models]
        rows.append([name, *(cell_text(case) for case in own)])
        passed = all(case is None or case.verdict == "passed" for case in own)
        styles.append("green" if passed else "")
    columns = [
        TableColumn("Test", flexible=True, names=True),
        *(TableColumn(model, flexible=True) for model in models),
    ]
    return ReportTable("Pass / Fail by Test and Model", columns, rows, styles)


def cell_text(case: CaseRow | None) -> str:
    """Return ``✓ 3/3``, ``✗ 1/3``, ``x 0/1`` (expected to fail), ``E 2/2``, ``-``."""
    if case is None:
        return "-"
    marks = {"passed": "✓", "failed": "✗", "error": "E", "review": "?", "not_run": "-", "running": "…"}
    mark = (marks | {"xfailed": "x"}).get(case.status, "q")
    return f"{mark} {case.decision.passed}/{max(case.k, len(case.rows))}"


def flaky_cases(document: Document) -> list[CaseRow]:
    """Return the cases some of whose attempts passed and some failed."""
    return [case for case in document.cases if case.flaky]


def marks_of(case: CaseRow) -> str:
    """Return the attempts in order: ``✓ ✗ ✓``; E is an error."""
    marks = {"passed": "✓", "failed": "✗", "error": "E"}
    return " ".join(marks.get(row.verdict, "-") for row in case.rows)
