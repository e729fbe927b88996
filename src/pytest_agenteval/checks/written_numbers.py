"""Numbers that are written without plain digits: entities, powers of ten, English number words."""

from __future__ import annotations

import html
import re

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_POWER = re.compile(
    r"(?:(?P<factor>(?<!\d)\d++(?:[.,]\d++)?+)\s*+[\u00d7x*·]\s*)?\b10"
    r"(?:\^\{?(?P<caret>[-+\u2212]?\d{1,3})\}?|(?P<raised>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}))"
)
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_VALUES = {word: value for value, word in enumerate(_ONES)} | {
    word: 10 * value for value, word in enumerate(_TENS, start=2)
}
_WORD = rf"(?:{'|'.join([*_VALUES, *_SCALES])})"
_FIRST = rf"(?:{'|'.join(_VALUES)}|a\s+(?:{'|'.join(_SCALES)}))"
_WORDS = re.compile(rf"(?<![\w-]){_FIRST}(?:(?:[\s-]+(?:and\s+)?){_WORD})*(?![\w-])", re.IGNORECASE)
_LEAST = 10
"""Words below are left alone: `one of the two` counts nothing that stands in a table."""


def in_digits(text: str) -> str:
    """Return ``text`` with HTML entities, powers of ten and ``fifty-two`` in plain digits."""
    text = html.unescape(text) if "&" in text else text
    text = _POWER.sub(_scientific, text)
    return _WORDS.sub(_worded, text)


def _scientific(match: re.Match[str]) -> str:
    power = (match["caret"] or match["raised"].translate(_SUPERSCRIPTS)).replace("\u2212", "-")
    return f"{(match['factor'] or '1').replace(',', '.')}e{int(power)}"


def _worded(match: re.Match[str]) -> str:
    value = value_of(match.group())
    return match.group() if value is None or value < _LEAST else str(value)


def value_of(words: str) -> int | None:
    """Return the number that English words say; ``None`` for words in an order that says none."""
    total, part, last = 0, 0, 0
    for word in re.findall(r"[a-z]+", words.lower()):
        if word in ("and", "a"):
            continue
        if word in _SCALES:
            scale = _SCALES[word]
            if scale == 100:
                if part >= 100:
                    return None
                part = (part or 1) * 100
            else:
                if total and scale >= last:
                    return None
                total, part, last = total + (part or 1) * scale, 0, scale
            continue
        value = _VALUES[word]
        room = part % 100
        # fifty-two, a hundred and five; nineteen ninety is a year
        if room and not (room >= 20 and room % 10 == 0 and value < 10):
            return None
        part += value
    return total + part
