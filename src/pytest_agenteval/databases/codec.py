"""Tables as bytes, exactly: every Python value comes back as the value it was.

One JSON line of metadata, then the columns: JSON for Python values, Arrow IPC where all columns are
Arrow arrays. JSON because a file must never be able to run code (pickle can).
"""

from __future__ import annotations

import base64
import datetime
import json
import uuid
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pytest_agenteval.table import Column, Table

_PLAIN = (str, int, float, bool, type(None))


class NotSerialisable(Exception):
    """A value whose type has no exact form here."""


def dump(table: Table) -> bytes:
    """``table`` as bytes. Raises ``NotSerialisable`` for values of a type that is not known here."""
    arrow = bool(table.values) and all(hasattr(data, "to_pylist") for data in table.values)
    head = {
        "columns": [[column.name, column.type] for column in table.columns],
        "rows": table.row_count,
        "form": "arrow" if arrow else "json",
    }
    body = _arrow_bytes(table) if arrow else _json_bytes(table)
    return json.dumps(head).encode("ascii") + b"\n" + body


def load(data: bytes) -> Table:
    """The table that ``dump`` made ``data`` from."""
    line, _, body = data.partition(b"\n")
    head = json.loads(line)
    columns = tuple(Column(name, kind) for name, kind in head["columns"])
    if head["form"] == "arrow":
        import pyarrow

        with pyarrow.ipc.open_stream(body) as reader:
            values = tuple(reader.read_all().columns)
    else:
        values = tuple(_loaded(entry) for entry in json.loads(body))
    return Table(columns, values, head["rows"])


def _arrow_bytes(table: Table) -> bytes:
    import pyarrow

    names = [str(number) for number in range(len(table.columns))]
    frame = pyarrow.table(list(table.values), names=names)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, frame.schema) as writer:
        writer.write_table(frame)
    return bytes(sink.getvalue())


def _json_bytes(table: Table) -> bytes:
    columns = [_dumped(table.column(index)) for index in range(len(table.columns))]
    return json.dumps(columns, separators=(",", ":")).encode("ascii")


def _dumped(values: list[Any]) -> Any:
    """A column as ``[tag, texts]`` where all values have one type, else every value tagged."""
    kinds = {type(value) for value in values}
    if kinds <= set(_PLAIN):
        return ["", values]
    kinds.discard(type(None))
    if len(kinds) == 1:
        tag, to_text, _ = _form(kinds.pop())
        return [tag, [None if value is None else to_text(value) for value in values]]
    return ["*", [_tagged(value) for value in values]]


def _loaded(entry: Any) -> list[Any]:
    tag, values = entry
    if tag == "":
        return list(values)
    if tag == "*":
        return [_untagged(value) for value in values]
    back = _BACK[tag]
    return [None if value is None else back(value) for value in values]


def _tagged(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    tag, to_text, _ = _form(type(value))
    return [tag, to_text(value)]


def _untagged(value: Any) -> Any:
    return _BACK[value[0]](value[1]) if isinstance(value, list) else value


def _form(kind: type) -> tuple[str, Callable[[Any], Any], Callable[[Any], Any]]:
    if kind not in _FORMS:
        raise NotSerialisable(f"{kind.__module__}.{kind.__qualname__}")
    return _FORMS[kind]


def _zone(value: Any) -> Any:
    """The zone of a moment: by name, else (fixed offsets, pytz) its offset in seconds."""
    if value.tzinfo is None:
        return None
    if isinstance(value.tzinfo, zoneinfo.ZoneInfo) and value.tzinfo.key:
        return value.tzinfo.key
    offset = value.utcoffset()
    if offset is None:
        raise NotSerialisable(repr(value.tzinfo))
    return offset.total_seconds()


def _zone_back(entry: Any) -> datetime.tzinfo | None:
    if entry is None:
        return None
    if isinstance(entry, str):
        return zoneinfo.ZoneInfo(entry)
    return datetime.timezone(datetime.timedelta(seconds=entry))


def _datetime(value: datetime.datetime) -> Any:
    return [value.replace(tzinfo=None, fold=0).isoformat(), _zone(value), value.fold]


def _datetime_back(entry: Any) -> datetime.datetime:
    text, zone, fold = entry
    return datetime.datetime.fromisoformat(text).replace(tzinfo=_zone_back(zone), fold=fold)


def _time(value: datetime.time) -> Any:
    return [value.replace(tzinfo=None, fold=0).isoformat(), _zone(value), value.fold]


def _time_back(entry: Any) -> datetime.time:
    text, zone, fold = entry
    return datetime.time.fromisoformat(text).replace(tzinfo=_zone_back(zone), fold=fold)


_FORMS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    Decimal: ("d", str, Decimal),
    datetime.date: ("D", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.datetime: ("T", _datetime, _datetime_back),
    datetime.time: ("t", _time, _time_back),
    datetime.timedelta: (
        "i",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda entry: datetime.timedelta(*entry),
    ),
    bytes: ("b", lambda value: base64.b64encode(value).decode("ascii"), base64.b64decode),
    uuid.UUID: ("u", str, uuid.UUID),
    list: ("l", lambda value: [_tagged(item) for item in value], lambda entry: [_untagged(v) for v in entry]),
    tuple: (
        "p",
        lambda value: [_tagged(item) for item in value],
        lambda entry: tuple(_untagged(v) for v in entry),
    ),
    dict: (
        "m",
        lambda value: [[_tagged(key), _tagged(item)] for key, item in value.items()],
        lambda entry: {_untagged(key): _untagged(item) for key, item in entry},
    ),
}
"""Type -> its tag, the way to JSON, the way back."""

_BACK = {tag: back for tag, _, back in _FORMS.values()}
