"""tool_call, no_tool_call, tool_order, asked: nao's words exactly."""

from __future__ import annotations

import pytest
from checks_kit import call, evidence, faults, judged


def tool(calls, **raw):
    return judged(evidence(calls=calls), type="tool_call", **raw)


SQL = call("execute_sql", {"database_id": "warehouse", "sql_query": "SELECT 1"})
LAKE = call("execute_sql", {"database_id": "lake"})


@pytest.mark.parametrize(
    ("calls", "raw", "passed", "why"),
    [
        ([SQL], {"tool": "execute_sql"}, True, "tool_call: execute_sql"),
        ([SQL, SQL], {"tool": " execute_sql "}, True, "tool_call: execute_sql"),
        ([SQL], {"tool": "clarification"}, False, "missing tool_call: clarification"),
        ([], {"tool": "clarification"}, False, "missing tool_call: clarification"),
        ([SQL, LAKE], {"tool": "execute_sql", "min_count": 2}, True, "tool_call: execute_sql (x2, min 2)"),
        (
            [SQL],
            {"tool": "execute_sql", "min_count": 2},
            False,
            "missing tool_call: execute_sql (found 1, need >= 2)",
        ),
        (
            [SQL],
            {"tool": "execute_sql", "args": {"database_id": "warehouse"}},
            True,
            "tool_call: execute_sql (x1, args matched)",
        ),
        (
            [SQL, SQL, SQL],
            {"tool": "execute_sql", "args": {"database_id": "warehouse"}, "min_count": 2},
            True,
            "tool_call: execute_sql (x3, min 2, args matched)",
        ),
        (
            [LAKE],
            {"tool": "execute_sql", "args": {"database_id": "warehouse"}},
            False,
            "missing tool_call: execute_sql with args {'database_id': 'warehouse'}"
            " (found 0 matching, need >= 1; 1 total)",
        ),
        (
            [SQL, LAKE],
            {"tool": "execute_sql", "args": {"database_id": "warehouse"}, "min_count": 2},
            False,
            "missing tool_call: execute_sql with args {'database_id': 'warehouse'}"
            " (found 1 matching, need >= 2; 2 total)",
        ),
        (
            [],
            {"tool": "execute_sql", "args": {"database_id": "warehouse"}},
            False,
            "missing tool_call: execute_sql with args {'database_id': 'warehouse'}",
        ),
        (
            [SQL, SQL, SQL],
            {"tool": "execute_sql", "max_count": 2},
            False,
            "tool_call: execute_sql (found 3, allowed <= 2)",
        ),
        ([SQL], {"tool": "execute_sql", "max_count": 2}, True, "tool_call: execute_sql (x1, max 2)"),
        (
            [],
            {"tool": "execute_sql", "min_count": 0, "max_count": 2},
            True,
            "tool_call: execute_sql (x0, max 2)",
        ),
        (
            [call("a", status="error", error="no")],
            {"tool": "a", "status": "ok"},
            False,
            "missing tool_call: a with status ok (found 0 matching, need >= 1; 1 total)",
        ),
        (
            [call("a", status="error")],
            {"tool": "a", "status": "error"},
            True,
            "tool_call: a (x1, status error)",
        ),
    ],
)
def test_naos_words(calls, raw, passed, why):
    result = tool(calls, **raw)
    assert (result.passed, result.why, result.score) == (passed, why, float(passed))


@pytest.mark.parametrize(
    ("expected", "actual", "matches"),
    [
        ({"options": {"kind": "bar"}}, {"options": {"kind": "bar", "stacked": True}, "title": "x"}, True),
        ({"options": {"kind": "bar"}}, {"options": "bar"}, False),
        ({"columns": ["a", "b"]}, {"columns": ["a", "b"]}, True),
        ({"columns": ["a", "b"]}, {"columns": ["a", "b", "c"]}, False),
        ({"columns": [{"a": 1}]}, {"columns": [{"a": 1, "b": 2}]}, False),
        ({"x": True}, {"x": 1}, False),
        ({"x": 0}, {"x": False}, False),
        ({"x": True}, {"x": 1.0}, False),
        ({"x": [1]}, {"x": [True]}, False),
        ({"x": True}, {"x": True}, True),
        ({"x": 1}, {"x": 1.0}, True),
        ({"x": None}, {}, False),
        ({"x": None}, {"x": None}, True),
        ({"x": 1}, '{"x": 1}', True),
        ({"x": 1}, '{"x": 1', False),
        ({"x": 1}, None, False),
    ],
)
def test_args_are_a_subset(expected, actual, matches):
    assert tool([call("t", actual)], tool="t", args=expected).passed is matches


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "matches"),
    [
        ("exact", {"x": 1}, {"x": 1}, True),
        ("exact", {"x": 1}, {"x": 1, "y": 2}, False),
        ("exact", {"x": {"y": 1}}, {"x": {"y": 1, "z": 2}}, False),
        ("exact", {"x": 1}, "broken json", False),
        ("regex", {"sql": "first_name|last_name"}, {"sql": "SELECT last_name"}, True),
        ("regex", {"sql": "^last"}, {"sql": "SELECT last_name"}, False),
        ("regex", {"n": {"m": "a+"}}, {"n": {"m": "caab"}}, True),
        ("regex", {"n": {"m": "a+"}}, {"n": "caab"}, False),
        ("regex", {"n": "4."}, {"n": 42}, True),
        ("regex", {"n": "b"}, {"n": ["a", "b"]}, True),
        ("regex", {"n": 42}, {"n": 42}, True),
        ("regex", {"n": 1}, {"n": True}, False),
        ("regex", {"gone": "x"}, {}, False),
    ],
)
def test_args_modes(mode, expected, actual, matches):
    assert tool([call("t", actual)], tool="t", args=expected, args_mode=mode).passed is matches


