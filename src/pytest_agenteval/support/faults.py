"""Faults of a value with the path to it; shared by cases, checks and settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agenteval.support.text import closest, cut, did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a value: ``path`` leads to it (keys and indexes), ``text`` says what is wrong."""

    path: tuple[str | int, ...]
    text: str
    severity: str = "error"


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """Return each pydantic error of ``model`` as a fault in our words."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    entries = error.errors()
    # some releases of pydantic also call a list empty when its entries are wrong
    reported = [
        entry
        for entry in entries
        if entry["type"] != "too_short" or not any(_below(entry["loc"], other["loc"]) for other in entries)
    ]
    return [_fault(entry, names) for entry in reported]


def _below(place: tuple[str | int, ...], other: tuple[str | int, ...]) -> bool:
    return len(other) > len(place) and other[: len(place)] == place


def _fault(entry: Any, names: list[str]) -> Fault:
    path = tuple(entry["loc"])
    last = str(path[-1]) if path else ""
    if entry["type"] == "extra_forbidden":
        return Fault(path, f"unknown field {last!r}{did_you_mean(last, names)}")
    if entry["type"] == "missing":
        return Fault(path[:-1], f"missing field {last!r}")
    text, value = _words(entry), entry["input"]
    if not path:
        return Fault(path, text)
    if entry["type"] == "too_short":
        return Fault(path, f"{label_of(path)}: {text}")
    label = label_of(path)
    shown = repr(value)
    if shown in text:
        return Fault(path, f"{label}: {text}")
    return Fault(path, f"{label}: {text}, found {cut(shown, 60)}")


def label_of(path: tuple[str | int, ...]) -> str:
    """Return the innermost key of a path, as a message names it."""
    return next((part for part in reversed(path) if isinstance(part, str)), str(path[-1]))


_PLAIN = {
    "string_type": "should be text",
    "int_type": "should be a whole number",
    "int_from_float": "should be a whole number",
    "float_type": "should be a number",
    "bool_type": "should be true or false",
    "dict_type": "should be a map",
    "tuple_type": "should be text or a list of texts",
    "string_too_short": "should not be empty",
    "too_short": "should not be empty",
}


def _words(entry: Any) -> str:
    """Return what pydantic says, in the words of someone who writes YAML."""
    kind, value, context = entry["type"], entry["input"], entry.get("ctx", {})
    if kind in _PLAIN:
        unquoted = kind in ("string_type", "tuple_type") and not isinstance(value, dict | list | type(None))
        return _PLAIN[kind] + (" (quote it)" if unquoted else "")
    if kind == "literal_error":
        words = re.findall(r"'([^']*)'", context["expected"])
        near = closest(str(value), words)
        return f"should be one of {', '.join(words)}" + (f", did you mean {near!r}?" if near else "")
    if kind == "greater_than":
        return f"should be above {context['gt']:g}"
    if kind == "finite_number":
        return "should be a finite number"
    if kind == "greater_than_equal":
        return f"should be {context['ge']:g} or more"
    if kind == "less_than_equal":
        return f"should be {context['le']:g} or less"
    return str(entry["msg"]).removeprefix("Value error, ")
