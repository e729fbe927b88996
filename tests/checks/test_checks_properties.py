"""Properties: parsing and judging never raise by accident; the leak search equals the plain one."""

from __future__ import annotations

from typing import Any

from checks_kit import SHOP, call, evidence, table
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agenteval.checks import default_registry
from pytest_agenteval.checks.grounding import ungrounded
from pytest_agenteval.checks.leak import WINDOW, leaked
from pytest_agenteval.checks.outcome import observation
from pytest_agenteval.checks.refusal_phrases import asks, declines
from pytest_agenteval.checks.sql import rules
from pytest_agenteval.checks.sql.rules import examine
from pytest_agenteval.checks.text_numbers import all_numbers, quantities
from pytest_agenteval.support.faults import Fault
from pytest_agenteval.types import Answer, Statement

REGISTRY = default_registry()
WORDS = sorted({field for kind in REGISTRY.types for field in REGISTRY.model(kind).model_fields} | {"pass"})

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(),
    st.text(max_size=12),
    st.dates(),
    st.datetimes(),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=6) | st.sampled_from(WORDS), inner, max_size=3),
    ),
    max_leaves=6,
)
SQL_WORDS = """
SELECT FROM WHERE customers orders c o . , * ( ) = 'x' 1 id email JOIN ON USING AND OR NOT IN EXISTS WITH AS
UNION ALL
GROUP BY ORDER LIMIT DELETE ; t.* COUNT(*) (SELECT
"""
SQL_PARTS = st.sampled_from(SQL_WORDS.split())


@given(
    kind=st.sampled_from(REGISTRY.types), fields=st.dictionaries(st.sampled_from(WORDS), values, max_size=5)
)
@settings(max_examples=300, deadline=None)
def test_a_check_parses_or_gives_faults(kind: str, fields: dict[str, Any]) -> None:
    found = REGISTRY.parse({**fields, "type": kind})
    if isinstance(found, list):
        assert found
        assert all(isinstance(fault, Fault) and fault.text for fault in found)
    else:
        assert found.type == kind


@given(raw=values)
@settings(max_examples=100, deadline=None)
def test_nothing_in_expect_or_assertions_raises(raw: Any) -> None:
    for parse in (REGISTRY.parse_expect, REGISTRY.parse_all):
        checks, faults = parse(raw)
        assert all(check.type in REGISTRY.types for check in checks)
        assert all(fault.text for fault in faults)


@given(words=st.lists(SQL_PARTS, max_size=25), schema=st.sampled_from([SHOP, {}]))
@settings(max_examples=200, deadline=None)
def test_no_statement_breaks_the_rules(words: list[str], schema: Any) -> None:
    (found,) = examine([Statement(" ".join(words))], schema, "duckdb")
    for entry in found.statements:
        list(rules.read_only(entry))
        list(rules.forbidden_columns(entry, {"customers": ["email"]}))
        list(rules.allowed_columns(entry, {"orders": ["id"]}))
        list(rules.stars_on(entry, {"customers": ["email"]}))
        list(rules.required_filters(entry, {"orders": ["id"], "customers": ["id = 1"]}))
        list(rules.time_filter(entry, {"orders": ["id"]}))
        list(rules.allowed_joins(entry, [("orders.id", "customers.id")]))
        list(rules.require_limit(entry, groups=False))
        list(rules.max_limit(entry, 1))
    assert found.statements or found.error


@given(text=st.text(max_size=80) | st.from_regex(r"[\d.,' %kMbn$()-]{1,30}", fullmatch=True))
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_read(text: str) -> None:
    for entry in quantities(text):
        assert entry.text in text
    assert all(number >= 0 for number in all_numbers(text))
    ungrounded(evidence(text, table=table(a=[1, None, text])))
    declines(text)
    asks(text)
    observation(evidence(text, answer=Answer(text)))


@given(
    key=st.text("ab ", min_size=45, max_size=120),
    before=st.text("ab", max_size=30),
    after=st.text("ab", max_size=30),
    start=st.integers(0, 60),
    length=st.integers(20, 60),
)
@settings(max_examples=300, deadline=None)
def test_the_leak_search_equals_the_plain_one(
    key: str, before: str, after: str, start: int, length: int
) -> None:
    folded = " ".join(key.split())
    result = " ".join(f"{before}{key[start : start + length]}{after}".split())
    windows = {folded[at : at + WINDOW] for at in range(len(folded) - WINDOW + 1)}
    held = [window for window in windows if window in result]
    # less than three words is one long name at most: that may stand in a schema
    if held and not any(len(window.split()) > 2 for window in held):
        return
    plain = bool(held)
    answer = Answer(tool_calls=(call("grep", {"pattern": "z"}, result),))
    assert (leaked(answer, [], [key]) is not None) == plain
