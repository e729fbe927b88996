"""A mapping of a YAML file with places: typed access, every fault named, nothing raised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_agenteval.cases.yaml_reader import Node, Reader, compose, found, read_text
from pytest_agenteval.errors import Problem


class FileSection:
    """A mapping (or nothing). What is there but wrong goes to the reader's problems."""

    def __init__(self, reader: Reader, node: Node | None, name: str = "") -> None:
        self.reader = reader
        self.node = node
        self.name = name
        good = node is not None and node.id == "mapping"
        self._entries = reader.entries(node) if good and node is not None else {}
        if node is not None and not good and not _is_null(node):
            reader.error(node, f"{name or 'the file'}: should be a mapping, found {found(node)}")

    def names(self) -> list[str]:
        """Return the keys, in order."""
        return list(self._entries)

    def at(self, key: str) -> Node:
        """Return the node to point at for ``key``: its key, else this mapping."""
        return self._entries[key].key if key in self._entries else self.node

    def problem(self, key: str | None, text: str, severity: str = "error") -> Problem:
        """Return a problem at ``key`` (or at the mapping, or at the top of its file)."""
        node = self.node if key is None else self.at(key)
        mark: Any = getattr(node, "start_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        return Problem(self.reader.path, line, column, text, severity)

    def section(self, key: str) -> FileSection:
        """Return the mapping under ``key``; an empty one where there is none."""
        entry = self._entries.get(key)
        return FileSection(self.reader, None if entry is None else entry.value, key)

    def sections(self) -> Iterator[tuple[str, FileSection]]:
        """Yield every key with the mapping under it."""
        for key in self._entries:
            yield key, self.section(key)

    def listed(self, key: str) -> list[FileSection]:
        """Return the mappings of the list under ``key``."""
        return [FileSection(self.reader, node, key) for node in self._items(key)]

    def text(self, key: str) -> str | None:
        """Return text; a number or a date is taken as it is written."""
        entry = self._entries.get(key)
        if entry is None or _is_null(entry.value):
            return None
        if entry.value.id != "scalar":
            self.reader.error(entry.value, f"{key}: should be text, found {found(entry.value)}")
            return None
        return str(entry.value.value).strip() or None

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a text or a list of texts."""
        entry = self._entries.get(key)
        if entry is not None and entry.value.id == "scalar" and not _is_null(entry.value):
            return (str(entry.value.value),)
        kept = []
        for node in self._items(key):
            if node.id == "scalar" and not _is_null(node):
                kept.append(str(node.value))
            else:
                self.reader.error(node, f"{key}: should hold texts, found {found(node)}")
        return tuple(kept)

    def whole(self, key: str, default: int | None) -> int | None:
        """Return a whole number, 0 or more."""
        value = self._plain(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            place = self._entries[key].value
            self.reader.error(place, f"{key}: should be a whole number, 0 or more, found {found(place)}")
            return default
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return True or false."""
        value = self._plain(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            place = self._entries[key].value
            self.reader.error(place, f"{key}: should be true or false, found {found(place)}")
            return default
        return value

    def _plain(self, key: str) -> Any:
        entry = self._entries.get(key)
        return None if entry is None else self.reader.plain(entry.value)

    def _items(self, key: str) -> list[Node]:
        entry = self._entries.get(key)
        if entry is None or _is_null(entry.value):
            return []
        if entry.value.id != "sequence":
            self.reader.error(entry.value, f"{key}: should be a list, found {found(entry.value)}")
            return []
        return list(entry.value.value)


def read_yaml(path: Path) -> FileSection:
    """Return a YAML file; of one that cannot be read an empty section with the problem in its reader."""
    reader = Reader(path)
    text, problem = read_text(path)
    roots: list[Node] = []
    if problem is None:
        roots, problem = compose(path, text)
    if problem is not None:
        reader.problems.append(problem)
        reader.errors += 1
    return FileSection(reader, roots[0] if roots else None)


def _is_null(node: Node) -> bool:
    return bool(node.id == "scalar" and node.tag.endswith(":null"))
