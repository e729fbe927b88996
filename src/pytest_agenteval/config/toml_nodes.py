"""TOML as the nodes that the YAML readers take, with the line of each key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_HEADER = re.compile(r"\s*\[(\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
_PART = re.compile(r"[\w-]+|\"[^\"]*\"|'[^']*'")

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class TomlMark:
    """A place, counted from 0."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class TomlNode:
    """Like a PyYAML node: ``id``, ``tag``, ``value``, ``start_mark``, ``style``."""

    id: str
    tag: str
    value: Any
    start_mark: TomlMark
    style: str = ""


def toml_nodes(text: str, section: tuple[str, ...]) -> TomlNode | None:
    """Return the node of one table of a TOML text; ``None``: there is no such table.

    Raises ``ValueError`` (``tomllib.TOMLDecodeError``).
    """
    import tomllib

    value: Any = tomllib.loads(text)
    for part in section:
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return _node(value, section, _places(text))


def _places(text: str) -> dict[Path, TomlMark]:
    """Return where each table and key is written (inside inline tables and arrays: their beginning)."""
    places: dict[Path, TomlMark] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    for number, line in enumerate(text.splitlines()):
        if header := _HEADER.match(line):
            table = _parts(header[2])
            if header[1]:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            for end in range(1, len(table) + 1):
                places.setdefault(table[:end], TomlMark(number, line.index("[")))
        elif key := _KEY.match(line):
            path = (*table, *_parts(key[1]))
            for end in range(len(table) + 1, len(path) + 1):
                places.setdefault(path[:end], TomlMark(number, key.start(1)))
    return places


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _node(value: Any, path: Path, places: Mapping[Path, TomlMark]) -> TomlNode:
    mark = next(
        (places[path[:end]] for end in range(len(path), 0, -1) if path[:end] in places), TomlMark(0, 0)
    )
    if isinstance(value, Mapping):
        pairs = []
        for name, entry in value.items():
            node = _node(entry, (*path, name), places)
            pairs.append((TomlNode("scalar", _tag("str"), name, node.start_mark, '"'), node))
        return TomlNode("mapping", _tag("map"), pairs, mark)
    if isinstance(value, list):
        entries = [_node(entry, (*path, number), places) for number, entry in enumerate(value)]
        return TomlNode("sequence", _tag("seq"), entries, mark)
    return as_node(value, mark)


def as_node(value: Any, mark: Any) -> TomlNode:
    """Return the scalar node of a Python value."""
    if value is None:
        return TomlNode("scalar", _tag("null"), "null", mark)
    if isinstance(value, bool):
        return TomlNode("scalar", _tag("bool"), str(value).lower(), mark)
    if isinstance(value, int | float):
        kind = "int" if isinstance(value, int) else "float"
        return TomlNode("scalar", _tag(kind), _number(value), mark)
    # TOML quotes every text: one that is only a reference is typed as in YAML
    style = "" if str(value).startswith("\ue000") else '"'
    return TomlNode("scalar", _tag("str"), str(value), mark, style)


def _number(value: float) -> str:
    text = repr(value)
    return text.replace("inf", ".inf").replace("nan", ".nan")


def _tag(kind: str) -> str:
    return f"tag:yaml.org,2002:{kind}"
