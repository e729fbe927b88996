"""A document as markdown: for a CI step summary, a file, or a pull-request comment."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from pytest_agenteval.reports.findings import cause_lines
from pytest_agenteval.reports.tables import (
    ReportTable,
    attempts_sheet,
    flaky_cases,
    marks_of,
    matrix_sheet,
    model_sheet,
    results_sheet,
)
from pytest_agenteval.reports.terminal import case_name, last_line
from pytest_agenteval.reports.text import markdown, unmentioned
from pytest_agenteval.results.analysis.diff import CaseChange, RunDiff
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.support.text import counted, cut, escape_text, fit, one_line

MANY = 100
"""Rows of a table in markdown; GitHub cuts a step summary at 1 MiB."""

FAILURES = 20
"""Failures shown with their difference in a summary."""

LONGEST = 4_000
"""Characters of one of them."""

COMMENT_ROWS = 20
"""Cases named one by one in a pull-request comment."""


def markdown_summary(document: Document, title: str = "Agent evaluation") -> str:
    """Return the whole report as GitHub-flavoured markdown."""
    cases = document.cases
    shown = cases
    if len(cases) > MANY:
        shown = [case for case in cases if case.verdict != "passed"][:MANY]
    sections = [results_sheet(document, shown, why=True)]
    if len(document.header["by_model"]) > 1:
        only = None if len(cases) <= MANY else shown
        sections = [model_sheet(document), matrix_sheet(document, only), *sections]
    if any(len(case.rows) > 1 for case in cases):
        sections.append(attempts_sheet(document))
    lines = [f"## {markdown(title)}", "", markdown(last_line(document).text), ""]
    lines += [line for gate in document.run.get("gates") or () for line in _gate(gate)]
    for sheet in sections:
        lines += [f"### {markdown(sheet.title)}", "", *_table(sheet), ""]
    if len(shown) < len(cases):
        lines += [f"{counted(len(cases) - len(shown), 'more case')} not listed.", ""]
    several = len(document.header["by_model"]) > 1
    lines += list(_scorecard(document))
    lines += [f"- {markdown(line.strip())}" for line in cause_lines(document)]
    lines += list(_failures(document))
    lines += [
        f"- flaky: {markdown(case_name(case, several))} {marks_of(case)}"
        for case in flaky_cases(document)[:MANY]
    ]
    return "\n".join(lines).rstrip() + "\n"


def _gate(gate: dict[str, object]) -> Iterator[str]:
    if "text" in gate:
        yield f"- {'holds' if gate.get('holds') else '**does not hold**'}: {markdown(str(gate['text']))}"
        yield ""


def _scorecard(document: Document) -> Iterator[str]:
    """Yield the governance scorecard of the project, line by line."""
    lines = [line for line in document.run.get("scorecard") or () if isinstance(line, dict)]
    if not lines:
        return
    yield from ("### Governance", "", "| | | |", "|---|---|---|")
    for line in lines:
        cells = (line.get("name"), "yes" if line.get("yes") else "**no**", line.get("detail"))
        yield f"| {markdown(str(cells[0]))} | {cells[1]} | {markdown(str(cells[2]))} |"
    yield ""


def _failures(document: Document) -> Iterator[str]:
    """Yield what differs in the first failed and errored cases, folded up."""
    several = len(document.header["by_model"]) > 1
    places = {id(row): number for number, row in enumerate(document.rows)}
    wrong = [case for case in document.cases if case.status in ("failed", "error")]
    for case in wrong[:FAILURES]:
        entry = document.entry(places[id(case.deciding)])
        details = entry.get("details") or {}
        text = escape_text(str(details.get("comparison") or entry.get("error") or entry.get("message") or ""))
        text = cut(text, LONGEST + len("\n..."), "\n...")
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        yield f"<details><summary>{unmentioned(html.escape(one_line(case_name(case, several))))}</summary>"
        yield from ("", f"{fence}text", text, fence, "", "</details>", "")


def _table(sheet: ReportTable) -> list[str]:
    head = "| " + " | ".join(markdown(column.name) for column in sheet.columns) + " |"
    rule = "|" + "|".join("--:" if column.right else "--" for column in sheet.columns) + "|"
    rows = ["| " + " | ".join(markdown(cell) for cell in row) + " |" for row in sheet.rows]
    return [head, rule, *rows]


def diff_sentence(diff: RunDiff) -> str:
    """Return ``2 regressions, 1 fix, 40 unchanged; p = 0.625 over 43 cases, could be chance; ...``."""
    if not diff.common:
        apart = f"{len(diff.changes) - len(diff.of('removed'))} added, {len(diff.of('removed'))} removed"
        return f"no case in common, nothing was compared: {apart}"
    counts = [
        counted(len(diff.of("regression")), "regression"),
        counted(len(diff.of("fix")), "fix", "fixes"),
        f"{len(diff.of('added'))} added",
        f"{len(diff.of('removed'))} removed",
        f"{len(diff.of('unchanged'))} unchanged",
    ]
    if diff.of("xfailed"):
        counts.append(counted(len(diff.of("xfailed")), "expected failure"))
    if diff.of("other"):
        counts.append(f"{len(diff.of('other'))} with or without a verdict in one of the runs")
    return ", ".join(counts)


def chance_sentence(diff: RunDiff) -> str:
    """Return what the paired test says, in words ('' where no case judged in both runs changed)."""
    if diff.p_value is None or not diff.differing:
        return ""
    shown = f"p = {diff.p_value:.3f}" if diff.p_value >= 0.001 else "p < 0.001"
    over = f"paired test over {counted(diff.paired, 'case')}: {shown}"
    if diff.p_value < 0.05:
        return f"{over}, {'worse' if diff.worse else 'better'} beyond chance"
    more = f"; about {counted(diff.more_cases, 'more case')} would settle it" if diff.more_cases else ""
    return f"{over}, could be chance{more}"


def markdown_comment(document: Document, diff: RunDiff, title: str = "Agent evaluation") -> str:
    """Return a comment for a pull request, against a baseline: regressions first, short enough to be read."""
    lines = [f"### {markdown(title)}", "", markdown(last_line(document).text), ""]
    lines += [markdown(f"Against the baseline: {diff_sentence(diff)}."), ""]
    if chance_sentence(diff):
        lines += [markdown(chance_sentence(diff) + "."), ""]
    if diff.context_changed:
        lines += ["The agent's context files changed between the runs.", ""]
    several = len(document.header["by_model"]) > 1
    for heading, changes in comment_sections(diff):
        lines += _changes(heading, changes, several)
    return "\n".join(lines).rstrip() + "\n"


def comment_sections(diff: RunDiff) -> list[tuple[str, Sequence[CaseChange]]]:
    """Return the changes worth naming, most urgent first."""
    failing = [entry for entry in diff.of("added") if entry.case.verdict in ("failed", "error")]
    unjudged = [entry for entry in diff.of("other") if entry.case.verdict != "passed"]
    still = [entry for entry in diff.of("unchanged") if entry.case.verdict in ("failed", "error")]
    return [
        ("Regressions", diff.of("regression")),
        ("New and failing", failing),
        ("No verdict any more, or failing after none", unjudged),
        ("Fixed", diff.of("fix")),
        ("Still failing", still),
        ("Expected failures", diff.of("xfailed")),
        ("Removed", diff.of("removed")),
    ]


def _changes(heading: str, changes: Sequence[CaseChange], several: bool) -> Iterator[str]:
    if not changes:
        return
    yield f"**{heading} ({len(changes)})**"
    yield ""
    for entry in changes[:COMMENT_ROWS]:
        notes = f" ({', '.join(entry.notes)})" if entry.notes else ""
        explained = entry.change not in ("fix", "removed")
        message = f": {markdown(fit(one_line(entry.case.why), 200))}" if explained else ""
        yield f"- {markdown(case_name(entry.case, several))}{message}{notes}"
    if len(changes) > COMMENT_ROWS:
        yield f"- and {len(changes) - COMMENT_ROWS} more"
    yield ""
