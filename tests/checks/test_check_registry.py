"""The registry: parsing, faults, JSON Schema, third-party checks, laziness."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Literal

import pytest
from checks_kit import evidence, faults, judged, parsed, table
from pydantic import BaseModel

import pytest_agenteval.checks
from pytest_agenteval import Check as PublicCheck
from pytest_agenteval.checks import Check, Registry, default_registry, evidence_of_turn, run_check
from pytest_agenteval.errors import CheckFailed
from pytest_agenteval.types import CheckResult, Reference, Statement, TurnEvidence

REGISTRY = default_registry()


class Polite(Check):
    """The answer says please."""

    type: Literal["polite"] = "polite"
    word: str = "please"

    def check(self, evidence: Any) -> CheckResult:
        return self.result(self.word in evidence.text, f"polite: {self.word}")


def test_an_empty_registry_costs_no_pydantic():
    code = (
        "import sys; from pytest_agenteval.checks import default_registry;"
        "import pytest_agenteval.checks.data, pytest_agenteval.checks.leak, pytest_agenteval.checks.outcome,"
        " pytest_agenteval.checks.usage; default_registry();"
        "heavy = {'pydantic', 'sqlglot', 'yaml', 'numpy', 'pandas', 'httpx'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_public_name():
    assert PublicCheck is Check
    with pytest.raises(AttributeError, match="has no attribute 'Chek'"):
        _ = pytest_agenteval.checks.Chek


@pytest.mark.parametrize(
    ("raw", "path", "text"),
    [
        (5, (), "a check is a mapping with a 'type', found 5"),
        ({"tool": "x"}, (), "missing field 'type'; known: tool_call, no_tool_call,"),
        ({"type": "tool_cal"}, ("type",), "unknown check type 'tool_cal', did you mean 'tool_call'?"),
        ({"type": "zzz"}, ("type",), "unknown check type 'zzz'; known: asked, budget, chart,"),
        ({"type": ["text"]}, ("type",), "unknown check type ['text']"),
        (
            {"type": "text", "contains": "a", "patern": "b"},
            ("patern",),
            "unknown field 'patern', did you mean",
        ),
        (
            {"type": "text", "contains": 42},
            ("contains",),
            "contains: should be text or a list of texts (quote it)",
        ),
        (
            {"type": "text", "contains": [42]},
            ("contains", 0),
            "contains: should be text (quote it), found 42",
        ),
        ({"type": "text", "contains": []}, ("contains",), "contains: should not be empty"),
        ({"type": "judge"}, (), "missing field 'rule'"),
        ({"type": "judge", "rule": "  "}, ("rule",), "rule: should not be empty, found '  '"),
        ({"type": "judge", "rule": "x", "samples": 0}, ("samples",), "samples: should be 1 or more, found 0"),
        ({"type": "judge", "rule": "x", "min_score": 2.0}, ("min_score",), "min_score: should be 1 or less"),
        ({"type": "judge", "rule": {}}, ("rule",), "rule: should be text, found {}"),
        ({"type": "rows", "equals": 1.5}, ("equals",), "equals: should be a whole number, found 1.5"),
        (
            {"type": "text", "grounded": "yes"},
            ("grounded",),
            "grounded: should be true or false, found 'yes'",
        ),
        ({"type": "budget", "cost": "1"}, ("cost",), "cost: should be a number, found '1'"),
        ({"type": "tool_call", "tool": "x", "args": 5}, ("args",), "args: should be a map, found 5"),
        (
            {"type": "asked", "tools": "x", "severity": "warning"},
            ("severity",),
            "severity: should be one of fail, warn, did you mean 'warn'?, found 'warning'",
        ),
        ({"type": "asked", "tools": "x", "turn": -1}, ("turn",), "turn: should be 0 or more, found -1"),
        ({"type": "factuality", "pass": ["A", "F"]}, ("pass", 1), "pass: should be one of A, B, C, D, E"),
    ],
)
def test_faults_say_where_and_what(raw, path, text):
    found = REGISTRY.parse(raw)
    assert isinstance(found, list)
    assert [fault.path for fault in found if text in fault.text] == [path], found


def test_all_faults_of_a_list_at_once():
    checks, found = REGISTRY.parse_all(
        [{"type": "rows", "min": 1}, {"type": "tool_call"}, {"type": "x"}, {"type": "text", "a": 1, "b": 2}]
    )
    assert [check.type for check in checks] == ["rows"]
    assert [fault.path for fault in found] == [(1,), (2, "type"), (3, "a"), (3, "b")]
    assert REGISTRY.parse_all("x")[1][0].text == "assertions is a list of checks, found 'x'"


def test_every_documented_type_parses_and_is_frozen():
    least: dict[str, dict[str, Any]] = {
        "tool_call": {"tool": "t"},
        "no_tool_call": {"tool": "t"},
        "tool_order": {"tools": ["a"]},
        "asked": {"tools": "a"},
        "text": {"contains": "a"},
        "value": {"equals": 1},
        "rows": {"min": 1},
        "sql": {"read_only": True},
        "metric": {"metrics": "a.b"},
        "governance": {"decision": "block"},
        "chart": {"x": "a"},
        "factuality": {},
        "judge": {"rule": "r"},
        "budget": {"tokens": 1},
        "python": {"call": "a:b"},
    }
    assert tuple(least) == REGISTRY.types
    for kind, fields in least.items():
        check = parsed(type=kind, name="n", severity="warn", turn=0, **fields)
        assert (check.type, check.name, check.severity, check.turn) == (kind, "n", "warn", 0)
        with pytest.raises(ValueError, match="frozen"):
            check.name = "other"


def test_json_schema_of_every_check():
    schema = json.loads(json.dumps(REGISTRY.json_schema()))
    branches = {branch["properties"]["type"]["const"]: branch for branch in schema["oneOf"]}
    assert set(branches) == set(REGISTRY.types)
    assert all(branch["additionalProperties"] is False for branch in branches.values())
    assert branches["judge"]["required"] == ["type", "rule"]
    assert "pass" in branches["factuality"]["properties"]
    for kind, branch in branches.items():
        for field, entry in branch["properties"].items():
            assert field == "type" or entry.get("description"), f"{kind}.{field} has no description"


def test_a_check_of_another_package():
    registry = Registry()
    registry.add(Polite)
    registry.add(Polite)
    assert registry.types[-1] == "polite"
    check = registry.parse({"type": "polite", "word": "thanks"})
    assert run_check(check, evidence("thanks a lot")).passed
    assert registry.parse({"type": "polit"})[0].text == "unknown check type 'polit', did you mean 'polite'?"
    assert registry.json_schema()["oneOf"][-1]["properties"]["word"]["default"] == "please"
    assert "polite" not in default_registry().types


def test_what_cannot_be_registered():
    class Taken(Check):
        type: Literal["text"] = "text"

    class Wordless(Check):
        pass

    class Foreign(BaseModel):
        type: Literal["foreign"] = "foreign"

    registry = Registry()
    with pytest.raises(ValueError, match="check type 'text' of Taken is taken; choose another word"):
        registry.add(Taken)
    with pytest.raises(TypeError, match=r"Wordless needs a field `type: Literal\['its_word'\] = 'its_word'`"):
        registry.add(Wordless)
    for other in (Foreign, "text"):
        with pytest.raises(TypeError, match=r"must be a subclass of pytest_agenteval\.Check"):
            registry.add(other)
    registry.add(Polite)

    class Second(Check):
        type: Literal["polite"] = "polite"

    with pytest.raises(ValueError, match="'polite' of Second is taken"):
        registry.add(Second)


def test_a_check_without_behaviour_or_with_a_crash_is_an_error():
    class Idle(Check):
        type: Literal["idle"] = "idle"

    class Odd(Check):
        type: Literal["odd"] = "odd"

        def check(self, evidence: Any) -> Any:
            return True

    with pytest.raises(
        CheckFailed, match="idle check crashed: NotImplementedError: Idle has no check method"
    ):
        run_check(Idle(), evidence())
    with pytest.raises(CheckFailed, match="odd check 'mine' returned bool, expected a CheckResult"):
        run_check(Odd(name="mine"), evidence())


# --- Tent's expect ----------------------------------------------------------------------------------


def expected(raw: Any) -> list[dict[str, Any]]:
    checks, found = REGISTRY.parse_expect(raw)
    assert found == []
    return [check.model_dump(exclude_unset=True) for check in checks]


def test_expect_spelled_out():
    made = expected(
        {
            "text": "hello",
            "pattern": "a.c",
            "value": 5,
            "called": ["a", {"tool": "b", "args": {"x": 1}}],
            "not_called": "c",
            "notCalled": ["d"],
            "asked": ["refund"],
            "judge": "is polite",
            "python": "pkg.mod:fn",
            "outcome": "answer",
        }
    )
    assert made == [
        {"type": "text", "contains": ("hello",)},
        {"type": "text", "pattern": "a.c"},
        {"type": "value", "equals": 5},
        {"type": "tool_call", "tool": "a"},
        {"type": "tool_call", "tool": "b", "args": {"x": 1}},
        {"type": "no_tool_call", "tool": "c"},
        {"type": "no_tool_call", "tool": "d"},
        {"type": "asked", "tools": ("refund",)},
        {"type": "judge", "rule": "is polite"},
        {"type": "python", "call": "pkg.mod:fn"},
    ]
    assert expected([{"value": {"min": 1}}, {"judge": {"rule": "r", "samples": 3}}]) == [
        {"type": "value", "min": 1},
        {"type": "judge", "rule": "r", "samples": 3},
    ]


def test_faults_of_expect():
    checks, found = REGISTRY.parse_expect([{"calld": "a", "called": []}, 5, {"text": 7}, {"pattern": "("}])
    assert checks == ()
    assert [(fault.path, fault.text) for fault in found] == [
        ((0, "calld"), "unknown key 'calld' in expect, did you mean 'called'?"),
        ((0, "called"), "called in expect is empty: it would check nothing"),
        ((1,), "an entry of expect is a map, found 5"),
        ((2, "text", "contains"), "contains: should be text or a list of texts (quote it), found 7"),
        (
            (3, "pattern", "pattern"),
            "pattern: not a regular expression: missing ), unterminated subpattern at position 0, found '('",
        ),
    ]
    assert REGISTRY.parse_expect("x")[1][0].text == "expect is a map or a list of maps, found 'x'"


# --- turns ------------------------------------------------------------------------------------------


def conversation():
    from checks_kit import call

    first = TurnEvidence("hi", "hello", (call("greet"),), table(a=[1]), (Reference(table(a=[1])),))
    second = TurnEvidence("more", "done", (call("look", asked=True, approved=False),))
    statements = (Statement("SELECT 1", None, 0), Statement("SELECT 2", None, 1))
    calls = (*first.tool_calls, *second.tool_calls)
    return evidence("done", turns=(first, second), statements=statements, calls=calls)


def test_a_check_looks_at_its_turn():
    seen = conversation()
    assert judged(seen, type="text", contains="hello", turn=0).passed
    assert not judged(seen, type="text", contains="hello").passed
    assert judged(seen, type="tool_call", tool="look", turn=1).turn == 1
    assert not judged(seen, type="tool_call", tool="greet", turn=1).passed
    assert judged(seen, type="asked", tools="look", turn=1).passed
    check = parsed(type="rows", equals=1)
    assert run_check(check, seen, 0).passed
    assert run_check(check, seen, 0).turn == 0


def test_the_evidence_of_a_turn():
    first, second = evidence_of_turn(conversation(), 0), evidence_of_turn(conversation(), 1)
    assert (first.value, first.prompt, first.reference.row_count) == (1, "hi", 1)
    assert [entry.sql for entry in second.statements] == ["SELECT 2"]
    assert (second.table, second.reference, second.called) == (None, None, ("look",))
    single = evidence("x")
    assert evidence_of_turn(single, 0) is single


def test_a_turn_that_did_not_happen():
    with pytest.raises(CheckFailed, match=r"text check 'n': turn 2 does not exist, the conversation had 2"):
        judged(conversation(), type="text", contains="x", turn=2, name="n")
    with pytest.raises(CheckFailed, match="the conversation had 1"):
        judged(evidence("x"), type="text", contains="x", turn=1)


def test_name_and_severity_travel_with_the_result():
    result = judged(evidence("x"), type="text", contains="y", name="mentions y", severity="warn")
    assert (result.name, result.severity, result.score) == ("mentions y", "warn", 0.0)


def test_contradictions_are_faults():
    assert faults(type="value", equals=1, min=2) == [
        "'equals' and 'min' contradict each other: give one of them"
    ]
    assert faults(type="rows", equals=1, max=2) == [
        "'equals' and 'max' contradict each other: give one of them"
    ]
    assert faults(type="rows", min=3, max=2) == ["min 3 is above max 2: nothing can satisfy both"]
