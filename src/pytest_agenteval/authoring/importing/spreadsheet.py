"""Tables that people made: a question column in one of four languages, and what stands beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from pytest_agenteval.authoring.importing.headers import header_row, match_columns
from pytest_agenteval.authoring.importing.items import ImportedItem, LeftOut, ReadSource, clean_prompt
from pytest_agenteval.authoring.importing.numbers import Style, column_style, looks_numeric, read_number
from pytest_agenteval.authoring.importing.pairs import answer_keys, is_refusal
from pytest_agenteval.authoring.importing.sources import SourceFile
from pytest_agenteval.authoring.importing.xlsx import NoFormulaValue

_FORMULA = ("=", "+", "-", "@")


def as_records(source: SourceFile, mapping: Mapping[str, str]) -> SourceFile:
    """Return a table with its header row found. Raises ``ImportFailed`` without a question column."""
    at = header_row(source.grid, mapping, source.name)
    columns = tuple(str(cell).strip() if cell is not None else "" for cell in source.grid[at])
    rows = [
        (f"row {number}", dict(zip(columns, [*row, *[None] * len(columns)], strict=False)))
        for number, row in enumerate(source.grid[at + 1 :], at + 2)
        if any(cell not in (None, "") for cell in row)
    ]
    return SourceFile(
        source.name, "table", rows=rows, columns=columns, typed=source.typed, folder=source.folder,
        warnings=source.warnings, text=source.text,
    )  # fmt: skip


def read_spreadsheet(source: SourceFile, mapping: Mapping[str, str]) -> ReadSource:
    """Read rows of question, SQL, answer, owner, tags. Raises ``ImportFailed`` for an ambiguous number."""
    columns = match_columns(source.columns, mapping)
    texts = [_text(row.get(columns["answer"])) for _, row in source.rows] if "answer" in columns else []
    style: Style = "dot"
    if texts and not source.typed:
        style = column_style([text for text in texts if text], columns["answer"], source.name)
    items: list[ImportedItem] = []
    left_out: list[LeftOut] = []
    for place, row in source.rows:
        asked = row.get(columns["prompt"])
        if reason := _unusable(asked):
            left_out.append(LeftOut(place, reason))
        else:
            items.append(_item(place, row, columns, style))
    unused = [name for name in source.columns if name and name not in columns.values()]
    warnings = [f"{source.name}: columns not used: {', '.join(unused)}"] if unused else []
    return ReadSource(items, left_out, (), warnings)


def _unusable(asked: Any) -> str:
    """Return why a cell is not a question ('': it is one)."""
    if isinstance(asked, NoFormulaValue):
        return f"its question is the formula {asked}, without a value"
    text = _text(asked)
    if not text:
        return "no question in it"
    if text.startswith(_FORMULA) and len(re.findall(r"\w+\s", text + " ")) < 3:
        return f"its question looks like a formula: {text[:40]}"
    return ""


def _item(place: str, row: Mapping[str, Any], columns: Mapping[str, str], style: Style) -> ImportedItem:
    def cell(key: str) -> str:
        return _text(row.get(columns[key])) if key in columns else ""

    keys: dict[str, Any] = {"context": cell("context")} if cell("context") else {}
    sql = cell("sql")
    held: dict[str, Any] = {"sql": (sql,)} if sql else {}
    answer = row.get(columns["answer"]) if "answer" in columns else None
    found = answer_keys(_value(answer, style))
    if "sql" in found and sql:
        found = {}
    return ImportedItem(
        place=place,
        prompt=clean_prompt(cell("prompt")),
        key=cell("id"),
        name=cell("name"),
        database=cell("database") or None,
        owner=cell("owner") or None,
        tags=tuple(part.strip() for part in re.split(r"[,;|]", cell("tags")) if part.strip()),
        keys=keys,
        metadata={"comment": cell("comment")} if cell("comment") else {},
        **held,
        **{key: value for key, value in found.items() if key not in held},
    )


def _value(cell: Any, style: Style) -> Any:
    if isinstance(cell, str):
        text = cell.strip()
        if looks_numeric(text) and not is_refusal(text):
            number = read_number(text, style)
            return text if number is None else number
        return text
    if isinstance(cell, NoFormulaValue):
        return None
    return cell.isoformat() if isinstance(cell, date) else cell


def _text(cell: Any) -> str:
    if cell is None or isinstance(cell, NoFormulaValue):
        return ""
    return cell.isoformat() if isinstance(cell, date) else str(cell).strip()
