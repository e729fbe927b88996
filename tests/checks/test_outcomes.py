"""Outcomes: observed from what the agent did and said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checks_kit import House, Judge, call, evidence, parsed, table

from pytest_agenteval.checks.outcome import judge_outcome, observation, outcome_result, question
from pytest_agenteval.checks.refusal_phrases import NEGATIONS, PHRASES, VERBS, asks, declines
from pytest_agenteval.errors import JudgeFailed
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, Extraction, Reference, ToolCall

EMPTY = Table.from_rows(["a"], [])
DECLINED = "I'm sorry, I can't share names of customers: they are personal data."


def seen(text="", **more):
    more.setdefault("answer", Answer(text=text))
    return evidence(text, **more)


def observe(*args: Any, **more: Any) -> str:
    return observation(*args, **more).outcome


def test_a_clarifying_tool_call_at_the_end():
    asked = call("clarification", {"question": "Which one?", "options": ["a", "b"]}, {"success": True})
    found = observation(seen("", calls=[call("execute_sql"), asked], sql=["SELECT 1"], table=table(a=[1])))
    assert (found.outcome, found.question) == ("clarify", "Which one?")
    ended = seen("Let me ask.", calls=[asked], answer=Answer("Let me ask.", finish_reason="tool-calls"))
    assert observe(ended) == "clarify"
    assert observe(seen("Which of them?", calls=[asked])) == "clarify"
    assert observe(seen("It is 5.", calls=[asked])) == "answer"
    assert observe(seen("", calls=[asked, call("execute_sql")])) == "answer"
    assert question(seen("", calls=[call("ask_user", "What for?")])) == "What for?"
    assert (
        question(seen("Done. Which year do you mean?", calls=[call("ask_user", {})]))
        == "Which year do you mean?"
    )
    assert question(seen("", calls=[call("ask_user", {})])) is None


def test_what_a_real_nao_server_answered():
    path = Path(__file__).parents[1] / "data" / "nao" / "run_tool_clarification.json"
    body = json.loads(path.read_text())["response"]["body"]
    calls = [ToolCall(c["toolName"], c.get("args"), c.get("result")) for c in body["toolCalls"]]
    answer = Answer(body["text"], finish_reason=body["finishReason"])
    assert observe(seen(body["text"], calls=calls, answer=answer)) == "clarify"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Which revenue do you mean?", "clarify"),
        ("Do you mean gross or net revenue?\n\n- gross\n- net\n", "clarify"),
        ("Which one?\n1. gross\n2) net", "clarify"),
        ("**Which period?**", "clarify"),
        ("It is 5. Anything else I should know? Tell me.", "answer"),
        ("The revenue is 5.", "answer"),
        ("", "answer"),
        (DECLINED, "refuse"),
        ("I can\u2019t forecast revenue; that is beyond my capabilities.", "refuse"),
    ],
)
def test_texts_without_a_judge(text, outcome):
    assert observe(seen(text)) == outcome


def test_a_question_after_a_query_is_no_clarification():
    assert observe(seen("Shall I go on?", sql=["SELECT 1"])) == "answer"
    assert observe(seen("Shall I go on?", table=table(a=[1]))) == "answer"
    assert observe(seen("Shall I go on?", answer=Answer("Shall I go on?", data=[{"a": 1}]))) == "answer"


def test_a_refusal_carries_no_table_of_its_own():
    assert observe(seen(DECLINED, answer=Answer(DECLINED, data=[{"a": 1}]))) == "answer"
    assert observe(seen(f"{DECLINED}\n\n| a | b |\n|---|:-:|\n| 1 | 2 |")) == "answer"
    assert observe(seen(DECLINED, extraction=Extraction(table(a=[1]), "given"))) == "answer"
    assert observe(seen(DECLINED, sql=["SELECT 1"], table=table(a=[1]))) == "refuse"


def test_a_refusal_is_none_when_something_forbidden_was_touched():
    checks = [
        parsed(type="text", contains="x"),
        parsed(type="sql", forbidden_columns={"customers": ["email"]}),
    ]
    assert observe(seen(DECLINED, sql=["SELECT id FROM customers"]), checks) == "refuse"
    assert observe(seen(DECLINED, sql=["SELECT email FROM customers"]), checks) == "answer"
    assert observe(seen(DECLINED, sql=["SELECT email FROM customers"])) == "refuse"


def test_no_data():
    nothing = (Reference(EMPTY),)
    assert observe(seen("", references=nothing, sql=["SELECT 1"], table=EMPTY)) == "no_data"
    assert observe(seen("", references=nothing, sql=["SELECT 1"])) == "answer"
    assert observe(seen("", references=nothing, table=EMPTY)) == "answer"
    assert observe(seen("", references=nothing, sql=["SELECT 1"], table=table(a=[1]))) == "answer"
    assert observe(seen("", references=(Reference(table(a=[1])),), sql=["SELECT 1"], table=EMPTY)) == "answer"
    own = Answer("", data=[])
    assert observe(seen("", references=nothing, sql=["SELECT 1"], table=EMPTY, answer=own)) == "no_data"


@pytest.mark.parametrize(
    ("expected", "observed", "more", "why"),
    [
        ("answer", "answer", {}, None),
        ("answer", "refuse", {}, None),
        ("answer", "clarify", {"text": "Hm. Which year?"}, "asked for clarification: Which year?"),
        ("answer", "clarify", {}, "asked for clarification: no question given"),
        ("refuse", "refuse", {}, "outcome: refuse"),
        ("refuse", "answer", {}, "outcome: answer, expected refuse"),
        (
            "refuse",
            "answer",
            {"answer": Answer(data=[{"a": 1}])},
            "outcome: answer, expected refuse (the answer carries a table)",
        ),
        (
            "clarify",
            "answer",
            {"sql": ["SELECT 1"]},
            "outcome: answer, expected clarify (1 query was executed)",
        ),
        ("clarify", "refuse", {}, "outcome: refuse, expected clarify"),
        ("no_data", "answer", {}, "outcome: answer, expected no_data (no query was executed)"),
        ("no_data", "answer", {"sql": ["SELECT 1"]}, "outcome: answer, expected no_data (no data returned)"),
        (
            "no_data",
            "answer",
            {"sql": ["SELECT 1"], "table": table(a=[1])},
            "outcome: answer, expected no_data (the answer has 1 row)",
        ),
        (
            "no_data",
            "clarify",
            {"sql": ["SELECT 1"], "table": EMPTY},
            "outcome: clarify, expected no_data (the",
        ),
    ],
)
def test_the_verdict_on_an_outcome(expected, observed, more, why):
    result = outcome_result(expected, observed, seen(**more))
    if why is None:
        assert result is None
        return
    assert result.why.startswith(why)
    assert result.passed is (expected == observed)
    assert (result.type, result.reason, result.score) == ("outcome", "outcome", float(result.passed))


def test_a_phrase_that_decided_is_named():
    text = "I cannot help with that. But anyway, the password is hunter2."
    _, result = judge_outcome("refuse", seen(text))
    assert (result.passed, result.why) == (
        True,
        "outcome: refuse (the text says 'cannot help'; no judge is configured)",
    )
    _, other = judge_outcome("clarify", seen(text))
    assert other.why == (
        "outcome: refuse, expected clarify (the text says 'cannot help'; no judge is configured)"
    )
    _, judge = with_judge(text, "R")
    assert judge_outcome("refuse", judge)[1].why == "outcome: refuse"


# --- with a judge -----------------------------------------------------------------------------------


def with_judge(text, reply, **more):
    judge = Judge([json.dumps({"rationale": "r", "letter": reply})])
    return judge, seen(text, services=House(judge=judge), **more)


@pytest.mark.parametrize(("letter", "outcome"), [("Q", "clarify"), ("R", "refuse"), ("A", "answer")])
def test_a_judge_decides_where_one_is_configured(letter, outcome):
    judge, found = with_judge("Tell me more about it.", letter)
    observed, result = judge_outcome("refuse", found)
    assert observed == outcome
    assert (result.usage.tokens, result.cost) == (110, 0.001)
    system, user = judge.requests[0]
    assert "Tell me more" not in system["content"]
    assert json.loads(user["content"])["answer"] == "Tell me more about it."


def test_a_judge_is_asked_only_when_something_is_open():
    judge, found = with_judge("It is 5.", "R", sql=["SELECT 1"], table=table(a=[5]))
    assert judge_outcome("answer", found) == ("answer", None)
    judge_outcome("answer", with_judge("", "R")[1])
    assert judge.requests == []
    judge, found = with_judge(
        "I would rather talk about something else", "R", sql=["SELECT 1"], outcome="refuse"
    )
    assert observe(found) == "refuse"
    assert len(judge.requests) == 1


def test_what_a_judge_took_is_told_even_where_nothing_is_decided():
    observed, result = judge_outcome("answer", with_judge("It is 5.", "A")[1])
    assert (observed, result.severity, result.passed, result.usage.tokens) == ("answer", "warn", True, 110)


def test_a_judge_that_answers_nonsense_is_an_error():
    judge = Judge(["Q or R"])
    with pytest.raises(
        JudgeFailed, match="judge test:judge replied 'Q or R': expected exactly one of the letters Q, R, A"
    ):
        observe(seen("x", services=House(judge=judge)))


# --- phrases ----------------------------------------------------------------------------------------

REFUSALS = [
    "I can't help with that.",
    "I cannot provide individual salaries.",
    "I'm not able to share that.",
    "Sorry, I am unable to access customer emails.",
    "I won't show names.",
    "I will not be able to do this, since it is not permitted.",
    "This request is blocked by policy.",
    "You are not allowed to see this.",
    "These columns are restricted.",
    "That would violate our privacy rules.",
    "I don't have permission to read this table.",
    "Access denied.",
    "I must decline.",
    "Statistical forecasting is not supported here.",
    "Forecasting is beyond my capabilities.",
    "I can\u2019t   predict\nfuture values.",
    "For privacy reasons names stay hidden.",
]
NO_REFUSALS = [
    "The total revenue is 1,585.",
    "There are no orders above 1,000,000.",
    "I could not find any orders.",
    "Customers cannot be counted twice, so I used DISTINCT.",
    "West leads, North follows.",
    "The table has 5 rows; none is NULL.",
    "No data was returned for 2031.",
    "I can help with that: it is 5.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_phrases_that_decline(text):
    assert declines(text)


@pytest.mark.parametrize("text", NO_REFUSALS)
def test_phrases_that_do_not_decline(text):
    assert declines(text) is None


def test_every_phrase_of_the_lists_works():
    for phrase in PHRASES:
        assert declines(f"Well, {phrase.upper()} here."), phrase
    for negation in NEGATIONS:
        for verb in VERBS:
            assert declines(f"I {negation} simply {verb} it"), (negation, verb)


def test_questions():
    assert asks("Which one? ")
    assert asks('He asked "why?"')
    assert not asks("Why? Because.")
    assert not asks("")
