"""Any Python value as strict JSON, and back.

A value becomes *plain* (what JSON holds natively) and *kinds*: JSON-pointer-like paths to what JSON
cannot hold, ``{"/rows/*/2": "decimal"}``; ``*`` stands for every element of a list. A reader that
ignores the kinds still sees sensible text; one that applies them gets the values back. Journals,
results and recordings hold objects of other types as their ``repr``; the reference cache asks for an
exact form or none.

Programs that are agents, and recordings of version 0.1, write the kind beside the value instead:
``{"$type": "decimal", "value": "1.10"}``, which :func:`decode` reads.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import re
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pytest_agenteval.support.scalars import plain as plain_scalar
from pytest_agenteval.table import Table

SAFE_INTEGER = 2**53
"""Integers beyond are written as text: many readers of JSON would round them."""
MAX_DEPTH = 60
ELEMENT = object()
TAG = "$type"

Path = tuple[Any, ...]
Kinds = dict[Path, str]

_SURROGATE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")


def dumps(value: Any) -> str:
    r"""Return ``value`` (plain) as one line of ASCII JSON; a lone surrogate becomes the text ``\ud800``."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    if "\\ud" in text:
        text = _SURROGATE.sub(lambda hit: "\\\\" + hit[1] if hit[1] else hit[0], text)
    return text


def loads_exact(text: str | bytes) -> Any:
    """Return what JSON text says; a number with more digits than a float holds is a ``Decimal``.

    Raises ``ValueError`` for what is not JSON.
    """
    return json.loads(text, parse_float=_exact_number)


def _exact_number(text: str) -> float | Decimal:
    value = float(text)
    return value if math.isfinite(value) and Decimal(repr(value)) == Decimal(text) else Decimal(text)


class NotExact(Exception):
    """A value whose type has no exact form."""


def pack(value: Any, *, exact: bool = False) -> tuple[Any, dict[str, str]]:
    """Return ``value`` as plain JSON, and its kinds by path.

    ``exact`` also keeps tuples, keys that are not text and the zones of moments, and raises
    ``NotExact`` for a value that would come back as another one.
    """
    plain, kinds = _Packer(exact).walk(value, 0, ())
    return plain, {_pointer(path): kind for path, kind in kinds.items()}


def unpack(plain: Any, kinds: Mapping[str, str]) -> Any:
    """Return the value that :func:`pack` was given; ``plain`` is changed in place. Unknown kinds stay
    plain.
    """
    paths = sorted(((_parts(pointer), kind) for pointer, kind in kinds.items()), key=lambda p: -len(p[0]))
    for parts, kind in paths:
        plain = _apply(plain, parts, kind)
    return plain


