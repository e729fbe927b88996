"""A document as GitHub annotations: one workflow command for each case that did not pass, at its line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.rows import CaseRow

LEVELS = {"failed": "error", "error": "error", "not_run": "warning", "review": "notice"}
"""Verdict -> the command that shows it; what passed is not annotated."""

MOST = 50
"""Annotations of one run: GitHub shows no more for a step, so the rest is one line with their number."""


def annotation_lines(document: Document, root: Path) -> Iterator[str]:
    """Yield ``::error file=...,line=...,title=...::message`` lines, worst verdicts first.

    Paths are those of the document, relative to ``root`` (the project's folder); the line is where the
    case begins now, and left out where its file cannot be read or no longer holds it.
    """
    order = list(LEVELS)
    cases = sorted(
        (case for case in document.cases if case.verdict in LEVELS),
        key=lambda case: order.index(case.verdict),
    )
    lines: dict[str, dict[str, int]] = {}
    for case in cases[:MOST]:
        path, name, _ = case.key
        if path not in lines:
            lines[path] = case_lines(root / path)
        yield _annotation(case, lines[path].get(name))
    if len(cases) > MOST:
        yield f"::notice title=agenteval::{len(cases) - MOST} more cases did not pass; the report lists them"


def case_lines(path: Path) -> dict[str, int]:
    """Return name -> first line of each case in a file; empty where it cannot be read."""
    from pytest_agenteval.cases.discovery import FileClaim
    from pytest_agenteval.cases.loader import load_cases

    try:
        loaded = load_cases(path, checks=_AnyCheck(), claim=FileClaim("cases", False))
    except OSError:
        return {}
    return {case.name: case.line for case in loaded.cases}


class _AnyCheck:
    """Accept every check: where a case stands does not depend on them."""

    def parse(self, raw: Any) -> list[Any]:
        """Report nothing."""
        return []

    def parse_expect(self, raw: Any) -> tuple[tuple[()], list[Any]]:
        """Return no check and no fault."""
        return (), []


def _annotation(case: CaseRow, line: int | None) -> str:
    path, name, model = case.key
    place = [f"file={_property(path)}"]
    if line is not None:
        place.append(f"line={line}")
    shown = f"{name} [{model}]" if model else name
    place.append(f"title={_property(f'{shown}: {case.verdict}')}")
    return f"::{LEVELS[case.verdict]} {','.join(place)}::{_data(case.deciding.why)}"


def _data(text: str) -> str:
    """Escape the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
