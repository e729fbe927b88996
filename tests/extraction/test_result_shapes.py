"""The shapes in which real tools return rows: each is its one table, poisoned ones fail, nothing is run."""

from __future__ import annotations

import copy
import importlib.util
import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.compare import compare
from pytest_agenteval.errors import AgentFailed, ExtractionFailed
from pytest_agenteval.extraction import executed_queries, extract
from pytest_agenteval.support.result_shapes import failure_of, read_result
from pytest_agenteval.support.statement_names import column_names_of
from pytest_agenteval.support.text_tables import literal, table_in_text
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, ToolCall

_FILE = Path(__file__).parents[1] / "data" / "result_shapes.py"
_SPEC = importlib.util.spec_from_file_location("result_shapes", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
SHAPES: dict[str, Any] = _MODULE.SHAPES

SQL = "SELECT channel, SUM(amount) AS revenue FROM orders GROUP BY channel"
BOTH = Table.from_rows(["channel", "revenue"], [["web", 2500.0], ["store", 2250.0]], ["VARCHAR", "DOUBLE"])
FIRST = BOTH.head(1)
ONE_ROW = ("repr dicts Decimal", "dbt SL arrow b64/JSON table", "wrenai run_sql")
LAST = ("single dict row", "scalar", "empty list", "success sentence")

ROWS = [{"channel": "web", "revenue": 2500.0}, {"channel": "store", "revenue": 2250.0}]
ONE_TEXT = json.dumps(ROWS)
KIN: dict[str, Any] = {
    "{data: text of rows}": {"status": "ok", "data": json.dumps(ROWS)},
    "lines of JSON": "\n".join(map(json.dumps, ROWS)),
    "fenced JSON": f"```json\n{json.dumps(ROWS, indent=2)}\n```",
    "blocks around a sentence": [
        {"type": "text", "text": "Here are the rows you asked for:"},
        {"type": "text", "text": json.dumps(ROWS)},
    ],
    "Anthropic tool_result": [
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": ONE_TEXT}]}
    ],
    "one block": {"type": "text", "text": json.dumps({"result": ROWS})},
    "structuredContent alone": {
        "content": [],
        "structuredContent": {"columns": list(ROWS[0]), "rows": [["web", 2500.0], ["store", 2250.0]]},
    },
    "psql": " channel | revenue\n---------+---------\n web     |  2500.0\n store   |  2250.0\n(2 rows)\n",
    "mysql": "+---------+---------+\n| channel | revenue |\n+---------+---------+\n| web     |  2500.0 |\n"
             "| store   |  2250.0 |\n+---------+---------+\n2 rows in set (0.00 sec)",
    "duckdb": "┌─────────┬─────────┐\n│ channel │ revenue │\n│ varchar │ double  │\n├─────────┼─────────┤\n"
              "│ web     │  2500.0 │\n│ store   │  2250.0 │\n└─────────┴─────────┘",
    "tab separated": "channel\trevenue\nweb\t2500.0\nstore\t2250.0",
    "semicolons": "channel;revenue\r\nweb;2500.0\r\nstore;2250.0\r\n",
    "to_string with a footer": "  channel  revenue\n0   web  2500.0\n1 store  2250.0\n\n[2 rows x 2 columns]",
    "orient index": {"0": ROWS[0], "1": ROWS[1]},
    "orient table": {
        "schema": {"fields": [{"name": n} for n in ("index", "channel", "revenue")], "pandas_version": "1"},
        "data": [{"index": i, **row} for i, row in enumerate(ROWS)],
    },
    "Athena": {
        "ResultSet": {
            "ResultSetMetadata": {"ColumnInfo": [{"Name": "channel"}, {"Name": "revenue"}]},
            "Rows": [{"Data": [{"VarCharValue": a}, {"VarCharValue": b}]}
                     for a, b in (("channel", "revenue"), ("web", "2500.0"), ("store", "2250.0"))],
        }
    },
    "Redshift data API": {
        "ColumnMetadata": [{"name": "channel"}, {"name": "revenue"}],
        "Records": [[{"stringValue": "web"}, {"doubleValue": 2500.0}],
                    [{"stringValue": "store"}, {"doubleValue": 2250.0}]],
    },
    "GraphQL": {"data": {"sales": ROWS}},
    "rows under a header": [["channel", "revenue"], ["web", 2500.0], ["store", 2250.0]],
    "repr of datetimes": "[('web', Decimal('2500.00')), ('store', Decimal('2250'))]",
    "numpy repr": "[('web', np.float64(2500.0)), ('store', np.float64(2250.0))]",
}  # fmt: skip


def answered(result: Any, sql: str = SQL, **fields: Any) -> Answer:
    """Normalised, as every agent's answer is."""
    return normalize(Answer(tool_calls=(ToolCall("execute_sql", {"sql": sql}, result, **fields),)))


def table_of(result: Any, sql: str = SQL) -> Any:
    (query,) = executed_queries(answered(result, sql))
    return query.table


@pytest.mark.parametrize("name", [*(name for name in SHAPES if name not in LAST), *KIN])
def test_every_shape_is_its_table(name: str) -> None:
    table = table_of({**SHAPES, **KIN}[name])
    assert table is not None
    found = compare(FIRST if name in ONE_ROW else BOTH, table)
    assert found.matched, (table.records(), found.message)
    assert found.extra_columns == ()
    assert [name.lower() for name in table.names] == ["channel", "revenue"]


def test_the_last_four_shapes() -> None:
    assert table_of(SHAPES["single dict row"]).records() == [{"total_revenue": 4750.0}]
    value = table_of(SHAPES["scalar"], "SELECT SUM(amount) AS total FROM orders")
    assert value is not None
    assert value.records() == [{"total": 4750.0}]
    assert table_of(SHAPES["scalar"]) is None  # beside two columns it is no row
    assert table_of(SHAPES["empty list"]).row_count == 0
    assert table_of(SHAPES["success sentence"]) is None


def poisoned(value: Any, change: Callable[[Any], Any]) -> Any:
    """``value`` with ``change`` made in every text and number of it."""
    if isinstance(value, dict):
        return {poisoned(key, change) if isinstance(key, str) else key: poisoned(item, change)
                for key, item in value.items()}  # fmt: skip
    if isinstance(value, list | tuple):
        return type(value)(poisoned(item, change) for item in value)
    return change(value)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("2500.0", "2501.0")
    return 2501.0 if value == 2500.0 else value


def _name(value: Any) -> Any:
    return (
        value.replace("revenue", "turnover").replace("REVENUE", "TURNOVER")
        if isinstance(value, str)
        else value
    )


UNNAMED = ("langchain SQLDatabase repr", "langchain repr with Decimal", "list of tuples no names",
           "repr of datetimes", "numpy repr", "rows under a header")  # fmt: skip


@pytest.mark.parametrize("name", [*(name for name in SHAPES if name not in LAST), *KIN])
def test_poisoned_shapes_fail(name: str) -> None:
    result = {**SHAPES, **KIN}[name]
    reference = FIRST if name in ONE_ROW else BOTH
    changed = table_of(poisoned(copy.deepcopy(result), _cell))
    assert changed is not None
    assert not compare(reference, changed).matched
    if name not in UNNAMED:
        renamed = table_of(poisoned(copy.deepcopy(result), _name))
        assert renamed is not None
        assert [column.lower() for column in renamed.names] == ["channel", "turnover"]
    longer = Table.from_rows(["channel", "revenue"], [*BOTH.rows(), ["shop", 1.0]], ["VARCHAR", "DOUBLE"])
    whole = table_of(result)
    assert whole is not None
    assert not compare(longer, whole).matched


def test_rows_of_other_columns_are_an_error_and_never_null() -> None:
    for result, why in (
        (
            {"columns": ["n"], "data": [{"m": 3}]},
            "the columns n are declared, and no row has one of them (rows hold m)",
        ),
        ({"columns": ["n", "m"], "rows": [[3]]}, "2 columns are declared (n, m), and rows have 1 values"),
        (
            {"columns": ["n", "m"], "rows": [{"f": [{"v": "3"}]}]},
            "2 columns are declared (n, m), and rows have 1 values",
        ),
        ({"columns": ["a"], "rows": [[1], {"a": 1}]}, "rows of several kinds under a"),
    ):
        with pytest.raises(ExtractionFailed) as caught:
            extract(answered(result), expected_columns=["n"])
        assert str(caught.value) == f"the result of execute_sql (query_1) cannot be read as a table: {why}"
    with pytest.raises(ExtractionFailed, match="its rows have 2 values and no column names"):
        extract(answered([[1, 2]], "SELECT * FROM t"), expected_columns=["n"])
    bigquery = {"columns": ["n"], "rows": [{"f": [{"v": "3"}]}, {"f": [{"v": None}]}]}
    assert table_of(bigquery).column(0) == ["3", None]


def test_a_table_with_columns_type_and_text_stays_one() -> None:
    rows = [{"type": "complaint", "text": "too late"}, {"type": "text", "text": "fine"}]
    assert table_of(rows).records() == rows
    assert table_of([{"type": "text", "text": "3 rows found"}]) is None
    assert table_of([{"type": "text", "text": "n\n3"}, {"type": "image", "data": "x"}]).records() == [
        {"n": "3"}
    ]
    lines = [{"type": "text", "text": "a,b"}, {"type": "text", "text": "1,2"}]
    assert table_of(lines).records() == [{"a": "1", "b": "2"}]
    assert table_of([{"type": "text", "text": "[1]"}, {"type": "text", "text": "[2]"}]) is None


def test_what_says_that_it_failed_is_an_error() -> None:
    failed = {"content": [{"type": "text", "text": "no such table: x"}], "isError": True}
    call = answered(failed).tool_calls[0]
    assert (call.status, call.error) == ("error", "no such table: x")
    assert executed_queries(answered(failed)) == ()
    blocks = [{"type": "tool_result", "tool_use_id": "1", "content": "denied", "is_error": True}]
    assert answered(blocks).tool_calls[0].error == "denied"
    assert failure_of({"is_error": True}) == "the tool says is_error"
    assert failure_of({"is_error": True, "error": {"message": "late"}}) == "late"
    assert failure_of({"isError": False, "rows": []}) is None
    assert failure_of([1]) is None
    assert read_result(failed).error == "no such table: x"
    assert answered(failed, error="own words").tool_calls[0].error == "own words"


@pytest.mark.parametrize(
    "text",
    ["Query executed successfully. No rows returned.", "Total revenue\n4750 EUR", "", "a, b\nc, d and more",
     "|", "one | two", "Done\nok", "(", "[1, 2", "['a'", "{1: }", "__import__('os').system('x')",
     "[open('/etc/passwd')]", "[().__class__]", "[x for x in (1,)]", "[lambda: 1]", "[f'{1}']",
     "[Decimal('x')]", "[date(2024, 13, 1)]",
     "a,b\n1", "a,a\n1,2", "1,2\n3,4", "x" * 100, '"a,b\n1,2', "0 1\n0 2"],
)  # fmt: skip
def test_other_text_is_no_table(text: str) -> None:
    assert table_in_text(text) is None
    assert table_of(text, "SELECT a, b FROM t") is None


def test_python_s_own_spelling_of_values() -> None:
    text = (
        "[{'d': datetime.date(2024, 1, 2), "
        "'t': datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone.utc), "
        "'n': -1.5, 'x': nan, 'u': UUID('00000000-0000-0000-0000-000000000005'), 'l': (1, None, True), "
        "'s': {1}, 'i': datetime.timedelta(days=1), 'p': Timestamp('2024-01-02 03:04:05'), 'm': +2, "
        "'np': np.int64(5), 'a': array([1, 2], dtype=int64)}]"
    )
    (row,) = literal(text.replace(", dtype=int64", ""))
    assert row["x"] != row.pop("x")
    assert row["t"].isoformat() == "2024-01-02T03:00:00+00:00"
    assert {**row, "t": None} == {
        "d": date(2024, 1, 2), "t": None, "n": -1.5, "u": UUID(int=5), "l": (1, None, True), "s": [1],
        "i": timedelta(days=1), "p": datetime(2024, 1, 2, 3, 4, 5), "m": 2, "np": 5, "a": [1, 2],
    }  # fmt: skip
    assert literal(text) is ...


def test_numbers_of_json_text_keep_their_digits() -> None:
    table = table_of('[{"a": 0.12345678901234567890, "b": 12345678901234567890, "c": 2.50, "d": 1e400}]')
    assert table is not None
    (row,) = table.records()
    assert row == {
        "a": Decimal("0.12345678901234567890"),
        "b": 12345678901234567890,
        "c": 2.5,
        "d": Decimal("1e400"),
    }
    assert isinstance(row["c"], float)


def test_odd_results_end() -> None:
    deep: Any = {"data": ROWS}
    for _ in range(20):
        deep = {"output": deep}
    assert table_of(deep) is None
    assert table_of({"status": "ok", "row_count": 3}) is None
    assert table_of({"status": "ok", "message": {"text": "x"}}) is None
    assert table_of({"a": {}, "b": {}}) is None
    assert table_of({"0": {"0": 1}, "1": {"0": 2}}).records() == [{"0": 1}, {"0": 2}]
    assert table_of({"values": [1, 2], "data": {}}) is None
    assert table_of([1, [2]]) is None
    assert table_of([[1], [2, 3]]) is None
    assert table_of("{broken\n{broken") is None
    assert table_of('{"a": 1}\n{"a": ') is None
    assert table_of({"a.x": 1, "b.x": 2}).names == ["a.x", "b.x"]
    assert table_of({"columns": ["n"], "rows": []}).names == ["n"]
    assert table_of(Table.from_rows(["n"], [[1]])).records() == [{"n": 1}]
    assert table_of({"schema": ["n"], "rows": [[1]]}).records() == [{"n": 1}]
    assert table_of({"columns": [["n", "INTEGER"]], "rows": [[1]]}).types == ["INTEGER"]
    assert table_of(None) is None
    assert table_of({"isNull": True}).records() == [{"isNull": True}]
    null = {"columns": ["n"], "Records": [[{"isNull": True}]]}
    assert table_of(null).records() == [{"n": None}]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT a, b AS c FROM t", ["a", "c"]),
        ("SELECT count(*), SUM(x) FROM t", ["count(*)", "sum(x)"]),
        ("WITH q AS (SELECT 1 AS z) SELECT t.z FROM q AS t", ["z"]),
        ("(SELECT a FROM t) UNION ALL SELECT b FROM u", ["a"]),
        ("SELECT * FROM t", None),
        ("SELECT t.*, 1 FROM t", None),
        ("DELETE FROM t", None),
        ("SELECT 1; SELECT 2", None),
        ("what?", None),
        ("SELECT `a b` FROM `p.d.t`", ["a b"]),
    ],
)
def test_names_of_a_statement(sql: str, names: list[str] | None) -> None:
    assert column_names_of(sql) == names


def test_normalised_calls_keep_what_is_no_table() -> None:
    with pytest.raises(AgentFailed):
        normalize(object())
    assert answered("text").tool_calls[0].result == "text"
