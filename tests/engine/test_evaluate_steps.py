"""The order of the steps of a case, and what each step's failure leaves: driven directly, without pytest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_agenteval.cases.loader import load_cases
from pytest_agenteval.cases.model import Case, PassRule
from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.engine.evaluate import evaluate
from pytest_agenteval.errors import (
    AgentFailed,
    AgentTimeout,
    BudgetSpent,
    ExtractionFailed,
    JournalFailed,
    ReferenceFailed,
    RunStopped,
    StageError,
)
from pytest_agenteval.table import Table
from pytest_agenteval.types import (
    Answer,
    Attempt,
    CaseResult,
    Evidence,
    Extraction,
    Reference,
    Statement,
    ToolCall,
    UnreadCall,
    Usage,
)

PLAIN = "prompt: How many?\nsql: SELECT 3 AS n\n"
THREE = Table.from_records([{"n": 3}])


class PlainSteps:
    """``CaseSteps`` of a case that passes: the agent says 3, and 3 is right. No judge, no database."""

    root = "."
    judge = None
    rule = PassRule()
    comparison: ClassVar[dict[str, Any]] = {}

    def __init__(self, case: Case, k: int, recorded: list[Attempt]) -> None:
        self.case = case
        self.k = k
        self.on_attempt = recorded.append

    def kept(self, number: int) -> Attempt | None:
        return None

    def prepare(self) -> None:
        pass

    def ask(self, number: int) -> Answer:
        return Answer("3", value=3)

    def reference(self, sql: str) -> Reference:
        return Reference(THREE, sql)

    def extract(self, answer: Answer, references: Sequence[Reference]) -> Extraction:
        return Extraction(THREE, "matched")

    def statements(self, answer: Answer) -> Sequence[Statement]:
        return ()

    def unread(self, answer: Answer) -> Sequence[UnreadCall]:
        return ()

    def listed(self, answer: Answer) -> None:
        return None

    def leak(self, answer: Answer) -> str | None:
        return None

    def explained(self, attempt: Attempt, evidence: Evidence) -> Attempt:
        return attempt

    def schema(self) -> dict[str, Any]:
        return {}

    def dialect(self) -> None:
        return None

    def resolve(self, reference: str) -> Any:
        raise LookupError(reference)


def raising(error: BaseException) -> Callable[..., Any]:
    def step(*given: Any) -> Any:
        raise error

    return step


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[CaseResult, list[Attempt]]]:
    """``run(yaml, k, step=...)``: the result, and the attempts as they were told, one by one."""

    def call(text: str = PLAIN, k: int = 1, told: list[Attempt] | None = None, **steps: Any) -> Any:
        place = tmp_path / "tests" / "a.yml"
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
        loaded = load_cases(place, checks=default_registry(), root=tmp_path)
        assert not loaded.problems
        told = [] if told is None else told
        plain = PlainSteps(loaded.cases[0], k, told)
        for name, step in steps.items():
            setattr(plain, name, step)
        return evaluate(plain), told

    return call


def test_every_attempt_is_told_as_it_ends(run):
    result, told = run(k=3)
    assert (result.verdict, result.message, result.score) == ("passed", "3/3: match", 1.0)
    assert [attempt.number for attempt in told] == [1, 2, 3]
    assert told[0].reference_sql == "SELECT 3 AS n"


def test_what_a_resumed_run_has_is_neither_asked_nor_told_again(run):
    first = Attempt(1, "failed", "values differ", reason="values")
    result, told = run(k=2, kept=lambda number: first if number == 1 else None)
    assert (result.verdict, [attempt.number for attempt in told]) == ("failed", [2])
    second = Attempt(2, "passed", "match")
    result, told = run(k=2, kept=[None, first, second].__getitem__, prepare=raising(ReferenceFailed("gone")))
    assert (result.verdict, result.attempts, told) == ("failed", (first, second), [])


@pytest.mark.parametrize(
    ("step", "error", "stage", "reason"),
    [
        ("prepare", StageError("no agent"), "checks", "error"),
        ("reference", ReferenceFailed("no such table"), "reference", "reference_error"),
        ("ask", AgentFailed("it broke"), "agent", "agent_error"),
        ("ask", AgentTimeout("too slow"), "timeout", "timeout"),
        ("extract", ExtractionFailed("two tables"), "extraction", "extraction_failed"),
    ],
)
def test_a_step_that_fails_is_an_error_of_its_stage(run, step, error, stage, reason):
    result, told = run(k=2, **{step: raising(error)})
    assert (result.verdict, result.stage, result.reason) == ("error", stage, reason)
    assert [attempt.error for attempt in told] == [str(error)] * 2


def test_what_a_failed_agent_had_spent_is_kept(run):
    error = AgentFailed("it broke", answer=Answer("half", usage=Usage(10, 2), cost=0.5))
    error.duration_ms = 90_000.0
    result, (attempt,) = run(ask=raising(error))
    assert (result.verdict, attempt.answer.cost) == ("error", 0.5)
    assert attempt.duration_ms >= 90_000


def test_what_a_failed_extraction_had_spent_is_kept(run):
    _, (attempt,) = run(extract=raising(ExtractionFailed("unclear", usage=Usage(7, 1), cost=0.25)))
    assert (attempt.extraction.usage, attempt.extraction.cost) == (Usage(7, 1), 0.25)
    _, (attempt,) = run(extract=raising(ExtractionFailed("unclear", cost=0.25)))
    assert attempt.extraction.cost == 0.25
    _, (attempt,) = run(extract=raising(ExtractionFailed("unclear")))
    assert attempt.extraction is None


def test_what_the_budget_stops_is_not_run(run):
    result, (first, second) = run(k=2, ask=raising(BudgetSpent("budget of $1.00 spent")))
    assert (first.verdict, second.verdict, result.verdict) == ("not_run", "not_run", "not_run")
    assert result.message == "budget of $1.00 spent"
    assert (first.reason, result.score) == ("budget", None)


def test_what_a_stopped_run_does_not_ask_is_not_run(run):
    result, (attempt,) = run(ask=raising(RunStopped("not asked: the run was stopped (-x)")))
    assert (result.verdict, attempt.reason) == ("not_run", "stopped")
    assert result.message == "not asked: the run was stopped (-x)"


def test_a_defect_of_ours_names_its_stage_and_its_place(run):
    result, (attempt,) = run(statements=raising(ZeroDivisionError("division by zero")))
    assert (result.verdict, result.reason) == ("error", "internal_error")
    assert result.message == "internal error in stage extraction: ZeroDivisionError: division by zero"
    assert "test_evaluate_steps.py" in attempt.error


def test_a_journal_that_takes_no_more_lines_ends_the_run(run):
    with pytest.raises(JournalFailed, match="disk full"):
        run(ask=raising(JournalFailed("disk full")))


@pytest.mark.parametrize(
    ("error", "verdict", "stage", "reason", "text"),
    [
        (KeyboardInterrupt(), "not_run", None, "interrupted", "interrupted: KeyboardInterrupt"),
        (SystemExit("Timeout (>3.0s) \n"), "error", "timeout", "timeout", "Timeout (>3.0s)"),
    ],
)
def test_what_ends_the_process_leaves_the_attempt_and_goes_on(run, error, verdict, stage, reason, text):
    told: list[Attempt] = []
    with pytest.raises(type(error)):
        run(told=told, ask=raising(error))
    assert [(a.verdict, a.stage, a.reason, a.message) for a in told] == [(verdict, stage, reason, text)]


def test_an_answer_key_that_was_read_fails_before_anything_else_is_judged(run):
    leak = "the agent read tests/a.yml"
    result, (attempt,) = run(leak=lambda answer: leak, extract=raising(ExtractionFailed("unclear")))
    assert (result.verdict, result.reason, attempt.leak) == ("failed", "leak", leak)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("", "outcome no_data needs a reference that gives no rows; the case has none"),
        ("sql: SELECT 3 AS n\n", "outcome no_data, but the reference gives 1 row, expected 0"),
    ],
)
def test_no_data_needs_a_reference_without_rows(run, reference, said):
    result, _ = run(f"prompt: How many?\noutcome: no_data\n{reference}")
    assert (result.verdict, result.stage, result.message) == ("error", "reference", said)


def test_no_data_is_right_where_there_is_none(run):
    none = Table.from_rows(["n"], [])
    result, _ = run(
        f"{PLAIN}outcome: no_data\n",
        reference=lambda sql: Reference(none, sql),
        extract=lambda answer, names: Extraction(none, "matched"),
        ask=lambda number: Answer("There are none."),
        statements=lambda answer: [Statement("SELECT 3 AS n WHERE false", none)],
    )
    assert result.verdict == "passed"


def test_turns_with_references_have_tables_of_their_own(run):
    seen: list[Any] = []

    def extract(answer: Answer, references: Any) -> Extraction:
        seen.append((answer.text, [reference.table.names for reference in references]))
        return Extraction(THREE, "matched")

    parts = (Answer("three"), Answer("as I said"))
    text = "prompt:\n  - {say: How many?, sql: SELECT 3 AS n}\n  - say: Sure?\n"
    result, (attempt,) = run(text, ask=lambda n: Answer("whole", turns=parts), extract=extract)
    assert result.verdict == "passed", result.message
    assert seen == [("whole", []), ("three", [["n"]]), ("as I said", [])]
    assert attempt.comparison.matched
    seen.clear()
    run(text, ask=lambda number: Answer("all at once"), extract=extract)
    assert seen == [("all at once", []), ("all at once", [["n"]])]


def test_a_list_of_one_turn_is_judged_as_a_case_is(run):
    text = "prompt:\n  - {say: How many?, sql: SELECT 3 AS n}\n"
    result, (attempt,) = run(text)
    assert (result.verdict, result.message, attempt.reference_sql) == ("passed", "match", "SELECT 3 AS n")
    wrong = Extraction(Table.from_records([{"n": 4}]), "matched")
    result, (attempt,) = run(text, extract=lambda answer, names: wrong)
    assert (result.verdict, result.message, attempt.checks[0].turn) == ("failed", "values differ", None)
    result, (attempt,) = run(text + "expected: [{n: 4}]\n")
    assert [(check.turn, check.passed) for check in attempt.checks] == [(None, False), (0, True)]
    assert result.message == "values differ"


CONVERSATION = """prompt:
  - {say: How many?, sql: SELECT 3 AS n}
  - {say: And now?, sql: SELECT 4 AS n}
  - say: Sure?
    assertions: [{type: text, contains: sure}]
