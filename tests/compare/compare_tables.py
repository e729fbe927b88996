"""Random tables for the property tests: every type, native and JSON values, hostile ones."""

import datetime as dt
import math
import uuid
from decimal import Decimal

from hypothesis import strategies as st

from pytest_agenteval.table import Table

TEXTS = st.sampled_from(
    ["", "a", "b", " a", "A", "é", "e\u0301", "02134", "1,5", "None", "nan", "[1, 2]", "\ud800", "#"]
)
DATES = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)) | st.sampled_from([dt.date(2024, 1, 31)])
MOMENTS = st.datetimes() | st.sampled_from([dt.datetime(2024, 1, 31), dt.datetime(2024, 1, 31, 10)])
UTC = st.just(dt.UTC)
SMALL = st.integers(-3, 3)
FLOATS = st.sampled_from([0.0, 1.0, 1.004, 1.005, 1.01, 2.675, 2.68, 0.004, 0.03, 0.0312, -1.0, 1e300, 1e-9])
DECIMALS = st.decimals(-5, 5, places=2) | st.sampled_from([Decimal("1.00"), Decimal("1.01")])
NATIVE = {
    "VARCHAR": TEXTS,
    "INTEGER": SMALL,
    "BIGINT": SMALL | st.integers(-(2**63), 2**63 - 1),
    "HUGEINT": st.integers(-(2**100), 2**100),
    "DOUBLE": FLOATS | st.floats(),
    "FLOAT": FLOATS.map(lambda x: x) | st.floats(width=32),
    "DECIMAL(18,2)": DECIMALS,
    "BOOLEAN": st.booleans(),
    "DATE": DATES,
    "TIMESTAMP": MOMENTS,
    "TIMESTAMPTZ": st.datetimes(timezones=UTC),
    "TIME": st.times(),
    "INTERVAL": st.timedeltas(dt.timedelta(-100), dt.timedelta(100)),
    "UUID": st.integers(0, 3).map(lambda n: uuid.UUID(int=n)),
    "BLOB": st.binary(max_size=3),
    "JSON": st.sampled_from(['{"a": 1}', '{"a": 1.0, "b": [1.5]}', "[]", "null", "1.5"]),
    "INTEGER[]": st.lists(SMALL, max_size=3),
    "DOUBLE[]": st.lists(FLOATS, max_size=3),
    "STRUCT(a INTEGER, b DOUBLE)": st.fixed_dictionaries({"a": SMALL, "b": FLOATS}),
    "MAP(VARCHAR, DOUBLE)": st.dictionaries(st.sampled_from("ab"), FLOATS, max_size=2),
    None: SMALL | FLOATS | TEXTS,
}
DEEP: list = []
DEEP.append(DEEP)
HOSTILE = st.sampled_from(
    [
        2**70,
        -(10**5000),
        "1e999999",
        "9" * 6000,
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        Decimal("1E+90000"),
        math.inf,
        -math.inf,
        math.nan,
        "\udfff x",
        b"\x00\xff",
        {"a": {"b": [1, None, 2.5]}, 3: "x"},
        [[1], {"k": (1, 2)}],
        DEEP,
        object,
        dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=23))),
        dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=23))),
        dt.time(1, 2, 3, 4, tzinfo=dt.UTC),
        dt.timedelta.max,
        complex(1, 2),
        frozenset({1}),
        "P1Y2M3DT4H5M6.789S",
        "12.5%",
        "$(1,234.50)",
        "(((1)))",
        "-" * 50,
        "[" * 5000,
        "",
        True,
    ]
)


@st.composite
def tables(draw, min_rows=0, max_rows=6, columns=None, kinds=tuple(NATIVE), nulls=True):
    """An expected table with native values."""
    count = columns or draw(st.integers(1, 4))
    types = [draw(st.sampled_from(kinds)) for _ in range(count)]
    rows = draw(st.integers(min_rows, max_rows))
    values = []
    for kind in types:
        cell = st.none() | NATIVE[kind] if nulls else NATIVE[kind]
        values.append(draw(st.lists(cell, min_size=rows, max_size=rows)))
    names = [f"c{i}" for i in range(count)]
    return Table.from_rows(names, list(zip(*values, strict=True)) if count else [], types)


@st.composite
def wild_tables(draw):
    """An answered table of any values under any names."""
    count = draw(st.integers(1, 4))
    rows = draw(st.integers(0, 6))
    cell = st.none() | HOSTILE | st.one_of(*NATIVE.values())
    names = [
        draw(st.sampled_from(["c0", "c1", "C2", "c 3", "x", "", "\u4e2d", "a\x1b[31m"])) for _ in range(count)
    ]
    values = [draw(st.lists(cell, min_size=rows, max_size=rows)) for _ in range(count)]
    return Table.from_rows(names, list(zip(*values, strict=True)))


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "rtol": st.sampled_from([0, 1e-5, 0.1]),
        "atol": st.sampled_from([0, 1e-8, 1.0]),
        "decimals": st.sampled_from([None, 0, 2, 6]),
        "rounding_guard": st.sampled_from([None, 0.01]),
        "significant": st.sampled_from([None, 1, 3]),
        "ordered": st.booleans(),
        "order_by": st.sampled_from([[], ["c0"], ["c1 desc nulls last", "1"], ["nowhere"]]),
        "duplicates": st.sampled_from(["bag", "set"]),
        "columns": st.sampled_from(["auto", "name", "position"]),
        "extra_columns": st.sampled_from(["allow", "forbid"]),
        "string_case": st.sampled_from(["sensitive", "insensitive"]),
        "null_as_zero": st.booleans(),
        "null_as_empty": st.booleans(),
        "percent": st.sampled_from(["strict", "either"]),
        "ignore_columns": st.sampled_from([[], ["c1"]]),
        "per_column": st.sampled_from([{}, {"C0": {"atol": 1}}]),
    },
)