def test_no_tool_call():
    calls = [call("execute_sql", {"sql_query": "SELECT first_name\nFROM customers"})]
    rule = {"type": "no_tool_call", "tool": "execute_sql"}
    result = judged(evidence(calls=calls), **rule)
    assert result.why == (
        "forbidden tool_call: execute_sql with args {'sql_query': 'SELECT first_name\\nFROM customers'}"
    )
    assert not result.passed
    assert judged(evidence(calls=calls), **rule, args={"sql_query": "x"}).why == "no tool_call: execute_sql"
    named = judged(evidence(calls=calls * 3), **rule, args={"sql_query": "first_"}, args_mode="regex")
    assert named.why.startswith("forbidden tool_call: execute_sql (x3) with args")
    long = judged(evidence(calls=[call("execute_sql", {"q": "x" * 500})]), **rule)
    assert long.why.endswith("...")
    assert len(long.why) < 260
    failed = [call("execute_sql", {}, status="error")]
    assert not judged(evidence(calls=failed), **rule).passed


@pytest.mark.parametrize(
    ("made", "mode", "why"),
    [
        ("abc", "subsequence", None),
        ("axbxc", "subsequence", None),
        ("aabbcc", "subsequence", None),
        ("acb", "subsequence", "tool_order: no c after b; called a > c > b, expected a > b > c"),
        ("", "subsequence", "tool_order: no a; called nothing, expected a > b > c"),
        ("abc", "exact", None),
        ("abcc", "exact", "tool_order: called a > b > c > c, expected exactly a > b > c"),
    ],
)
def test_tool_order(made, mode, why):
    calls = [call(name) for name in made]
    result = judged(evidence(calls=calls), type="tool_order", tools=["a", "b", "c"], mode=mode)
    assert result.passed is (why is None)
    assert result.why == (why or "tool_order: a > b > c")


def test_asked():
    refused = call("refund", asked=True, approved=False)
    assert judged(evidence(calls=[refused]), type="asked", tools="refund").why == "asked: refund (refused)"
    approved = call("refund", asked=True, approved=True)
    both = judged(evidence(calls=[refused, approved]), type="asked", tools=["refund"])
    assert both.why == "asked: refund (refused, approved)"
    waiting = evidence(calls=[call("refund", asked=True)])
    assert judged(waiting, type="asked", tools="refund").why == "asked: refund (unanswered)"
    missing = judged(evidence(calls=[refused]), type="asked", tools=["refund", "delete"])
    assert (missing.passed, missing.why) == (False, "asked: delete did not ask a person (refund asked)")
    nobody = judged(evidence(calls=[call("refund")]), type="asked", tools="refund")
    assert nobody.why == "asked: refund did not ask a person (no tool asked)"
    assert judged(evidence(asked=("refund",)), type="asked", tools="refund").why == "asked: refund"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"args": {}}, "'args' must not be empty; omit 'args' to match any call to the tool"),
        ({"args_mode": "exact"}, "'args_mode' without 'args' means nothing: give args, or leave it out"),
        (
            {"args": {"q": ["("]}, "args_mode": "regex", "min_count": "2"},
            "min_count: should be a whole number",
        ),
        ({"args": {"q": "("}, "args_mode": "regex"}, "args: '(' is not a regular expression: missing )"),
        ({"args": {"q": {"r": "["}}, "args_mode": "regex"}, "args: '[' is not a regular expression"),
        ({"min_count": True}, "min_count: should be a whole number, found True"),
        ({"min_count": 0}, "min_count 0 without max_count checks nothing"),
        ({"max_count": 0}, "min_count 1 is above max_count 0: nothing can satisfy both"),
        ({"status": "failed"}, "status: should be one of ok, error, any, found 'failed'"),
        ({"extra": 1}, "unknown field 'extra'; known: args, args_mode, max_count, min_count, name"),
    ],
)
def test_what_a_tool_call_may_not_say(raw, text):
    found = faults(type="tool_call", tool="t", **raw)
    assert any(text in fault for fault in found), found


def test_regex_patterns_in_lists_are_compared_whole():
    rule = {"tool": "t", "args": {"q": ["a", 1]}, "args_mode": "regex"}
    assert tool([call("t", {"q": ["a", 1]})], **rule).passed
    assert not tool([call("t", {"q": ["b", 1]})], **rule).passed
