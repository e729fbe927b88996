"""Any Python value as strict JSON, and back.

A value becomes *plain* (what JSON holds natively) and *kinds*: JSON-pointer-like paths to what JSON
cannot hold, ``{"/rows/*/2": "decimal"}``; ``*`` stands for every element of a list. A reader that
ignores the kinds still sees sensible text; one that applies them gets the values back. Objects of
other types become their ``repr``.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pytest_agenteval.table import Table

SAFE_INTEGER = 2**53
MAX_DEPTH = 60
ELEMENT = object()

Path = tuple[Any, ...]
Kinds = dict[Path, str]

_SURROGATE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")


def dumps(value: Any) -> str:
    r"""``value`` (plain) as one line of ASCII JSON; a lone surrogate becomes the text ``\ud800``."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    if "\\ud" in text:
        text = _SURROGATE.sub(lambda hit: "\\\\" + hit[1] if hit[1] else hit[0], text)
    return text


def pack(value: Any) -> tuple[Any, dict[str, str]]:
    """``value`` as plain JSON, and its kinds by path."""
    plain, kinds = _walk(value, 0, ())
    return plain, {_pointer(path): kind for path, kind in kinds.items()}


def unpack(plain: Any, kinds: Mapping[str, str]) -> Any:
    """The value that :func:`pack` was given; ``plain`` is changed in place. Unknown kinds stay plain."""
    paths = sorted(((_parts(pointer), kind) for pointer, kind in kinds.items()), key=lambda p: -len(p[0]))
    for parts, kind in paths:
        plain = _apply(plain, parts, kind)
    return plain


def _walk(value: Any, depth: int, above: tuple[int, ...]) -> tuple[Any, Kinds]:
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value, {}
    leaf = _LEAVES.get(kind)
    if leaf is not None:
        return _leaf(leaf(value))
    if depth > MAX_DEPTH:
        return _repr(value), {}
    if id(value) in above:
        return "<circular>", {}
    inside = (*above, id(value))
    if isinstance(value, Mapping):
        return _walk_mapping(value, depth, inside)
    if isinstance(value, Table):
        return _walk_table(value)
    if isinstance(value, list | tuple):
        return _walk_list(value, depth, inside)
    if isinstance(value, AbstractSet):
        plain, kinds = _walk_list(sorted(value, key=_repr), depth, inside)
        return plain, {**kinds, (): "set"}
    return _walk_other(value, depth, inside)


def _leaf(found: Any) -> tuple[Any, Kinds]:
    return (found[0], {(): found[1]}) if isinstance(found, tuple) else (found, {})


def _walk_mapping(value: Mapping[Any, Any], depth: int, inside: tuple[int, ...]) -> tuple[Any, Kinds]:
    plain: dict[str, Any] = {}
    kinds: Kinds = {}
    for key, entry in value.items():
        name = key if type(key) is str else _text(key)
        plain[name], found = _walk(entry, depth + 1, inside)
        for path, kind in found.items():
            kinds[(name, *path)] = kind
    return plain, kinds


def _walk_list(value: Any, depth: int, inside: tuple[int, ...]) -> tuple[Any, Kinds]:
    plain: list[Any] = []
    places: dict[Path, dict[int, str]] = {}
    for index, entry in enumerate(value):
        element, found = _walk(entry, depth + 1, inside)
        plain.append(element)
        for path, kind in found.items():
            places.setdefault(path, {})[index] = kind
    kinds: Kinds = {}
    for path, at in places.items():
        kinds.update(_fold(plain, path, at))
    return plain, kinds


def _fold(plain: list[Any], path: Path, at: dict[int, str]) -> Kinds:
    """One entry for the whole list where every element has the kind or is null there."""
    names = set(at.values())
    whole = len(names) == 1 and (
        len(at) == len(plain)
        or ("nan" not in names and all(_is_null(plain[i], path) for i in range(len(plain)) if i not in at))
    )
    if whole:
        return {(ELEMENT, *path): names.pop()}
    return {(index, *path): kind for index, kind in at.items()}


def _is_null(node: Any, path: Path) -> bool:
    return all(found is None for found in _resolve(node, path))


def _resolve(node: Any, path: Path) -> Iterator[Any]:
    if not path:
        yield node
        return
    step, rest = path[0], path[1:]
    if step is ELEMENT:
        for element in node if isinstance(node, list) else ():
            yield from _resolve(element, rest)
    elif isinstance(node, list):  # as _apply reads the pointer: a key "0" of a dict is an index here
        for index in _index(str(step), len(node)):
            yield from _resolve(node[index], rest)
    elif isinstance(node, dict) and str(step) in node:
        yield from _resolve(node[str(step)], rest)


def _walk_table(table: Table) -> tuple[Any, Kinds]:
    columns: list[list[Any]] = []
    kinds: Kinds = {(): "table"}
    for number in range(len(table.columns)):
        values, found = plain_column(table.column(number))
        columns.append(values)
        for path, kind in found.items():
            kinds[("rows", path[0], number, *path[1:])] = kind
    rows = [list(row) for row in zip(*columns, strict=True)]
    names = [[column.name, column.type] for column in table.columns]
    return {"columns": names, "rows": rows, "row_count": table.row_count}, kinds


