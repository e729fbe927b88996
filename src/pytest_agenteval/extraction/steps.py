"""``extract``: an answer into the agent's table, in four steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_agenteval.errors import ExtractionFailed
from pytest_agenteval.extraction.executed_queries import Query, executed_queries
from pytest_agenteval.extraction.model_extraction import ExtractionLimits, by_json, by_query
from pytest_agenteval.support.column_names import covers
from pytest_agenteval.table import Table
from pytest_agenteval.types import DEFAULT_SQL_TOOLS, Answer, ChatModel, Extraction

NOTHING = Extraction(None, "none")
"""The agent gave no data: ``no data returned``."""


def extract(
    answer: Answer,
    *,
    mode: str = "auto",
    expected_columns: Sequence[str] | None = None,
    question: str = "",
    sql_tools: Sequence[str] = DEFAULT_SQL_TOOLS,
    model: ChatModel | None = None,
    limits: ExtractionLimits | None = None,
    aliases: Mapping[str, Sequence[str]] | None = None,
) -> Extraction:
    """Return the agent's table and where it came from; ``table`` is ``None`` when there is no data.

    Args:
        answer: a normalised answer (``data`` is a ``Table`` or ``None``).
        mode: ``auto`` (given, matched, query), or one of ``given``, ``matched``, ``query``, ``json``.
        expected_columns: names of the reference's columns; never values.
        question: what was asked, for the model.
        sql_tools: tools whose calls are queries.
        model: writes the query or the JSON; ``None``: there is none.
        limits: of the written query and of the model calls.
        aliases: expected name -> accepted names (``comparison.column_aliases``).

    Raises ``ExtractionFailed`` when the table cannot be decided, and what ``model`` raises.
    """
    bounds = limits or ExtractionLimits()
    expected = tuple(expected_columns or ())
    if mode == "given":
        return _given(answer) or _value(answer, expected) or NOTHING
    if mode == "json":
        return by_json(answer, _needed(model, mode), question, expected, bounds)
    queries = [query for query in executed_queries(answer, sql_tools) if query.table is not None]
    if mode == "query":
        return by_query(queries, _needed(model, mode), question, expected, bounds, answer.text)
    found = _given(answer) if mode == "auto" else None
    found = found or _matched(queries, expected, aliases)
    if found is not None:
        return found
    if not queries:
        return (_value(answer, expected) if mode == "auto" else None) or NOTHING
    if mode == "auto" and model is not None:
        return by_query(queries, model, question, expected, bounds, answer.text)
    raise ExtractionFailed(_undecided(queries, expected))


def _given(answer: Answer) -> Extraction | None:
    return Extraction(answer.data, "given") if isinstance(answer.data, Table) else None


def _value(answer: Answer, expected: Sequence[str]) -> Extraction | None:
    """Return the one value that an agent gave instead of a table, where one column is asked for."""
    if answer.value is None or len(expected) != 1:
        return None
    return Extraction(Table.from_rows(expected, [[answer.value]], [None]), "given")


def _matched(
    queries: Sequence[Query], expected: Sequence[str], aliases: Mapping[str, Sequence[str]] | None
) -> Extraction | None:
    """Return the last table that covers the expected names; else the only one."""
    for query in reversed(queries):
        if query.table is not None and covers(query.table.names, expected, aliases):
            return Extraction(query.table, "matched", query.sql)
    if len(queries) == 1:
        return Extraction(queries[0].table, "only query", queries[0].sql)
    return None


def _needed(model: ChatModel | None, mode: str) -> ChatModel:
    if model is None:
        raise ExtractionFailed(
            f"extraction {mode!r} needs a model; set --agent-extract-model provider:model, "
            "or --agent-extract auto"
        )
    return model


def _undecided(queries: Sequence[Query], expected: Sequence[str]) -> str:
    named = [(query.id, query.table.names[:8]) for query in queries[-5:] if query.table is not None]
    shown = "; ".join(f"{name} ({', '.join(columns)})" for name, columns in named)
    return (
        f"{len(queries)} queries returned a table and none has the columns {', '.join(expected)}: {shown}. "
        "Name the columns in the prompt or in comparison.column_aliases, let the agent hand its table over, "
        "or set --agent-extract-model provider:model, which then writes one query over them"
    )
