"""A document as lines for a terminal: readable at 80 columns and without colour."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil
from typing import Any

from pytest_agenteval.reports.findings import cause_lines
from pytest_agenteval.reports.tables import (
    ReportTable,
    attempts_sheet,
    flaky_cases,
    marks_of,
    matrix_sheet,
    model_sheet,
    models_of,
    results_sheet,
)
from pytest_agenteval.reports.text import cost_text, rate_text, time_text, tokens_text
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.rows import CaseRow
from pytest_agenteval.results.document.totals import known_cost, known_tokens
from pytest_agenteval.support.text import counted, fit, fit_name, one_line, pad, text_width

VIEWER = ("starlette", "uvicorn")
"""What ``agenteval view`` needs beyond a plain install."""

MANY = 50
"""Cases up to which the table shows all of them; beyond, those that passed only with -v."""

WIDE = 110
"""Columns from which the model has a column of its own; below, each model has a heading."""

NAMED = 10
"""Errors, flaky cases and others named one by one; the rest are counted."""


@dataclass(frozen=True, slots=True)
class StyledLine:
    """One line and the name of its style: '', bold, green, red, yellow, title."""

    text: str
    style: str = ""


def terminal_lines(
    document: Document,
    *,
    width: int = 80,
    verbosity: int = 0,
    results: str | None = None,
    next_steps: Sequence[str] | None = None,
) -> list[StyledLine]:
    """Return the end-of-run report. ``results`` is the shown path of the results file.

    ``next_steps`` are commands to go on with; by default those that the document suggests.

    A negative ``verbosity`` gives the last line only, below the gates that do not hold; a positive one
    shows every case of a large run.
    """
    last = last_line(document)
    if verbosity < 0:
        # the reason of an exit code is worth a line of its own
        return [*(line for line in _gates(document.header["run"]) if line.style == "red"), last]
    steps = suggested_steps(document) if next_steps is None else next_steps
    return [
        *_results(document, width, verbosity),
        *_models(document, width, verbosity),
        *_attempts(document, width),
        *_notes(document, width),
        *([StyledLine(f"results: {one_line(results)}")] if results else []),
        *(line for step in steps for line in _next(one_line(step), width)),
        last,
    ]


def _next(step: str, width: int) -> list[StyledLine]:
    """Return ``next: COMMAND (what it does)``; a long command stands on a line of its own,
    to be copied whole.
    """
    if text_width(step) + len("next: ") <= width or not step.endswith(")"):
        return [StyledLine(f"next: {step}")]
    command, _, what = step.rpartition(" (")
    return [StyledLine(f"next: {what.removesuffix(')')}:"), StyledLine(f"  {command}")]


def suggested_steps(document: Document) -> list[str]:
    """Return what to do next, as commands: rerun, resume, look."""
    cases = document.header["cases"]
    # what the run was given chooses its cases and models: a bare pytest would ask others
    given = document.header["run"].get("command", ())
    again = shlex.join(["pytest", *(part for part in given if part not in ("--agent-resume", "--lf"))])
    steps: list[str] = []
    if document.run.get("running"):
        return steps
    if cases["not_run"] or any(row.stage in ("agent", "timeout", "worker") for row in document.rows):
        steps.append(f"{again} --agent-resume (asks again only what has no answer)")
    if cases["failed"] and not document.run.get("gates"):  # what a gate counts is not a failure to pytest
        steps.append(f"{again} --lf (asks the failed cases again)")
    if (cases["failed"] or cases["review"]) and all(map(find_spec, VIEWER)):
        steps.append("agenteval view (what differs, cell by cell)")
    return steps


def last_line(document: Document) -> StyledLine:
    """Return ``cases: 9 passed, 2 failed, 1 error · 75.0 % · 31,000 tokens · $0.12 · 34.1s``."""
    cases, summary = document.header["cases"], document.header["summary"]
    live = bool(document.run.get("running"))
    words = (
        ("passed", "passed"),
        ("failed", "failed"),
        ("errors", "errors" if cases["errors"] != 1 else "error"),
        ("review", "to review"),
        ("running", "running"),
        ("not_run", "waiting" if live else "not run"),
        ("skipped", "skipped"),
        ("xfailed", "xfailed"),
        ("quarantined", f"quarantined ({cases.get('quarantined_passed', 0)} passed)"),
    )
    counts = ", ".join(f"{cases[key]} {word}" for key, word in words if cases.get(key)) or "none"
    done = cases["total"] - cases["not_run"] - cases.get("running", 0)
    so_far = f"the run goes on, {done} of {cases['total']} cases so far"
    figures = [f"{so_far if live else 'cases'}: {counts}"]
    if cases["pass_rate"] is not None:
        figures.append(rate_text(cases["pass_rate"]))
    if known_tokens(summary) is not None:
        figures.append(f"{tokens_text(known_tokens(summary))} tokens")
    if known_cost(summary) is not None:
        figures.append(cost_text(known_cost(summary)))
    figures.append(time_text(summary["total_duration_ms"]))
    return StyledLine(" · ".join(figures), "yellow" if live else _colour(cases))


def _colour(cases: Mapping[str, Any]) -> str:
    if cases["failed"] or cases["errors"] or cases["not_run"]:
        return "red"
    return "green" if cases["passed"] and not cases["review"] else "yellow"


def _results(document: Document, width: int, verbosity: int) -> Iterator[StyledLine]:
    cases = document.cases
    shown = cases if verbosity > 0 or len(cases) <= MANY else [c for c in cases if c.verdict != "passed"]
    sheet = results_sheet(document, shown, len(cases) - len(shown))
    yield StyledLine(sheet.title, "title")
    if width >= WIDE:
        yield from layout(sheet, width)
    else:
        yield from _grouped(sheet, width)
    if sheet.note:
        yield StyledLine(sheet.note)


def _grouped(sheet: ReportTable, width: int) -> Iterator[StyledLine]:
    """Yield the table without its Model column; each model heads its own rows."""
    narrow = ReportTable(
        sheet.title,
        [column for column in sheet.columns if column.name != "Model"],
        [[cell for n, cell in enumerate(row) if n != 1] for row in sheet.rows],
        sheet.styles,
    )
    lines = list(layout(narrow, width))
    yield lines[0]
    previous = None
    for row, line in zip(sheet.rows, lines[1:], strict=True):
        if row[1] and row[1] != previous:
            yield StyledLine(fit(f"Model {one_line(row[1])}", width), "bold")
            previous = row[1]
        yield line


def _models(document: Document, width: int, verbosity: int) -> Iterator[StyledLine]:
    if len(document.header["by_model"]) < 2:
        return
    sheet = model_sheet(document)
    yield StyledLine(sheet.title, "title")
    yield from layout(sheet, width)
    cases = document.cases
    only = None if verbosity > 0 or len(cases) <= MANY else [c for c in cases if c.verdict != "passed"]
    for number, models in enumerate(_blocks(models_of(document), width)):
        matrix = matrix_sheet(document, only, models)
        yield StyledLine(matrix.title if number == 0 else "", "title" if number == 0 else "")
        yield from layout(matrix, width)


def _blocks(models: Sequence[str], width: int) -> list[Sequence[str]]:
    """Return the models in groups whose names fit beside each other and a test's name."""
    each = min(max(map(text_width, models)), 24) + 2
    room = max(1, (width - 20) // each)
    return [models[start : start + room] for start in range(0, len(models), room)]


def _attempts(document: Document, width: int) -> Iterator[StyledLine]:
    if all(len(case.rows) < 2 for case in document.cases):
        return
    sheet = attempts_sheet(document)
    yield StyledLine(sheet.title, "title")
    yield from layout(sheet, width)
    several = len(document.header["by_model"]) > 1
    flaky = flaky_cases(document)
    for case in flaky[:NAMED]:
        yield StyledLine(f"! flaky {fit(case_name(case, several), width - 40)}  {marks_of(case)}", "yellow")
    yield from _rest(len(flaky), "flaky")


def case_name(case: CaseRow, with_model: bool) -> str:
    """Return the case as lines name it: ``total_revenue`` or ``total_revenue [openai:gpt-4.1]``."""
    name = f"{case.key[1]} [{case.key[2]}]" if with_model and case.key[2] else case.key[1]
    return one_line(name)


def _rest(number: int, word: str) -> Iterator[StyledLine]:
    if number > NAMED:
        yield StyledLine(f"  and {number - NAMED} more {word}")


def _notes(document: Document, width: int) -> Iterator[StyledLine]:
    """Yield errors, what was not run, unpriced models, durations, gates: each named."""
    several = len(document.header["by_model"]) > 1
    cases = document.cases
    unjudged = [("error", "E", "red"), ("not_run", "- not run", "yellow")]
    if document.run.get("running"):
        unjudged[1:] = [("running", "… running", "yellow")]
    for verdict, mark, style in unjudged:
        found = [case for case in cases if case.verdict == verdict]
        for case in found[:NAMED]:
            yield StyledLine(fit(_reason(case, mark, several), width), style)
        yield from _rest(len(found), {"error": "errors", "not_run": "not run"}.get(verdict, verdict))
    for entry in document.header["by_model"]:
        if entry.get("unpriced"):
            number = counted(entry["unpriced"], "attempt")
            yield StyledLine(
                fit(f"unpriced: {one_line(entry['model'])} ({number} without a price)", width), "yellow"
            )
    durations = sorted(row.duration_ms for row in document.rows if row.verdict not in ("not_run", "running"))
    if len(durations) > 1:
        p50, p95 = percentile(durations, 50), percentile(durations, 95)
        yield StyledLine(f"duration: p50 {time_text(p50)}, p95 {time_text(p95)}")
    yield from (StyledLine(fit(line, width), "yellow") for line in cause_lines(document))
    yield from _run_notes(document.run)


def _reason(case: CaseRow, mark: str, several: bool) -> str:
    row = case.deciding
    stage = f" ({row.stage})" if row.stage else ""
    return f"{mark} {case_name(case, several)}{stage}: {one_line(row.message)}"


def _run_notes(run: Mapping[str, Any]) -> Iterator[StyledLine]:
    if run.get("overrides"):
        yield StyledLine(f"{counted(run['overrides'], 'verdict')} overridden by a person", "yellow")
    if run.get("torn_lines"):
        lines = counted(run["torn_lines"], "journal line")
        yield StyledLine(f"{lines} cut off where a process was killed", "yellow")
    yield from _gates(run)
    yield from _scorecard(run)


def _gates(run: Mapping[str, Any]) -> Iterator[StyledLine]:
    """Yield each gate with what it found."""
    for gate in run.get("gates") or ():
        if isinstance(gate, Mapping) and "text" in gate:
            holds = bool(gate.get("holds"))
            word = "holds" if holds else "fails"
            yield StyledLine(f"gate {word}: {one_line(str(gate['text']))}", "green" if holds else "red")


def _scorecard(run: Mapping[str, Any]) -> Iterator[StyledLine]:
    """Yield the governance scorecard in one line: how many of its lines hold, and which do not."""
    lines = [line for line in run.get("scorecard") or () if isinstance(line, Mapping)]
    missing = [one_line(str(line.get("name"))) for line in lines if not line.get("yes")]
    if lines:
        rest = f" (no: {', '.join(missing)})" if missing else ""
        yield StyledLine(f"governance: {len(lines) - len(missing)} of {len(lines)}{rest}")


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile (0..100) of sorted values."""
    return ordered[max(0, ceil(share / 100 * len(ordered)) - 1)]


def layout(sheet: ReportTable, width: int) -> Iterator[StyledLine]:
    """Yield a sheet as lines of at most ``width`` columns: a heading, then its rows."""
    cells = [[one_line(cell) for cell in row] for row in sheet.rows]
    heads = [one_line(column.name) for column in sheet.columns]
    widths = _widths(sheet, heads, cells, width)
    yield StyledLine(_row(heads, sheet, widths), "bold")
    for row, style in zip(cells, sheet.styles, strict=True):
        yield StyledLine(_row(row, sheet, widths), style)


def _row(cells: Sequence[str], sheet: ReportTable, widths: Sequence[int]) -> str:
    parts = (
        pad((fit_name if column.names else fit)(cell, size), size, column.right)
        for cell, size, column in zip(cells, widths, sheet.columns, strict=True)
    )
    return "  ".join(parts).rstrip()


def _widths(sheet: ReportTable, heads: list[str], cells: list[list[str]], width: int) -> list[int]:
    """Return natural widths; flexible columns share what is left, the widest give up first."""
    natural = [max(map(text_width, column)) for column in zip(heads, *cells, strict=True)]
    flexible = [n for n, column in enumerate(sheet.columns) if column.flexible]
    over = sum(natural) + 2 * (len(natural) - 1) - width
    while over > 0 and flexible:
        widest = max(flexible, key=lambda n: natural[n])
        if natural[widest] <= 6:
            break
        natural[widest] -= 1
        over -= 1
    return natural
