"""Values spelled out: a token that is the same for the same value, plain forms, what a JSON text holds."""

from __future__ import annotations

import json
import math
import unicodedata
from decimal import Decimal
from typing import Any

from pytest_agenteval.compare.values.numbers import LONGEST, Number, shortest

DEEPEST = 60
MOST_NODES = 600_000


def too_large(value: Any) -> bool:
    """Return whether a nested value holds more than can be looked at (one that holds itself never ends)."""
    stack, seen = [value], 0
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack += item.values()
            seen += len(item)
        elif isinstance(item, (list, tuple)):
            stack += item
            seen += len(item)
        if seen > MOST_NODES:
            return True
    return False


def token(value: Any, depth: int = 0) -> str:
    """Return a text that is the same for the same value; bounded work, never raises."""
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if depth > DEEPEST or (depth == 0 and isinstance(value, (list, tuple, dict)) and too_large(value)):
        return "..."
    if isinstance(value, dict):
        inner = (f"{token(k, depth + 1)}:{token(v, depth + 1)}" for k, v in value.items())
        return "{" + ",".join(sorted(inner)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(token(item, depth + 1) for item in value) + "]"
    try:
        return str(value)
    except Exception as error:  # a hostile __str__ must not stop the comparison
        return f"<{type(value).__name__}: {type(error).__name__}>"


def label(value: Any) -> str:
    """Return a value as a header would show it."""
    return (
        token(value)
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal))
        else plain_form(value)
    )


def clean_text(text: str) -> str:
    """Return text without blanks around it, in Unicode NFC."""
    text = str(text).strip()
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def plain_form(value: Any) -> str:
    """Return a number or boolean as text: 12345, 1.5, true; 12345.0 counts as 12345."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        if isinstance(value, float) and math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        if value != value:
            return "nan"
        if isinstance(value, Decimal) and (value.is_infinite() or abs(value.adjusted()) > LONGEST):
            return str(value)
        number = shortest(value)
        if number == number.to_integral_value():
            number = number.quantize(Decimal(1)) if number.adjusted() < 28 else Decimal(int(number))
        return format(number, "f") if number else "0"
    return token(value)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, numbers exact; ``...`` (Ellipsis) where it is none."""
    if len(text) > 10_000_000:
        return ...
    try:
        return json.loads(text, parse_float=_json_float, parse_int=_json_int)
    except (ValueError, RecursionError):
        return ...


def _json_float(text: str) -> Number:
    value = float(text)
    return value if math.isfinite(value) and repr(value) == text else Decimal(text)


def _json_int(text: str) -> int:
    return int(text) if len(text) < 4000 else int(Decimal(text[:LONGEST]))
