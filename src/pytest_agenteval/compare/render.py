"""A comparison as plain text: the cause first, then an aligned diff, at 80 columns without colour."""

from __future__ import annotations

import datetime
import textwrap
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pytest_agenteval.compare.nulls import is_nan, is_null, plain
from pytest_agenteval.compare.result import Comparison, SampleRow

MARK = "*"


def render(comparison: Comparison, width: int = 80) -> list[str]:
    """The lines that explain ``comparison``, none wider than ``width`` columns of a terminal.

    First the message and the diagnosis, then the column mapping and what a match needed, then the
    aligned rows: expected over answered, differing cells marked with ``*``. Control characters and
    terminal escapes of the values are written out.
    """
    width = max(width, 40)
    lines = _headline(comparison, width)
    for label, texts in (
        ("columns", _mapping(comparison)),
        ("allowed", comparison.leniencies if comparison.matched else ()),
        ("warning", comparison.warnings),
        ("note", comparison.notes),
    ):
        for text in texts:
            lines += _wrapped(f"{label}: {text}", width)
    if comparison.sample:
        lines += ["", *_table(comparison, width), *_rest(comparison)]
    return lines


def _headline(comparison: Comparison, width: int) -> list[str]:
    text = comparison.message
    if comparison.diagnosis:
        text = f"{text} - {comparison.diagnosis.word}: {comparison.diagnosis.sentence}"
    return _wrapped(text, width)


def _mapping(comparison: Comparison) -> list[str]:
    renamed = [column.text for column in comparison.mapping if column.expected != column.actual]
    lines = [", ".join(renamed)] if renamed and not comparison.matched else []
    if comparison.extra_columns and not comparison.matched:
        lines.append(f"not asked for: {', '.join(comparison.extra_columns)}")
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    out = []
    for line in textwrap.wrap(visible(text), width, subsequent_indent="  ") or [""]:
        out += _split_wide(line, width)
    return out


def _split_wide(line: str, width: int) -> list[str]:
    parts = []
    while cells(line) > width:
        cut = fitted(line, width)
        parts.append(cut)
        line = "  " + line[len(cut) :]
    return [*parts, line]


def visible(text: str) -> str:
    """Text with control, format and unpaired characters written out, so that it cannot act."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_char(char) for char in text)


def _char(char: str) -> str:
    kind = unicodedata.category(char)
    if kind in ("Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"):
        named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
        return named.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}")
    return " " if kind == "Zs" and char != " " else char


def cells(text: str) -> int:
    """How many terminal columns a text takes: wide (CJK) characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(char) for char in text)


def _cells_of(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def fitted(text: str, width: int) -> str:
    """The longest start of a text that takes at most ``width`` columns."""
    used = 0
    for index, char in enumerate(text):
        used += _cells_of(char)
        if used > width:
            return text[:index]
    return text


def shown(value: Any, limit: int = 1000) -> str:
    """A value for a person, control characters written out, at most ``limit`` characters."""
    value = plain(value)
    if is_null(value):
        return "NaN" if is_nan(value) else "NULL"
    if isinstance(value, str):
        text = value if value.strip() == value and value else repr(value)
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, Decimal):
        text = format(value, "f") if abs(value.adjusted()) < 30 else str(value)
    elif isinstance(value, datetime.datetime):
        text = str(value)
    elif isinstance(value, int) and value.bit_length() > 4000:
        text = f"an integer of {value.bit_length():,} bits"
    else:
        try:
            text = str(value)
        except Exception as error:  # a hostile __str__ must not stop the report
            text = f"<{type(value).__name__}: {type(error).__name__}>"
    return visible(text[:limit] + ("..." if len(text) > limit else ""))


def _columns_to_show(comparison: Comparison) -> list[int]:
    """Key columns, then the differing ones; all where there is room or nothing to single out."""
    every = list(range(len(comparison.mapping)))
    differing = [
        i for i in every if any(row.state == "differs" and row.cells[i].differs for row in comparison.sample)
    ]
    if not differing:
        return every
    return list(dict.fromkeys([*comparison.keys, *differing]))


