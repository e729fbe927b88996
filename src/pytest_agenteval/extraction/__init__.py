"""Extraction: an answer into the agent's table.

``extract`` goes five steps: the table the agent handed over, the query that matches, the last statement
run again, one query that a model writes over the fetched rows, JSON. ``executed_queries`` lists what the
agent really ran.
"""

from __future__ import annotations

from pytest_agenteval.extraction.executed_queries import Query, executed_queries, result_table, statements
from pytest_agenteval.extraction.model_extraction import ExtractionLimits
from pytest_agenteval.extraction.steps import extract

__all__ = [
    "ExtractionLimits",
    "Query",
    "executed_queries",
    "extract",
    "result_table",
    "statements",
]
