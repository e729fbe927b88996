"""Expected rows written in the case or in a CSV file: their types, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.cases.loader import LoadedFile
from pytest_agenteval.table import Table

Load = Callable[..., LoadedFile]


def table(load: Load, expected: str) -> Table:
    loaded = load(f"prompt: x\nexpected: {expected}\n")
    assert loaded.errors == ()
    found = loaded.cases[0].expected
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        ("1, 2", "BIGINT", [1, 2]),
        ("1, null", "BIGINT", [1, None]),
        ("1, 1.5", "DOUBLE", [1, 1.5]),
        ("1e3, 2", "DOUBLE", [1000.0, 2]),
        ("'1', '02134'", "VARCHAR", ["1", "02134"]),
        ("free, pro", "VARCHAR", ["free", "pro"]),
        ("true, False", "BOOLEAN", [True, False]),
        ("2024-01-01", "DATE", [date(2024, 1, 1)]),
        ("2024-01-01, 2024-01-01 10:00:00", "TIMESTAMP", [date(2024, 1, 1), datetime(2024, 1, 1, 10)]),
        ("2024-01-01T10:00:00Z", "TIMESTAMPTZ", [datetime(2024, 1, 1, 10, tzinfo=UTC)]),
        ("9223372036854775808, 1", "HUGEINT", [2**63, 1]),
        ("1, a", None, [1, "a"]),
        ("[1, 2]", None, [[1, 2]]),
        ("null", None, [None]),
        (".inf", "DOUBLE", [float("inf")]),
    ],
)
def test_a_quoted_scalar_is_text_else_it_is_what_yaml_says(
    load: Load, values: str, kind: str | None, read: list[Any]
) -> None:
    cells = values if values.startswith("[") else values.replace(", ", "], [")
    found = table(load, f"{{columns: [v], rows: [[{cells}]]}}")

    assert found.types == [kind]
    assert found.column(0) == read


@pytest.mark.parametrize(
    ("kind", "written", "read"),
    [
        ("VARCHAR", "02134", "02134"),
        ("varchar(5)", "02134", "02134"),
        ("VARCHAR", "2024-01-01", "2024-01-01"),
        ("INTEGER", "'7'", 7),
        ("DECIMAL(10, 2)", "12.50", Decimal("12.50")),
        ("DOUBLE", "'1.5'", 1.5),
        ("DOUBLE", "-.inf", float("-inf")),
        ("BOOLEAN", "'t'", True),
        ("BOOLEAN", "0", False),
        ("DATE", "'2024-01-01'", date(2024, 1, 1)),
        ("TIME", "'10:30'", time(10, 30)),
        ("TIMESTAMP", "'2024-01-01 10:00'", datetime(2024, 1, 1, 10)),
        ("JSON", "{a: 1}", {"a": 1}),
        ("INTEGER[]", "[1, 2]", [1, 2]),
        ("DATE", "null", None),
        ("JSON", "5", 5),
    ],
)
def test_declared_types_are_read_from_what_is_written(
    load: Load, kind: str, written: str, read: object
) -> None:
    found = table(load, f"{{rows: [{{v: {written}}}], types: {{v: '{kind}'}}}}")

    assert found.types == [kind.upper()]
    assert found.column(0) == [read]
    assert type(found.column(0)[0]) is type(read)


def test_rows_are_maps_or_lists(load: Load) -> None:
    maps = table(load, "[{a: 1, b: x}, {b: y, c: null}]")
    assert (maps.names, list(maps.rows())) == (["a", "b", "c"], [(1, "x", None), (None, "y", None)])

    mixed = table(load, "{columns: [a, a, on], rows: [[1, 2, 3], {on: 4}]}")
    assert (mixed.names, list(mixed.rows())) == (["a", "a", "on"], [(1, 2, 3), (None, None, 4)])

    empty = table(load, "[]")
    assert (empty.names, empty.row_count) == ([], 0)
    typed = table(load, "{columns: [a], rows: [], types: {a: DATE}}")
    assert (typed.types, typed.row_count) == (["DATE"], 0)
    assert table(load, "{columns: [], rows: []}").row_count == 0


CSV = """id,zip,price,big,day,moment,zoned,flag,sci,note,empty
1,02134,1.50,99999999999999999999,2024-01-01,2024-01-01 10:00,2024-01-01T10:00:00Z,true,1e3,"a, b",
-2,10115,20,1,2024-01-02,2024-01-02,2024-01-01T10:00:00+02:00,FALSE,2,,

