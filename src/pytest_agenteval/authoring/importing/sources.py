"""A file of any format into what its format can be recognised by: JSON, JSON lines, YAML or a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_agenteval.errors import AgentEvalError

LIMIT = 100 * 1024 * 1024
"""Bytes of a source; a larger one is refused."""

DELIMITERS = (",", ";", "\t", "|")
LFS = b"version https://git-lfs.github.com/spec/"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class ImportFailed(AgentEvalError):
    """A source cannot be read, or the words of the command do not fit it."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source as data. ``kind`` says which of the fields hold it.

    ``document``: parsed JSON or YAML. ``rows``: (place, {column: cell}) of a table, of JSON lines or of
    a JSON list of objects; cells of CSV are text, those of XLSX typed. ``columns``: the table's header.
    """

    name: str
    kind: Literal["document", "records", "table", "text"]
    document: Any = None
    rows: Sequence[tuple[str, Mapping[str, Any]]] = ()
    columns: tuple[str, ...] = ()
    grid: Sequence[Sequence[Any]] = ()
    text: str = ""
    folder: Path | None = None
    typed: bool = False
    warnings: list[str] = field(default_factory=list)


def read_source(path: Path, sheet: str | None = None) -> SourceFile:
    """Read a file. Raises ``ImportFailed`` for one that holds no data, ``OSError``."""
    size = path.stat().st_size
    if size > LIMIT:
        raise ImportFailed(f"{path}: {size:,} bytes, more than the {LIMIT:,} that are read")
    return parse_source(path.read_bytes(), path.name, path.parent, sheet)


def parse_source(data: bytes, name: str, folder: Path | None = None, sheet: str | None = None) -> SourceFile:
    """Recognise the form of ``data`` by its content. Raises ``ImportFailed``."""
    if data.startswith(LFS):
        raise ImportFailed(f"{name}: is a Git LFS pointer, not the data; run git lfs pull")
    if data.startswith(OLE):
        raise ImportFailed(f"{name}: is encrypted, or of an Excel before 2007; save it as open .xlsx")
    if data.startswith(b"PK\x03\x04"):
        from pytest_agenteval.authoring.importing.xlsx import read_sheet

        grid, warnings = read_sheet(data, name, sheet)
        return SourceFile(name, "table", grid=grid, typed=True, folder=folder, warnings=warnings)
    if sheet is not None:
        raise ImportFailed(f"{name}: --sheet is for XLSX files")
    warnings = []
    text = _decoded(data, name, warnings)
    if not text.strip():
        raise ImportFailed(f"{name}: is empty")
    found = _json(text, name) or _yaml(text, name)
    if found is not None:
        kind, document, *rows = found
        return SourceFile(
            name, kind, document, rows[0] if rows else (), folder=folder, warnings=warnings, text=text
        )
    return SourceFile(name, "table", grid=_grid(text), text=text, folder=folder, warnings=warnings)


def _decoded(data: bytes, name: str, warnings: list[str]) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        warnings.append(
            f"{name}: not UTF-8 (byte {wrong.start + 1}): read as cp1252; look at its accents and signs"
        )
        return data.decode("cp1252", "replace")


def _json(text: str, name: str) -> tuple[Any, ...] | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        document = json.loads(text)
    except RecursionError:
        raise ImportFailed(f"{name}: nested too deeply") from None
    except ValueError as wrong:
        rows = list(_lines(text))
        if not rows or any(row is None for _, row in rows):
            if _yaml(text, name) is not None:
                return None
            raise ImportFailed(f"{name}: neither JSON nor JSON lines: {wrong}") from None
        return "records", None, [(place, row) for place, row in rows if row is not None]
    records = _records(document)
    if records is not None:
        return "records", document, records
    if isinstance(document, Mapping):
        return "document", document
    raise ImportFailed(f"{name}: a JSON list of something else than objects")


def _records(document: Any) -> list[tuple[str, Mapping[str, Any]]] | None:
    """Return the objects of a list, also of one that an API wraps (``{"data": [...]}``)."""
    if isinstance(document, Mapping):
        wrapped = [key for key in ("data", "items", "examples", "rows", "records") if key in document]
        document = document[wrapped[0]] if len(wrapped) == 1 and len(document) <= 3 else None
    if not isinstance(document, list) or not all(isinstance(entry, Mapping) for entry in document):
        return None
    return [(f"entry {number}", entry) for number, entry in enumerate(document, 1)]


def _lines(text: str) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        yield f"line {number}", entry if isinstance(entry, Mapping) else None


def _yaml(text: str, name: str) -> tuple[Any, ...] | None:
    """Return a mapping or a list of mappings; ``None`` for what is a table or plain text."""
    import yaml

    head = next(
        (line for line in text.splitlines() if line.strip() and not line.startswith(("#", "---"))), ""
    )
    if ":" not in head and not head.startswith(("- ", "{", "[")):
        return None
    try:
        document = yaml.load(text, Loader=_no_aliases(yaml))
    except (yaml.YAMLError, RecursionError):
        return None
    if isinstance(document, Mapping):
        return "document", document
    if isinstance(document, list) and document and all(isinstance(entry, Mapping) for entry in document):
        return "records", document, [(f"entry {at}", entry) for at, entry in enumerate(document, 1)]
    return None


def _no_aliases(yaml: Any) -> Any:
    """Return a safe loader that refuses aliases: a few lines of them unfold into gigabytes."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read")
            return super().compose_node(parent, index)

    return Loader


def _grid(text: str) -> list[list[str]]:
    """Return the cells of a delimited text; the delimiter is the one its first rows are cut best by."""
    head = text[:20_000]
    before = csv.field_size_limit(LIMIT)
    try:
        best = max(DELIMITERS, key=lambda sign: _fit(head, sign))
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=best))
    finally:
        csv.field_size_limit(before)


def _fit(head: str, delimiter: str) -> tuple[int, int]:
    """Return how many of the first rows are as wide as the widest, and how wide that is."""
    rows = [row for row in csv.reader(io.StringIO(head, newline=""), delimiter=delimiter) if any(row)][:20]
    width = max((len(row) for row in rows), default=0)
    if width < 2:
        return 0, 0
    first = next((len(row) for row in rows if len(row) > 1), 0)
    return sum(len(row) == first for row in rows), first
