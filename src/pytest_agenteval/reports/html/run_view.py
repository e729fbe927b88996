"""One run to show: its cards, models, matrix and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pytest_agenteval.reports.html.filters import (
    CaseLine,
    Page,
    PageQuery,
    case_lines,
    chosen,
    counts_of,
    paged,
)
from pytest_agenteval.reports.tables import model_sheet
from pytest_agenteval.reports.text import cost_text, percent_text, rate_text, time_text, tokens_text
from pytest_agenteval.results.analysis import statistics
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.rows import CaseRow
from pytest_agenteval.results.document.totals import known_cost, known_tokens, mean_per_attempt
from pytest_agenteval.support.text import counted

MATRIX = 200
"""Tests in the matrix of a page."""

MARKS = {"passed": "✓", "failed": "✗", "error": "E", "review": "?", "not_run": "-", "running": "…"}


@dataclass(frozen=True, slots=True)
class FigureCard:
    """A figure of a run with its name, what stands below it, and its colour."""

    name: str
    value: str
    note: str = ""
    tone: str = ""


@dataclass(frozen=True, eq=False)
class RunView:
    """What the page of a run shows; what a template asks for over and over is worked out once (no slots)."""

    id: str
    document: Document
    query: PageQuery
    lines: Sequence[CaseLine]
    chosen: Sequence[CaseLine]
    page: Page
    counts: dict[str, int]
    models: Sequence[str]

    @property
    def several_models(self) -> bool:
        """More than one model answered."""
        return len(self.models) > 1

    @cached_property
    def k(self) -> int:
        """The most attempts of a case."""
        return int(self.document.header["pass_metrics"]["k"])

    @property
    def done(self) -> int:
        """The cases that have a verdict, of a run that goes on."""
        cases = self.document.header["cases"]
        return int(cases["total"] - cases["not_run"] - cases.get("running", 0))

    @cached_property
    def cards(self) -> list[FigureCard]:
        """The figures on top."""
        return cards_of(self.document, [line.case for line in self.lines])

    @cached_property
    def by_model(self) -> list[dict[str, Any]]:
        """Performance by Model: the cells of the sheet beside the figures they come from."""
        sheet = model_sheet(self.document)
        entries = self.document.header["by_model"]
        return [
            {
                **entry,
                "rate": entry["cases"]["pass_rate"],
                "each_ms": mean_per_attempt(entry, "total_duration_ms"),
                "cells": cells,
            }
            for entry, cells in zip(entries, sheet.rows, strict=True)
        ]

    @cached_property
    def matrix(self) -> list[tuple[tuple[str, str], list[CaseLine | None]]]:
        """Tests x models, in the order of the chosen lines, at most ``MATRIX`` tests."""
        found = {line.case.key: line for line in self.lines}
        tests = list(dict.fromkeys(line.case.key[:2] for line in self.chosen))[:MATRIX]
        return [(test, [found.get((*test, model)) for model in self.models]) for test in tests]

    @cached_property
    def tests(self) -> int:
        """How many tests the chosen lines belong to."""
        return len({line.case.key[:2] for line in self.chosen})

    @cached_property
    def names_repeat(self) -> bool:
        """Two files have a case of one name, so that paths must be shown."""
        return len({line.case.key[1] for line in self.lines}) < len(
            {line.case.key[:2] for line in self.lines}
        )


def run_view(run_id: str, document: Document, query: PageQuery, *, size: int | None = None) -> RunView:
    """Return the view of a run under a query; ``size`` cases on a page."""
    lines = case_lines(document.rows, document.cases)
    found = chosen(lines, query)
    page = paged(found, query.page, size) if size else paged(found, query.page)
    models = list(dict.fromkeys(line.case.key[2] for line in lines))
    return RunView(run_id, document, query, lines, found, page, counts_of(lines), models)


def neighbours(numbers: Sequence[int], number: int) -> tuple[int | None, int | None]:
    """Return the attempts before and after ``number`` among those shown."""
    if number not in numbers:
        return None, None
    at = numbers.index(number)
    return (numbers[at - 1] if at else None), (numbers[at + 1] if at + 1 < len(numbers) else None)


def attempt_numbers(lines: Sequence[CaseLine]) -> list[int]:
    """Return the attempts of lines in the order they are shown."""
    return [number for line in lines for number in line.numbers]


def cards_of(document: Document, every: Sequence[CaseRow]) -> list[FigureCard]:
    """Pass rate with its interval, counts of cases, tokens, cost, time, tool calls."""
    cases, summary = document.header["cases"], document.header["summary"]
    metrics = document.header["pass_metrics"]
    ends = statistics.interval([case.counts for case in every if case.counts_in_rates])
    spread = f"95 % interval {100 * ends[0]:.0f} to {100 * ends[1]:.0f} %" if ends else ""
    cards = [
        FigureCard("Pass rate", rate_text(cases["pass_rate"]), spread, "main"),
        FigureCard("Cases", f"{cases['total']:,}", counted(summary["total"], "attempt")),
        FigureCard("Passed", f"{cases['passed']:,}", _share(cases, "passed"), "passed"),
        FigureCard(
            "Failed", f"{cases['failed']:,}", _share(cases, "failed"), "failed" if cases["failed"] else ""
        ),
        FigureCard(
            "Errors",
            f"{cases['errors']:,}",
            "no verdict on the answer" if cases["errors"] else "",
            "error" if cases["errors"] else "",
        ),
        *_aside(cases, bool(document.run.get("running"))),
        FigureCard("Tokens", tokens_text(known_tokens(summary)), _parts(summary)),
        FigureCard("Cost", cost_text(known_cost(summary)), _unpriced(summary)),
        FigureCard(
            "Duration",
            time_text(summary["total_duration_ms"]),
            f"{short_time(mean_per_attempt(summary, 'total_duration_ms'))} each",
        ),
        FigureCard(
            "Tool calls",
            f"{summary['total_tool_calls']:,}",
            f"{mean_per_attempt(summary, 'total_tool_calls'):.1f} each",
        ),
    ]
    if metrics["k"] > 1:
        whole = metrics["aggregate"]
        of = f" of {counted(metrics['k_cases'], 'case')}" if "k_cases" in metrics else ""
        note = f"pass^{metrics['k']} {percent_text(whole['pass_hat_k'])}{of}"
        cards.insert(1, FigureCard(f"pass@{metrics['k']}", percent_text(whole["pass_at_k"]), note))
    return cards


def short_time(ms: float | None) -> str:
    """Format as :func:`time_text` does, but ``34ms`` below a tenth of a second."""
    return f"{ms:.0f}ms" if ms is not None and ms < 95 else time_text(ms)


def _aside(cases: dict[str, Any], live: bool) -> list[FigureCard]:
    """Review always; what was not run, skipped or expected to fail only where there is any."""
    found = [
        FigureCard(
            "Review",
            f"{cases['review']:,}",
            "for a person to judge" if cases["review"] else "",
            "review" if cases["review"] else "",
        )
    ]
    waiting = "Not run" if not live else "Waiting"
    others = (("running", "Running"), ("not_run", waiting), ("skipped", "Skipped"))
    expected = (("xfailed", "Expected failures"), ("quarantined", "Quarantined"))
    for key, name in (*others, *expected):
        if cases.get(key):
            tone = "review" if key == "not_run" and not live else ""
            found.append(FigureCard(name, f"{cases[key]:,}", "", tone))
    return found


def _share(cases: dict[str, Any], key: str) -> str:
    # the pass rate's own denominator: a second one beside it would only raise questions
    judged = cases["passed"] + cases["failed"] + cases["errors"]
    return f"of {judged:,}" if judged and key == "passed" else ""


def _parts(summary: dict[str, Any]) -> str:
    agent = (summary.get("usage") or {}).get("agent") or {}
    if agent.get("input") is None or agent.get("output") is None:
        return ""
    return f"{agent['input']:,} in, {agent['output']:,} out"


def _unpriced(summary: dict[str, Any]) -> str:
    if summary["unpriced"]:
        return f"{counted(summary['unpriced'], 'attempt')} without a price"
    return "all attempts priced" if known_cost(summary) is not None else ""
