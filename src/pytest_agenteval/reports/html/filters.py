"""Which results a page shows: filter, search, model, order and page, as they stand in its address."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from pytest_agenteval.results.document.rows import CaseRow, Row

PAGE = 100
"""Cases on a page of the results table."""

SHOWS = {
    "all": "All",
    "failures": "Failures",
    "errors": "Errors",
    "passes": "Passes",
    "review": "Review",
    "different": "Different between models",
    "flaky": "Flaky",
    "expected": "Expected failures",
}
SORTS = {
    "name": "Test",
    "model": "Model",
    "status": "Status",
    "tokens": "Tokens",
    "cost": "Cost",
    "time": "Time",
    "tools": "Tools",
}


@dataclass(frozen=True, slots=True)
class PageQuery:
    """What the address asks for; values that mean nothing are as if they were not there."""

    show: str = "all"
    q: str = ""
    model: str = ""
    sort: str = ""
    page: int = 1

    @classmethod
    def read(cls, values: Mapping[str, str]) -> PageQuery:
        """Return the query in an address' parameters."""
        show, sort, page = values.get("show", "all"), values.get("sort", ""), values.get("page", "1")
        return cls(
            show if show in SHOWS else "all",
            values.get("q", "")[:200],
            values.get("model", ""),
            sort if sort.removeprefix("-") in SORTS else "",
            max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 8 else 1,
        )

    def text(self, **changes: Any) -> str:
        """Return the query for an address, ``?show=failures``,
        with ``changes`` (any change leads to page 1).
        """
        made = replace(self, **{"page": 1, **changes}) if changes else self
        plain = PageQuery()
        held = {name: getattr(made, name) for name in ("show", "q", "model", "sort", "page")}
        wanted = {name: value for name, value in held.items() if value != getattr(plain, name)}
        return f"?{urlencode(wanted)}" if wanted else ""

    def sorted_by(self, name: str) -> str:
        """Return the ``sort`` that a click on a column leads to."""
        return f"-{name}" if self.sort == name else name


@dataclass(frozen=True, slots=True, eq=False)
class CaseLine:
    """A case in the results table, with the numbers of its attempts in the document (from 1)."""

    case: CaseRow
    numbers: Sequence[int]
    different: bool
    shows: frozenset[str] = field(default_factory=frozenset)

    @property
    def deciding(self) -> int:
        """The number of the attempt that shows why."""
        return self.numbers[self.case.rows.index(self.case.deciding)]

    @property
    def attempts(self) -> list[tuple[int, Row]]:
        """The attempts with their numbers."""
        return list(zip(self.numbers, self.case.rows, strict=True))

    @property
    def tokens(self) -> int | None:
        """Of all attempts; ``None``: not known of any."""
        known = [row.tokens for row in self.case.rows if row.tokens is not None]
        return sum(known) if known else None

    @property
    def cost(self) -> float | None:
        """USD of all attempts; ``None``: not known of any."""
        known = [row.cost for row in self.case.rows if row.cost is not None]
        return math.fsum(known) if known else None

    @property
    def time(self) -> float:
        """Milliseconds of all attempts."""
        return sum(row.duration_ms for row in self.case.rows)

    @property
    def tools(self) -> int:
        """Tool calls of all attempts."""
        return sum(row.tool_call_count for row in self.case.rows)

    @property
    def text(self) -> str:
        """What a search looks through."""
        row = self.case.deciding
        words = (row.name, row.path, row.model, row.message, row.reason or "", *row.tags)
        return " ".join(words).casefold()


def case_lines(rows: Sequence[Row], cases: Sequence[CaseRow]) -> list[CaseLine]:
    """Return the cases of a document as lines of its results table."""
    numbers: dict[Any, list[int]] = {}
    for number, row in enumerate(rows, 1):
        numbers.setdefault(row.key, []).append(number)
    verdicts: dict[tuple[str, str], set[str]] = {}
    for case in cases:
        verdicts.setdefault(case.key[:2], set()).add(case.verdict)
    lines = []
    for case in cases:
        different = len(verdicts[case.key[:2]]) > 1
        lines.append(CaseLine(case, numbers[case.key], different, _shows(case, different)))
    return lines


def _shows(case: CaseRow, different: bool) -> frozenset[str]:
    by_verdict = {"failed": "failures", "error": "errors", "passed": "passes", "review": "review"}
    found = {"all", "expected" if case.xfailed else by_verdict.get(case.status, "all")}
    return frozenset(found | ({"different"} if different else set()) | ({"flaky"} if case.flaky else set()))


def counts_of(lines: Sequence[CaseLine]) -> dict[str, int]:
    """Return how many lines each filter shows."""
    return {show: sum(show in line.shows for line in lines) for show in SHOWS}


def chosen(lines: Sequence[CaseLine], query: PageQuery) -> list[CaseLine]:
    """Return the lines that ``query`` shows, in its order, all pages."""
    words = query.q.casefold().split()
    found = [
        line
        for line in lines
        if query.show in line.shows
        and (not query.model or line.case.key[2] == query.model)
        and (not words or all(word in line.text for word in words))
    ]
    if query.show == "different" and not query.sort:  # the models of a test side by side
        found.sort(key=lambda line: line.case.key)
    elif not query.sort:  # what a person came for; otherwise in the order of the run
        found.sort(key=lambda line: (line.case.xfailed, FIRST[line.case.verdict]))
    if query.sort:
        found.sort(key=_KEYS[query.sort.removeprefix("-")], reverse=query.sort.startswith("-"))
    return found


STATUS_ORDER = {"error": 0, "failed": 1, "review": 2, "running": 3, "not_run": 4, "passed": 5}
"""Verdicts as a column of statuses is sorted: what asks for a person first."""

FIRST = {"failed": 0, "error": 1, "review": 2, "running": 3, "not_run": 4, "passed": 5}
"""Verdicts in the order in which a page shows them unless it is asked for another."""

_KEYS: Mapping[str, Callable[[CaseLine], Any]] = {
    "name": lambda line: line.case.key[1].casefold(),
    "model": lambda line: line.case.key[2].casefold(),
    "status": lambda line: STATUS_ORDER[line.case.verdict],
    "tokens": lambda line: (line.tokens is not None, line.tokens or 0),
    "cost": lambda line: (line.cost is not None, line.cost or 0.0),
    "time": lambda line: line.time,
    "tools": lambda line: line.tools,
}


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """One page of lines: its number (from 1), how many pages and lines there are."""

    lines: Sequence[CaseLine]
    number: int
    pages: int
    total: int


def paged(lines: Sequence[CaseLine], number: int, size: int = PAGE) -> Page:
    """Return page ``number`` of the lines; the last one where there are fewer."""
    pages = max(1, math.ceil(len(lines) / size))
    number = min(number, pages)
    return Page(lines[(number - 1) * size : number * size], number, pages, len(lines))
