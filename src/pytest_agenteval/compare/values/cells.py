"""Cells: each value is read once, as the EXPECTED column's kind says, into a key and numbers.

Two cells are equal when their keys are equal and their numbers are, one by one, by the column's
number rule. A value without tolerance is all key; NULL is the key ``None``.
"""

from __future__ import annotations

import datetime
import ipaddress
import math
import re
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pytest_agenteval.compare.options import ColumnOptions
from pytest_agenteval.compare.values.canonical import (
    DEEPEST,
    clean_text,
    fingerprint,
    parse_json,
    plain_form,
    token,
    too_large,
)
from pytest_agenteval.compare.values.geometry import read_geometry
from pytest_agenteval.compare.values.numbers import (
    LONGEST,
    Float32,
    Number,
    fits_single,
    read_number,
    shortest,
)
from pytest_agenteval.compare.values.sql_types import Kind
from pytest_agenteval.compare.values.temporal import read_interval, read_moment, read_time
from pytest_agenteval.support.scalars import is_null, plain
from pytest_agenteval.table import arrow_values, bit_text, within_python

NUMBER = "#"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value that is none of its column's kind; equal only to the same value."""

    token: str


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """How the values of one column are read.

    ``integer_rule``: integers of this column were given a tolerance. ``single``: floats that fit in
    32 bits show their 32-bit form. ``percent`` is what a cell with ``%`` is multiplied by,
    ``factor`` what every cell is. ``infinite``: the expected column holds an infinite date, so that
    Python's first and last ones, which DuckDB's client gives for infinity, may stand for it.
    """

    kind: Kind
    fold: bool = False
    null_as_zero: bool = False
    null_as_empty: bool = False
    integer_rule: bool = False
    single: bool = False
    percent: Decimal = Decimal("0.01")
    factor: Decimal = Decimal(1)
    infinite: bool = False

    @classmethod
    def of(cls, kind: Kind, options: ColumnOptions) -> ColumnReading:
        """Return the reading of an expected column of ``kind`` under ``options``."""
        return cls(
            kind,
            fold=options.string_case == "insensitive",
            null_as_zero=options.null_as_zero,
            null_as_empty=options.null_as_empty,
            integer_rule=options.explicit,
            single=kind.name == "single",
        )

    @property
    def tolerant(self) -> bool:
        """Whether any cell may carry numbers that are compared with a tolerance."""
        return self.kind.tolerant or self.kind.nested or (self.integer_rule and self.kind.name == "integer")


Cell = tuple[Hashable, tuple[Number, ...]]
NULL: Cell = (None, ())


def read_cell(value: Any, reading: ColumnReading) -> Cell:
    """Read one value; never raises."""
    value = plain(value)
    kind = reading.kind.name
    if is_null(value):
        return _null(reading)
    if isinstance(value, str):
        if (reading.kind.numeric or reading.null_as_empty) and not value.strip():
            return _null(reading)
    elif isinstance(value, (list, tuple, dict)) and too_large(value):
        return Unreadable(f"a {type(value).__name__} too large to look at: {fingerprint(value)}"), ()
    return _READERS.get(kind, _read_any)(value, reading, 0)


def _null(reading: ColumnReading) -> Cell:
    if reading.null_as_zero and reading.kind.numeric:
        return (NUMBER, (0,)) if reading.tolerant else (0, ())
    return NULL


def _unreadable(value: Any) -> Cell:
    return Unreadable(f"{_family(value)} {token(value)}"), ()


def _family(value: Any) -> str:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _read_text(value: Any, reading: ColumnReading, depth: int) -> Cell:
    if isinstance(value, (list, dict, tuple, bytes, bytearray, memoryview)):
        return _unreadable(value)
    text = clean_text(value if isinstance(value, str) else plain_form(value))
    if reading.fold:
        text = clean_text(text.casefold())
    if not text and reading.null_as_empty:
        return NULL
    return text, ()


def _read_number(value: Any, reading: ColumnReading) -> Number | None:
    """Return a finite or infinite number, a NaN as ``nan``; ``None`` where the value is not a number."""
    if isinstance(value, bool):
        return int(value) if reading.kind.name == "integer" else None
    number: Number | None = None
    if isinstance(value, str):
        found = read_number(value)
        if found is not None:
            number = _times(found.value, reading.percent) if found.percent else found.value
    elif isinstance(value, Decimal):
        number = float(value) if value.is_infinite() else value
        if isinstance(number, Decimal) and abs(number.adjusted()) > LONGEST:
            number = None
    elif isinstance(value, int):
        number = int(value) if value.bit_length() <= 4 * LONGEST else None
    elif isinstance(value, float):
        number = Float32(value) if reading.single and fits_single(value) else float(value)
    if number is None or reading.factor == 1:
        return number
    return _times(number, reading.factor)


