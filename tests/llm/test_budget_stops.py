from __future__ import annotations

import pytest

from pytest_agenteval.checks.judge.ask import _ask as ask_judge
from pytest_agenteval.errors import BudgetSpent
from pytest_agenteval.extraction.executed_queries import Query
from pytest_agenteval.extraction.model_extraction import ExtractionLimits, by_query
from pytest_agenteval.llm.budget import Ledger
from pytest_agenteval.llm.client import make_model
from pytest_agenteval.llm.http_client import HttpClient
from pytest_agenteval.table import Table


@pytest.fixture
def model():
    return make_model("ollama:m", wire=HttpClient(), environ={}, ledger=Ledger(0.0))


def test_an_extraction_that_the_budget_stops_is_not_run_rather_than_broken(model) -> None:
    query = Query("query_1", "execute_sql", "SELECT 1", Table.from_rows(["a"], [[1]]))
    with pytest.raises(BudgetSpent, match=r"the run's budget of \$0.00 allows no further call"):
        by_query([query], model, "how many?", ["n"], ExtractionLimits())


def test_a_judge_that_the_budget_stops_is_not_run_rather_than_broken(model) -> None:
    with pytest.raises(BudgetSpent):
        ask_judge(model, "judge", {}, {"type": "object"}, lambda text: (text, ""))
