"""Values spelled out: a token that is the same for the same value, plain forms, what a JSON text holds."""

from __future__ import annotations

import json
import math
import unicodedata
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from pytest_agenteval.compare.values.numbers import LONGEST, Number, shortest

DEEPEST = 60
MOST_NODES = 600_000
MOST_REPEATS = 100_000


def too_large(value: Any) -> bool:
    """Return whether a nested value holds more, or holds it deeper, than is looked at value by value
    (one that holds itself never ends).
    """
    stack, seen = [(value, 0)], 0
    while stack:
        item, depth = stack.pop()
        if not isinstance(item, (dict, list, tuple)):
            continue
        seen += len(item)
        if seen > MOST_NODES or depth >= DEEPEST:
            return True
        stack += [(part, depth + 1) for part in (item.values() if isinstance(item, dict) else item)]
    return False


def fingerprint(value: Any) -> str:
    """Return a short text that is the same for nested values that are equal, however large or deep.

    A value that holds parts of itself again and again is like no other one: it cannot be looked at whole.
    """
    digest, stack, met, steps = blake2b(digest_size=16), [value], set[int](), 0
    repeats = False
    while stack:
        item = stack.pop()
        steps += 1
        if not isinstance(item, (dict, list, tuple)):
            shown = str(item) if type(item) is int else _leaf(item)
            digest.update(
                f"{'text' if isinstance(item, str) else ''}:{len(shown)}:{shown}".encode(
                    "utf-8", "surrogatepass"
                )
            )
            continue
        repeats = repeats or id(item) in met
        met.add(id(item))
        if repeats and steps > MOST_REPEATS:
            return f"{id(value):x}"
        if isinstance(item, dict):
            digest.update(b"{%d" % len(item))
            for key, part in sorted(item.items(), key=lambda pair: token(pair[0]), reverse=True):
                stack += [part, token(key)]
        else:
            digest.update(b"[%d" % len(item))
            stack += reversed(item)
    return digest.hexdigest()


def _leaf(value: Any) -> str:
    return plain_form(value) if isinstance(value, (int, float, Decimal)) else token(value)


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
    """Return the value of a JSON text, numbers exact; ``...`` (Ellipsis) where it is none, or one of more
    than is looked at: that is compared as the text it is.
    """
    if len(text) > 10_000_000:
        return ...
    try:
        found = json.loads(text, parse_float=_json_float, parse_int=_json_int)
    except (ValueError, RecursionError):
        return ...
    return ... if too_large(found) else found


def _json_float(text: str) -> Number:
    value = float(text)
    return value if math.isfinite(value) and repr(value) == text else Decimal(text)


def _json_int(text: str) -> int:
    return int(text) if len(text) < 4000 else int(Decimal(text[:LONGEST]))