class _Packer:
    """Walks a value; each method returns (plain, kinds by path below it)."""

    def __init__(self, exact: bool = False) -> None:
        self.exact = exact

    def walk(self, value: Any, depth: int, above: tuple[int, ...]) -> tuple[Any, Kinds]:
        kind = type(value)
        if value is None or kind is str or kind is bool:
            return value, {}
        if self.exact and kind not in _EXACT:
            raise NotExact(f"{kind.__module__}.{kind.__qualname__}")
        leaf = _LEAVES.get(kind)
        if leaf is not None:
            return _leaf(_zoned(value) if self.exact and kind in (dt.datetime, dt.time) else leaf(value))
        if depth > MAX_DEPTH or id(value) in above:
            if self.exact:
                raise NotExact("a value that holds itself, or very many levels")
            return ("<circular>" if id(value) in above else _repr(value)), {}
        inside = (*above, id(value))
        if isinstance(value, Mapping):
            return self._mapping(value, depth, inside)
        if isinstance(value, Table):
            return self._table(value)
        if isinstance(value, list | tuple):
            plain, kinds = self.elements(value, depth, inside)
            return plain, {**kinds, (): "tuple"} if self.exact and kind is tuple else kinds
        if isinstance(value, AbstractSet):
            plain, kinds = self.elements(sorted(value, key=_repr), depth, inside)
            return plain, {**kinds, (): "set"}
        return self._other(value, depth, inside)

    def _mapping(self, value: Mapping[Any, Any], depth: int, inside: tuple[int, ...]) -> tuple[Any, Kinds]:
        if self.exact and not all(type(key) is str for key in value):
            plain, kinds = self.elements([list(pair) for pair in value.items()], depth, inside)
            return plain, {**kinds, (): "map"}
        entries: dict[str, Any] = {}
        kinds = {}
        for key, entry in value.items():
            name = key if type(key) is str else _text(key)
            entries[name], found = self.walk(entry, depth + 1, inside)
            for path, kind in found.items():
                kinds[(name, *path)] = kind
        return entries, kinds

    def elements(self, value: Any, depth: int, inside: tuple[int, ...]) -> tuple[list[Any], Kinds]:
        """Return the elements of a sequence; a kind that all of them have is noted once."""
        plain: list[Any] = []
        places: dict[Path, dict[int, str]] = {}
        for index, entry in enumerate(value):
            element, found = self.walk(entry, depth + 1, inside)
            plain.append(element)
            for path, kind in found.items():
                places.setdefault(path, {})[index] = kind
        kinds: Kinds = {}
        for path, at in places.items():
            kinds.update(_fold(plain, path, at))
        return plain, kinds

    def _table(self, table: Table) -> tuple[Any, Kinds]:
        columns: list[list[Any]] = []
        kinds: Kinds = {(): "table"}
        for number in range(len(table.columns)):
            values, found = self.column(table.column(number))
            columns.append(values)
            for path, kind in found.items():
                kinds[("rows", path[0], number, *path[1:])] = kind
        rows = [list(row) for row in zip(*columns, strict=True)]
        names = [[column.name, column.type] for column in table.columns]
        return {"columns": names, "rows": rows, "row_count": table.row_count}, kinds

    def column(self, values: list[Any]) -> tuple[list[Any], Kinds]:
        """Return the values of a column; those of one type are quick."""
        types = set(map(type, values)) - {type(None)}
        if types <= {str, bool}:
            return values, {}
        if types == {float} and all(v is None or math.isfinite(v) for v in values):
            return values, {}
        if types == {int} and all(v is None or -SAFE_INTEGER <= v <= SAFE_INTEGER for v in values):
            return values, {}
        if types == {Decimal}:
            return [None if v is None else str(v) for v in values], {(ELEMENT,): "decimal"}
        return self.elements(values, 1, ())

    def _other(self, value: Any, depth: int, inside: tuple[int, ...]) -> tuple[Any, Kinds]:
        """Return subclasses of known types, and what NumPy, pandas and Arrow hold; else the ``repr``."""
        kind = type(value)
        if kind.__name__ in ("NaTType", "NAType"):
            return None, {}
        if isinstance(value, Enum):
            return self.walk(value.value, depth + 1, inside)
        for base, leaf in _LEAVES.items():
            if isinstance(value, base):
                return _leaf(leaf(value))
        if isinstance(value, str):
            return str.__str__(value), {}
        if isinstance(value, PurePath):
            return str(value), {}
        if kind.__module__.partition(".")[0] in ("numpy", "pandas", "pyarrow"):
            return self._foreign(value, kind.__name__, depth, inside)
        return self.walk(plain_scalar(value), depth + 1, inside)

    def _foreign(self, value: Any, name: str, depth: int, inside: tuple[int, ...]) -> tuple[Any, Kinds]:
        """Return NumPy scalars and arrays, DataFrames, Arrow tables."""
        try:
            if name in ("float32", "float16"):
                return (
                    (float(value), {(): "float32"}) if math.isfinite(value) else _leaf(_float(float(value)))
                )
            if name == "DataFrame":
                return self._table(Table.from_pandas(value))
            if name == "Table":
                return self._table(Table.from_arrow(value))
            done = plain_scalar(value)
            if type(done).__module__ != "numpy" and done is not value:
                return self.walk(done, depth + 1, inside)
            for method in ("tolist", "to_pylist", "item", "as_py"):
                if hasattr(value, method):
                    return self.walk(getattr(value, method)(), depth + 1, inside)
        except (TypeError, ValueError, OverflowError, ArithmeticError):
            pass  # an odd one: shown as text
        return _repr(value), {}


