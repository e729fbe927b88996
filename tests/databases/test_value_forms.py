"""Every DuckDB type, as reference and as answer, in every form and both engines: one value, one meaning."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest

from pytest_agenteval.agents.kinds.replay import answer_fields, answer_from_fields
from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.compare import compare
from pytest_agenteval.databases import Databases
from pytest_agenteval.support.json_codec import pack, unpack
from pytest_agenteval.table import Table

# name -> (value, another value of the type); forms in brackets cannot carry the type: DuckDB or the
# library refuses it, or loses what it holds
TYPES: dict[str, tuple[str, str]] = {
    "date": ("DATE '2024-01-02'", "DATE '2024-01-03'"),
    "date_infinity": ("'infinity'::DATE", "DATE '9999-12-31'"),
    "date_minus_infinity": ("'-infinity'::DATE", "DATE '0001-01-01'"),
    "date_bc": ("'0044-03-15 (BC)'::DATE", "'0043-03-15 (BC)'::DATE"),
    "date_far": ("DATE '20000-01-01'", "DATE '20001-01-01'"),
    "timestamp": ("TIMESTAMP '2024-01-02 03:04:05.5'", "TIMESTAMP '2024-01-02 03:04:05.6'"),
    "timestamp_infinity": ("'infinity'::TIMESTAMP", "TIMESTAMP '9999-12-31 00:00:00'"),
    "timestamp_minus_infinity": ("'-infinity'::TIMESTAMP", "'infinity'::TIMESTAMP"),
    "timestamp_bc": ("'0044-03-15 (BC) 10:00:00'::TIMESTAMP", "'0044-03-15 10:00:00'::TIMESTAMP"),
    "timestamp_far": ("TIMESTAMP '20000-01-01 10:00:00.5'", "TIMESTAMP '20000-01-01 10:00:00.6'"),
    "timestamptz": ("TIMESTAMPTZ '2024-01-02 03:04:05+02'", "TIMESTAMPTZ '2024-01-02 03:04:05+00'"),
    "timestamptz_infinity": ("'infinity'::TIMESTAMPTZ", "'-infinity'::TIMESTAMPTZ"),
    "timestamp_s": ("'infinity'::TIMESTAMP_S", "'2024-01-01'::TIMESTAMP_S"),
    "timestamp_ns": ("'2024-01-02 03:04:05.123456789'::TIMESTAMP_NS", "'2024-01-02 03:04:05'::TIMESTAMP_NS"),
    "time": ("TIME '12:34:56.5'", "TIME '12:34:56'"),
    "time_24": ("'24:00:00'::TIME", "'00:00:00'::TIME"),
    "timetz": ("'12:34:56+02'::TIMETZ", "'12:34:56+03'::TIMETZ"),
    "interval": ("INTERVAL '1 year 2 months 3 days 04:05:06'", "INTERVAL '1 year 2 months 4 days 04:05:06'"),
    "bit": ("'10101'::BIT", "'010101'::BIT"),
    "bignum": ("'123456789012345678901234567890123456789012345'::BIGNUM", "'-5'::BIGNUM"),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID", "'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID"),
    "enum": ("'a'::ENUM('a', 'b')", "'b'::ENUM('a', 'b')"),
    "decimal": ("1.25::DECIMAL(10,2)", "1.50::DECIMAL(10,2)"),
    "float": ("0.1::FLOAT", "0.2::FLOAT"),
    "blob": ("'\\xDE\\xAD'::BLOB", "'\\xDE\\xAE'::BLOB"),
    "json": ("'{\"a\": [1, null]}'::JSON", "'{\"a\": [1, 0]}'::JSON"),
    "geometry": ("'POINT(1 2)'::GEOMETRY", "'POINT(1 3)'::GEOMETRY"),
    "polygon": (
        "'POLYGON((0 0,1 0,1 1,0 0),(0.1 0.1,0.2 0.1,0.1 0.2,0.1 0.1))'::GEOMETRY",
        "'MULTIPOINT(1 2,3 4)'::GEOMETRY",
    ),
    "tuple": ("row(1, 'a')", "row(1, 'b')"),
    "union": ("union_value(num := 5)", "union_value(num := 6)"),
    "list": ("[1, 2, NULL]::INT[]", "[1, 2, 0]::INT[]"),
    "nested": ("[[1, NULL], [NULL, 2]]", "[[1, 0], [NULL, 2]]"),
    "bool_list": ("[true, NULL]", "[true, false]"),
    "date_list": ("[DATE '2024-01-01', NULL]", "[DATE '2024-01-01', DATE '1970-01-01']"),
    "timestamp_list": (
        "[TIMESTAMP '2024-01-01 10:00:00', NULL]",
        "[TIMESTAMP '2024-01-01 10:00:00', '1970-01-01']",
    ),
    "decimal_list": ("[1.25::DECIMAL(10,2), NULL]", "[1.25::DECIMAL(10,2), 0]"),
    "infinity_list": ("['infinity'::TIMESTAMP, NULL]", "[TIMESTAMP '9999-12-31 23:59:59', NULL]"),
    "infinity_dates": ("['-infinity'::DATE, DATE '2024-01-01']", "[DATE '0001-01-02', DATE '2024-01-01']"),
    "infinity_struct": ("{'until': 'infinity'::DATE}", "{'until': DATE '9999-12-30'}"),
    "infinity_map": ("MAP {'until': 'infinity'::TIMESTAMP}", "MAP {'until': TIMESTAMP '2024-01-01'}"),
    "struct": ("{'a': 1, 'b': [1, NULL]}", "{'a': 1, 'b': [1, 0]}"),
    "structs": (
        "[{'a': 1, 'b': [DATE '2024-01-01', NULL]}]",
        "[{'a': 1, 'b': [DATE '2024-01-01', '1970-01-01']}]",
    ),
    "map": ("MAP {1: 'a', 2: NULL}", "MAP {1: 'a', 2: ''}"),
    "array": ("[1, 2, 3]::INT[3]", "[1, 2, 4]::INT[3]"),
    "null": ("NULL::INTEGER", "0"),
}
REFUSED = {
    "df": {"date_infinity", "date_minus_infinity", "timetz", "bignum", "infinity_dates", "infinity_struct",
           "infinity_map", "timestamptz_infinity", "union"},
    "arrow": {"timetz", "bit", "time_24"},
    "json": {"union"},
    "text": {"union"},
    "polars": {"timetz", "bit", "time_24", "interval", "union", "bignum", "timestamp_s"},
}  # fmt: skip
"""What DuckDB or a library cannot give in a form: an error, or another value (no offset of a TIMETZ)."""


CONNECTION = duckdb.connect()
CONNECTION.execute("SET timezone = 'UTC'")


def rows(sql: str) -> list[dict[str, Any]]:
    found = CONNECTION.execute(sql)
    names = [entry[0] for entry in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def arrow(sql: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CONNECTION.execute(sql).to_arrow_table()


def texts(sql: str) -> list[dict[str, Any]]:
    """Each value as DuckDB writes it; what holds values as JSON text."""
    nested = r"(^(STRUCT|MAP|TUPLE)|\]$)"
    text = f"CASE WHEN regexp_matches(typeof(x), '{nested}') THEN to_json(x)::VARCHAR ELSE x::VARCHAR END"
    return rows(f"SELECT i, {text} AS x, j, k FROM ({sql})")


def as_json(sql: str) -> list[dict[str, Any]]:
    """Through JSON, as a program or a tool answers."""
    found = CONNECTION.execute(f"SELECT i, to_json(x)::VARCHAR AS x FROM ({sql})").fetchall()
    return [{"i": i, "x": None if x is None else json.loads(x), "j": i, "k": i} for i, x in found]


FORMS: dict[str, Callable[[str], Any]] = {
    "fetchall": rows,
    "df": lambda sql: CONNECTION.execute(sql).df(),
    "arrow": arrow,
    "relation": lambda sql: CONNECTION.sql(sql),
    "polars": lambda sql: polars.from_arrow(arrow(sql)),
    "text": texts,
    "json": as_json,
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("forms")
    with Databases({"d": "duckdb:///:memory:"}, folder=folder, root=folder) as found:
        yield found.get()


def table_of(sql: str, form: str) -> Table:
    """The answer in a form, through the agent's normalisation and a recording."""
    answer = normalize(FORMS[form](sql))
    plain, kinds = pack(answer_fields(answer), exact=True)
    kept = answer_from_fields(unpack(json.loads(json.dumps(plain)), kinds))
    assert isinstance(kept.data, Table)
    assert compare(answer.data, kept.data).matched or form == "fetchall"
    return answer.data


