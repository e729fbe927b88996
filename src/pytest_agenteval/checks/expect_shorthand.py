"""Tent's shorthand ``expect``, spelled out as entries of ``assertions``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pytest_agenteval.support.faults import Fault
from pytest_agenteval.support.text import did_you_mean

Path = tuple[str | int, ...]
_SLASHED = re.compile(r"/(.+)/[a-z]*")
"""A regular expression as JavaScript, and so Tent, writes it."""


def _each(kind: str, field: str, value: Any) -> list[Any]:
    """Return one check per entry: a name, or a mapping with the check's own fields."""
    entries = value if isinstance(value, list) else [value]
    return [
        {"type": kind, **entry} if isinstance(entry, Mapping) else {"type": kind, field: entry}
        for entry in entries
    ]


def _one(kind: str, field: str) -> Callable[[Any], list[Any]]:
    """Return one check: the value stands for ``field``, a mapping for the check's own fields."""

    def build(value: Any) -> list[Any]:
        if isinstance(value, Mapping):
            return [{"type": kind, **value}]
        return [{"type": kind, field: value}]

    return build


_WORDS: Mapping[str, Callable[[Any], list[Any]]] = {
    "text": _one("text", "contains"),
    "pattern": lambda value: [{"type": "text", "pattern": value}],
    "value": _one("value", "equals"),
    "called": lambda value: _each("tool_call", "tool", value),
    "not_called": lambda value: _each("no_tool_call", "tool", value),
    "notCalled": lambda value: _each("no_tool_call", "tool", value),
    "asked": _one("asked", "tools"),
    "judge": _one("judge", "rule"),
    "python": _one("python", "call"),
}

SHORT = {"tool_call": "called", "no_tool_call": "not_called"} | {word: word for word in _WORDS}
"""Type of a check -> its key in ``expect``."""

EXPECT_KEYS = (*_WORDS, "outcome")
"""Every key ``expect`` may have."""


def expand(raw: Any) -> tuple[list[tuple[Path, Any]], list[Fault]]:
    """Return ``expect`` as (path of the key, raw check) pairs, and its own faults.

    ``outcome`` is not a check: the reader of the case takes it from the mapping.
    """
    if isinstance(raw, Mapping):
        return _expand_map(raw, ())
    if not isinstance(raw, list):
        return [], [Fault((), f"expect is a map or a list of maps, found {raw!r}")]
    entries: list[tuple[Path, Any]] = []
    faults: list[Fault] = []
    for index, part in enumerate(raw):
        if isinstance(part, Mapping):
            more, wrong = _expand_map(part, (index,))
            entries += more
            faults += wrong
        else:
            faults.append(Fault((index,), f"an entry of expect is a map, found {part!r}"))
    return entries, faults


def _expand_map(raw: Mapping[Any, Any], at: Path) -> tuple[list[tuple[Path, Any]], list[Fault]]:
    entries: list[tuple[Path, Any]] = []
    faults: list[Fault] = []
    for key, value in raw.items():
        if key in _WORDS:
            built = _WORDS[key](value)
            entries += [((*at, key), check) for check in built]
            if key == "text" and isinstance(value, str) and (slashed := _SLASHED.fullmatch(value)):
                text = f"text {value!r} is looked for as it is; a pattern is written pattern: {slashed[1]}"
                faults.append(Fault((*at, key), text, "warning"))
            if not built:
                faults.append(Fault((*at, str(key)), f"{key} in expect is empty: it would check nothing"))
        elif key != "outcome":
            text = f"unknown key {key!r} in expect{did_you_mean(str(key), EXPECT_KEYS)}"
            faults.append(Fault((*at, str(key)), text))
    return entries, faults
