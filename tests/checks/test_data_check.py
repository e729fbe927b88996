"""The data comparison as one of the checks: several references, turns, notes."""

from __future__ import annotations

import pytest
from checks_kit import evidence, table

from pytest_agenteval.checks import data
from pytest_agenteval.checks.data import check_data, suite_options
from pytest_agenteval.errors import ComparisonFailed
from pytest_agenteval.types import Reference, TurnEvidence

ONE, TWO = table(a=[1, 2]), table(a=[1, 3])


def test_one_reference():
    result = check_data(evidence(table=ONE, references=(Reference(ONE),)))
    assert (result.type, result.passed, result.why, result.reason, result.score) == (
        "data",
        True,
        "match",
        "match",
        1,
    )
    assert result.details["comparison"].matched
    result = check_data(evidence(table=TWO, references=(Reference(ONE),)))
    assert (result.passed, result.why, result.score) == (False, "values differ", 0.0)
    assert result.reason == result.details["comparison"].diagnosis.word


def test_several_references_say_which_matched():
    references = (Reference(TWO), Reference(ONE))
    result = check_data(evidence(table=ONE, references=references))
    assert (result.why, result.details["reference"]) == ("match (reference 2 of 2)", 1)
    far = (Reference(table(a=[7, 8])), Reference(TWO), Reference(table(a=[9, 9])))
    result = check_data(evidence(table=ONE, references=far))
    assert (result.passed, result.why) == (False, "values differ (reference 2 of 3)")


def test_no_data_fails():
    result = check_data(evidence(references=(Reference(ONE),)))
    assert (result.passed, result.why, result.reason) == (False, "no data returned", "no_answer")
    empty = Reference(table(a=[]))
    assert check_data(evidence(table=table(b=[]), references=(empty,))).why == "both empty"


def test_options_of_the_case_count():
    near = table(a=[1.004, 2.0])
    assert not check_data(
        evidence(
            table=near, references=(Reference(table(a=[1.0, 2.0])),), comparison={"rtol": 0, "decimals": None}
        )
    ).passed
    keyed = (Reference(table(a=[2, 1]), "SELECT a FROM t ORDER BY a DESC", ("a desc",)),)
    assert not check_data(evidence(table=ONE, references=keyed, comparison={"ordered": True})).passed
    assert suite_options({"rtol": 1, "per_column": {"a": 1}}, {"rtol": 2, "per_column": {"b": 2}}) == {
        "rtol": 2,
        "per_column": {"a": 1, "b": 2},
    }
    assert suite_options({}, {"rtol": 2}) == {"rtol": 2}


def test_an_ordered_reference_is_noted():
    ordered = (Reference(ONE, "SELECT a FROM t ORDER BY a"),)
    matched = check_data(evidence(table=ONE, references=ordered)).details["comparison"]
    assert (matched.matched, matched.notes) == (True, ())
    failed = check_data(evidence(table=TWO, references=ordered, services=None)).details["comparison"]
    assert failed.notes[-1] == "the reference is ordered; add `ordered: true` if order matters"
    plain = check_data(evidence(table=TWO, references=(Reference(ONE, "SELECT a FROM t"),)))
    assert plain.details["comparison"].notes == ()


def test_a_turn_has_references_of_its_own():
    turns = (TurnEvidence("hi", "x", (), ONE, (Reference(ONE),)), TurnEvidence("more", "y"))
    result = check_data(evidence(turns=turns), turn=0)
    assert (result.passed, result.turn) == (True, 0)
    with pytest.raises(ValueError, match="there is no reference to compare with"):
        check_data(evidence(turns=turns), turn=1)


def test_a_comparison_that_breaks_is_an_error(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(data, "compare", broken)
    with pytest.raises(ComparisonFailed, match="the comparison broke: ZeroDivisionError: oops"):
        check_data(evidence(table=ONE, references=(Reference(ONE),)))
