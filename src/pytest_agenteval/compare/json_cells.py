"""JSON beside other forms of it: objects that stand for texts, numbers that were written as integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pytest_agenteval.compare.values.canonical import parse_json, plain_form, token, too_large
from pytest_agenteval.compare.values.cells import NUMBER, Cell, Integral
from pytest_agenteval.compare.values.numbers import Number, Whole

JSON_LIKE = ("json", "any")
"""Kinds whose numbers go by how each was written."""


def texts_of_objects(expected: list[Any], actual: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return both text columns with the answered JSON objects as texts that they equal.

    All spellings of one structure become one text, so that an object equals each of them in whichever
    row; where the answer holds texts of that structure besides, spellings stay as they are, for a text
    equals no other text, and objects take what is expected in that structure one after the other.
    """
    if not any(isinstance(value, (dict, list)) for value in actual):
        return expected, actual
    wanted = [_structure_of(text) for text in expected]
    spelled: dict[str, Counter[str]] = {}
    for text, found in zip(expected, wanted, strict=True):
        if found is not None:
            spelled.setdefault(found, Counter())[text] += 1
    as_text = {_structure_of(value) for value in actual if isinstance(value, str)}
    one = {found: next(iter(texts)) for found, texts in spelled.items() if found not in as_text}
    left = {found: texts for found, texts in spelled.items() if found not in one}
    return (
        [
            text if found is None else one.get(found, text)
            for text, found in zip(expected, wanted, strict=True)
        ],
        [_spelling(value, one, left) if isinstance(value, (dict, list)) else value for value in actual],
    )


def _structure_of(text: Any) -> str | None:
    """Return the structure that a text holds; ``None`` where it holds none."""
    if not isinstance(text, str) or text.strip()[:1] not in ("{", "["):
        return None
    parsed = parse_json(text)
    return None if parsed is ... else structure(parsed)


def _spelling(value: Any, one: dict[str, str], left: dict[str, Counter[str]]) -> Any:
    found = None if too_large(value) else structure(value)
    if found in one:
        return one[found]
    texts = left.get(found or "")
    if not texts:
        return value
    text = next(iter(texts))
    texts[text] -= 1
    if texts[text] <= 0 and len(texts) > 1:
        del texts[text]
    return text


def structured(value: Any) -> Any:
    """Return a JSON object, or a text that holds one, in one spelling; anything else as it is."""
    found = parse_json(value) if isinstance(value, str) and value.strip()[:1] in ("{", "[") else value
    return structure(found) if isinstance(found, (dict, list)) and not too_large(found) else value


def structure(value: Any, depth: int = 0) -> str:
    """Return a text that is the same for JSON values that are structurally equal (1 equals 1.0)."""
    if depth > 60:
        return "..."
    if isinstance(value, dict):
        inner = (f"{str(k)!r}:{structure(v, depth + 1)}" for k, v in value.items())
        return "{" + ",".join(sorted(inner)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(structure(item, depth + 1) for item in value) + "]"
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return plain_form(value)
    return token(value)


def loosened(expected: Sequence[Cell], actual: Sequence[Cell]) -> tuple[Sequence[Cell], Sequence[Cell]]:
    """Return cells of JSON whose integral numbers are compared as numbers where others have decimals.

    3.0 against 3.0000000001 follows the tolerance as 2.5 against 2.5000000001 does; a number written
    without decimals stays exact. Where neither side has decimals all numbers are keys as they are.
    """
    if not any(numbers for side in (expected, actual) for _, numbers in side):
        return expected, actual
    return [_loosened(cell) for cell in expected], [_loosened(cell) for cell in actual]


def _loosened(cell: Cell) -> Cell:
    key, numbers = cell
    out: list[Number] = []
    return _walked(key, iter(numbers), out), tuple(out)


def _walked(key: Any, numbers: Iterator[Number], out: list[Number]) -> Any:
    if key == NUMBER:
        out.append(next(numbers))
        return key
    if not isinstance(key, tuple) or len(key) != 2:
        return key
    shape, inner = key
    if shape == "number" and isinstance(inner, int):
        out.append(inner.written if isinstance(inner, Integral) else Whole(inner))
        return NUMBER
    if shape in ("list", "map"):
        return shape, tuple(_walked(part, numbers, out) for part in inner)
    if shape == "struct":  # names and values by turns
        return shape, tuple(
            part if at % 2 == 0 else _walked(part, numbers, out) for at, part in enumerate(inner)
        )
    return key
