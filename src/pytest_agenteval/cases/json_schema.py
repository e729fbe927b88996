"""The JSON Schema of a case file, made from the table of keys, the checks and the comparison's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

from pytest_agenteval.cases.fields import BUDGET, KEYS, NOT_DEFAULTS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NOTES: Mapping[str, Any] = {"^x-": {}}


def case_schema(check: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a file: one case, a list of cases, or ``cases:`` with ``defaults``.

    ``check`` is the schema of one entry of ``assertions`` (``checks.registry.Registry.json_schema``).
    """
    return {
        "$schema": DIALECT,
        "title": "pytest-agenteval case file",
        "anyOf": [
            {"$ref": "#/$defs/case"},
            {"type": "array", "items": {"$ref": "#/$defs/case"}, "minItems": 1},
            {"$ref": "#/$defs/file"},
        ],
        "$defs": {
            "case": _case(),
            "file": _file(),
            "defaults": _object({key.name: _described(key) for key in KEYS if key.name not in NOT_DEFAULTS}),
            "check": dict(check),
            "comparison": _comparison(),
        },
    }


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    # "<<" is YAML's merge key: editors resolve it, or see it as it is
    return {
        "type": "object",
        "properties": {**properties, "<<": {}},
        "patternProperties": dict(_NOTES),
        "additionalProperties": False,
    }


def _described(key: Any) -> dict[str, Any]:
    return {"description": key.help, **key.schema}


def _case() -> dict[str, Any]:
    properties = {name: _described(key) for key in KEYS for name in (key.name, *key.aliases)}
    asking = [{"required": [word]} for word in ("prompt", "question", "say", "input", "<<")]
    return {**_object(properties), "anyOf": asking}


def _file() -> dict[str, Any]:
    properties = {
        "version": {"const": 1},
        "defaults": {"$ref": "#/$defs/defaults"},
        "cases": {"type": "array", "items": {"$ref": "#/$defs/case"}, "minItems": 1},
        "budget": {"description": "what all cases of the file may use together", **BUDGET},
    }
    return {**_object(properties), "required": ["cases"]}


def _comparison() -> dict[str, Any]:
    """Return the options of a comparison, from the fields of ``ComparisonOptions``."""
    from pytest_agenteval.compare.options import COLUMN_OPTIONS, ComparisonOptions

    hints = get_type_hints(ComparisonOptions)
    properties = {entry.name: _of_hint(hints[entry.name]) for entry in fields(ComparisonOptions)}
    own = {name: properties[name] for name in COLUMN_OPTIONS}
    column = {"type": "object", "properties": own, "additionalProperties": False}
    properties["per_column"] = {"type": "object", "additionalProperties": column}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _of_hint(hint: Any) -> dict[str, Any]:
    """Return the schema of a field's type."""
    simple = {float: "number", int: "integer", bool: "boolean", str: "string", type(None): "null"}
    if hint in simple:
        return {"type": simple[hint]}
    origin, arguments = get_origin(hint), get_args(hint)
    if all(isinstance(argument, str) for argument in arguments):
        return {"enum": list(arguments)}
    if origin is tuple:
        names = _of_hint(arguments[0])
        return {"anyOf": [names, {"type": "array", "items": names}]}
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of_hint(arguments[1])}
    return {"anyOf": [_of_hint(argument) for argument in arguments]}
