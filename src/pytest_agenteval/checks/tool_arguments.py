"""When the arguments of a tool call are those a check asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from pytest_agenteval.support.patterns import found
from pytest_agenteval.types import ToolCall

ArgsMode = Literal["subset", "exact", "regex"]


def arguments(call: ToolCall) -> Any:
    """Return the call's arguments; a JSON text is parsed, broken JSON stays text, none are ``{}``."""
    if call.args is None:
        return {}
    if isinstance(call.args, str):
        try:
            return json.loads(call.args)
        except ValueError:
            return call.args
    return call.args


def args_match(expected: Mapping[str, Any], call: ToolCall, mode: ArgsMode) -> bool:
    """Return whether the call's arguments are those of ``expected`` in this mode."""
    actual = arguments(call)
    if mode == "subset":
        return _subset(expected, actual)
    if mode == "exact":
        return same(expected, actual)
    return _regex(expected, actual)


def same(a: Any, b: Any) -> bool:
    """Compare so that a bool never equals a number, at any depth."""
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool) and a == b
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _subset(expected: Any, actual: Any) -> bool:
    """Return whether expected mappings are part of the actual ones, recursively; all else must be equal."""
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(
            key in actual and _subset(value, actual[key]) for key, value in expected.items()
        )
    return same(expected, actual)


def _regex(expected: Any, actual: Any) -> bool:
    """Return whether it is a subset, each text a pattern searched in the argument's text."""
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(
            key in actual and _regex(value, actual[key]) for key, value in expected.items()
        )
    if isinstance(expected, str):
        text = actual if isinstance(actual, str) else json.dumps(actual, default=str, ensure_ascii=False)
        return found(expected, text)
    return same(expected, actual)


def bad_patterns(expected: Any) -> list[str]:
    """Return what is wrong with the patterns in ``expected``, one text per broken one."""
    if isinstance(expected, Mapping):
        return [text for value in expected.values() for text in bad_patterns(value)]
    if not isinstance(expected, str):
        return []
    try:
        re.compile(expected)
    except re.error as error:
        return [f"{expected!r} is not a regular expression: {error}"]
    return []
