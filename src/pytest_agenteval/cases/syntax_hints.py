"""What people usually meant where YAML finds a syntax error: the hint behind the parser's own words."""

from __future__ import annotations

import re
from collections.abc import Sequence

_KEY = re.compile(r"(?P<before>\s*(?:-\s+)*)(?P<key>[A-Za-z_][\w-]*)\s*:(?:\s+(?P<value>.*?)\s*)?$")
_BLOCK = re.compile(r"[|>][-+\d]*\s*(?:#.*)?")
_QUOTED = re.compile(r"""(["'])(?:(?!\1).)*\1\s*\S""")
_TEXTS = ("prompt", "question", "say", "sql", "name", "description", "context", "expected_response")
_OPENING = "[{@`%*&!|>"
"""Signs that begin something else than a text."""


def syntax_hint(lines: Sequence[str], line: int, column: int, began: int | None, said: str) -> str:
    """Return the hint for an error at ``line`` and ``column`` (from 0); '' where there is none.

    ``began`` is the line where what the parser was reading began, ``said`` are its words.
    """
    starts = [number for number in (line, began) if number is not None and number < len(lines)]
    if "could not find expected ':'" in said and (block := _unindented(lines, starts)):
        return block
    here = _KEY.match(lines[line]) if line < len(lines) else None
    own_key = here is not None and column in (here.start("key"), here.end("key"))
    if own_key and here is not None and (moved := _moved(lines, line, here)):
        return moved
    for number in starts:
        found = _KEY.match(lines[number])
        if found and found["value"] and (quoted := _to_quote(found["key"], found["value"])):
            return quoted
    above = _KEY.match(lines[line - 1]) if here is None and line else None
    if above and " #" in (above["value"] or ""):
        key = above["key"]
        return f"; the comment on line {line} ends the text of {key!r}: write it as '{key}: |', or quote it"
    return "; quote a text that contains ': '" if "mapping values are not allowed" in said else ""


def _unindented(lines: Sequence[str], starts: Sequence[int]) -> str:
    """Return a text below ``key: |`` that begins at the margin of the key."""
    for number in range(min(starts, default=0) - 1, -1, -1):
        found = _KEY.match(lines[number])
        if found is None:
            continue
        if found["value"] is None or not _BLOCK.fullmatch(found["value"]):
            return ""
        where = f"the text of '{found['key']}: {found['value'][0]}' on line {number + 1} is not indented"
        return f"; {where}: begin each of its lines with two blanks more than the key"
    return ""


def _moved(lines: Sequence[str], line: int, here: re.Match[str]) -> str:
    """Return a key that stands in another column than the key above it."""
    for number in range(line - 1, -1, -1):
        above = _KEY.match(lines[number])
        if above is None:
            continue
        own, other = len(here["before"]), len(above["before"])
        if own == other:
            return ""
        return (
            f"; {here['key']!r} is indented by {own} and {above['key']!r} on line {number + 1} by {other}: "
            "write both in one column"
        )
    return ""


def _to_quote(key: str, text: str) -> str:
    """Say how a value is written that begins like something else than a text."""
    quoted = _QUOTED.match(text)
    if quoted is not None and quoted[1] == "'" and text[quoted.end() - 2] == "'":
        return "; inside '...' an apostrophe is written twice, or use \"...\""
    if quoted is not None:
        return "; a text that begins with a quoted word is quoted as a whole: " + in_quotes(text)
    if text[0] in "[{" and key not in _TEXTS:
        return ""
    if text[0] in _OPENING or text[:2] in ("- ", "? "):
        example = in_quotes(text) if len(text) <= 60 else "..."
        return f"; quote a text that begins with {text[0]}: {example}"
    return ""


def in_quotes(text: str) -> str:
    """Return a text as YAML takes it whatever it holds."""
    return "'" + text.replace("'", "''") + "'" if '"' in text or "\\" in text else f'"{text}"'
