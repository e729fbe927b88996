"""Building a ``Table`` from what drivers and data libraries hold."""

import datetime as dt
import sqlite3
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pytest_agenteval.compare import compare
from pytest_agenteval.table import Column, Table

SQL = """
select 170141183460469231731687303715884105727::HUGEINT h, 2.50::DECIMAL(38,2) d, 'x' t,
  '3f2504e0-4f89-11d3-9a0c-0305e82c3301'::UUID u, [1, 2] l, {'a': 1.5} s, map {'k': 0.25} m,
  interval '1 day 02:30:00' i, time '10:00' tm, 'a'::ENUM('a', 'b') e, '\\xDE\\x41'::BLOB b,
  18446744073709551615::UBIGINT ub, timestamptz '2024-01-31 10:00:00+02' tz, '{"a": [1]}'::JSON j,
  1.5::FLOAT f, date '2024-01-31' dd, timestamp_ns '2024-01-31 00:00:00.000000001' tn, NULL::INTEGER n
"""
JSON_ROW = {
    "h": "170141183460469231731687303715884105727",
    "d": 2.5,
    "t": "x",
    "u": "3F2504E0-4F89-11D3-9A0C-0305E82C3301",
    "l": [1, 2],
    "s": {"a": 1.5},
    "m": {"k": 0.25},
    "i": "P1DT2H30M",
    "tm": "10:00",
    "e": "a",
    "b": "\\xDEA",
    "ub": "18,446,744,073,709,551,615",
    "tz": "2024-01-31T08:00:00Z",
    "j": {"a": [1]},
    "f": 1.5,
    "dd": "2024-01-31T00:00:00",
    "tn": "2024-01-31",
    "n": None,
}


def test_duckdb_relation_keeps_duckdbs_types_and_compares_with_json():
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    table = Table.from_duckdb(connection.sql(SQL))
    assert table.types[0] == "HUGEINT"
    assert table.types[5] == "STRUCT(a DOUBLE)" or table.types[5].startswith("STRUCT(a DECIMAL")
    found = compare(table, Table.from_records([JSON_ROW]))
    assert found.message == "match", found.diagnosis


def test_older_duckdb_relations_hand_arrow_over_by_another_name():
    class Relation:
        columns = ("n",)
        types = ("INTEGER",)

        def arrow(self):
            return pa.table({"n": [1, 2]})

    assert Table.from_duckdb(Relation()).column(0) == [1, 2]


def test_pandas_frame_with_every_trap():
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None], dtype="Int64"),
            "x": [1.5, np.nan],
            "t": ["a", None],
            "mixed": [1, "b"],
            "when": [pd.Timestamp("2024-01-31"), pd.NaT],
            "cat": pd.Categorical(["u", "v"]),
        }
    )
    frame = pd.concat([frame, frame[["n"]]], axis=1)
    table = Table.from_pandas(frame)
    assert table.names == ["n", "x", "t", "mixed", "when", "cat", "n"]
    assert table.column(0) == [1, None]
    assert table.column(1)[1] is None
    assert table.column(3) == [1, "b"]
    assert table.types[:2] == ["BIGINT", "DOUBLE"]
    expected = Table.from_rows(
        ["n", "x", "t", "when"],
        [(1, 1.5, "a", dt.date(2024, 1, 31)), (None, None, None, None)],
        ["INTEGER", "DOUBLE", "VARCHAR", "DATE"],
    )
    assert compare(expected, table).matched


def test_cursor_of_sqlite_has_no_types():
    cursor = sqlite3.connect(":memory:").execute("select 1 as n, 'a' as t union all select 2, 'b'")
    table = Table.from_cursor(cursor)
    assert table.columns == (Column("n"), Column("t"))
    assert compare(table, Table.from_records([{"n": "2", "t": "b"}, {"n": 1.0, "t": "a"}])).matched


def test_records_may_lack_keys():
    table = Table.from_records([{"a": 1}, {"b": 2, "a": 3}, {}])
    assert table.names == ["a", "b"]
    assert list(table.rows()) == [(1, None), (3, 2), (None, None)]


def test_rows_must_be_as_long_as_the_names():
    with pytest.raises(ValueError, match="row 1 has 1 values, expected 2"):
        Table.from_rows(["a", "b"], [(1, 2), (3,)])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.decimal128(10, 3), "DECIMAL(10,3)"),
        (pa.timestamp("us"), "TIMESTAMP"),
        (pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
        (pa.float32(), "FLOAT"),
        (pa.int16(), "BIGINT"),
        (pa.date32(), "DATE"),
        (pa.time64("us"), "TIME"),
        (pa.large_string(), "VARCHAR"),
        (pa.large_binary(), "BLOB"),
        (pa.bool_(), "BOOLEAN"),
        (pa.list_(pa.int64()), None),
    ],
)
def test_arrow_types_have_sql_names(kind, name):
    assert Table.from_arrow(pa.table({"c": pa.array([], kind)})).types == [name]


def test_numpy_columns_and_heads():
    table = Table((Column("n"), Column("x")), (np.array([1, 2, 3]), (4, 5, 6)), 3)
    assert table.column(0) == [1, 2, 3]
    assert list(table.rows(2)) == [(1, 4), (2, 5)]
    assert table.head(5) is table
    assert table.records(1) == [{"n": 1, "x": 4}]
    assert list(Table((), (), 2).rows()) == [(), ()]
    assert list(Table.from_arrow(pa.table({"d": [Decimal("1.5")]})).rows()) == [(Decimal("1.5"),)]
