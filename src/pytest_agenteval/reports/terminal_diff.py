"""Two runs side by side, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agenteval.reports.markdown import chance_sentence, comment_sections, diff_sentence
from pytest_agenteval.reports.terminal import StyledLine, case_name
from pytest_agenteval.reports.text import rate_text
from pytest_agenteval.results.analysis.diff import CaseChange, RunDiff
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.rows import CaseRow
from pytest_agenteval.support.text import counted, fit, one_line

NAMED = 50
"""Changes of one kind named one by one; the rest are counted."""

_STYLES = {"Regressions": "red", "New and failing": "red", "Fixed": "green"}


def diff_lines(old: Document, new: Document, diff: RunDiff, *, width: int = 80) -> list[StyledLine]:
    """Return the runs, the changes (regressions first), the paired test, what else changed."""
    lines = [line for word, run in (("old", old), ("new", new)) for line in _run_lines(word, run, width)]
    if diff.across:
        lines.append(
            StyledLine(one_line(f"paired across models: {diff.across[0]} -> {diff.across[1]}"), "bold")
        )
    several = len(new.header["by_model"]) > 1
    for heading, changes in comment_sections(diff):
        if changes:
            lines.append(StyledLine(f"{heading} ({len(changes)})", "title"))
            style = _STYLES.get(heading, "")
            lines += [StyledLine(fit(_change(entry, several), width), style) for entry in changes[:NAMED]]
            if len(changes) > NAMED:
                lines.append(StyledLine(f"  and {len(changes) - NAMED} more"))
    lines += list(_what_else(diff))
    sentence = chance_sentence(diff)
    if sentence:
        lines.append(StyledLine(sentence))
    return [
        *lines,
        StyledLine(diff_sentence(diff), "green" if diff.common and not diff.of("regression") else "red"),
    ]


def _run_lines(word: str, document: Document, width: int) -> Iterator[StyledLine]:
    name = document.path.name if document.path else "this run"
    label = f" ({document.run['label']})" if document.run.get("label") else ""
    cases = document.header["cases"]
    total, rate = counted(cases["total"], "case"), rate_text(cases["pass_rate"])
    yield StyledLine(fit(one_line(f"{word}: {name}{label}, {total}, {rate}"), width))
    if document.run.get("overrides"):
        yield StyledLine(
            f"{word}: {counted(document.run['overrides'], 'verdict')} overridden by a person", "yellow"
        )


def _change(entry: CaseChange, several: bool) -> str:
    words = f"{_word(entry.old) or 'new'} -> {_word(entry.new) or 'removed'}"
    notes = f" [{', '.join(entry.notes)}]" if entry.notes else ""
    message = f": {one_line(entry.case.why)}" if entry.case.verdict in ("failed", "error") else ""
    return f"  {case_name(entry.case, several)}  {words}{notes}{message}"


def _word(case: CaseRow | None) -> str:
    return "" if case is None else case.status


def _what_else(diff: RunDiff) -> Iterator[StyledLine]:
    for note in ("case changed", "data changed"):
        found = sum(note in entry.notes for entry in diff.changes)
        if found:
            yield StyledLine(
                f"{note}: {counted(found, 'case')} (its verdicts speak of two different questions)", "yellow"
            )
    if diff.context_changed:
        yield StyledLine("context changed: the agent's context files differ between the runs", "yellow")


def diff_record(old: Document, new: Document, diff: RunDiff) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "old": str(old.path) if old.path else None,
        "new": str(new.path) if new.path else None,
        "regressions": len(diff.of("regression")),
        "fixes": len(diff.of("fix")),
        "added": len(diff.of("added")),
        "removed": len(diff.of("removed")),
        "xfailed": len(diff.of("xfailed")),
        "unchanged": len(diff.of("unchanged")),
        "other": len(diff.of("other")),
        "common": diff.common,
        "paired": diff.paired,
        "p_value": diff.p_value,
        "more_cases": diff.more_cases,
        "context_changed": diff.context_changed,
        "across_models": list(diff.across) if diff.across else None,
        "changes": [_change_record(entry) for entry in diff.changes],
    }


def _change_record(entry: CaseChange) -> Mapping[str, Any]:
    path, name, model = entry.case.key
    return {
        "path": path,
        "name": name,
        "model": model,
        "change": entry.change,
        "old": entry.old.verdict if entry.old else None,
        "new": entry.new.verdict if entry.new else None,
        "message": entry.case.message,
        "cause": entry.case.why,
        "notes": list(entry.notes),
    }
