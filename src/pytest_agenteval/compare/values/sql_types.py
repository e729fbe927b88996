"""What an SQL type means to the comparison: a small tree of kinds."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pytest_agenteval.compare.values.temporal import beyond_python
from pytest_agenteval.support.scalars import is_null, plain


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value. ``parts`` are the kinds inside (list: 1, map: 2), ``fields`` name a struct's.

    Names: text, integer, float, single (32 bits), decimal, boolean, date, timestamp, instant
    (timestamp with time zone), time, interval, uuid, blob, bit, inet, range, geometry, json, list, tuple,
    struct, map, hstore, any. ``year_days`` are the days that 12 months of an interval count as.
    """

    name: str
    parts: tuple[Kind, ...] = ()
    fields: tuple[str, ...] = ()
    year_days: int = 360

    @property
    def tolerant(self) -> bool:
        """Whether numbers of this kind are compared by the number rule."""
        return self.name in ("float", "single", "decimal")

    @property
    def nested(self) -> bool:
        """Whether values of this kind hold values."""
        return self.name in ("list", "tuple", "struct", "map", "json", "any")

    @property
    def numeric(self) -> bool:
        """Whether values of this kind are numbers."""
        return self.tolerant or self.name == "integer"


_WORDS = {
    "text": "VARCHAR CHAR TEXT STRING BPCHAR NVARCHAR NCHAR ENUM CLOB CITEXT NAME CHARACTER "
    "NVARCHAR2 VARCHAR2 LONGTEXT MEDIUMTEXT TINYTEXT FIXEDSTRING LTREE MACADDR XML",
    "integer": "INTEGER INT BIGINT SMALLINT TINYINT HUGEINT UBIGINT UINTEGER USMALLINT UTINYINT UHUGEINT "
    "INT1 INT2 INT4 INT8 INT16 INT32 INT64 INT128 LONG SHORT SIGNED MEDIUMINT BYTEINT SERIAL BIGSERIAL "
    "UINT8 UINT16 UINT32 UINT64 UINT128 VARINT BIGNUM OID",
    "float": "DOUBLE FLOAT8 FLOAT64",
    "single": "FLOAT FLOAT4 REAL FLOAT32",
    "boolean": "BOOLEAN BOOL LOGICAL",
    "date": "DATE DATE32",
    "timestamp": "TIMESTAMP DATETIME TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_US TIMESTAMP_NS TIMESTAMP_NTZ "
    "DATETIME2 SMALLDATETIME DATETIME64",
    "instant": "TIMESTAMPTZ TIMESTAMP_TZ TIMESTAMP_LTZ DATETIMEOFFSET",
    "time": "TIME TIMETZ TIME_NS",
    "interval": "INTERVAL",
    "uuid": "UUID UNIQUEIDENTIFIER",
    "blob": "BLOB BYTEA BINARY VARBINARY BYTES",
    "json": "JSON JSONB VARIANT",
    "bit": "BIT VARBIT BITSTRING",
    "range": "INT4RANGE INT8RANGE NUMRANGE TSRANGE TSTZRANGE DATERANGE INT4MULTIRANGE INT8MULTIRANGE "
    "NUMMULTIRANGE TSMULTIRANGE TSTZMULTIRANGE DATEMULTIRANGE",
    "geometry": "GEOMETRY GEOGRAPHY",
    "hstore": "HSTORE",
    "inet": "INET CIDR",
    "decimal": "MONEY SMALLMONEY",
}
KINDS = {word: Kind(name) for name, words in _WORDS.items() for word in words.split()}
ANY = Kind("any")
TEXT = Kind("text")
POSTGRES_YEARS = "(year = 365 days)"
"""What stands behind INTERVAL where 12 months are 365 days, as the drivers of Postgres count."""
_DECIMALS = ("DECIMAL", "NUMERIC", "NUMBER", "DEC", "BIGNUMERIC")


def kind_of(sql_type: str | None) -> Kind | None:
    """Return the kind of an SQL type as a driver spells it; ``None`` for none, or one that is not known."""
    if not sql_type:
        return None
    text = sql_type.strip()
    listed = re.fullmatch(r"(.*)\[\d*\]", text, re.DOTALL)
    if listed:
        return Kind("list", (kind_of(listed[1]) or ANY,))
    head = re.match(r"[A-Za-z_0-9]+", text)
    word = head[0].upper() if head else ""
    rest = text[len(word) :].strip()
    inside = rest[1:-1] if rest[:1] in "(<" and rest[-1:] in (")", ">") and rest else ""
    if word in _DECIMALS:
        return _decimal(inside)
    if word in ("STRUCT", "ROW", "RECORD"):
        return _struct(inside)
    if word == "TUPLE" and inside:
        return Kind("tuple", tuple(kind_of(part) or ANY for part in _split(inside)))
    if word == "UNION":
        return ANY
    if word == "INTERVAL" and rest == POSTGRES_YEARS:
        return Kind("interval", year_days=365)
    if word == "BIT" and "VARYING" in rest.upper():
        return KINDS["BIT"]
    if word == "MAP" and inside:
        parts = [kind_of(part) or ANY for part in _split(inside)]
        return Kind("map", tuple(parts)) if len(parts) == 2 else ANY
    if word in ("LIST", "ARRAY") and inside:
        return Kind("list", (kind_of(inside) or ANY,))
    if word in ("TIMESTAMP", "DATETIME", "TIME") and "WITH TIME ZONE" in rest.upper():
        return KINDS["TIMESTAMPTZ" if word != "TIME" else "TIME"]
    return KINDS.get(word)


