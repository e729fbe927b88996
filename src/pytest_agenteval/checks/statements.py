"""Parsing statements into syntax trees."""

from __future__ import annotations


def known_dialects() -> tuple[str, ...]:
    """The dialects sqlglot speaks."""
    from sqlglot.dialects.dialect import Dialects

    return tuple(entry.value for entry in Dialects if entry.value)
