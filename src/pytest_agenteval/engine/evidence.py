"""From an answer and its references to the evidence that every check looks at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from pytest_agenteval.checks.runner import first_cell
from pytest_agenteval.engine.case_steps import CaseSteps
from pytest_agenteval.errors import ExtractionFailed
from pytest_agenteval.types import (
    Answer,
    Consumption,
    Evidence,
    Extraction,
    Reference,
    TurnEvidence,
    Usage,
)


def column_names(references: Iterable[Reference]) -> list[list[str]]:
    """Return the column names of every accepted reference: all that an extraction may know of them."""
    return [reference.table.names for reference in references]


def turn_evidence(
    steps: CaseSteps, answer: Answer, of_turns: tuple[tuple[Reference, ...], ...]
) -> tuple[TurnEvidence, ...]:
    """Return what each turn gave; a turn with a reference of its own gets a table of its own.

    () for a case of one turn without a reference of its own. Raises ``ExtractionFailed`` when a
    turn that is to be checked is not in the answer.
    """
    turns = steps.case.turns
    if len(turns) < 2 and not any(of_turns):
        return ()
    parts = answer.turns or (answer,)
    for number, turn in enumerate(turns[len(parts) :], start=len(parts)):
        if of_turns[number] or turn.assertions or turn.expected_response:
            raise ExtractionFailed(
                f"the answer holds {len(parts)} of {len(turns)} turns, and "
                f"{turn_label(number, len(turns))} is to be checked"
            )
    evidences = []
    for turn, part, references in zip(turns, parts, of_turns, strict=False):
        extraction = steps.extract(part, references)
        evidences.append(
            TurnEvidence(turn.say, part.text, part.tool_calls, extraction.table, references, extraction)
        )
    return tuple(evidences)


def turn_label(turn: int, count: int) -> str:
    """Return ``turn`` (from 0) as a person counts: ``turn 1 of 3``."""
    return f"turn {turn + 1} of {count}"


def evidence_of(
    steps: CaseSteps,
    answer: Answer,
    extraction: Extraction,
    references: tuple[Reference, ...],
    turns: tuple[TurnEvidence, ...],
) -> Evidence:
    """Return the evidence of a whole answer."""
    case = steps.case
    statements = tuple(steps.statements(answer))
    calls = answer.tool_calls
    return Evidence(
        prompt=case.prompt,
        text=answer.text,
        value=answer.value if answer.value is not None else first_cell(extraction.table),
        table=extraction.table,
        reference=references[0].table if references else None,
        references=references,
        called=tuple(call.name for call in calls),
        asked=tuple(call.name for call in calls if call.asked),
        steps=answer.steps,
        used=used_by(answer, len(statements)),
        tool_calls=calls,
        statements=statements,
        turns=turns,
        metadata=case.metadata,
        expected_response=case.expected_response,
        outcome=case.outcome,
        comparison=steps.comparison,
        extraction=extraction,
        answer=answer,
        services=steps,
        unread=tuple(steps.unread(answer)),
    )


def used_by(answer: Answer, sql_queries: int) -> Consumption:
    """Return what an answer used: its tokens, USD, ms and tool calls."""
    usage = answer.usage or Usage()
    return Consumption(usage.tokens, answer.cost, answer.duration_ms, len(answer.tool_calls), sql_queries)


def shown_of(evidence: Evidence, turn: int | None, reference: int) -> dict[str, Any]:
    """Return the tables that a report shows beside a comparison: of one turn (from 0), else of the whole.

    ``reference`` is the place of the accepted reference it was made with. What extracting cost is that
    of all turns.
    """
    part = evidence if turn is None else evidence.turns[turn]
    chosen = part.references[reference]
    facts = {"reference": chosen.table, "reference_sql": chosen.sql}
    if turn is None or part.extraction is None:
        return facts
    return {**facts, "extraction": with_all_costs(part.extraction, evidence)}


def with_all_costs(extraction: Extraction, evidence: Evidence) -> Extraction:
    """Return ``extraction`` with the usage and the cost of every extraction of the answer."""
    every = [evidence.extraction, *(turn.extraction for turn in evidence.turns)]
    usages = [one.usage for one in every if one is not None and one.usage is not None]
    costs = [one.cost for one in every if one is not None and one.cost is not None]
    return replace(
        extraction, usage=reduce(add, usages) if usages else None, cost=sum(costs) if costs else None
    )
