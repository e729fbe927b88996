"""References kept as files: CSV that a person can read and git can show, with every type and value exact.

The first line says of which SQL and which data the rows are, the second names the columns with their SQL
types and, after a bar, how their cells are written. There is no time in it: the same data gives the
same bytes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support.json_codec import NotExact, pack, unpack
from pytest_agenteval.table import Column, Table

_HEAD = re.compile(r"# agenteval 1 sql=(\w{12}) rows=(\d+) database=(.*) data=(\S+)")
_NULL = r"\N"
_JSON = "json"
_PLAIN: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": lambda text: text == "true",
    "text": str,
}


@dataclass(frozen=True, slots=True)
class FrozenReference:
    """A frozen reference: its rows, and of which SQL, database and data they are."""

    table: Table
    sql: str
    database: str
    data: str


def sql_hash(sql: str) -> str:
    """Return 12 digits of the SHA-256 of a statement without blanks around it."""
    return hashlib.sha256(sql.strip().encode("utf-8", "surrogatepass")).hexdigest()[:12]


def frozen_text(table: Table, sql: str, database: str, data: str | None, *, ordered: bool) -> str:
    """Return the file of a reference; its rows sorted unless they are ``ordered``.

    Raises ``DatabaseError`` for a value whose type no text holds exactly.
    """
    kinds, cells = [], []
    for name, values in zip(table.names, _columns(table), strict=True):
        try:
            kind, texts = _written(values)
        except NotExact as wrong:
            raise DatabaseError(f"column {name!r} cannot be frozen: {wrong}") from None
        kinds.append(kind)
        cells.append(texts)
    rows = list(zip(*cells, strict=True)) if cells else [()] * table.row_count
    if not ordered:
        rows.sort()
    out = io.StringIO()
    out.write(
        f"# agenteval 1 sql={sql_hash(sql)} rows={table.row_count} database={database} data={data or '-'}\n"
    )
    writer = csv.writer(out, lineterminator="\n")
    types = [column.type for column in table.columns]
    writer.writerow(
        f"{name}:{type_ or ''}|{kind}" for name, type_, kind in zip(table.names, types, kinds, strict=True)
    )
    writer.writerows(rows)
    return out.getvalue()


def _columns(table: Table) -> list[list[Any]]:
    rows = list(table.rows())
    return [[row[at] for row in rows] for at in range(len(table.columns))]


def _written(values: Sequence[Any]) -> tuple[str, list[str]]:
    """Return how the cells of a column are written, and the cells."""
    packed = [pack(value, exact=True) for value in values]
    kinds = {_kind(*entry) for value, entry in zip(values, packed, strict=True) if value is not None}
    kind = kinds.pop() if len(kinds) == 1 else _JSON if kinds else "text"
    texts = []
    for value, (plain, paths) in zip(values, packed, strict=True):
        if value is None:
            texts.append(_NULL)
        elif kind == _JSON:
            texts.append(json.dumps([plain, paths], ensure_ascii=False, sort_keys=True))
        elif kind == "bool":
            texts.append("true" if plain else "false")
        else:
            texts.append(
                ("\\" if str(plain).startswith("\\") else "") + (repr if kind == "float" else str)(plain)
            )
    return kind, texts


def _kind(plain: Any, paths: dict[str, str]) -> str:
    if isinstance(plain, dict | list) or plain is None or set(paths) - {""}:
        return _JSON
    if paths:
        return paths[""]
    if isinstance(plain, bool):
        return "bool"
    return "text" if isinstance(plain, str) else type(plain).__name__


def read_frozen(path: Path) -> FrozenReference:
    """Read a frozen reference. Raises ``DatabaseError`` for another file or a part of one, ``OSError``."""
    with open(path, encoding="utf-8", newline="") as file:
        head = _HEAD.fullmatch(file.readline().rstrip("\r\n"))
        if head is None:
            raise DatabaseError(
                f"{path}: is not a frozen reference; its first line begins with # agenteval 1"
            )
        rows = list(csv.reader(file))
    if not rows or len(rows) - 1 != int(head[2]):
        raise DatabaseError(f"{path}: has {max(len(rows) - 1, 0)} rows, its first line says {head[2]}")
    columns, kinds = [], []
    for entry in rows[0]:
        rest, _, kind = entry.rpartition("|")
        name, _, type_ = rest.rpartition(":")
        columns.append(Column(name, type_ or None))
        kinds.append(kind)
    if any(len(row) != len(columns) for row in rows[1:]):
        raise DatabaseError(f"{path}: a row has another number of columns than its header")
    try:
        values = [[_read(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in rows[1:]]
    except (ValueError, ArithmeticError, KeyError) as wrong:
        raise DatabaseError(f"{path}: a cell cannot be read: {wrong}") from None
    names, types = [column.name for column in columns], [column.type for column in columns]
    table = Table.from_rows(names, values, types)
    return FrozenReference(table, head[1], head[3], head[4])


def _read(cell: str, kind: str) -> Any:
    if cell == _NULL:
        return None
    if kind == _JSON:
        plain, paths = json.loads(cell)
        return unpack(plain, paths)
    text = cell[1:] if cell.startswith("\\") else cell
    if kind in _PLAIN:
        return _PLAIN[kind](text)
    return unpack(text, {"": kind})