def _table(comparison: Comparison, width: int) -> list[str]:
    chosen = _columns_to_show(comparison)
    rows = [line for row in comparison.sample for line in _lines_of(comparison, row, chosen)]
    deltas = any(delta for *_, delta in rows)
    head = ["", *(visible(comparison.mapping[i].expected) for i in chosen)] + (["delta"] if deltas else [])
    grid = [[mark, *texts, *([delta] if deltas else [])] for mark, texts, delta in rows]
    room = _widths([head, *grid], width)
    kept = [i for i, size in enumerate(room) if size]
    lines = [_line([line[i] for i in kept], [room[i] for i in kept]) for line in [head, *grid]]
    left = [comparison.mapping[i].expected for i in range(len(comparison.mapping)) if i not in chosen]
    left += [comparison.mapping[c].expected for n, c in enumerate(chosen) if not room[n + 1]]
    if left:
        names = ", ".join(visible(name) for name in left)
        count = f"{len(left)} more column" + ("s" if len(left) > 1 else "")
        lines += [fitted(f"  not shown, {count}: {names}", width)]
    return lines


def _lines_of(
    comparison: Comparison, row: SampleRow, chosen: Sequence[int]
) -> list[tuple[str, list[str], str]]:
    if row.state in ("missing", "extra"):
        values = [shown(c.expected if row.state == "missing" else c.actual) for c in row.cells]
        return [("missing" if row.state == "missing" else "extra", [values[i] for i in chosen], "")]
    first, second = [], []
    for i in chosen:
        cell = row.cells[i]
        first.append(shown(cell.expected))
        second.append(
            f"{shown(cell.actual)} {MARK}"
            if cell.differs
            else ""
            if i in comparison.keys
            else shown(cell.actual)
        )
    deltas = [row.cells[i].delta for i in chosen if row.cells[i].differs and row.cells[i].delta]
    return [("expected", first, ""), ("answered", second, "; ".join(deltas[:3]))]


def _widths(grid: Sequence[Sequence[str]], width: int) -> list[int]:
    """Column widths that fit; the widest are cut first, the last are left out (0) where all fails."""
    sizes = [max(cells(line[i]) for line in grid) for i in range(len(grid[0]))]
    least = [min(size, 10 if i == 0 else 8) for i, size in enumerate(sizes)]
    while sum(least) + 2 * (len([s for s in least if s]) - 1) > width and len([s for s in least if s]) > 2:
        last = max(
            i
            for i, size in enumerate(least)
            if size and i < len(least) - (1 if grid[0][-1] == "delta" else 0)
        )
        least[last] = sizes[last] = 0
    while sum(sizes) + 2 * (len([s for s in sizes if s]) - 1) > width:
        over = [i for i, size in enumerate(sizes) if size > least[i]]
        if not over:
            break
        sizes[max(over, key=lambda i: sizes[i])] -= 1
    return sizes


def _line(texts: Sequence[str], room: Sequence[int]) -> str:
    return "  ".join(_padded(text, size) for text, size in zip(texts, room, strict=True)).rstrip()


def _padded(text: str, size: int) -> str:
    taken = cells(text)
    if taken <= size:
        return text + " " * (size - taken)
    tail = f" {MARK}" if text.endswith(f" {MARK}") and size > 6 else ""
    cut = fitted(text, size - 3 - len(tail)) + "..." + tail if size > 3 else fitted(text, size)
    return cut + " " * (size - cells(cut))


def _rest(comparison: Comparison) -> list[str]:
    """What the sample leaves out, in counts."""
    counts = comparison.counts
    shown_ = {
        state: sum(1 for row in comparison.sample if row.state == state)
        for state in ("differs", "missing", "extra")
    }
    more = [
        f"{count - shown_[state]:,} more {word}"
        for state, count, word in (
            ("differs", counts.differing, "differing"),
            ("missing", counts.missing, "missing"),
            ("extra", counts.extra, "extra"),
        )
        if count > shown_[state]
    ]
    total = f"{counts.equal:,} of {counts.expected:,} expected rows equal, {counts.actual:,} answered"
    return [f"  {'; '.join([*more, total])}"]
