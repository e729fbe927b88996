"""Every Arrow type, equal, in another order and with one cell changed, in both engines."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.compare import compare
from pytest_agenteval.table import Table, arrow_values

D = decimal.Decimal
DAY = dt.date(2024, 1, 1)
NOON = dt.datetime(2024, 1, 1, 12)


def plain(kind: Any, *values: Any) -> Any:
    return lambda cells: pa.array([values[cell] if cell is not None else None for cell in cells], kind)


def extension(kind: Any, storage: Any, *values: Any) -> Any:
    make = plain(storage, *values)
    return lambda cells: pa.ExtensionArray.from_storage(kind, make(cells))


def union(cells: list[Any]) -> Any:
    numbers = pa.array([cell if cell != 1 else None for cell in cells], pa.int64())
    words = pa.array(["b" if cell == 1 else None for cell in cells])
    return pa.UnionArray.from_sparse(
        pa.array([int(cell == 1) for cell in cells], pa.int8()), [numbers, words]
    )


def encoded(cells: list[Any]) -> Any:
    return pc.run_end_encode(pa.array(cells, pa.int64()))


def months(cells: list[Any]) -> Any:
    spans = [None if cell is None else pa.MonthDayNano([14 + cell, 3, 5_000_000_000]) for cell in cells]
    return pa.array(spans, pa.month_day_nano_interval())


DAYS = plain(pa.date32(), DAY, dt.date(2024, 1, 2))

# name -> what makes an array of cells 0, 1 (another value) and None
ARRAYS: dict[str, Any] = {
    **{str(kind): plain(kind, 3, 4) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): plain(kind, 3, 4) for kind in (pa.uint8(), pa.uint16(), pa.uint32())},
    "uint64": plain(pa.uint64(), 2**64 - 1, 2**64 - 2),
    **{str(kind): plain(kind, 1.5, 2.5) for kind in (pa.float16(), pa.float32(), pa.float64())},
    "bool": plain(pa.bool_(), True, False),
    **{str(kind): plain(kind, "é", "b") for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{
        str(kind): plain(kind, b"\xde\xad", b"b")
        for kind in (pa.binary(), pa.large_binary(), pa.binary_view())
    },
    "fixed_binary": plain(pa.binary(2), b"\xde\xad", b"bb"),
    **{str(kind): plain(kind, D("1.25"), D("2.50")) for kind in (pa.decimal128(10, 2), pa.decimal256(50, 2))},
    "date32": plain(pa.date32(), DAY, dt.date(2024, 1, 2)),
    "date64": plain(pa.date64(), DAY, dt.date(2024, 1, 2)),
    **{
        str(kind): plain(kind, NOON, dt.datetime(2024, 1, 1, 13))
        for unit in ("s", "ms", "us", "ns")
        for kind in (pa.timestamp(unit), pa.timestamp(unit, "Europe/Berlin"))
    },
    "time32_s": plain(pa.time32("s"), dt.time(10), dt.time(11)),
    "time32_ms": plain(pa.time32("ms"), dt.time(10), dt.time(11)),
    "time64_us": plain(pa.time64("us"), dt.time(10), dt.time(11)),
    "time64_ns": plain(pa.time64("ns"), dt.time(10), dt.time(11)),
    **{
        f"duration_{unit}": plain(pa.duration(unit), dt.timedelta(hours=1), dt.timedelta(hours=2))
        for unit in ("s", "ms", "us", "ns")
    },
    "month_day_nano": months,
    "null": lambda cells: pa.nulls(len(cells)),
    "list": plain(pa.list_(pa.int64()), [1, None], [1, 0]),
    "large_list": plain(pa.large_list(pa.string()), ["a", None], ["a", ""]),
    "fixed_list": plain(pa.list_(pa.int64(), 2), [1, None], [1, 0]),
    "list_view": plain(pa.list_view(pa.int64()), [1, None], [1, 0]),
    "large_list_view": plain(pa.large_list_view(pa.int64()), [1, None], [1, 0]),
    "struct": plain(
        pa.struct([("a", pa.int64()), ("b", pa.date32())]), {"a": 1, "b": DAY}, {"a": 1, "b": None}
    ),
    "map": plain(pa.map_(pa.string(), pa.int64()), [("a", 1)], [("a", 2)]),
    "list_of_views": plain(pa.list_(pa.string_view()), ["a", None], ["a", "b"]),
    "struct_of_dictionary": plain(
        pa.struct([("a", pa.dictionary(pa.int8(), pa.string()))]), {"a": "x"}, {"a": "y"}
    ),
    "dictionary": plain(pa.dictionary(pa.int8(), pa.string()), "x", "y"),
    "dictionary_of_days": lambda cells: plain(pa.date32(), DAY, dt.date(2024, 1, 2))(
        cells
    ).dictionary_encode(),
    "run_ends": encoded,
    "union": union,
}
if hasattr(pa, "json_"):  # pyarrow 19: the oldest that is allowed has none of these
    ARRAYS |= {
        "decimal32": plain(pa.decimal32(5, 2), D("1.25"), D("2.50")),
        "decimal64": plain(pa.decimal64(9, 2), D("1.25"), D("2.50")),
        "list_of_short": plain(pa.list_(pa.decimal32(5, 2)), [D("1.25")], [D("1.50")]),
        "uuid": extension(pa.uuid(), pa.binary(16), uuid.UUID(int=5).bytes, uuid.UUID(int=6).bytes),
        "json": extension(pa.json_(), pa.string(), '{"a": 1}', '{"a": 2}'),
        "bool8": extension(pa.bool8(), pa.int8(), 1, 0),
        "opaque": extension(pa.opaque(pa.binary(), "thing", "Vendor"), pa.binary(), b"a", b"b"),
        "tensor": extension(pa.fixed_shape_tensor(pa.int64(), [2]), pa.list_(pa.int64(), 2), [1, 2], [1, 3]),
        "bignum": extension(
            pa.opaque(pa.binary(), "bignum", "DuckDB"),
            pa.binary(),
            b"\x80\x00\x01\x07",
            b"\x7f\xff\xfe\xf8",
        ),
    }
ROWS = {"plain": 4, "array": 600}


def table(name: str, cells: list[Any], places: list[int]) -> Table:
    made = pa.table({"k": places, "x": ARRAYS[name](cells), "n": places})
    return normalize(made).data  # type: ignore[no-any-return]


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "untyped"])
@pytest.mark.parametrize("engine", ROWS)
@pytest.mark.parametrize("name", ARRAYS)
def test_equal_shuffled_and_one_cell_changed(name: str, engine: str, typed: bool) -> None:
    count = ROWS[engine]
    whole = name in ("union", "fixed_list")
    cells = [0 if place % 3 or whole else None for place in range(count)]
    expected = table(name, cells, list(range(count)))
    if not typed:
        columns = tuple(type(column)(column.name) for column in expected.columns)
        expected = Table(columns, tuple(expected.column(i) for i in range(3)), count)
    assert compare(expected, expected).matched
    assert compare(expected, table(name, cells, list(range(count)))).matched
    order = list(range(count))[::-1]
    assert compare(expected, table(name, [cells[place] for place in order], order)).matched
    if name == "null":
        return
    for changed in (1,) if whole else (1, None):
        other = [*cells[:1], changed, *cells[2:]]
        found = compare(expected, table(name, other, list(range(count))))
        assert not found.matched, (name, changed)
        assert (found.counts.differing, found.counts.equal) == (1, count - 1)


def test_encodings_are_undone_and_nothing_else_is_copied() -> None:
    words = pa.chunked_array([["a", None], ["b"]])
    columns = {"s": words, "d": words.dictionary_encode(), "v": words.cast(pa.string_view())}
    made = Table.from_arrow(pa.table(columns))
    assert made.values[0] is words or made.values[0].equals(words)
    assert made.types == ["VARCHAR"] * 3
    assert [made.column(i) for i in range(3)] == [["a", None, "b"]] * 3
    assert Table.from_arrow(pa.table({"r": encoded([1, 1, 2])})).column(0) == [1, 1, 2]


def test_dates_that_python_does_not_have_are_text_at_any_depth() -> None:
    far, infinite = 6_585_442, 2**31 - 1
    days = pa.array([far, infinite, -infinite, -735_700, 0], pa.int32()).cast(pa.date32())
    shown = ["20000-04-30", "infinity", "-infinity", "0046-09-22 (BC)", dt.date(1970, 1, 1)]
    assert arrow_values(days) == shown
    lists = pa.ListArray.from_arrays([0, 2, 5], days)
    assert arrow_values(lists) == [shown[:2], shown[2:]]
    structs = pa.StructArray.from_arrays([days], ["d"])
    assert arrow_values(structs) == [{"d": value} for value in shown]
    assert arrow_values(pa.array([2**63 - 1, -(2**63) + 1, 0], pa.timestamp("us"))) == [
        "infinity",
        "-infinity",
        dt.datetime(1970, 1, 1),
    ]
    assert arrow_values(pa.array([2**62], pa.timestamp("us", "UTC"))) == ["148108-07-06 14:00:27.387904+00"]
    assert arrow_values(pa.array([86_400_000_000, 3], pa.time64("us"))) == ["24:00:00", dt.time(0, 0, 0, 3)]
    assert arrow_values(pa.array([2**62], pa.duration("s"))) == [f"{2**62 * 10**6} microseconds"]
    assert arrow_values(pa.array([1_500], pa.timestamp("ns"))) == [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]


def test_extensions_that_nobody_registered_are_told_by_the_note_at_their_field() -> None:
    period = pa.field("m", pa.int64(), metadata={"ARROW:extension:name": "pandas.period",
                                                 "ARROW:extension:metadata": '{"freq": "M"}'})  # fmt: skip
    broken = pa.field("b", pa.int64(), metadata={"ARROW:extension:name": "arrow.bool8",
                                                 "ARROW:extension:metadata": "{"})  # fmt: skip
    strange = pa.field("s", pa.int64(), metadata={"ARROW:extension:name": "some.thing"})
    arrays = [pa.array([648, None]), pa.array([1, 0]), pa.array([1, 2])]
    made = pa.table(arrays, pa.schema([period, broken, strange]))
    assert Table.from_arrow(made).records() == [
        {"m": "2024-01", "b": True, "s": 1},
        {"m": None, "b": False, "s": 2},
    ]
