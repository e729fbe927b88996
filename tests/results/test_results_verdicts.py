from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agenteval.cases.model import PassRule
from pytest_agenteval.results.document.verdicts import decide, parse_rule

P, F, E, R, N = "passed", "failed", "error", "review", "not_run"


@pytest.mark.parametrize(
    ("verdicts", "rule", "k", "verdict", "label"),
    [
        ([P], "all", 1, P, "1/1"),
        ([F], "all", 1, F, "0/1"),
        ([P, P, P, P, F], "all", 5, F, "4/5"),
        ([P, P, P, F, F], "0.6", 5, P, "3/5"),
        ([P, P, F, F, F], "0.6", 5, F, "2/5"),
        ([P, P, F], "0.67", 3, P, "2/3"),
        ([P, P, F], "2/3", 3, P, "2/3"),
        ([P, F, F], "any", 3, P, "1/3"),
        ([F, F, F], "any", 3, F, "0/3"),
        ([P, P, F, F], "majority", 4, F, "2/4"),
        ([P, P, P, F], "majority", 4, P, "3/4"),
        # errors count neither way
        ([P, P, P, E, E], "0.6", 5, P, "3/3 (+2 errors)"),
        ([P, P, P, E, E], "all", 5, E, "3/3 (+2 errors)"),
        ([P, F, E], "all", 3, F, "1/2 (+1 error)"),
        ([P, E], "any", 2, P, "1/1 (+1 error)"),
        ([F, E], "any", 2, E, "0/1 (+1 error)"),
        ([E], "all", 1, E, "0/0 (+1 error)"),
        # attempts that are missing or were stopped
        ([P, N], "all", 2, N, "1/1 (+1 not run)"),
        ([P], "all", 2, N, "1/1 (+1 not run)"),
        ([F], "all", 2, F, "0/1 (+1 not run)"),
        ([P, E, N], "all", 3, E, "1/1 (+1 error, 1 not run)"),
        ([], "all", 1, N, "0/0 (+1 not run)"),
        ([R], "all", 1, R, "0/0 (+1 to review)"),
        ([R, R], "all", 2, R, "0/0 (+2 to review)"),
        ([R, E], "all", 2, E, "0/0 (+1 error, 1 to review)"),
        # merged: more attempts than k
        ([P, P, F, P], "0.75", 2, P, "3/4"),
    ],
)
def test_the_case_is_decided_by_its_attempts(verdicts, rule, k, verdict, label):
    decision = decide(verdicts, parse_rule(rule), k)
    assert (decision.verdict, decision.label) == (verdict, label)


@given(
    st.lists(st.sampled_from([P, F, E, N, R]), min_size=1, max_size=6), st.sampled_from(["all", "any", "0.5"])
)
def test_a_decided_verdict_holds_whatever_the_undecided_attempts_would_have_been(verdicts, text):
    rule = parse_rule(text)
    decision = decide(verdicts, rule, len(verdicts))
    worst = [F if v not in (P, F) else v for v in verdicts]
    best = [P if v not in (P, F) else v for v in verdicts]
    ends = {decide(worst, rule, len(verdicts)).verdict, decide(best, rule, len(verdicts)).verdict}
    if decision.verdict in (P, F):
        assert ends == {decision.verdict}
    else:
        assert ends == {P, F}


@pytest.mark.parametrize("text", ["all", None, "", "nonsense", "1/0"])
def test_a_spelling_that_is_not_understood_is_the_strictest_rule(text):
    assert parse_rule(text) == PassRule()