"""


def test_a_csv_column_has_the_narrowest_type(load: Load, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "e.csv").write_text("\ufeff" + CSV, encoding="utf-8")
    found = table(load, "{file: e.csv}")

    assert dict(zip(found.names, found.types, strict=True)) == {
        "id": "BIGINT",
        "zip": "VARCHAR",
        "price": "DECIMAL(4,2)",
        "big": "HUGEINT",
        "day": "DATE",
        "moment": "TIMESTAMP",
        "zoned": "TIMESTAMPTZ",
        "flag": "BOOLEAN",
        "sci": "DOUBLE",
        "note": "VARCHAR",
        "empty": None,
    }
    assert found.records()[0]["price"] == Decimal("1.50")
    assert found.column(0) == [1, -2]
    assert found.column(1) == ["02134", "10115"]
    assert found.column(7) == [True, False]
    assert found.column(9) == ["a, b", None]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("v\n2024-13-01\n", "VARCHAR"),
        ("v\n1.5\nx\n", "VARCHAR"),
        ("v\n-007\n", "VARCHAR"),
        ("v\n" + "1" * 30 + "." + "2" * 9 + "\n", "DOUBLE"),
        ("v\n0\n", "BIGINT"),
        ("v\n0.5\n", "DECIMAL(2,1)"),
    ],
)
def test_what_does_not_parse_is_text(load: Load, tmp_path: Path, text: str, kind: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "e.csv").write_text(text)

    assert table(load, "{file: e.csv}").types == [kind]


def test_a_csv_column_takes_a_declared_type(load: Load, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "e.csv").write_text("zip\n10115\n")

    assert list(table(load, "{file: e.csv, types: {zip: VARCHAR}}").rows()) == [("10115",)]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "expected: e.csv is empty; its first line must name the columns"),
        (b"a,b\n1,2\n\n1\n", "expected: e.csv:4: 1 values for 2 columns"),
        (b"a\ncaf\xe9\n", "expected: e.csv:2:4: not UTF-8 (byte 0xe9); save the file as UTF-8"),
        (b"a\n" + b"x" * 140_000, "expected: e.csv:2: field larger than field limit (131072)"),
    ],
)
def test_a_broken_csv_is_named(load: Load, tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "e.csv").write_bytes(data)

    assert [problem.text for problem in load("prompt: x\nexpected: {file: e.csv}\n").problems] == [text]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("{file: ''}", "expected: file must be the name of a CSV file, found ''"),
        ("{file: e.csv, rows: []}", "expected: give file or rows, not both"),
        ("{rows: 3}", "expected: rows must be a list, found 3"),
        ("{columns: a, rows: []}", "expected: columns must be a list of names, found 'a'"),
        ("{columns: [[a]], rows: []}", "expected: columns must be a list of names, found a list"),
        ("{rows: [], types: [a]}", "expected: types must map columns to SQL types, found a list"),
        (
            "{rows: [{a: 1}], types: {a: [x]}}",
            "expected: unknown type '' of column 'a'; for example VARCHAR, DECIMAL(10,2), DATE",
        ),
        (
            "{rows: [{a: 1}], types: {a: qqq}}",
            "expected: unknown type 'qqq' of column 'a'; for example VARCHAR, DECIMAL(10,2), DATE",
        ),
        ("{rows: [{a: maybe}], types: {a: BOOLEAN}}", "expected: 'maybe' in column 'a' is not a BOOLEAN"),
        ("{rows: [{a: x}], types: {a: integer}}", "expected: 'x' in column 'a' is not an INTEGER"),
        ("{rows: [{a: x}], types: {a: 'DECIMAL(4,1)'}}", "expected: 'x' in column 'a' is not a DECIMAL(4,1)"),
    ],
)
def test_what_is_wrong_with_expected_rows(load: Load, tmp_path: Path, expected: str, text: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "e.csv").write_text("a\n1\n")

    assert [p.text for p in load(f"prompt: x\nexpected: {expected}\n").errors] == [text]


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("t\n2024-01-01 10:00:00+02\n", "TIMESTAMPTZ", ["2024-01-01T10:00:00+02:00"]),
        ("t\n2024-01-01 10:00:00+0530\n", "TIMESTAMPTZ", ["2024-01-01T10:00:00+05:30"]),
        ("t\n2024-01-01 10:00:00 UTC\n", "TIMESTAMPTZ", ["2024-01-01T10:00:00+00:00"]),
        ("t\n2024-01-01T10:00:00z\n", "TIMESTAMPTZ", ["2024-01-01T10:00:00+00:00"]),
        ("t\n2024-01-01 10:00:00\ninfinity\n", "TIMESTAMP", ["2024-01-01T10:00:00", "infinity"]),
        ("t\n2024-01-01\n-Infinity\n", "DATE", ["2024-01-01", "-infinity"]),
        ("t\n1.5\nNaN\n", "DOUBLE", ["1.5", "nan"]),
        ("t\n1\ninf\n-Infinity\n", "DOUBLE", ["1.0", "inf", "-inf"]),
        ("t\nnan\n", "VARCHAR", ["nan"]),
        ("t\ninfinity\n", "VARCHAR", ["infinity"]),
    ],
)
def test_csv_values_as_databases_export_them(
    load: Load, tmp_path: Path, text: str, kind: str, values: list[str]
) -> None:
    (tmp_path / "tests").mkdir(exist_ok=True)
    (tmp_path / "tests" / "e.csv").write_text(text)
    found = table(load, "{file: e.csv}")
    shown = [v.isoformat() if hasattr(v, "isoformat") else str(v) for v in found.column(0)]
    assert (found.types, shown) == ([kind], values)


def test_declared_dates_may_be_infinite(load: Load) -> None:
    found = table(load, "{rows: [{d: infinity, t: '-infinity'}], types: {d: DATE, t: TIMESTAMPTZ}}")
    assert list(found.rows()) == [("infinity", "-infinity")]
