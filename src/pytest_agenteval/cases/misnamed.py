"""Keys that other programs and common sense use for ours, and prompts that stand in the wrong place."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_agenteval.cases.fields import CANONICAL
from pytest_agenteval.cases.yaml_reader import ASKING, MappingEntry, Node

_REFERENCES = ("query", "reference_sql", "gold_sql", "expected_sql")
"""Columns of defog, Spider and BIRD, and what people write."""
_ANSWERS = ("answer", "expected_output", "reference")
_ATTEMPTS = ("runs", "repeat", "repeats", "attempts", "trials")
"""Tent's word and those of others."""
_TEXTS = ("name", "id", "description", "database", "context", "owner")
"""Keys of text, under which something that is indented too far lands."""
_SQL = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)


def meant_by(entry: MappingEntry) -> str | None:
    """Return the known key that an unknown one is often written for, else None."""
    name, value = entry.key.value, entry.value
    if name in _ATTEMPTS:
        return "k"
    if name in _REFERENCES or (name == "reference" and _SQL.match(str(value.value))):
        return "sql"
    if name in _ANSWERS:
        return "expected_response" if value.id == "scalar" else "expected"
    return None


def missing_prompt(node: Node, entries: Mapping[str, MappingEntry]) -> tuple[Node, str]:
    """Return where and how a case without a prompt is reported, with a prompt that stands further in."""
    text = "missing prompt (or question, say, input)"
    for name, entry in entries.items():
        if name in CANONICAL and name not in _TEXTS:
            continue
        if (inside := _asks(entry.value)) is None:
            continue
        if entry.value.id == "sequence":
            return entry.key, f"{text}: {name!r} holds a list that asks; a list of cases stands under 'cases'"
        line = inside.start_mark.line + 1
        return node, f"{text}: {inside.value!r} on line {line} is indented below {name!r}"
    return node, text


def _asks(node: Node) -> Node | None:
    """Return the key that asks in a mapping, or in the first entry of a list."""
    if node.id == "sequence":
        node = node.value[0] if node.value else None
    if node is None or node.id != "mapping":
        return None
    return next((key for key, _ in node.value if key.id == "scalar" and key.value in ASKING), None)
