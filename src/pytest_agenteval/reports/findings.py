"""What was found out about verdicts, as lines: why an answer is wrong, or right by luck only."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_agenteval.results.document.document import Document
from pytest_agenteval.support.text import counted, fit, one_line, pad, shortened, text_width
from pytest_agenteval.types import Findings

LABEL = 10
"""Columns of the word before a text."""

NAMED = 5
"""Causes and lucky cases named one by one."""


def why_lines(findings: Findings | None, width: int) -> list[str]:
    """Return what a wrong answer's SQL did: the proved cause, then what else differs."""
    if findings is None:
        return []
    lines: list[str] = []
    if findings.cause:
        lines += _labelled("why", str(findings.cause["text"]), width)
    verified = [line for line in findings.sql_difference if line.get("verified")]
    rest = [line for line in findings.sql_difference if not line.get("verified")]
    if verified and not findings.cause:
        for line in verified:
            lines += _labelled("why", f"the SQL: {line['text']}", width)
    if rest and (findings.cause or verified):
        for line in rest:
            lines += _labelled("also", f"{line['text']} (changes nothing here)", width)
    elif rest:
        lines += _labelled("the SQL", "differs from the reference; not each need matter", width)
        for line in rest:
            lines += _labelled("", str(line["text"]), width)
    return lines


def _labelled(label: str, text: str, width: int) -> list[str]:
    wrapped = textwrap.wrap(one_line(shortened(text)), max(20, width - LABEL)) or [""]
    return [
        f"{pad(word, LABEL)}{line}".rstrip()
        for word, line in zip([label, *[""] * len(wrapped)], wrapped, strict=False)
    ]


def luck_lines(findings: Findings, width: int) -> list[str]:
    """Return the rows that show luck, with what the reference and the agent's SQL give on them."""
    luck = findings.luck or {}
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = luck.get("tables") or {}
    rows = sum(len(found) for found in tables.values())
    what = "the SQL's answer depends on the order of rows" if luck.get("kind") == "row order" else ""
    lines = [f"right by luck: {what or 'the SQL differs from the reference on other data'}"]
    lines.append(f"  {counted(rows, 'row')} {'is' if rows == 1 else 'are'} enough")
    for name, found in tables.items():
        lines += row_lines(name.removeprefix("main."), found)
    lines += row_lines("reference", luck.get("reference") or [], heads=False)
    lines += row_lines("this SQL", luck.get("answer") or [], heads=False)
    for number, line in enumerate(findings.sql_difference):
        lines += [
            f"  {entry}" for entry in _labelled("why" if number == 0 else "", str(line["text"]), width - 2)
        ]
    lines.append("  holds for the data's keys, NOT NULL, foreign keys and value ranges;")
    lines.append("  --agent-luck=off hides it, =fail makes it a failure")
    return [fit(line, max(width, 80)) for line in lines]


def row_lines(label: str, records: Sequence[Mapping[str, Any]], heads: bool = True) -> Iterator[str]:
    """Yield records as aligned lines after a label; ``heads``: the column names above them."""
    if not records:
        yield f"    {pad(label, 16)}no row"
        return
    names = list(records[0])
    cells = [[one_line("NULL" if r[n] is None else str(r[n])) for n in names] for r in records]
    listed = [names, *cells] if heads else cells
    widths = [max(text_width(row[i]) for row in listed) for i in range(len(names))]
    for number, row in enumerate(listed):
        shown = "  ".join(pad(cell, size) for cell, size in zip(row, widths, strict=True))
        yield f"    {pad(label if number == 0 else '', 16)}{shown}".rstrip()


def cause_text(kind: str, table: str, column: str) -> str:
    """Return a group of causes in words: ``no filter on orders.status``."""
    place = f"{table}.{column}" if table and column else table or column
    return f"{kind} on {place}" if place else kind


def cause_lines(document: Document) -> list[str]:
    """Return what failures of a run have in common, and which cases were right by luck."""
    lines: list[str] = []
    failures = sum(case.status == "failed" for case in document.cases)
    causes = document.run.get("causes") or []
    for number, cause in enumerate(causes[:NAMED]):
        text = cause_text(str(cause["kind"]), str(cause["table"]), str(cause["column"]))
        label = "causes: " if number == 0 else "        "
        lines.append(f"{label}{cause['count']} of {counted(failures, 'failure')}: {text}")
    if len(causes) > NAMED:
        lines.append(f"        and {len(causes) - NAMED} more")
    lucky = [case for case in document.cases if case.verdict == "passed" and any(r.lucky for r in case.rows)]
    if lucky:
        passed = sum(case.status == "passed" for case in document.cases)
        names = ", ".join(one_line(case.key[1]) for case in lucky[:NAMED])
        more = f" and {len(lucky) - NAMED} more" if len(lucky) > NAMED else ""
        lines.append(f"right by luck: {len(lucky)} of {passed} passed ({names}{more})")
    return lines