def plain_column(values: list[Any]) -> tuple[list[Any], Kinds]:
    """A column as plain values and kinds by (index or ELEMENT, ...); columns of one type are quick."""
    types = set(map(type, values)) - {type(None)}
    if types <= {str, bool}:
        return values, {}
    if types == {float} and all(v is None or math.isfinite(v) for v in values):
        return values, {}
    if types == {int} and all(v is None or -SAFE_INTEGER <= v <= SAFE_INTEGER for v in values):
        return values, {}
    if types == {Decimal}:
        return [None if v is None else str(v) for v in values], {(ELEMENT,): "decimal"}
    return _walk_list(values, 1, ())


def _walk_other(value: Any, depth: int, inside: tuple[int, ...]) -> tuple[Any, Kinds]:
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if kind.__name__ in ("NaTType", "NAType"):
        return None, {}
    if isinstance(value, Enum):
        return _walk(value.value, depth + 1, inside)
    for base, leaf in _LEAVES.items():
        if isinstance(value, base):
            return _leaf(leaf(value))
    if isinstance(value, str):
        return str.__str__(value), {}
    if isinstance(value, PurePath):
        return str(value), {}
    if module in ("numpy", "pandas", "pyarrow"):
        return _walk_foreign(value, kind.__name__, depth, inside)
    return _repr(value), {}


def _walk_foreign(value: Any, name: str, depth: int, inside: tuple[int, ...]) -> tuple[Any, Kinds]:
    """NumPy scalars and arrays, DataFrames, Arrow tables."""
    try:
        if name in ("float32", "float16"):
            return (float(value), {(): "float32"}) if math.isfinite(value) else _leaf(_float(float(value)))
        if name == "datetime64":
            return _walk(value.astype("datetime64[us]").item(), depth + 1, inside)
        if name == "DataFrame":
            return _walk_table(Table.from_pandas(value))
        if name == "Table":
            return _walk_table(Table.from_arrow(value))
        for method in ("tolist", "to_pylist", "item", "as_py"):
            if hasattr(value, method):
                return _walk(getattr(value, method)(), depth + 1, inside)
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        pass  # an odd one: shown as text
    return _repr(value), {}


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__}: its repr raised {type(error).__name__}>"


def _text(key: Any) -> str:
    return str.__str__(key) if isinstance(key, str) else _repr(key) if key is not None else "null"


def _float(value: float) -> Any:
    if math.isfinite(value):
        return float(value)
    return (None, "nan") if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity", "float")


def _int(value: int) -> Any:
    if -SAFE_INTEGER <= value <= SAFE_INTEGER:
        return int(value)
    return _digits(value), "int"


def _digits(value: int) -> str:
    """Decimal digits; beyond Python's limit on such texts (4,300 digits) hexadecimal ones."""
    try:
        return str(int(value))
    except ValueError:
        return hex(value)


_LEAVES: dict[type, Callable[[Any], Any]] = {
    bool: bool,
    int: _int,
    float: _float,
    Decimal: lambda v: (str(v), "decimal"),
    dt.datetime: lambda v: (v.isoformat(), "datetime"),
    dt.date: lambda v: (v.isoformat(), "date"),
    dt.time: lambda v: (v.isoformat(), "time"),
    dt.timedelta: lambda v: (str(v // dt.timedelta(microseconds=1)), "microseconds"),
    bytes: lambda v: (v.hex(), "bytes"),
    bytearray: lambda v: (v.hex(), "bytes"),
    memoryview: lambda v: (v.hex(), "bytes"),
    UUID: lambda v: (str(v), "uuid"),
}


def _float32(value: Any) -> Any:
    import numpy

    return numpy.float32(value)


def _table(plain: Any) -> Table:
    names = [name for name, _ in plain["columns"]]
    if not names:
        return Table((), (), plain["row_count"])
    return Table.from_rows(names, plain["rows"], [kind for _, kind in plain["columns"]])


_READERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda v: int(v, 0),
    "float": float,
    "float32": _float32,
    "decimal": Decimal,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "microseconds": lambda v: dt.timedelta(microseconds=int(v)),
    "bytes": bytes.fromhex,
    "uuid": UUID,
    "set": lambda v: set(map(_hashable, v)),
    "table": _table,
}


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _convert(plain: Any, kind: str) -> Any:
    if plain is None:
        return math.nan if kind == "nan" else None
    try:
        return _READERS[kind](plain)
    except (KeyError, ValueError, TypeError, ArithmeticError):
        return plain


def _apply(node: Any, parts: list[str], kind: str) -> Any:
    if not parts:
        return _convert(node, kind)
    step, rest = parts[0], parts[1:]
    if isinstance(node, list):
        for index in range(len(node)) if step == "*" else _index(step, len(node)):
            node[index] = _apply(node[index], rest, kind)
    elif isinstance(node, dict) and step != "*":  # a key * is written ~2
        name = _unescape(step)
        if name in node:
            node[name] = _apply(node[name], rest, kind)
    return node


def _index(step: str, length: int) -> list[int]:
    """The index that a step names in a list of ``length``, if it does."""
    known = step.isascii() and step.isdecimal() and len(step) < 19 and int(step) < length
    return [int(step)] if known else []


def _pointer(path: Path) -> str:
    return "".join("/" + ("*" if step is ELEMENT else _escape(str(step))) for step in path)


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1").replace("*", "~2")


def _unescape(step: str) -> str:
    return step.replace("~2", "*").replace("~1", "/").replace("~0", "~")


def _parts(pointer: str) -> list[str]:
    return pointer.split("/")[1:]