def _times(number: Number, factor: Decimal) -> Number:
    """Return scaled in the shortest decimal form, so that 12.5 x 1/100 is 0.125 and nothing near it."""
    if factor == 1 or (isinstance(number, float) and not math.isfinite(number)):
        return number
    return shortest(number).scaleb(factor.adjusted())


def _read_numeric(value: Any, reading: ColumnReading, depth: int) -> Cell:
    number = _read_number(value, reading)
    if number is None:
        return _unreadable(value)
    if isinstance(number, float) and not math.isfinite(number):
        return _null(reading) if number != number else (float(number), ())
    if reading.kind.name != "integer":
        return NUMBER, (number,)
    exact = _integral(number)
    return (NUMBER, (exact,)) if reading.integer_rule else (exact, ())


def _integral(number: Number) -> int | Decimal:
    """Return the integer a number is, by its shortest decimal form; otherwise that form."""
    if isinstance(number, int):
        return number
    form = shortest(number)
    return int(form) if form == form.to_integral_value() else form.normalize()


_TRUTH = {
    "true": True,
    "t": True,
    "1": True,
    "1.0": True,
    "false": False,
    "f": False,
    "0": False,
    "0.0": False,
}


def _read_boolean(value: Any, reading: ColumnReading, depth: int) -> Cell:
    if isinstance(value, str):
        word = value.strip().lower()
        return (_TRUTH[word], ()) if word in _TRUTH else _unreadable(value)
    if isinstance(value, (int, float, Decimal)) and value in (0, 1):
        return bool(value), ()
    return _unreadable(value)


_EXTREMES: Mapping[type, Mapping[Any, float]] = {
    datetime.date: {datetime.date.max: math.inf, datetime.date.min: -math.inf},
    datetime.datetime: {datetime.datetime.max: math.inf, datetime.datetime.min: -math.inf},
}


def is_infinite(kind: Kind, data: Any) -> bool:
    """Return whether a column holds infinite dates, and none of Python's first and last ones beside them."""
    if not _of_moments(kind) or (hasattr(data, "to_pylist") and within_python(data)):
        return False
    values = arrow_values(data) if hasattr(data, "to_pylist") else data
    if not kind.nested and str not in set(map(type, values)):
        return False
    leaves = list(_leaves(values))
    found = any(isinstance(leaf, str) and read_moment(leaf) in (math.inf, -math.inf) for leaf in leaves)
    return found and not any(type(leaf) in _EXTREMES and leaf in _EXTREMES[type(leaf)] for leaf in leaves)


def _of_moments(kind: Kind) -> bool:
    return kind.name in ("date", "timestamp", "instant") or any(map(_of_moments, kind.parts))


def _leaves(values: Any, depth: int = 0) -> Iterator[Any]:
    for value in values:
        if depth < DEEPEST and isinstance(value, (list, tuple, dict)):
            yield from _leaves(value.values() if isinstance(value, dict) else value, depth + 1)
        else:
            yield value


def _read_moment(value: Any, reading: ColumnReading, depth: int) -> Cell:
    moment = read_moment(value)
    if reading.infinite and type(value) in _EXTREMES:
        naive = value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
        moment = _EXTREMES[type(value)].get(naive, moment)
    return _unreadable(value) if moment is None else (moment, ())


def _read_interval(value: Any, reading: ColumnReading, depth: int) -> Cell:
    micros = read_interval(value, reading.kind.year_days)
    return _unreadable(value) if micros is None else (micros, ())


def _read_time(value: Any, reading: ColumnReading, depth: int) -> Cell:
    micros = read_time(value)
    return _unreadable(value) if micros is None else (micros, ())


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _read_uuid(value: Any, reading: ColumnReading, depth: int) -> Cell:
    text = str(value).strip().lower() if isinstance(value, (str, uuid.UUID)) else ""
    return (text, ()) if _UUID.fullmatch(text) else _unreadable(value)


