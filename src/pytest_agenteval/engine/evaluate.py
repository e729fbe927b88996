"""The order of the steps of one case, and the only place that knows it.

reference -> agent -> extraction -> comparison and checks -> verdict. A step's failure is a value: the
attempt ends in verdict ``error`` with the stage that failed, and is reported all the same.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.cases.model import ParsedCheck
from pytest_agenteval.checks.judge import JUDGED
from pytest_agenteval.checks.runner import checks_of, run_check
from pytest_agenteval.engine.case_steps import CaseSteps
from pytest_agenteval.engine.evidence import (
    column_names,
    evidence_of,
    shown_of,
    turn_evidence,
    turn_label,
    with_all_costs,
)
from pytest_agenteval.errors import (
    AgentFailed,
    BudgetSpent,
    ExtractionFailed,
    JournalFailed,
    ReferenceFailed,
    RunStopped,
    StageError,
)
from pytest_agenteval.results.document.verdicts import decide
from pytest_agenteval.support import clock
from pytest_agenteval.support.text import counted
from pytest_agenteval.table import Table
from pytest_agenteval.types import (
    Answer,
    Attempt,
    CaseResult,
    CheckResult,
    Evidence,
    Extraction,
    Outcome,
    Reference,
    Stage,
    Verdict,
)

ALWAYS_SAID = ("tool_call", "no_tool_call", "tool_order", "asked")


@dataclass(slots=True)
class _Draft:
    """An attempt while it is made: what is known so far, and the stage it is in."""

    number: int
    stage: Stage = "agent"
    started: float = field(default_factory=clock.monotonic)
    facts: dict[str, Any] = field(default_factory=dict)

    def finish(self, verdict: Verdict, message: str, **more: Any) -> Attempt:
        answer: Answer | None = self.facts.get("answer")
        spent = (clock.monotonic() - self.started) * 1000
        duration = spent if answer is None or answer.duration_ms is None else answer.duration_ms
        return Attempt(self.number, verdict, message, duration_ms=duration, **{**self.facts, **more})

    def failed_at(self, stage: Stage, reason: str, text: str) -> Attempt:
        return self.finish("error", text, stage=stage, reason=reason, error=text)


def evaluate(steps: CaseSteps) -> CaseResult:
    """Run all attempts of a case. Nothing but what ends the process (Ctrl-C, a timeout) is raised."""
    kept = {number: steps.kept(number) for number in range(1, steps.k + 1)}
    attempts: list[Attempt] = [attempt for attempt in kept.values() if attempt is not None]
    if len(attempts) == steps.k:
        return _conclude(steps, attempts)
    try:
        steps.prepare()
        references, of_turns = references_of(steps)
    except Exception as error:
        failed = error
        return _each(steps, kept, lambda n: _error(_Draft(n, "reference", facts=_facts(steps)), failed))
    return _each(steps, kept, lambda n: _attempt(steps, n, references, of_turns))


def _each(steps: CaseSteps, kept: Mapping[int, Attempt | None], make: Callable[[int], Attempt]) -> CaseResult:
    """Make every attempt that is not kept, record each as it ends, and conclude."""
    attempts = []
    for number, earlier in kept.items():
        attempt = earlier or make(number)
        attempts.append(attempt)
        if earlier is None:
            steps.on_attempt(attempt)
    return _conclude(steps, attempts)


def _facts(
    steps: CaseSteps,
    references: tuple[Reference, ...] = (),
    of_turns: tuple[tuple[Reference, ...], ...] = (),
) -> dict[str, Any]:
    """Return what is known of every attempt before the agent is asked."""
    sql = steps.case.statements
    return {
        "reference_sql": sql[0] if sql else None,
        "reference": references[0].table if references else None,
        "references": tuple(one.table for accepted in (references, *of_turns) for one in accepted),
        "frozen": any(one.frozen for accepted in (references, *of_turns) for one in accepted),
    }


def _error(draft: _Draft, error: Exception) -> Attempt:
    """Return the attempt that an exception has ended: an error of the machinery, never a wrong answer."""
    if isinstance(error, AgentFailed):
        # what was spent and tried before it failed; an overlapping call began long before we waited for it
        if error.answer is not None:
            draft.facts.setdefault("answer", error.answer)
        if error.traceback:
            draft.facts["traceback"] = error.traceback
        if error.duration_ms is not None:
            draft.started = clock.monotonic() - error.duration_ms / 1000
        if error.fails:
            text = str(error)
            return draft.finish("failed", text, stage=error.stage, reason=error.reason, error=text)
    if isinstance(error, RunStopped):
        return draft.finish("not_run", str(error), reason="stopped")
    if isinstance(error, BudgetSpent):
        return draft.finish("not_run", str(error), reason="budget")
    if isinstance(error, ExtractionFailed) and (error.usage is not None or error.cost is not None):
        draft.facts["extraction"] = Extraction(None, "none", usage=error.usage, cost=error.cost)
    if isinstance(error, StageError):
        return draft.failed_at(error.stage, error.reason, str(error))
    where = "".join(traceback.format_exception(error)).rstrip()
    text = f"internal error in stage {draft.stage}: {type(error).__name__}: {error}"
    return draft.finish("error", text, stage=draft.stage, reason="internal_error", error=f"{text}\n{where}")


def references_of(steps: CaseSteps) -> tuple[tuple[Reference, ...], tuple[tuple[Reference, ...], ...]]:
    """Return the accepted tables of the case and of each of its turns. Raises ``ReferenceFailed``."""
    case = steps.case
    whole = _accepted(steps, case.sql, case.expected)
    of_turns = tuple(_accepted(steps, turn.sql, turn.expected) for turn in case.turns)
    if len(of_turns) == 1 and not whole:
        # the only turn is the whole conversation
        whole, of_turns = of_turns[0], ((),)
    if case.outcome == "no_data":
        if not whole:
            raise ReferenceFailed("outcome no_data needs a reference that gives no rows; the case has none")
        for reference in whole:
            if reference.table.row_count:
                rows = counted(reference.table.row_count, "row")
                raise ReferenceFailed(f"outcome no_data, but the reference gives {rows}, expected 0")
    if case.comparison:
        from pytest_agenteval.checks.data import unknown_columns

        every = [reference for references in (whole, *of_turns) for reference in references]
        if (unknown := unknown_columns(case.comparison, column_names(every))) is not None:
            raise ReferenceFailed(unknown)
    return whole, of_turns


def _accepted(steps: CaseSteps, sql: Iterable[str], expected: Table | None) -> tuple[Reference, ...]:
    inline = () if expected is None else (Reference(expected),)
    return (*(steps.reference(statement) for statement in sql), *inline)


def _attempt(
    steps: CaseSteps,
    number: int,
    references: tuple[Reference, ...],
    of_turns: tuple[tuple[Reference, ...], ...],
) -> Attempt:
    draft = _Draft(number, facts=_facts(steps, references, of_turns))
    try:
        answer = steps.ask(number)
        draft.started = clock.monotonic()
        draft.facts["answer"] = answer
        return _judge(steps, draft, answer, references, of_turns)
    except JournalFailed:
        raise
    except Exception as error:
        return _error(draft, error)
    except BaseException as error:
        steps.on_attempt(_cut_short(draft, error))
        raise


def _cut_short(draft: _Draft, error: BaseException) -> Attempt:
    """Return what is known of an attempt that Ctrl-C or another plugin's timeout has ended."""
    text = str(error) or type(error).__name__
    if "timeout" in text.lower():
        return draft.failed_at("timeout", "timeout", text.strip())
    # a person's Ctrl-C is not a fault: it may not lower the rate of what was judged
    return draft.finish("not_run", f"interrupted: {type(error).__name__}", reason="interrupted")


