"""Which rule made a verdict another one: the first whose outcome differs."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agenteval.engine.flips import flip_of
from pytest_agenteval.results.document.rows import Row
from pytest_agenteval.results.journal.records import table_hash
from pytest_agenteval.table import Table
from pytest_agenteval.types import Attempt, CheckResult, Extraction

ONE, TWO = (Table.from_rows(["n"], [[n]], ["INTEGER"]) for n in (1, 2))
ROW = Row(
    name="a",
    model="m:1",
    path="tests/a.yml",
    verdict="passed",
    message="match",
    case_hash="case",
    reference_hashes=(table_hash(ONE),),
)
ENTRY = {
    "leak": None,
    "extraction": {"source": "only query", "query": "SELECT 1"},
    "checks": [{"type": "data", "passed": True}, {"type": "text", "name": "eur", "turn": 0, "passed": True}],
    "details": {"actual_table": {"sha256": table_hash(ONE)}},
}
NOW: dict[str, Any] = {
    "extraction": Extraction(ONE, "only query", "SELECT 1"),
    "references": (ONE,),
    "checks": (CheckResult("data", True, "match"), CheckResult("text", True, "", "eur", turn=0)),
}


def flip(entry: dict[str, Any] = ENTRY, row: Row = ROW, case_hash: str = "case", **now: Any) -> Any:
    attempt = Attempt(1, "failed", "values differ", **{**NOW, **now})
    return flip_of(row, entry, attempt, case_hash)


def test_a_verdict_that_is_the_same_has_not_flipped():
    assert flip_of(ROW, ENTRY, Attempt(1, "passed", "match"), "another") is None


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("case", {"case_hash": "another"}),
        ("reference", {"references": (TWO,)}),
        ("leak", {"leak": "the answer key was read"}),
        ("extraction", {"extraction": Extraction(ONE, "query", "SELECT 1")}),
        ("extraction", {"extraction": None}),
        ("reading", {"extraction": Extraction(TWO, "only query", "SELECT 1")}),
        ("comparison", {"checks": (CheckResult("data", False, "values differ"),)}),
        ("check text", {"checks": (NOW["checks"][0], CheckResult("text", False, "", "eur", turn=0))}),
        ("check outcome", {"checks": (*NOW["checks"], CheckResult("outcome", False, "asked"))}),
        ("verdict", {}),
    ],
)
def test_the_rule_is_the_first_that_says_something_else(rule, changes):
    found = flip(**changes)
    assert found.rule == rule
    assert found.text.startswith(f"passed -> failed by the rule {rule} (")
    assert found.text.endswith("): values differ")


def test_files_that_know_less_name_the_rule_that_is_left():
    known = Row(name="a", model="m:1", verdict="passed")
    assert flip(entry={}, row=known).rule == "comparison"
    assert flip(entry={"checks": []}, row=known, checks=()).rule == "verdict"
    without = {key: value for key, value in ENTRY.items() if key != "details"}
    assert flip(entry=without, extraction=Extraction(TWO, "only query", "SELECT 1")).rule == "verdict"
