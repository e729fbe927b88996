"""Faults that other rooms found in data, put where they stand in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_agenteval.cases.yaml_reader import MappingEntry, Node, Reader
from pytest_agenteval.support.faults import Fault

ParseComparison = Callable[[Mapping[str, Any]], Any]
"""Reads options of a comparison (``compare.parse_options``); raises ``ValueError`` with ``faults``."""


def comparison_faults(parse: ParseComparison | None, options: Mapping[str, Any]) -> Sequence[Fault]:
    """Return the faults of comparison options; ``parse`` raises a ``ValueError`` that carries them."""
    if parse is None:
        from pytest_agenteval.compare.options import option_faults

        return option_faults(options)
    try:
        parse(options)
    except ValueError as wrong:
        faults: Sequence[Fault] = getattr(wrong, "faults", (Fault((), str(wrong)),))
        return faults
    return ()


def find_key(reader: Reader, node: Node, key: str | int) -> MappingEntry | None:
    """Return the entry of ``key`` in a mapping, or in the first mapping of a list that has it."""
    if node.id == "mapping":
        return reader.entries(node).get(str(key))
    entries = node.value if node.id == "sequence" else []
    maps = [reader.entries(entry) for entry in entries if entry.id == "mapping"]
    return next((found[str(key)] for found in maps if key in found), None)


def locate(reader: Reader, node: Node, fault: Fault) -> Node:
    """Return the node a fault is about: the key when the key is wrong, else the value."""
    key = node
    for step in fault.path:
        if node.id == "mapping" and (entry := reader.entries(node).get(str(step))) is not None:
            key, node = entry.key, entry.value
        elif node.id == "sequence" and isinstance(step, int) and step < len(node.value):
            key = node = node.value[step]
        else:
            break
    return (
        key if fault.text.startswith("unknown") and not fault.text.startswith("unknown check type") else node
    )
