"""Text for a terminal: what may act is written out, wide characters are counted as they are drawn."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import Any

from pytest_agenteval.support.scalars import is_nan, is_null, plain


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
    """A value for a person, control characters written out, at most ``limit`` characters.

    The work is bounded as well: a value that holds itself, or very many values, is cut.
    """
    value = plain(value)
    if isinstance(value, str):
        head = value[: limit + 1]
        text = head if head.strip() == head and head else repr(head)
    else:
        pieces: list[str] = []
        _write(value, pieces, [limit], 0)
        text = "".join(pieces)
    return visible(text[:limit] + ("..." if len(text) > limit else ""))


def _write(value: Any, pieces: list[str], room: list[int], depth: int) -> None:
    """Append the pieces of a value until ``room`` characters are used up."""
    if room[0] < 0:
        return
    value = plain(value)
    if isinstance(value, (list, tuple, dict)) and depth < 30:
        items = value.items() if isinstance(value, dict) else ((None, item) for item in value)
        _put("{" if isinstance(value, dict) else "[", pieces, room)
        for number, (key, item) in enumerate(items):
            if room[0] < 0:
                break
            _put(", " if number else "", pieces, room)
            if isinstance(value, dict):
                _write(key, pieces, room, 30)
                _put(": ", pieces, room)
            _write(item, pieces, room, depth + 1)
        _put("}" if isinstance(value, dict) else "]", pieces, room)
    else:
        _put(_scalar(value, room[0] + 1), pieces, room)


def _put(text: str, pieces: list[str], room: list[int]) -> None:
    pieces.append(text)
    room[0] -= len(text)


def _scalar(value: Any, limit: int) -> str:
    if is_null(value):
        return "NaN" if is_nan(value) else "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value[:limit])
    if isinstance(value, Decimal):
        return format(value, "f") if abs(value.adjusted()) < 30 else str(value)
    if isinstance(value, int) and value.bit_length() > 4000:
        return f"an integer of {value.bit_length():,} bits"
    if isinstance(value, (list, tuple, dict)):
        return "..."
    try:
        return str(value)
    except Exception as error:  # a hostile __str__ must not stop the report
        return f"<{type(value).__name__}: {type(error).__name__}>"
