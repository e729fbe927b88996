"""The verdict on every labelled triple is the right one, and the page that counts them is current."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import how_right
import pytest
from how_right import KNOWN, OWN, PAGE, SHARED, counted_part, filled, judged, rows, totals
from shared_triples import missing
from triples import Judged, NotExpressible, Triple, judge

from pytest_agenteval.table import Table
from pytest_agenteval.types import Reference

ONE = Reference(Table.from_rows(["n"], [[1]], ["INTEGER"]), "SELECT 1")
CASE = "name: one\nprompt: x\nsql: SELECT 1\n"


@pytest.fixture(scope="module")
def own() -> list[Judged]:
    return judged(OWN)


@pytest.fixture(scope="module")
def shared() -> list[Judged]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    return judged(SHARED)


def wrong(found: list[Judged], *kinds: str) -> list[str]:
    """The triples of these kinds, readable."""
    return [f"{one.triple.id} ({one.triple.why}): {one.message}" for one in found if one.kind in kinds]


def test_no_wrong_answer_passes(own: list[Judged]) -> None:
    assert wrong(own, "false pass") == []
    assert len(own) > 1_600


def test_no_right_answer_fails_but_those_that_are_listed(own: list[Judged]) -> None:
    assert {one.triple.id for one in own if one.kind in ("false failure", "no verdict")} == set(KNOWN)


def test_every_form_holds_every_example_of_the_corpus(own: list[Judged]) -> None:
    count = Counter((one.triple.form, one.kind) for one in own if one.triple.group == "corpus")
    assert {form for form, _ in count} == {"records", "DataFrame", "Arrow", "JSON text", "tool result"}
    assert sum(count.values()) == 5 * 309


def test_statements_and_answers_of_a_real_model_are_judged_right(shared: list[Judged]) -> None:
    assert wrong(shared, "false pass", "false failure", "no verdict") == []
    groups = Counter(one.triple.group for one in shared)
    assert groups["answers of a real model"] == 40
    assert groups["pairs of statements"] > 100
    assert groups["pairs that the data cannot tell apart"] > 200


def test_the_page_is_current(own: list[Judged]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for line in rows(own):
        assert f"{line}\n" in text, "run: python tests/verdicts/how_right.py --write"


def test_the_whole_page_is_current(own: list[Judged], shared: list[Judged]) -> None:
    text, part = PAGE.read_text(encoding="utf-8"), counted_part([*own, *shared])
    assert filled(text, part) == text, "run: python tests/verdicts/how_right.py --write"


@pytest.mark.parametrize(
    ("answer", "right", "kind"),
    [
        ([{"n": 1}], "passed", "right"),
        ([{"n": 1}], "failed", "false pass"),
        ([{"n": 2}], "failed", "right"),
        ([{"n": 2}], "passed", "false failure"),
        ({1, 2}, "failed", "no verdict"),
        ({1, 2}, "passed", "false failure"),
    ],
)
def test_a_wrong_verdict_would_be_found(tmp_path: Path, answer: object, right: str, kind: str) -> None:
    triple = Triple("one", "made up", "records", CASE, lambda: answer, right, {"SELECT 1": ONE})
    found = judge(triple, tmp_path)
    assert found.kind == kind
    assert totals([found]).startswith("1 triples: ")
    listed = counted_part([found])
    assert (f"- {kind}: one: not looked at yet" in listed) == (kind != "right")


def test_what_a_form_cannot_hold_is_counted_apart(tmp_path: Path) -> None:
    def answer() -> object:
        raise NotExpressible("Arrow: two types")

    triple = Triple("one", "made up", "Arrow", CASE, answer, "passed", {"SELECT 1": ONE})
    assert judge(triple, tmp_path).kind == "not expressible"


def test_a_case_that_cannot_be_read_is_no_triple(tmp_path: Path) -> None:
    triple = Triple("one", "made up", "records", "prompt: x\nsqll: SELECT 1\n", list, "passed")
    with pytest.raises(AssertionError, match="one: unknown key 'sqll'"):
        judge(triple, tmp_path)


def test_the_script_says_how_many_and_fails_where_one_is_wrong(monkeypatch, capsys) -> None:
    triple = Triple("one", "made up", "records", CASE, lambda: [{"n": 1}], "failed", {"SELECT 1": ONE})
    monkeypatch.setattr(how_right, "OWN", (lambda: iter([triple]),))
    monkeypatch.setattr(how_right, "missing", lambda: "nothing is here")
    assert how_right.main() == 1
    assert capsys.readouterr().out.splitlines() == [
        "verdicts: 1 triples: 1 false passes, 0 false failures (nothing is here)",
        "  false pass: one: match",
    ]
