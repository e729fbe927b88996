"""Geometries: WKB (bytes or hex) and WKT as one spelling."""

from __future__ import annotations

import re
import struct
from typing import Any

_TYPES = {
    1: "POINT",
    2: "LINESTRING",
    3: "POLYGON",
    4: "MULTIPOINT",
    5: "MULTILINESTRING",
    6: "MULTIPOLYGON",
    7: "GEOMETRYCOLLECTION",
}
_HAS_Z, _HAS_M, _HAS_SRID = 0x80000000, 0x40000000, 0x20000000
"""Flags of PostGIS (EWKB); ISO WKB adds 1000, 2000, 3000 to the type instead."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def read_geometry(value: Any) -> str | None:
    """Return one spelling for a geometry as WKB, hex or WKT; ``None`` where it is none of them."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) % 2 == 0 and re.fullmatch("[0-9A-Fa-f]{10,}", text):
            return _from_wkb(bytes.fromhex(text))
        return _spelled(text)
    return _from_wkb(bytes(value)) if isinstance(value, (bytes, bytearray, memoryview)) else None


def _spelled(text: str) -> str | None:
    """Return WKT without a choice: upper case, no blanks but between numbers,
    numbers in their shortest form.
    """
    text = re.sub(r"^SRID=[0-9]+;", "", text, flags=re.IGNORECASE).upper()
    if not text.startswith(tuple(_TYPES.values())):
        return None
    text = re.sub(r"\b(Z|M|ZM)\b", "", text)
    text = _NUMBER.sub(lambda found: repr(float(found[0])), text)
    text = re.sub(r"(?<!\s)\s*+([(),])\s*+", r"\1", re.sub(r"\s++", " ", text)).strip()
    # a multipoint may be written with or without parentheses around each point
    return re.sub(r"\(([^(),]+)\)", r"\1", text) if text.startswith("MULTIPOINT") else text


def _from_wkb(data: bytes) -> str | None:
    try:
        text, end = _shape(data, 0)
    except (struct.error, KeyError, IndexError, RecursionError):
        return None
    return _spelled(text) if end == len(data) else None


def _shape(data: bytes, at: int) -> tuple[str, int]:
    """Return the WKT of the shape that begins at ``at``, and where it ends."""
    order = "<" if data[at] == 1 else ">"
    (code,) = struct.unpack_from(order + "I", data, at + 1)
    at += 9 if code & _HAS_SRID else 5
    iso, kind = divmod(code & 0x0FFFFFFF, 1000)
    width = 2 + bool(code & _HAS_Z or iso in (1, 3)) + bool(code & _HAS_M or iso in (2, 3))
    name = _TYPES[kind]
    if name == "POINT":
        point, at = _point(data, at, order, width)
        return f"POINT({point})" if "nan" not in point else "POINT EMPTY", at
    (count,) = struct.unpack_from(order + "I", data, at)
    at += 4
    parts = []
    for _ in range(count):
        if name == "LINESTRING":
            part, at = _point(data, at, order, width)
        elif name == "POLYGON":
            part, at = _ring(data, at, order, width)
        else:
            part, at = _shape(data, at)
            part = part if name == "GEOMETRYCOLLECTION" else part.removeprefix(name.removeprefix("MULTI"))
        parts.append(part)
    return f"{name}({','.join(parts)})" if parts else f"{name} EMPTY", at


def _ring(data: bytes, at: int, order: str, width: int) -> tuple[str, int]:
    (count,) = struct.unpack_from(order + "I", data, at)
    at += 4
    points = []
    for _ in range(count):
        point, at = _point(data, at, order, width)
        points.append(point)
    return f"({','.join(points)})", at


def _point(data: bytes, at: int, order: str, width: int) -> tuple[str, int]:
    numbers = struct.unpack_from(f"{order}{width}d", data, at)
    return " ".join(map(repr, numbers)), at + 8 * width
