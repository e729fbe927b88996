"""A comparison as strict JSON: what results files and the viewer keep."""

from __future__ import annotations

import math
from typing import Any

from pytest_agenteval.compare.result import Comparison, SampleRow
from pytest_agenteval.compare.values.canonical import too_large
from pytest_agenteval.support.scalars import is_nan, is_null, plain
from pytest_agenteval.support.text import cut, show_value

BIGGEST = 2**53
LONGEST_TEXT = 2000


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return every part of a comparison as JSON: numbers finite,
    integers beyond 2^53 and all else as text.
    """
    found = comparison.diagnosis
    return {
        "matched": comparison.matched,
        "message": safe_text(comparison.message),
        "diagnosis": found
        and {
            "word": found.word,
            "sentence": safe_text(found.sentence),
            "columns": [safe_text(name) for name in found.columns],
            "proof": json_value(found.proof),
        },
        "mapping": [
            {
                "expected": safe_text(column.expected),
                "actual": safe_text(column.actual),
                "how": column.how,
                "type": column.type,
            }
            for column in comparison.mapping
        ],
        "missing_columns": [safe_text(name) for name in comparison.missing_columns],
        "extra_columns": [safe_text(name) for name in comparison.extra_columns],
        "differing_columns": [safe_text(name) for name in comparison.differing_columns],
        "leniencies": [safe_text(text) for text in comparison.leniencies],
        "warnings": [safe_text(text) for text in comparison.warnings],
        "notes": list(comparison.notes),
        "counts": {
            name: getattr(comparison.counts, name)
            for name in ("expected", "actual", "equal", "differing", "missing", "extra")
        },
        "keys": list(comparison.keys),
        "sample": [_row(row) for row in comparison.sample],
    }


def _row(row: SampleRow) -> dict[str, Any]:
    return {
        "state": row.state,
        "expected_row": row.expected_row,
        "actual_row": row.actual_row,
        "cells": [
            {
                "expected": json_value(cell.expected),
                "actual": json_value(cell.actual),
                "differs": cell.differs,
                "delta": cell.delta,
            }
            for cell in row.cells
        ],
    }


def safe_text(text: str) -> str:
    """Return text without unpaired surrogates, which no UTF-8 file can hold."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def json_value(value: Any, depth: int = 0) -> Any:
    """Return a value as strict JSON; what JSON has no form for becomes the text a person would see."""
    value = plain(value)
    if depth == 0 and isinstance(value, (list, tuple, dict)) and too_large(value):
        return safe_text(show_value(value, LONGEST_TEXT))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return safe_text(cut(value, LONGEST_TEXT + 3))
    if isinstance(value, int):
        return int(value) if abs(value) <= BIGGEST else show_value(value, LONGEST_TEXT)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if is_null(value) and not is_nan(value):
        return None
    if depth < 8 and isinstance(value, (list, tuple)):
        return [json_value(item, depth + 1) for item in value[:100]]
    if depth < 8 and isinstance(value, dict):
        return {
            safe_text(show_value(key, 200)): json_value(item, depth + 1)
            for key, item in list(value.items())[:100]
        }
    return safe_text(show_value(value, LONGEST_TEXT))
