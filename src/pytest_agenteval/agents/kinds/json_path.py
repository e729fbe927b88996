"""JSONPath (RFC 9535, by python-jsonpath): compiled when an agent is made, so that typos show at once.

Stands apart: it alone knows the JSONPath library, for two kinds of agents.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pytest_agenteval.errors import SettingsError

Path: TypeAlias = Any
"""A compiled path."""


def path(text: Any, place: str) -> Path:
    """Compile ``$.answer.text``. Raises ``SettingsError`` naming ``place`` and what is wrong."""
    import jsonpath

    if not isinstance(text, str) or not text.startswith("$"):
        raise SettingsError(f"{place}: expected a JSONPath such as $.answer, found {text!r}")
    try:
        return jsonpath.compile(text)
    except jsonpath.JSONPathError as error:
        reason = str(error).partition("\n")[0]
        raise SettingsError(f"{place}: {text!r} is not a JSONPath: {reason}") from error


def find(compiled: Path, value: Any) -> list[Any]:
    """Return all values that the path leads to; ``[]`` when there are none."""
    if not isinstance(value, dict | list):
        return []
    found: list[Any] = compiled.findall(value)
    return found