def _judge(
    steps: CaseSteps,
    draft: _Draft,
    answer: Answer,
    references: tuple[Reference, ...],
    of_turns: tuple[tuple[Reference, ...], ...],
) -> Attempt:
    from pytest_agenteval.checks.outcome import empty_answer

    draft.facts["asked"] = tuple(call.name for call in answer.tool_calls if call.asked)
    leaked = steps.leak(answer)
    if leaked is not None:
        draft.facts["leak"] = leaked
        result = CheckResult("leak", False, leaked, reason="leak")
        return _verdict(draft, [result])
    draft.stage = "extraction"
    extraction = steps.extract(answer, references)
    draft.facts["extraction"] = extraction
    turns = turn_evidence(steps, answer, of_turns)
    evidence = evidence_of(steps, answer, extraction, references, turns)
    draft.facts["extraction"] = with_all_costs(extraction, evidence)
    draft.stage = "checks"
    observed, results = _outcome(steps, evidence)
    draft.facts["observed"] = observed
    evidence = replace(evidence, observed=observed)
    if (listed := steps.listed(answer)) is not None:
        results.append(CheckResult("leak", False, listed, reason="leak", severity="warn"))
    results += _all_checks(steps, draft, evidence)
    if counts_as_check(results) and all(result.passed for result in results):
        results += empty_answer(evidence)
    return steps.explained(_verdict(draft, results, len(steps.case.turns)), evidence)


