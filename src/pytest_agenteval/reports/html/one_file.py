"""The one-file report: a run with its attempts in one page that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pytest_agenteval.reports.html.attempt_view import SOURCES, attempt_view
from pytest_agenteval.reports.html.environment import make_environment, static_text
from pytest_agenteval.reports.html.filters import SHOWS, SORTS, STATUS_ORDER, PageQuery
from pytest_agenteval.reports.html.links import PageLinks
from pytest_agenteval.reports.html.markup import json_text
from pytest_agenteval.reports.html.run_view import MARKS, RunView, attempt_numbers, neighbours, run_view
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.overrides import Override, read_overrides, row_id, with_overrides
from pytest_agenteval.support.files import replacing

KEPT = 1000
"""Attempts whose details the file holds; of a larger run the failures first."""

ROWS = 50
"""Rows of a table in it."""

RAW = 20_000
"""Characters of an attempt's raw JSON in it."""

HOW = {"name": "by name", "alias": "by alias", "position": "by position", "value": "by value"}


def write_report(document: Document, path: Path) -> Path:
    """Write the report (temporary file, then rename). Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.writelines(report_parts(document, path.stem))
    return path


def report_parts(document: Document, name: str = "report") -> Iterator[str]:
    """Yield the report's text in parts, one attempt in memory at a time."""
    overrides = read_overrides(document.path) if document.path is not None else {}
    if overrides and not document.run.get("overrides"):
        document = with_overrides(document)
    run_id = document.path.name.removesuffix(".json") if document.path is not None else name
    view = run_view(run_id, document, PageQuery(), size=max(len(document.rows), 1))
    kept = _kept(view)
    shown = [number for number in attempt_numbers(view.lines) if number in kept]
    missing = sorted(set(range(1, len(document.rows) + 1)) - kept)
    style, theme, script = (static_text(file) for file in ("style.css", "theme.js", "app.js"))
    template = make_environment().get_template("report.html")
    yield from template.generate(
        **page_values(),
        view=view,
        links=PageLinks(),
        query=None,
        attempts=_attempts(view, shown, overrides),
        missing=missing,
        kept=len(kept),
        left_out=len(missing),
        style=Markup(style),
        theme=Markup(theme),
        script=Markup(script),
        style_hash=_hash(style),
        theme_hash=_hash(theme),
        script_hash=_hash(script),
    )


def page_values() -> dict[str, Any]:
    """Return what every page with a run or an attempt knows."""
    return {
        "marks": MARKS,
        "order": STATUS_ORDER,
        "shows": SHOWS,
        "sorts": SORTS,
        "sources": SOURCES,
        "how_words": HOW,
    }


def _kept(view: RunView) -> set[int]:
    """Return the attempts whose details are in the file."""
    rows = view.document.rows
    order = sorted(range(1, len(rows) + 1), key=lambda number: rows[number - 1].verdict == "passed")
    return set(order[:KEPT])


def _attempts(
    view: RunView, shown: Sequence[int], overrides: dict[str, Override]
) -> Iterator[tuple[Any, ...]]:
    """Yield each attempt's view, its siblings, the numbers before and after it, a person's verdict."""
    rows = view.document.rows
    siblings = {number: line.attempts for line in view.lines for number in line.numbers}
    for number in sorted(shown):
        entry, row = view.document.entry(number - 1), rows[number - 1]
        raw = json_text(entry, RAW)
        it = attempt_view(number, row, entry, rows=ROWS, raw=raw, sql_tools=view.document.sql_tools)
        yield it, siblings[number], *neighbours(shown, number), overrides.get(row_id(row))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
