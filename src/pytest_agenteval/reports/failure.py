"""What a person reads when a case fails: the question, what differs, where the table came from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from pytest_agenteval.cases.model import Case
from pytest_agenteval.reports.text import one_line
from pytest_agenteval.types import Attempt, CaseResult

WIDTH = 80
MARKS = {"passed": "✓", "failed": "✗", "error": "!", "review": "?", "not_run": "-"}


def failure_text(case: Case, model: str | None, result: CaseResult, width: int = WIDTH) -> str:
    """The text of a failed or errored case, at most ``width`` columns wide where it can be folded."""
    shown = next((a for a in result.attempts if a.verdict == result.verdict), None)
    lines = [_title(case, model, result, shown)]
    lines += _folded("prompt", " / ".join(turn.say for turn in case.turns) or repr(case.input), width)
    if len(result.attempts) > 1:
        lines.append("attempts  " + "  ".join(f"{a.number} {MARKS[a.verdict]}" for a in result.attempts))
    if shown is not None:
        lines += _attempt(case, shown, width)
    return "\n".join(lines)


def _title(case: Case, model: str | None, result: CaseResult, shown: Attempt | None) -> str:
    name = f"{one_line(case.name)} [{model}]" if model else one_line(case.name)
    stage = f" (stage {result.stage})" if result.stage and result.verdict == "error" else ""
    count = result.message.partition(": ")[0] + ", " if len(result.attempts) > 1 else ""
    number = f"attempt {shown.number}" if shown is not None and len(result.attempts) > 1 else ""
    return f"{name}: {result.verdict}{stage}" + (f" ({count}{number})" if number else "")


def _attempt(case: Case, attempt: Attempt, width: int) -> Iterator[str]:
    if attempt.verdict == "error":
        yield ""
        yield from (attempt.error or attempt.message).splitlines()
        if attempt.reference_sql and attempt.stage == "reference":
            yield from _folded("reference", attempt.reference_sql, width)
        return
    for check in attempt.checks:
        if check.type != "data" and not check.passed:
            name = f" {one_line(check.name)!r}" if check.name else ""
            turn = f" (turn {check.turn})" if check.turn is not None else ""
            yield from _folded(
                "warns" if check.severity == "warn" else "fails",
                f"{check.type}{name}{turn}: {check.why}",
                width,
            )
    if attempt.comparison is not None:
        from pytest_agenteval.compare import render

        yield ""
        yield from render(attempt.comparison, width)
        yield ""
    elif attempt.checks:
        yield from (
            line
            for check in attempt.checks
            if check.type == "data"
            for line in _folded("data", check.why, width)
        )
    yield from _sources(attempt, width)


def _sources(attempt: Attempt, width: int) -> Iterator[str]:
    """Where both tables came from, and what the agent said where it gave none."""
    if attempt.reference_sql:
        yield from _folded("reference", attempt.reference_sql, width)
    extraction = attempt.extraction
    if extraction is not None and extraction.table is not None:
        source = {"given": "handed over by the agent", "only query": "the only query that returned rows"}
        told = source.get(extraction.source, extraction.source)
        query = f": {extraction.query}" if extraction.query else ""
        yield from _folded("answer", f"{told}{query}", width)
    elif attempt.answer is not None and attempt.answer.text.strip():
        yield from _folded("said", attempt.answer.text, width)


def _folded(label: str, text: str, width: int, most: int = 6) -> list[str]:
    """``label     text``, blanks folded, wrapped behind the label; at most ``most`` lines."""
    room = max(width - 10, 20)
    lines = textwrap.wrap(one_line(text), room) or [""]
    if len(lines) > most:
        lines = [*lines[: most - 1], f"… {len(lines) - most + 1} more lines"]
    return [f"{label if number == 0 else '':<10}{line}" for number, line in enumerate(lines)]
