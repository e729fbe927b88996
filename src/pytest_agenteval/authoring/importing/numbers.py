"""Numbers in the answers of a spreadsheet: one reading of the decimal sign for a whole column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pytest_agenteval.authoring.importing.sources import ImportFailed

_SIGNS = frozenset("0123456789.,' \u00a0\u202f")
_STYLES = {
    "dot": re.compile(r"(?:\d+|\d{1,3}(?:[,' \u00a0\u202f]\d{3})+)(?:\.\d+)?|\.\d+"),
    "comma": re.compile(r"(?:\d+|\d{1,3}(?:[.' \u00a0\u202f]\d{3})+)(?:,\d+)?"),
}
_CURRENCIES = ("€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF")

Style = Literal["dot", "comma"]


def column_style(cells: Sequence[str], column: str, name: str) -> Style:
    """Return how a column writes its decimals. Raises ``ImportFailed`` where both readings fit and differ."""
    numbers = [cell for cell in cells if looks_numeric(cell)]
    fits: list[Style] = [
        style for style in ("dot", "comma") if all(read_number(cell, style) is not None for cell in numbers)
    ]
    if not fits:
        return "dot"  # a column of mixed texts: each cell is taken as far as it can be read
    if len(fits) == 2:
        unlike = [cell for cell in numbers if read_number(cell, "dot") != read_number(cell, "comma")]
        if unlike:
            dot, comma = read_number(unlike[0], "dot"), read_number(unlike[0], "comma")
            raise ImportFailed(
                f"{name}: column {column!r}: is {unlike[0]!r} {dot} or {comma}? Nothing in the column says "
                "which sign its decimals have; write a number that does, or leave the column out with --map"
            )
    return fits[0]


def looks_numeric(text: str) -> bool:
    """Return whether a cell is a number in some writing."""
    body = _bare(text).removesuffix("%").strip().lstrip("+-\u2212").strip()
    return bool(body) and body[-1].isdigit() and _SIGNS.issuperset(body)


def read_number(text: str, style: Style) -> int | float | None:
    """Return the number that a whole cell is, ``None`` for anything else; ``12 %`` is 12."""
    bare = _bare(text).replace("\u2212", "-").rstrip("%").strip()
    sign = -1 if bare.startswith("-") else 1
    bare = bare.lstrip("+-").strip()
    if not _STYLES[style].fullmatch(bare):
        return None
    plain = re.sub(r"[' \u00a0\u202f]", "", bare)
    plain = plain.replace(",", "") if style == "dot" else plain.replace(".", "").replace(",", ".")
    return sign * (float(plain) if "." in plain else int(plain))


def _bare(text: str) -> str:
    bare = text.strip()
    for word in _CURRENCIES:
        if bare.upper().startswith(word):
            bare = bare[len(word) :].lstrip()
        if bare.upper().endswith(word):
            bare = bare[: -len(word)].rstrip()
    return bare


def decimals_of(text: str) -> int:
    """Return how many decimals a number shows in its shortest form."""
    return len(text.partition(".")[2]) if "e" not in text.lower() else 0