def _decimal(inside: str) -> Kind:
    """Return the kind of a DECIMAL: a precision without a scale means scale 0, none leaves it open."""
    sizes = [part.strip() for part in inside.split(",")] if inside else []
    scale = sizes[1] if len(sizes) > 1 else "0" if sizes else "?"
    return Kind("integer" if scale == "0" else "decimal")


def _struct(inside: str) -> Kind:
    names, parts = [], []
    for entry in _split(inside):
        found = re.match(r'\s*(?:"((?:[^"]|"")*)"|([^\s:]+))\s*:?\s*(.*)', entry, re.DOTALL)
        if not found:
            return ANY
        names.append((found[1] or "").replace('""', '"') if found[2] is None else found[2])
        parts.append(kind_of(found[3]) or ANY)
    return Kind("struct", tuple(parts), tuple(names))


def _split(text: str) -> list[str]:
    """Split at commas that stand outside brackets and quotes."""
    out, depth, quoted, start = [], 0, "", 0
    for index, char in enumerate(text):
        if quoted:
            quoted = "" if char == quoted else quoted
        elif char in "\"'":
            quoted = char
        elif char in "(<[":
            depth += 1
        elif char in ")>]":
            depth -= 1
        elif char == "," and depth == 0:
            out.append(text[start:index])
            start = index + 1
    return [*out, text[start:]] if text.strip() else []


def kind_of_values(values: Iterable[Any]) -> Kind:
    """Return the kind of a column without a type: that of its values, ``any`` where they are mixed."""
    if isinstance(values, list):
        one = _kind_of_one_type(values)
        if one is not None:
            return one
    seen: set[str] = set()
    known: dict[type, str] = {}
    texts: list[str] = []
    for value in values:
        name = known.get(type(value))
        if name is None:
            value = plain(value)
            if is_null(value):
                continue
            name = _kind_of_value(value)
            if type(value) in _STEADY:
                known[type(value)] = name
        if name == "text":
            texts.append(value)
        seen.add(name)
    if "text" in seen and seen - {"text"} <= {"date", "timestamp", "instant"} and seen != {"text"}:
        # infinity and the year 20000 have no other form in Python than their text
        seen -= {"text"} if all(map(beyond_python, texts)) else set()
    if len(seen) == 1:
        return Kind(seen.pop())
    if seen and seen <= {"integer", "float"}:
        return Kind("float")
    if seen and seen <= {"integer", "decimal"}:
        return Kind("decimal")
    if seen == {"date", "timestamp"}:
        return Kind("timestamp")
    return ANY


def _kind_of_one_type(values: list[Any]) -> Kind | None:
    """Return the kind of values of one plain type, NULLs aside; ``None`` where they must be looked at."""
    types = set(map(type, values)) - {type(None)}
    if len(types) != 1:
        return None
    kind = _PLAIN.get(types.pop())
    # NaN is NULL: a column that begins with a number holds one
    head = next((value for value in values if value is not None), None)
    return None if kind is None or is_null(head) else Kind(kind)


_PLAIN: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "float",
    Decimal: "decimal",
    str: "text",
    datetime.date: "date",
    datetime.time: "time",
    datetime.timedelta: "interval",
    bytes: "blob",
}

# Types whose every value has one kind (a float may be NaN, a datetime may have a zone).
_STEADY = (bool, int, str, datetime.date, datetime.time, datetime.timedelta, bytes)


def _kind_of_value(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return "instant" if value.tzinfo else "timestamp"
    if isinstance(value, (list, tuple, dict)):
        return "json"
    kinds: list[tuple[type | tuple[type, ...], str]] = [
        (bool, "boolean"),
        (int, "integer"),
        (float, "float"),
        (Decimal, "decimal"),
        (str, "text"),
        (datetime.date, "date"),
        (datetime.time, "time"),
        (datetime.timedelta, "interval"),
        (uuid.UUID, "uuid"),
        ((bytes, bytearray, memoryview), "blob"),
    ]
    return next((name for types, name in kinds if isinstance(value, types)), "any")