"""


def test_what_fails_in_a_turn_is_named_and_shown(run):
    def reference(sql: str) -> Reference:
        return Reference(Table.from_records([{"n": int(sql.split()[1])}]), sql)

    def extract(answer: Answer, names: Any) -> Extraction:
        cost = 0.5 if names else None
        return Extraction(THREE, "query", f"query of {answer.text}", usage=Usage(7, 1), cost=cost)

    parts = (Answer("one"), Answer("two"), Answer("no"))
    steps = {"reference": reference, "extract": extract, "ask": lambda n: Answer("whole", turns=parts)}
    result, (attempt,) = run(CONVERSATION, **steps)
    assert result.message == "turn 3 of 3: text: 'sure' is missing; turn 2 of 3: values differ"
    assert not attempt.comparison.matched
    assert attempt.reference_sql == "SELECT 4 AS n"
    assert attempt.reference.column(0) == [4]
    assert attempt.extraction.query == "query of two"
    # what all of them cost, not only the one that is shown
    assert (attempt.extraction.usage.input, attempt.extraction.cost) == (28, 1.0)
    right = CONVERSATION.replace("4", "3").replace("contains: sure", "contains: 'no'")
    result, (attempt,) = run(right, **steps)
    assert (result.verdict, result.message, attempt.extraction.query) == ("passed", "match", "query of one")


def test_a_turn_that_the_answer_lacks_is_named_as_a_person_counts(run):
    result, _ = run(CONVERSATION, reference=lambda sql: Reference(THREE, sql))
    assert (result.verdict, result.stage) == ("error", "extraction")
    assert result.message == "the answer holds 1 of 3 turns, and turn 2 of 3 is to be checked"


def test_the_accepted_reference_that_matched_is_the_one_shown(run):
    def reference(sql: str) -> Reference:
        return Reference(Table.from_records([{"n": int(sql.split()[1])}]), sql)

    text = "prompt: How many?\nsql: [SELECT 2 AS n, SELECT 3 AS n]\n"
    result, (attempt,) = run(text, reference=reference)
    assert result.message == "match (reference 2 of 2)"
    assert (attempt.reference_sql, attempt.reference.column(0)) == ("SELECT 3 AS n", [3])


def test_an_option_for_a_column_that_no_reference_has_is_an_error_before_the_agent(run):
    asked: list[int] = []
    text = f"{PLAIN}comparison: {{column_aliases: {{total: [sum]}}}}\n"
    result, _ = run(text, ask=asked.append)
    assert (result.verdict, result.stage, asked) == ("error", "reference", [])
    assert result.message == ("comparison.column_aliases: the reference has no column 'total'; known: n")
    assert run(text.replace("total", "N"))[0].verdict == "passed"
    assert run("prompt: How many?\ncomparison: {per_column: {n: {rtol: 1}}}\n")[0].verdict == "review"


def test_the_judge_is_not_asked_where_the_data_decided(run):
    text = f"{PLAIN}expected_response: There are three.\n"
    wrong = Extraction(Table.from_records([{"n": 4}]), "matched")
    result, (attempt,) = run(text, extract=lambda answer, names: wrong)
    assert (result.verdict, result.reason) == ("failed", "values_differ")
    assert attempt.message.endswith("; judge not asked: the data comparison already decided")
    # without a configured judge the question itself is an error: it was asked
    result, _ = run(text)
    assert (result.verdict, result.stage) == ("error", "checks")


def test_what_checks_say_comes_in_nao_s_order(run):
    text = (
        "prompt: How many?\nassertions:\n  - {type: tool_call, tool: execute_sql}\n"
        "  - {type: text, contains: three, severity: warn}\nbudget: {tokens: 5}\n"
    )
    answer = Answer("4", tool_calls=(ToolCall("execute_sql", {}, asked=True),), usage=Usage(9, 1))
    result, (attempt,) = run(text, ask=lambda number: answer)
    assert result.verdict == "failed"
    assert "warning: " in result.message
    assert attempt.asked == ("execute_sql",)


def test_of_a_failure_only_what_failed_is_told(run):
    text = (
        f"{PLAIN}assertions:\n  - {{type: tool_call, tool: execute_sql}}\n"
        "  - {type: text, contains: three, severity: warn}\n"
    )
    answer = Answer("4", tool_calls=(ToolCall("execute_sql", {}),))
    wrong = {"ask": lambda number: answer, "extract": lambda *given: Extraction(None, "none")}
    result, _ = run(text, **wrong)
    assert result.message == "no data returned; warning: text: 'three' is missing"
    result, _ = run(text, ask=lambda number: answer)
    assert result.message == "tool_call: execute_sql; match; warning: text: 'three' is missing"
    missing = text.replace("execute_sql", "charge")
    result, _ = run(missing, ask=lambda number: answer)
    assert result.message.startswith("missing tool_call: charge; warning: ")


def test_every_reference_of_the_case_and_of_its_turns_is_kept_with_the_attempt(run):
    def reference(sql: str) -> Reference:
        return Reference(Table.from_records([{"n": int(sql.split()[1])}]), sql)

    text = "prompt: How many?\nsql: [SELECT 2 AS n, SELECT 3 AS n]\n"
    for found in (THREE, Table.from_records([{"n": 9}])):
        _, (attempt,) = run(text, reference=reference, extract=lambda *given, f=found: Extraction(f, "given"))
        assert [table.column(0) for table in attempt.references] == [[2], [3]]
    _, (attempt,) = run(CONVERSATION, reference=reference, ask=raising(AgentFailed("down")))
    assert [table.column(0) for table in attempt.references] == [[3], [4]]


def test_the_traceback_of_a_raising_agent_is_kept(run):
    error = AgentFailed("ValueError: no")
    error.traceback = "Traceback (most recent call last):\nValueError: no"
    _, (attempt,) = run(ask=raising(error))
    assert attempt.traceback == error.traceback
    assert run(ask=raising(AgentFailed("HTTP 500")))[1][0].traceback is None


def test_nothing_to_check_is_for_review(run):
    result, _ = run("prompt: How many?\n", extract=lambda answer, names: Extraction(None, "none"),
                    ask=lambda number: Answer("three"))  # fmt: skip
    assert (result.verdict, result.message, result.score) == ("review", "nothing was checked", None)


def test_what_a_turn_says_is_judged_as_that_turns(run):
    text = (
        "prompt:\n  - say: How many?\n    assertions: [{type: text, contains: three}]\n"
        "  - {say: Sure?, expected_response: Yes.}\n"
    )
    parts = (Answer("It is three."), Answer("Quite sure."))
    result, (attempt,) = run(text, ask=lambda number: Answer("whole", turns=parts))
    # without a configured judge the second turn's question is an error: it was asked
    assert (result.verdict, result.stage) == ("error", "checks")
    result, (attempt,) = run(
        text.replace(", expected_response: Yes.", ""), ask=lambda n: Answer("", turns=parts)
    )
    assert (result.verdict, [check.turn for check in attempt.checks]) == ("passed", [0])