def _read_blob(value: Any, reading: ColumnReading, depth: int) -> Cell:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), ()
    text = value.strip() if isinstance(value, str) else None
    if text is None:
        return _unreadable(value)
    hexadecimal = text[2:] if re.fullmatch(r"[\\0][xX](?:[0-9A-Fa-f]{2})*", text) else text
    if len(hexadecimal) % 2 == 0 and re.fullmatch("[0-9A-Fa-f]*", hexadecimal):
        # Postgres writes \\xdead: where DuckDB means the byte DE and the text "ad", nothing else differs
        return bytes.fromhex(hexadecimal), ()
    if "\\x" in text and text.isascii():
        body = re.sub(r"\\x([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), text)
        return body.encode("latin-1"), ()
    return _unreadable(value)


def _read_bit(value: Any, reading: ColumnReading, depth: int) -> Cell:
    if isinstance(value, bytes) and len(value) > 1 and value[0] < 8:
        return bit_text(value), ()
    text = value.strip() if isinstance(value, str) else plain_form(value)
    return (text, ()) if re.fullmatch("[01]+", text) else _unreadable(value)


def _read_inet(value: Any, reading: ColumnReading, depth: int) -> Cell:
    """Return an address or a network; a single address is one with and without ``/32``."""
    try:
        found = ipaddress.ip_interface(value.strip() if isinstance(value, str) else value)
    except ValueError:
        return _unreadable(value)
    alone = found.network.prefixlen == found.max_prefixlen
    return str(found.ip) if alone else str(found), ()


def _read_range(value: Any, reading: ColumnReading, depth: int) -> Cell:
    """Return ranges by their text, quotes and blanks around the bounds left out."""
    if not isinstance(value, str):
        return _unreadable(value)
    return re.sub(r"(?<!\s)\s*+([,{}()\[\]])\s*+", r"\1", value.strip().replace('"', "")), ()


def _read_geometry(value: Any, reading: ColumnReading, depth: int) -> Cell:
    shape = read_geometry(value)
    return _unreadable(value) if shape is None else (shape, ())


_HSTORE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*=>\s*(?:(NULL)|"((?:[^"\\]|\\.)*)")\s*(?:,\s*|$)', re.IGNORECASE)


def _read_hstore(value: Any, reading: ColumnReading, depth: int) -> Cell:
    """Return a map of texts: as an object, as JSON text, or as the server writes it (``"a"=>"1"``)."""
    if isinstance(value, str):
        parsed = parse_json(value) if value.lstrip()[:1] == "{" else _hstore(value.strip())
        return _unreadable(value) if not isinstance(parsed, dict) else _read_hstore(parsed, reading, depth)
    if not isinstance(value, dict):
        return _unreadable(value)
    items = sorted((clean_text(token(k)), None if v is None else plain_form(v)) for k, v in value.items())
    return ("map", tuple(items)), ()


def _hstore(text: str) -> dict[str, str | None] | None:
    entries: dict[str, str | None] = {}
    end = 0
    for found in _HSTORE.finditer(text):
        if found.start() != end:
            return None
        key, empty, item = found.groups()
        entries[re.sub(r"\\(.)", r"\1", key)] = None if empty else re.sub(r"\\(.)", r"\1", item)
        end = found.end()
    return entries if end == len(text) else None


def _read_tuple(value: Any, reading: ColumnReading, depth: int) -> Cell:
    """Return fields without names: a list, or an object whose values stand in their order."""
    items = parse_json(value) if isinstance(value, str) else value
    items = list(items.values()) if isinstance(items, dict) else items
    kinds = reading.kind.parts
    if not isinstance(items, (list, tuple)) or len(items) != len(kinds) or depth > DEEPEST:
        return _unreadable(value)
    pairs = zip(items, kinds, strict=True)
    return _joined("tuple", [read_inner(item, _inner(reading, kind), depth) for item, kind in pairs])


def _read_list(value: Any, reading: ColumnReading, depth: int) -> Cell:
    items = parse_json(value) if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or depth > DEEPEST:
        return _unreadable(value)
    inner = _inner(reading, reading.kind.parts[0])
    return _joined("list", [read_inner(item, inner, depth) for item in items])


def _read_struct(value: Any, reading: ColumnReading, depth: int) -> Cell:
    fields = parse_json(value) if isinstance(value, str) else value
    if not isinstance(fields, dict) or depth > DEEPEST:
        return _unreadable(value)
    kinds = dict(zip(reading.kind.fields, reading.kind.parts, strict=True))
    cells = [read_inner(fields.get(name), _inner(reading, kind), depth) for name, kind in kinds.items()]
    others = {name: item for name, item in fields.items() if name not in kinds}
    if others:
        cells.append((token(others), ()))
    return _joined("struct", cells)


def _is_pair(entry: Any) -> bool:
    """Return an entry of a map as Arrow gives it: a pair, which JSON keeps as a list."""
    return isinstance(entry, (list, tuple)) and len(entry) == 2


