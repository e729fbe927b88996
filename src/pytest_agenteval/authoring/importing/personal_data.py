"""Personal data in questions: found by pattern, and replaced where that is asked for.

Stands apart: the patterns are read by importing and by ``check`` alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PATTERNS = {
    "email": re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"),
    "iban": re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"),
    "ssn": re.compile(r"\b\d{3}-\d{2}-\d{4}\b"),
    "card": re.compile(r"\b\d(?:[ -]?\d){12,18}\b"),
    "phone": re.compile(
        r"(?<![\w.])(?:\+\d{1,3}[ /.-]?|\(\d{2,5}\) ?|0\d{2,5}[ /-])\d(?:[ /.-]?\d){5,11}(?!\w)"
    ),
}


def personal_data(text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) of every hit: email, iban, ssn, card (with a right check digit), phone."""
    for kind, pattern in _PATTERNS.items():
        for hit in pattern.finditer(text):
            if kind != "card" or _luhn(hit[0]):
                yield kind, hit[0]


def redacted(text: str) -> str:
    """Return the text with every hit replaced by its kind: ``<email>``."""
    for kind, hit in list(personal_data(text)):
        text = text.replace(hit, f"<{kind}>")
    return text


def _luhn(number: str) -> bool:
    digits = [int(sign) for sign in number if sign.isdigit()]
    doubled = [
        digit if at % 2 == 0 else sum(divmod(2 * digit, 10)) for at, digit in enumerate(reversed(digits))
    ]
    return sum(doubled) % 10 == 0
