"""text, value, rows, chart, budget, python, metric: behaviour and messages."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from checks_kit import House, call, evidence, faults, judged, table

from pytest_agenteval.cases.model import Budget
from pytest_agenteval.checks import run_check
from pytest_agenteval.checks.usage import budget_check
from pytest_agenteval.errors import CheckFailed
from pytest_agenteval.support.scalars import is_null
from pytest_agenteval.table import Table
from pytest_agenteval.types import Consumption

# --- text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "raw", "why"),
    [
        ("Revenue is 1,189.60", {"contains": "REVENUE"}, None),
        ("Revenue is\u00a01,189.60", {"contains": ["revenue is 1,189", "60"]}, None),
        ("Revenue", {"contains": ["a", "x", "b"]}, "text: 'a' is missing; 'x' is missing; 'b' is missing"),
        ("Revenue", {"contains": "revenue", "ignore_case": False}, "text: 'revenue' is missing"),
        ("Cafe\u0301", {"contains": "CAF\u00c9"}, None),
        ("b", {"contains_any": ["a", "b"]}, None),
        ("c", {"contains_any": ["a", "b"]}, "text: none of 'a', 'b' occurs"),
        ("a b", {"not_contains": ["x", "B"]}, "text: 'B' occurs"),
        ("a b", {"not_contains": "x"}, None),
        ("Order was Shipped", {"pattern": r"\bshipped$"}, None),
        (
            "Order was Shipped",
            {"pattern": "shipped", "ignore_case": False},
            "text: pattern `shipped` is not found",
        ),
        ("", {"contains": "a", "pattern": "b"}, "text: 'a' is missing; pattern `b` is not found"),
    ],
)
def test_text(text, raw, why):
    result = judged(evidence(text), type="text", **raw)
    assert (result.passed, result.why) == (why is None, why or "text: ok")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (
            {},
            "text checks nothing: give at least one of contains, contains_any, not_contains, pattern",
        ),
        ({"grounded": False}, "text checks nothing: grounded is false and nothing else is given"),
        ({"contains": None}, "text checks nothing: grounded is false and nothing else is given"),
        ({"pattern": "("}, "pattern: not a regular expression: missing )"),
        ({"contains": ["a", "b"], "not_contains": "b"}, "'b' stands in both contains and not_contains"),
    ],
)
def test_what_a_text_check_may_not_say(raw, text):
    assert any(text in fault for fault in faults(type="text", **raw))


# --- value ------------------------------------------------------------------------------------------

TABLE = table(
    total=[Decimal("1585.50"), 2],
    day=[dt.date(2024, 1, 31), dt.datetime(2024, 2, 1, 12)],
    name=["North", None],
    id=[2**60, 1],
    ok=[True, False],
)


@pytest.mark.parametrize(
    ("raw", "why", "passed"),
    [
        ({"equals": 1585.5}, "value: 1585.50", True),
        ({"equals": 1585.4}, "value: 1585.50, expected 1585.4", False),
        ({"min": 1580, "max": 1590}, "value: 1585.50", True),
        ({"min": 1586}, "value: 1585.50, expected at least 1586", False),
        ({"max": 1585}, "value: 1585.50, expected at most 1585", False),
        ({"min": 1, "max": 2}, "value: 1585.50, expected 1 to 2", False),
        ({"approx": 1600.0}, "value: 1585.50", True),
        ({"approx": 1600.0, "rtol": 0.001}, "value: 1585.50, expected 1600.0 within 0.001 of it", False),
        ({"column": "TOTAL", "row": 1, "equals": 2}, "value TOTAL: 2", True),
        ({"column": "total", "row": -1, "equals": 2}, "value total: 2", True),
        ({"row": 1, "equals": 2}, "value: 2", True),
        ({"row": 2, "equals": 1}, "value: no row 2, the answer has 2 rows", False),
        (
            {"column": "totl", "equals": 1},
            "value: the answer has no column 'totl', did you mean 'total'?",
            False,
        ),
        ({"column": "name", "equals": "North"}, "value name: 'North'", True),
        ({"column": "name", "equals": "north"}, "value name: 'North', expected 'north'", False),
        ({"column": "name", "row": 1, "equals": None}, "value name: NULL", True),
        ({"column": "name", "equals": None}, "value name: 'North', expected NULL", False),
        ({"column": "name", "row": 1, "equals": 0}, "value name: NULL, expected 0", False),
        ({"column": "id", "equals": 2**60}, f"value id: {2**60}", True),
        ({"column": "id", "equals": 2**60 + 1}, f"value id: {2**60}, expected {2**60 + 1}", False),
        ({"column": "ok", "equals": True}, "value ok: True", True),
        ({"column": "ok", "equals": 1}, "value ok: True, expected 1", False),
        ({"column": "ok", "min": 0}, "value ok: True, expected at least 0", False),
        ({"column": "day", "equals": dt.date(2024, 1, 31)}, "value day: 2024-01-31", True),
        ({"column": "day", "row": 1, "min": dt.date(2024, 2, 1)}, "value day: 2024-02-01 12:00:00", True),
        (
            {"column": "day", "max": dt.datetime(2024, 1, 30)},
            "value day: 2024-01-31, expected at most 2024-01-30",
            False,
        ),
        (
            {"column": "name", "min": dt.date(2024, 1, 1)},
            "value name: 'North', expected at least 2024-01-01",
            False,
        ),
        ({"column": "name", "approx": 3}, "value name: 'North', expected 3.0 within 0.01 of it", False),
    ],
)
def test_value(raw, why, passed):
    result = judged(evidence(table=TABLE), type="value", **raw)
    assert result.passed is passed
    assert result.why.startswith(why)


def test_the_value_an_agent_handed_over():
    assert judged(evidence(value="1,585.50"), type="value", equals=1585.5).passed
    assert judged(evidence(value="2024-01-31"), type="value", equals=dt.date(2024, 1, 31)).passed
    assert judged(evidence(value="Jan"), type="value", equals=dt.date(2024, 1, 31)).why.startswith(
        "value: 'Jan'"
    )
    assert judged(evidence(value=float("inf")), type="value", min=1).passed is False
    assert judged(evidence(value=0.1 + 0.2), type="value", equals=0.3).passed
    assert judged(evidence(value=np.float64(2.5)), type="value", equals=2.5).passed
    assert judged(evidence(value=7), type="value", column="a", equals=7).why == "no data returned"
    assert judged(evidence(), type="value", equals=7).why == "no data returned"
    empty = Table.from_rows(["a"], [])
    assert (
        judged(evidence(table=empty), type="value", equals=7).why == "value: no row 0, the answer has 0 rows"
    )


@pytest.mark.parametrize(
    "value", [None, float("nan"), np.nan, pd.NaT, pd.NA, np.datetime64("NaT", "us"), Decimal("NaN")]
)
def test_every_null_is_null(value):
    assert is_null(value)


@pytest.mark.parametrize("value", [0, "", False, np.array([1, 2]), [], "nan"])
def test_other_values_are_not_null(value):
    assert not is_null(value)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({}, "value checks nothing: give at least one of equals, min, max, approx"),
        ({"approx": 1, "min": 0}, "'approx' and 'min' contradict each other"),
        ({"equals": [1]}, "equals: should be one value, not a list or a map, found [1]"),
        ({"min": "5"}, "min: should be a number or a date, found '5'"),
        ({"max": True}, "max: should be a number or a date, found True"),
        ({"min": 5, "max": 4}, "min 5 is above max 4: nothing can satisfy both"),
        ({"min": 5, "max": dt.date(2024, 1, 1)}, "min and max must both be numbers or both be dates"),
        ({"equals": 1, "rtol": 0.1}, "'rtol' without 'approx' means nothing: give approx, or leave it out"),
    ],
)
def test_what_a_value_check_may_not_say(raw, text):
    assert any(text in fault for fault in faults(type="value", **raw))


# --- rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"equals": 2}, None),
        ({"equals": 3}, "rows: 2, expected 3"),
        ({"min": 3}, "rows: 2, expected at least 3"),
        ({"max": 1}, "rows: 2, expected at most 1"),
        ({"min": 1, "max": 2}, None),
        ({"unique": "id"}, None),
        ({"unique": ["ID", "ok"], "not_null": "total"}, None),
        ({"not_null": ["id", "name"]}, "rows: name is NULL in 1 of 2 rows"),
        ({"unique": "nam"}, "rows: the answer has no column 'nam', did you mean 'name'?"),
        ({"not_null": "zzz", "equals": 3}, "rows: 2, expected 3; the answer has no column 'zzz'; known: day"),
    ],
)
def test_rows(raw, why):
    result = judged(evidence(table=TABLE), type="rows", **raw)
    assert result.passed is (why is None)
    assert result.why.startswith(why or "rows: 2")


def test_rows_that_repeat():
    repeated = table(a=[1, 1, 2, 2, 3], b=["x", "x", "y", "z", "z"])
    result = judged(evidence(table=repeated), type="rows", unique=["a", "b"])
    assert result.why == "rows: a, b is not unique: 1, 'x' occurs 2 times"
    result = judged(evidence(table=repeated), type="rows", unique="a")
    assert result.why == "rows: a is not unique: 1 occurs 2 times and 1 more"


def test_rows_without_a_table_or_rows():
    assert judged(evidence(), type="rows", min=0).why == "no data returned"
    empty = Table.from_rows(["a"], [])
    assert judged(evidence(table=empty), type="rows", unique="a", not_null="a", max=0).passed
    assert judged(evidence(table=Table((), (), 0)), type="rows", unique="a").passed
    assert "no column 'b'" in judged(evidence(table=empty), type="rows", unique="b").why
    assert faults(type="rows") == [
        "rows checks nothing: give at least one of equals, min, max, unique, not_null"
    ]


# --- chart ------------------------------------------------------------------------------------------

NAO = {
    "chart_type": "bar",
    "x_axis_key": "month",
    "series": [{"data_key": "Revenue", "color": "#123"}, {"data_key": "orders"}],
}


@pytest.mark.parametrize(
    ("args", "raw", "why"),
    [
        (NAO, {"chart_type": "Bar", "x": "month", "y": ["revenue"]}, None),
        (NAO, {"y": "orders"}, None),
        (NAO, {"chart_type": "line"}, "chart: type bar, expected line"),
        (
            NAO,
            {"x": "day", "y": ["cost", "orders"]},
            "chart: x month, expected day; y Revenue, orders, expected cost",
        ),
        (
            {"config": {"type": "line", "x": "day", "yField": "n"}},
            {"chart_type": "line", "x": "day", "y": "n"},
            None,
        ),
        ({"type": "pie"}, {"x": "a", "y": "b"}, "chart: x none, expected a; y none, expected b"),
        ({"series": [{"label": "x"}, 5]}, {"y": "b"}, "chart: y none, expected b"),
        ('{"kind": "bar", "y": ["a", "b"]}', {"chart_type": "bar", "y": ["a", "b"]}, None),
        ("broken", {"chart_type": "bar"}, "chart: type None, expected bar"),
        (None, {"chart_type": "bar"}, "chart: type None, expected bar"),
    ],
)
def test_chart(args, raw, why):
    result = judged(evidence(calls=[call("display_chart", args)]), type="chart", **raw)
    assert result.passed is (why is None)
    assert result.why == why or (why is None and result.why.startswith("chart: "))


def test_a_chart_must_have_been_drawn():
    assert judged(evidence(), type="chart", x="a").why == "chart: display_chart was not called"
    failed = [call("display_chart", NAO, status="error")]
    assert (
        judged(evidence(calls=failed), type="chart", x="a").why
        == "chart: display_chart was not called (1 failed)"
    )
    second = [call("plot", {"x": "a"}), call("plot", {"x": "b"})]
    assert judged(evidence(calls=second), type="chart", tool="plot", x="b").passed
    assert judged(evidence(calls=second), type="chart", tool="plot").why == "chart: plot"
    assert faults(type="chart") == ["chart checks nothing: give at least one of chart_type, x, y, tool"]


# --- budget -----------------------------------------------------------------------------------------

USED = Consumption(tokens=61_200, cost=0.5, duration_ms=1200.0, tool_calls=8, sql_queries=3)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"tokens": 60_000}, "budget: 61,200 of 60,000 tokens"),
        ({"cost": 0.25}, "budget: $0.5000 of $0.2500"),
        (
            {"duration_ms": 1000, "tool_calls": 7, "sql_queries": 2},
            "budget: 1,200 of 1,000 ms, 8 of 7 tool calls, 3 of 2 SQL queries",
        ),
        ({"tokens": 61_200, "cost": 0.5, "duration_ms": 1200, "tool_calls": 8, "sql_queries": 3}, None),
    ],
)
def test_budget_as_a_check_and_as_a_key(raw, why):
    result = judged(evidence(used=USED), type="budget", **raw)
    assert (result.passed, result.why, result.reason) == (why is None, why or "budget: kept", "budget")
    key = run_check(budget_check(Budget(**raw)), evidence(used=USED))
    assert (key.passed, key.why, key.type) == (result.passed, result.why, "limit")


def test_a_budget_of_what_is_not_known_is_an_error():
    with pytest.raises(CheckFailed, match=r"budget: tokens and cost not known; let the agent report it"):
        judged(evidence(), type="budget", tokens=5, cost=1)
    named = r"budget: cost not known; the tokens are known: name their model \(--agent-model"
    with pytest.raises(CheckFailed, match=named):
        judged(evidence(used=Consumption(tokens=5)), type="budget", tokens=5, cost=1)
    with pytest.raises(CheckFailed, match=r"budget: cost not known; let the agent report it \(Answer.usage"):
        judged(evidence(), type="budget", cost=1)
    assert (
        judged(evidence(used=Consumption(tool_calls=9)), type="budget", tool_calls=5, cost=1).passed is False
    )
    assert faults(type="budget")[0].startswith("budget checks nothing: give at least one of tokens, cost")


# --- python -----------------------------------------------------------------------------------------


@pytest.fixture
def functions(tmp_path, monkeypatch):
    (tmp_path / "own_checks_for_tests.py").write_text(
        "def yes(e): return e.text == 'ok'\n"
        "def none(e): assert e.text == 'ok', 'not ok\\nmore'\n"
        "def bare(e): assert False\n"
        "def score(e): return 0.7\n"
        "def numpy(e):\n    import numpy\n    return numpy.bool_(True)\n"
        "def high(e): return 7\n"
        "def text(e): return '1'\n"
        "def many(e): return [1]\n"
        "def nan(e): return float('nan')\n"
        "def crash(e): return 1 / 0\n"
        "async def late(e): return True\n"
        "number = 5\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "own_checks_for_tests"
    sys.modules.pop("own_checks_for_tests", None)


@pytest.mark.parametrize(
    ("name", "text", "raw", "passed", "why", "score"),
    [
        ("yes", "ok", {}, True, "python: {}", 1.0),
        ("yes", "no", {}, False, "python: {} returned False", 0.0),
        ("none", "ok", {}, True, "python: {}", 1.0),
        ("none", "no", {}, False, "python: {}: not ok", 0.0),
        ("bare", "no", {}, False, "python: {}: an assertion failed", 0.0),
        ("score", "", {}, True, "python: {} scored 0.70", 0.7),
        ("score", "", {"min_score": 0.8}, False, "python: {} scored 0.70, need >= 0.8", 0.7),
        ("numpy", "", {}, True, "python: {} scored 1.00", 1.0),
    ],
)
def test_python(functions, name, text, raw, passed, why, score):
    reference = f"{functions}:{name}"
    result = judged(evidence(text), type="python", call=reference, **raw)
    assert (result.passed, result.why, result.score) == (passed, why.format(reference), score)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("high", "returned 7, expected a bool, a score 0..1, or None"),
        ("text", "returned '1', expected a bool"),
        ("many", "returned .1., expected a bool"),
        ("nan", "returned nan, expected a bool"),
        ("crash", "raised ZeroDivisionError: division by zero"),
        ("late", "is async; give a plain function"),
        ("gone", "is not there: module 'own_checks_for_tests' has no attribute 'gone'"),
        ("number", "is a int, expected a function"),
    ],
)
def test_python_that_cannot_be_carried_out(functions, name, why):
    with pytest.raises(CheckFailed, match=rf"python: {functions}:{name} {why.replace('(', '.')}"):
        judged(evidence(), type="python", call=f"{functions}:{name}")


def test_python_needs_services_and_a_reference():
    with pytest.raises(CheckFailed, match="python: a:b cannot be resolved here"):
        judged(evidence(services=None), type="python", call="a:b")
    with pytest.raises(CheckFailed, match="python: no_such_module_x:b is not there: No module named"):
        judged(evidence(services=House()), type="python", call="no_such_module_x:b")
    assert faults(type="python", call="fn") == ["call: should be written `pkg.mod:function`, found 'fn'"]


# --- metric -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "asked"),
    [
        ({"model_name": "orders", "measures": ["total_revenue"]}, True),
        ({"model": "orders", "measure": "TOTAL_REVENUE"}, True),
        ({"metrics": ["orders.total_revenue"]}, True),
        ({"metrics": [{"name": "shop.orders.total_revenue"}]}, True),
        ({"explore": "orders", "metrics": {"metric": "total_revenue"}}, True),
        ('{"model_name": "orders", "measures": ["total_revenue"]}', True),
        ({"model_name": "customers", "measures": ["total_revenue"]}, False),
        ({"measures": ["total_revenue"]}, False),
        ({"measures": [5]}, False),
        ("nonsense", False),
    ],
)
def test_metric(args, asked):
    seen = evidence(calls=[call("query_metrics", args)])
    assert judged(seen, type="metric", metrics="orders.total_revenue").passed is asked


def test_metric_messages():
    rule = {"type": "metric", "metrics": ["orders.total_revenue", "orders.count"]}
    assert judged(evidence(), **rule).why == (
        "metric: orders.total_revenue, orders.count not used (query_metrics was not asked)"
    )
    seen = evidence(calls=[call("query_metrics", {"model": "orders", "measures": ["count"]})])
    assert judged(seen, **rule).why == (
        "metric: orders.total_revenue not used (query_metrics was asked for orders.count)"
    )
    failed = evidence(calls=[call("query_metrics", {"metrics": ["orders.count"]}, status="error")])
    assert not judged(failed, type="metric", metrics="orders.count").passed
    raw = evidence(sql=["SELECT  SUM(x)\nFROM t"], calls=[call("m", {"metrics": "orders.count"})])
    result = judged(raw, type="metric", metrics="orders.count", tool="m", forbid_raw_sql=True)
    assert result.why == "metric: raw SQL was executed (x1): SELECT SUM(x) FROM t"
    assert judged(raw, type="metric", metrics="orders.count", tool="m").why == "metric: orders.count"
    assert faults(type="metric", metrics="revenue") == [
        "metrics: should be written `model.measure`, found 'revenue'"
    ]


def test_the_value_of_a_function_that_returns_a_text():
    assert judged(evidence(" refund\n"), type="value", equals="refund").passed
    assert judged(evidence("12"), type="value", equals=12).passed
    wrong = judged(evidence("refused"), type="value", equals="refund")
    assert (wrong.passed, wrong.why) == (False, "value: 'refused', expected 'refund'")
    # a column or a row is one of a table
    assert judged(evidence("refund"), type="value", column="a", equals="refund").why == "no data returned"
    assert judged(evidence(""), type="value", equals="refund").why == "no data returned"
