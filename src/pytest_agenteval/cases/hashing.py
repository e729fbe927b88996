"""Hashes of a case: has what it checks changed, has what it asks changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from pytest_agenteval.cases.model import Case
from pytest_agenteval.table import Table

_NO_PART = frozenset(
    ("path", "line", "column", "name", "id", "description", "tags", "owner", "metadata", "variant_of",
     "case_hash", "ask_hash", "sql_place")
)  # fmt: skip
_ASKED = ("input", "database", "agent", "caller", "context", "approve", "clarification", "isolate")


def case_hash(case: Case, raw_checks: Any) -> str:
    """Return sha256 (hex) of the case without name, tags, owner and metadata.

    Made of the values that differ from their defaults, so neither the layout of the file nor a
    default written out changes it; ``raw_checks`` are the checks as data.
    """
    form = {
        entry.name: _plain(getattr(case, entry.name))
        for entry in fields(case)
        if entry.name not in _NO_PART and getattr(case, entry.name) != _default(entry)
    }
    return _digest({**form, "assertions": _plain(raw_checks)})


def ask_hash(case: Case) -> str:
    """Return sha256 (hex) of what an agent is asked: turns, input, database and what else it is given."""
    given = {
        name: value for name in _ASKED if (value := getattr(case, name)) is not None and value is not False
    }
    return _digest(_plain({"turns": [turn.say for turn in case.turns], **given}))


def _default(entry: Any) -> Any:
    return entry.default_factory() if entry.default_factory is not MISSING else entry.default


def _digest(form: Any) -> str:
    text = json.dumps(form, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return ``value`` as JSON; types that JSON lacks keep their name."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Table):
        columns = [[column.name, column.type] for column in value.columns]
        return {"columns": columns, "rows": [_plain(row) for row in value.rows()]}
    if is_dataclass(value):
        # checks are opaque here: their source stands beside the case
        names = [entry.name for entry in fields(value) if entry.name != "assertions"]
        return {name: _plain(getattr(value, name)) for name in names}
    return f"{type(value).__name__} {value}"