def query(value: str, count: int, other: str | None = None) -> str:
    changed = f"CASE WHEN i = 3 THEN {other} ELSE {value} END" if other else value
    return f"SELECT i, {changed} AS x, i AS j, i AS k FROM range({count}) t(i)"


ENGINES = {"plain": 5, "array": 350}
"""Rows that the engine for small and the one for large tables get."""
LATER = ("bignum", "geometry", "polygon", "tuple", "time_24")
"""Types that came with DuckDB 2, or whose forms did."""
if int(duckdb.__version__.partition(".")[0]) < 2:
    TYPES = {name: values for name, values in TYPES.items() if name not in LATER}
POSSIBLE = [(name, form) for name in TYPES for form in FORMS if name not in REFUSED.get(form, ())]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "form"), POSSIBLE)
def test_a_value_equals_itself_and_no_other(name: str, form: str, engine: str, database: Any) -> None:
    value, other = TYPES[name]
    count = ENGINES[engine]
    reference = database.query(query(value, count))
    same = compare(reference, table_of(query(value, count), form))
    assert same.matched, (same.message, same.diagnosis)
    if form == "fetchall" and "infinity" in name:
        return  # its own client gives Python's last date for infinity: see below
    changed = compare(reference, table_of(query(value, count, other), form))
    assert not changed.matched
    assert (changed.counts.differing, changed.counts.missing + changed.counts.extra) in ((1, 0), (0, 2))
