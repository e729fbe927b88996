"""Text for people: escaped, measured, cut, counted; names folded and suggested.

Every room that shows text uses these functions, so that a value is escaped, measured and cut alike
in a terminal, a message and a report.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from pytest_agenteval.support.scalars import is_nan, is_null, plain

_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def escape_line(text: str) -> str:
    r"""Return ``text`` for one line of a terminal: control, format and unpaired characters as ``\x1b``.

    Line breaks and tabs are written out as well, and every kind of blank becomes a space.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if unicodedata.category(char) == "Zs" else _escaped(char)
        for char in text
    )


def escape_text(text: str) -> str:
    r"""Return ``text`` of several lines, control, format and unpaired characters as ``\x1b``, ``\u202e``."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" or unicodedata.category(char) == "Zs" else _escaped(char)
        for char in text
    )


def one_line(text: str) -> str:
    """Return ``text`` escaped and on one line, each run of blanks as one space."""
    return " ".join(escape_text(text).split())


def _escaped(char: str) -> str:
    code = ord(char)
    return _NAMED.get(char) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def text_width(text: str) -> int:
    """Return the terminal columns that ``text`` takes: wide characters two, combining ones none."""
    if text.isascii() and text.isprintable():
        return len(text)
    from wcwidth import wcswidth, wcwidth

    columns = wcswidth(text)  # -1: it holds a control character
    return columns if columns >= 0 else sum(max(wcwidth(char), 0) for char in text)


def clip(text: str, columns: int) -> str:
    """Return the longest start of ``text`` that takes at most ``columns`` terminal columns."""
    if text.isascii() and text.isprintable():
        return text[: max(columns, 0)]
    from wcwidth import iter_graphemes

    kept, used = 0, 0
    for grapheme in iter_graphemes(text):
        used += text_width(grapheme)
        if used > columns:
            break
        kept += len(grapheme)
    return text[:kept]


def fit(text: str, columns: int, mark: str = "…") -> str:
    """Return ``text`` in at most ``columns`` terminal columns; ``mark`` ends a text that was cut."""
    if text_width(text) <= columns:
        return text
    return clip(text, max(columns - text_width(mark), 0)) + mark


def fit_name(text: str, columns: int) -> str:
    """Return a name in at most ``columns`` terminal columns; a long one loses its middle: names that
    begin alike differ at their ends.
    """
    if text_width(text) <= columns or columns < 8:
        return fit(text, columns)
    tail = text[-((columns - 1) // 2) :]
    while text_width(tail) > (columns - 1) // 2:
        tail = tail[1:]
    return clip(text, columns - 1 - text_width(tail)) + "…" + tail


def pad(text: str, columns: int, right: bool = False) -> str:
    """Return ``text`` filled with spaces to ``columns`` terminal columns; ``right`` aligns it there."""
    blanks = " " * max(0, columns - text_width(text))
    return blanks + text if right else text + blanks


def cut(text: str, limit: int, mark: str = "...") -> str:
    """Return ``text`` in at most ``limit`` characters; ``mark`` ends a text that was cut."""
    return text if len(text) <= limit else text[: limit - len(mark)] + mark


def cut_line(text: str, limit: int, mark: str = "...") -> str:
    """Return ``text`` on one line, each run of blanks as one space, in at most ``limit`` characters."""
    return cut(" ".join(text.split()), limit, mark)


def counted(number: int, word: str, words: str | None = None) -> str:
    """Return a count with its noun: ``1 case``, ``2,000 cases``."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known word nearest to ``word``, if one is near enough (``cutoff`` 0..1, difflib's ratio).

    The same letters in another order are near, however short the word is.
    """
    by_lower = {name.lower(): name for name in known}
    letters = sorted(word.lower())
    for name in by_lower:
        if sorted(name) == letters:
            return by_lower[name]
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[near[0]] if near else None


def close_ones(word: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return at most ``count`` known words near ``word``, the nearest first."""
    by_lower = {name.lower(): name for name in known}
    return [by_lower[near] for near in difflib.get_close_matches(word.lower(), by_lower, n=count)]


def did_you_mean(word: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """Return ``, did you mean 'x'?`` for the nearest known word, else ``; known: a, b, c``.

    ``otherwise`` is returned in place of the list where no known word is near.
    """
    names = list(known)
    near = closest(word, names)
    if near is not None:
        return f", did you mean {near!r}?"
    return f"; known: {', '.join(sorted(names))}" if otherwise is None else otherwise


def show_value(value: Any, limit: int = 1000) -> str:
    """Return a value for a person, control characters escaped, at most ``limit`` characters and dots.

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
    return escape_line(text[:limit] + ("..." if len(text) > limit else ""))


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


LONGEST_SHOWN = 20_000
"""Characters of a text that a report looks at: it shows a few lines, and wrapping takes long."""


def shortened(text: str, most: int = LONGEST_SHOWN) -> str:
    """Return ``text``; of one longer than ``most`` characters both ends, with how many were left out."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} … ({len(text) - most:,} more characters) … {text[-(most // 2) :]}"