def _outcome(steps: CaseSteps, evidence: Evidence) -> tuple[Outcome, list[CheckResult]]:
    """Return what was observed; a result only where the outcome decides something."""
    from pytest_agenteval.checks.outcome import judge_outcome

    case = steps.case
    checks = (*case.assertions, *(check for turn in case.turns for check in turn.assertions))
    observed, result = judge_outcome(case.outcome, evidence, checks)
    if result is not None and not case.outcome_judged:  # something else decides; what a judge took counts
        spent = result.usage is not None or result.cost is not None
        shown = replace(result, passed=True, why=f"outcome: {observed}", score=1.0, severity="warn")
        return observed, [shown] if spent else []
    return observed, [result] if result is not None else []


def _all_checks(steps: CaseSteps, draft: _Draft, evidence: Evidence) -> list[CheckResult]:
    """Run data checks first (they may spare a judge's call), then the budget,
    then assertions in file order.
    """
    data = _data_results(draft, evidence)
    results = list(data)
    decided = any(not result.passed for result in data)
    for check, turn in checks_of(steps.case):
        if decided and check.type in JUDGED:
            results.append(_not_asked(check, turn))
        else:
            results.append(run_check(check, evidence, turn))
    return results


def _data_results(draft: _Draft, evidence: Evidence) -> list[CheckResult]:
    """Return the data results of the whole answer and of each turn; reports show the first that failed."""
    from pytest_agenteval.checks.data import check_data

    draft.stage = "comparison"
    places: list[int | None] = [None] if evidence.references else []
    places += [number for number, turn in enumerate(evidence.turns) if turn.references]
    results = [check_data(evidence, turn=place) for place in places]
    reported = next((result for result in results if not result.passed), results[0] if results else None)
    if reported is not None:
        draft.facts["comparison"] = reported.details["comparison"]
        draft.facts |= shown_of(evidence, reported.turn, reported.details["reference"])
    draft.stage = "checks"
    return results


def _not_asked(check: ParsedCheck, turn: int | None) -> CheckResult:
    why = "judge not asked: the data comparison already decided"
    return CheckResult(
        check.type,
        False,
        why,
        check.name,
        severity="warn",
        turn=turn,
        reason="judge",
        details={"not_asked": True},
    )


def _verdict(draft: _Draft, results: Sequence[CheckResult], turns: int = 1) -> Attempt:
    deciding = [result for result in results if result.severity == "fail"]
    failed = [result for result in deciding if not result.passed]
    verdict: Verdict = "failed" if failed else "passed" if counts_as_check(deciding) else "review"
    data = next((result for result in failed if result.type == "data"), None)
    reason = (data or failed[0]).reason if failed else None
    scored = [result.score for result in deciding if result.type != "limit"]
    score = sum(scored) / len(scored) if scored else None
    return draft.finish(verdict, _message(results, turns), checks=tuple(results), reason=reason, score=score)


def counts_as_check(results: Sequence[CheckResult]) -> bool:
    """Return whether anything about the answer was checked; a limit on what it may use does not count."""
    return any(result.type != "limit" for result in results)


def _message(results: Sequence[CheckResult], turns: int) -> str:
    """Return the message in nao's form: the assertions, then the data; a failed turn is named.

    Of a failure only what failed is reported: it has one line in a table, and the first words count.
    """
    spared = [result for result in results if result.details.get("not_asked")]
    rest = [result for result in results if not result.details.get("not_asked")]
    failed = any(result.severity == "fail" and not result.passed for result in rest)
    asserted = [
        r for r in rest if r.type != "data" and (not r.passed or (r.type in ALWAYS_SAID and not failed))
    ]
    data = [result for result in rest if result.type == "data"]
    wrong = [result for result in data if not result.passed]
    deciding = [r for r in asserted if r.severity == "fail"]

    def why(result: CheckResult) -> str:
        if result.turn is None or turns < 2 or result.passed:
            return result.why
        return f"{turn_label(result.turn, turns)}: {result.why}"

    warned = [f"warning: {why(r)}" if not r.passed else r.why for r in asserted if r.severity == "warn"]
    said = [why(r) for r in (*deciding, *(wrong if failed else data))] or [
        r.why for r in rest if r.severity == "fail"
    ]
    pieces = [*said, *warned, *(result.why for result in spared)]
    return "; ".join(dict.fromkeys(pieces)) or "nothing was checked"


def _conclude(steps: CaseSteps, attempts: Sequence[Attempt]) -> CaseResult:
    verdict = decide([attempt.verdict for attempt in attempts], steps.rule, steps.k)
    shown = next((a for a in attempts if a.verdict == verdict.verdict), attempts[-1])
    counted = steps.k > 1 and any(attempt.verdict != "not_run" for attempt in attempts)
    message = f"{verdict.label}: {shown.message}" if counted else shown.message
    scores = [attempt.score for attempt in attempts if attempt.score is not None]
    return CaseResult(
        verdict.verdict,
        message,
        tuple(attempts),
        stage=shown.stage,
        reason=shown.reason,
        score=sum(scores) / len(scores) if scores else None,
    )