def plain_column(values: list[Any]) -> tuple[list[Any], Kinds]:
    """Return a column as plain values and kinds by (index or ELEMENT, ...)."""
    return _Packer().column(values)


def _leaf(found: Any) -> tuple[Any, Kinds]:
    return (found[0], {(): found[1]}) if isinstance(found, tuple) else (found, {})


def _fold(plain: list[Any], path: Path, at: dict[int, str]) -> Kinds:
    """Return one entry for the whole list where every element has the kind or is null there."""
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
    """Return decimal digits, hexadecimal ones beyond Python's limit on such texts (4,300 digits)."""
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


_EXACT = frozenset(
    {
        int,
        float,
        Decimal,
        dt.datetime,
        dt.date,
        dt.time,
        dt.timedelta,
        bytes,
        UUID,
        list,
        tuple,
        dict,
        set,
        Table,
    }
)
"""Types whose values come back as they were; None, text and booleans are JSON's own."""


def _zoned(value: dt.datetime | dt.time) -> Any:
    """Return a moment with its zone by name, where ISO text (which knows offsets only) would not do."""
    kind = type(value).__name__
    zone = value.tzinfo.key if isinstance(value.tzinfo, zoneinfo.ZoneInfo) else None
    if zone is None and not value.fold:
        if value.tzinfo is not None and value.utcoffset() is None:
            raise NotExact(repr(value.tzinfo))
        return value.isoformat(), kind
    bare = value if zone is None else value.replace(tzinfo=None)
    return [bare.isoformat(), zone, value.fold], f"zoned {kind}"


def _unzoned(kind: Any, plain: Any) -> Any:
    text, zone, fold = plain
    moment = kind.fromisoformat(text)
    return (moment.replace(tzinfo=zoneinfo.ZoneInfo(zone)) if zone else moment).replace(fold=fold)


def _float32(value: Any) -> Any:
    import numpy

    return numpy.float32(value)


def table_of(plain: Any) -> Table:
    """Return the table of ``{columns, rows, row_count}``; written by hand, columns may be names alone."""
    pairs = [(entry, None) if isinstance(entry, str) else entry for entry in plain["columns"]]
    if not pairs:
        return Table((), (), int(plain.get("row_count", len(plain["rows"]))))
    return Table.from_rows([str(name) for name, _ in pairs], plain["rows"], [kind for _, kind in pairs])


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
    "table": table_of,
    "tuple": tuple,
    "map": dict,
    "zoned datetime": lambda v: _unzoned(dt.datetime, v),
    "zoned time": lambda v: _unzoned(dt.time, v),
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
    """Return the index that a step names in a list of ``length``, if it does."""
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


_TAGGED: Mapping[str, Callable[[Any], Any]] = {
    **{name: _READERS[name] for name in ("int", "float", "decimal", "uuid", "date", "datetime", "time")},
    "timedelta": lambda parts: dt.timedelta(*parts),
    "bytes": base64.b64decode,
    "map": lambda pairs: {decode(key): decode(item) for key, item in pairs},
}


def decode(value: Any) -> Any:
    """Return ``value`` with each ``{"$type": ..., "value": ...}`` in it as what it stands for.

    Raises ``ValueError`` for an unknown ``$type``, or the error of a value that does not fit.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: decode(item) for key, item in value.items()}
    kind = value[TAG]
    if kind not in _TAGGED:
        raise ValueError(f"unknown $type {kind!r}; known: {', '.join(sorted(_TAGGED))}")
    return _TAGGED[kind](value["value"])