def _read_map(value: Any, reading: ColumnReading, depth: int) -> Cell:
    entries = parse_json(value) if isinstance(value, str) else value
    if isinstance(entries, (list, tuple)) and all(_is_pair(entry) for entry in entries):
        pairs = list(entries)
    elif isinstance(entries, dict):
        pairs = list(entries.items())
    else:
        return _unreadable(value)
    if depth > DEEPEST:
        return _unreadable(value)
    keys, values = (_inner(reading, part) for part in reading.kind.parts)
    cells = [(read_inner(k, keys, depth), read_inner(v, values, depth)) for k, v in pairs]
    cells.sort(key=lambda pair: repr(pair[0]))
    return _joined("map", [cell for pair in cells for cell in pair])


def _inner(reading: ColumnReading, kind: Kind) -> ColumnReading:
    single = reading.single or kind.name == "single"
    return ColumnReading(
        kind,
        reading.fold,
        integer_rule=reading.integer_rule,
        single=single,
        percent=reading.percent,
        infinite=reading.infinite,
    )


def read_inner(value: Any, reading: ColumnReading, depth: int) -> Cell:
    """Read a value inside a list, struct or map."""
    value = plain(value)
    if is_null(value):
        return NULL
    return _READERS.get(reading.kind.name, _read_any)(value, reading, depth + 1)


def _joined(shape: str, cells: list[Cell]) -> Cell:
    key = (shape, tuple(key for key, _ in cells))
    return key, tuple(number for _, numbers in cells for number in numbers)


def _read_json(value: Any, reading: ColumnReading, depth: int) -> Cell:
    if isinstance(value, str):
        parsed = parse_json(value)
        if parsed is ...:
            return ("text", clean_text(value)), ()
        return NULL if parsed is None else _read_any(parsed, reading, depth)
    return _read_any(value, reading, depth)


def _read_any(value: Any, reading: ColumnReading, depth: int) -> Cell:
    """Read by the value's type: whole numbers exactly, other numbers with tolerance, the rest as it is."""
    value = plain(value)
    if is_null(value):
        return NULL
    if isinstance(value, bool):
        return ("boolean", value), ()
    if isinstance(value, str):
        text = clean_text(value)
        return ("text", clean_text(text.casefold()) if reading.fold else text), ()
    if depth > DEEPEST:
        return _unreadable("...")
    if isinstance(value, (list, tuple)):
        return _joined("list", [_read_any(item, reading, depth + 1) for item in value])
    if isinstance(value, dict):
        items = sorted(((token(k), v) for k, v in value.items()), key=lambda item: item[0])
        return _joined(
            "struct",
            [c for k, v in items for c in ((k, ()), _read_any(v, reading, depth + 1))],
        )
    if isinstance(value, (int, float, Decimal)):
        return _any_number(value, reading)
    return _any_other(value)


def _any_number(value: Number, reading: ColumnReading) -> Cell:
    number = _read_number(value, reading)
    if number is None:
        return _unreadable(value)
    if isinstance(number, float) and not math.isfinite(number):
        return ("number", float(number)), ()
    exact = _integral(number)
    if not isinstance(exact, int):
        return NUMBER, (number,)
    return ("number", exact if isinstance(number, int) else Integral.of(exact, number)), ()


class Integral(int):
    """An integer that was written with decimals (3.0): the key of 3, and the number as it came."""

    written: Number

    @classmethod
    def of(cls, value: int, written: Number) -> Integral:
        """Return ``value``, which came as ``written``."""
        out = cls(value)
        out.written = written
        return out


def _any_other(value: Any) -> Cell:
    if isinstance(value, (datetime.datetime, datetime.date)):
        return ("moment", read_moment(value)), ()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ("blob", bytes(value)), ()
    return (type(value).__name__, token(value)), ()


_READERS: dict[str, Callable[[Any, ColumnReading, int], Cell]] = {
    "text": _read_text,
    "integer": _read_numeric,
    "float": _read_numeric,
    "single": _read_numeric,
    "decimal": _read_numeric,
    "boolean": _read_boolean,
    "date": _read_moment,
    "timestamp": _read_moment,
    "instant": _read_moment,
    "time": _read_time,
    "interval": _read_interval,
    "bit": _read_bit,
    "inet": _read_inet,
    "range": _read_range,
    "geometry": _read_geometry,
    "hstore": _read_hstore,
    "tuple": _read_tuple,
    "uuid": _read_uuid,
    "blob": _read_blob,
    "json": _read_json,
    "list": _read_list,
    "struct": _read_struct,
    "map": _read_map,
    "any": _read_any,
}
