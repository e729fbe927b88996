"""What a person reads when a case fails: the cause first, then what differs, then where it came from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from pytest_agenteval.cases.model import Case
from pytest_agenteval.engine.evidence import turn_label
from pytest_agenteval.reports.findings import luck_lines, why_lines
from pytest_agenteval.support.text import escape_line, escape_text, one_line, shortened
from pytest_agenteval.types import Attempt, CaseResult, CheckResult

WIDTH = 80
HAND_OVER = (
    "an agent hands a table over as rows (a list of dicts, a DataFrame), as Answer(text, data=rows), or with "
    "the ToolCall that ran the SQL; --agent-extract json with --agent-extract-model reads one out of the text"
)
SPOKEN = ("text", "judge", "factuality", "outcome")
"""Checks of what the agent said; it is shown where one of them fails."""
MARKS = {"passed": "✓", "failed": "✗", "error": "!", "review": "?", "not_run": "-", "running": "…"}
GATED = "counted by the gate: "
"""What the reason of a failure begins with that a gate counts; the cause follows."""
SOURCES = {"given": "handed over by the agent", "only query": "from the only query"}


def failure_text(case: Case, result: CaseResult, width: int = WIDTH, style: str = "auto") -> str:
    """Return the text of a failed or errored case, at most ``width`` columns wide where it can be folded.

    ``style`` is pytest's ``--tb``: how much of a raising agent's own traceback is shown.
    """
    shown = next((a for a in result.attempts if a.verdict == result.verdict), None)
    if shown is None:
        return one_line(result.message)
    lines: list[str] = []
    if len(result.attempts) > 1:
        marks = " ".join(MARKS[attempt.verdict] for attempt in result.attempts)
        label = result.message.partition(": ")[0]
        lines.append(f"attempts {label}: {marks}, the text is that of attempt {shown.number}")
    lines += _error(shown, width) if shown.verdict == "error" else _failed(shown, len(case.turns), width)
    if shown.reason == "outcome" and case.outcome == "answer":
        lines += ["if asking back is right here, write `outcome: clarify` in the case"]
    if told := why_lines(shown.findings, width) if shown.reason != "luck" else _luck(shown, width):
        lines += ["", *told]
    if shown.traceback:
        lines += _traceback(shown.traceback, style)
    asked = " / ".join(turn.say for turn in case.turns) or repr(case.input)
    lines += ["", *_folded("prompt", asked, width), *_sources(shown, width)]
    return "\n".join(lines)


def _luck(attempt: Attempt, width: int) -> list[str]:
    return luck_lines(attempt.findings, width) if attempt.findings is not None else []


def _error(attempt: Attempt, width: int) -> Iterator[str]:
    """Yield the machinery's own words, after the stage that failed."""
    first, *more = (attempt.error or attempt.message).splitlines() or [""]
    stage = f"error in stage {attempt.stage}: " if attempt.stage else ""
    yield from _cut(
        textwrap.wrap(escape_text(stage + shortened(first, 100_000)), width, subsequent_indent="  ") or [""]
    )
    yield from _cut([escape_text(shortened(line)) for line in more])


def _traceback(text: str, style: str) -> list[str]:
    """Return the agent's own traceback: none of it for ``line``, the innermost frames for ``short``,
    else all.
    """
    if style in ("no", "line"):
        return []
    lines = escape_text(text).splitlines()
    return ["", *_cut(_innermost(lines) if style == "short" else lines)]


def _innermost(lines: list[str]) -> list[str]:
    """Return, of each exception, the innermost frame of the user code and what the exception says.

    Paths of the project are relative, those of libraries are not.
    """
    kept: list[str] = []
    frames: list[list[str]] = []
    for line in lines:
        if line.lstrip().startswith('File "'):
            frames.append([line])
        elif frames and line.startswith("    "):
            frames[-1].append(line)
        else:
            own = [frame for frame in frames if not frame[0].lstrip().startswith(('File "/', 'File "<'))]
            kept += [*(own or frames or [[]])[-1], line]
            frames = []
    return kept


def _cut(lines: list[str], most: int = 40) -> list[str]:
    """Return the beginning and the end of many lines; the results hold all of them."""
    if len(lines) <= most:
        return lines
    half = most // 2
    return [*lines[:half], f"  … {len(lines) - 2 * half:,} more lines, all in the results", *lines[-half:]]


def _failed(attempt: Attempt, turns: int, width: int) -> Iterator[str]:
    failed = [check for check in attempt.checks if not check.passed and check.type != "data"]
    checks = [line for check in failed for line in _check(check, turns, width)]
    data = _difference(attempt, turns, width)
    yield from data
    if data and checks:
        yield ""
    yield from checks
    if not data and not checks:
        yield from textwrap.wrap(one_line(shortened(attempt.message)), width)


def _difference(attempt: Attempt, turns: int, width: int) -> list[str]:
    """Return what differs; nothing where the data matched: what passed is not why the case fails."""
    comparison = attempt.comparison
    if comparison is None:
        saved = attempt.saved.difference if attempt.saved is not None else ""
        return [escape_line(line) for line in saved.splitlines()]
    if comparison.matched:
        return []
    from pytest_agenteval.compare import render

    data = [*render(comparison, width)]
    for check in attempt.checks if turns > 1 else ():
        if check.type != "data" or check.passed or check.turn is None:
            continue
        if check.details.get("comparison") is comparison:
            data.insert(0, f"data of {turn_label(check.turn, turns)}:")
        else:
            data += _check(check, turns, width)
    return data


def _check(check: CheckResult, turns: int, width: int) -> list[str]:
    name = f" {one_line(check.name)!r}" if check.name else ""
    turn = "" if check.turn is None or turns < 2 else f" of {turn_label(check.turn, turns)}"
    word = "warning from" if check.severity == "warn" else "failed"
    why = one_line(shortened(check.why).removeprefix(f"{check.type}: "))
    text = f"{word} {check.type}{name}{turn}: {why}"
    return textwrap.wrap(text, width, subsequent_indent="  ")


def _sources(attempt: Attempt, width: int) -> Iterator[str]:
    """Yield where both tables came from, and what the agent said where it gave none."""
    if attempt.reference_sql:
        yield from _folded("reference", attempt.reference_sql, width)
    extraction = attempt.extraction
    if extraction is not None and extraction.table is not None:
        way = SOURCES.get(extraction.source, extraction.source)
        query = f": {extraction.query}" if extraction.query else ""
        yield from _folded("answer", f"{way}{query}", width)
    without = extraction is None or extraction.table is None
    wordy = any(check.type in SPOKEN and not check.passed for check in attempt.checks)
    said = attempt.answer.text if attempt.answer is not None else ""
    if said.strip() and (without or wordy):
        yield from _folded("said", said, width)
    if attempt.reason == "no_answer" and attempt.answer is not None and not attempt.answer.tool_calls:
        yield from _folded("hint", HAND_OVER, width)


def _folded(label: str, text: str, width: int, most: int = 6) -> list[str]:
    """Return ``label     text``, blanks folded, wrapped behind the label; at most ``most`` lines."""
    lines = textwrap.wrap(one_line(shortened(text)), max(width - 10, 20)) or [""]
    if len(lines) > most:
        lines = [*lines[: most - 1], f"… {len(lines) - most + 1} more lines"]
    return [f"{label if number == 0 else '':<10}{line}" for number, line in enumerate(lines)]
