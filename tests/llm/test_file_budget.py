from __future__ import annotations

import pytest

from pytest_agenteval.errors import BudgetSpent
from pytest_agenteval.llm.file_budget import FileBudget
from pytest_agenteval.support.shared_state import SharedState


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path) -> SharedState:
    return SharedState(tmp_path / "run" / "budget.json" if request.param == "file" else None)


def spend(budget: FileBudget, **amounts: float | None) -> None:
    with budget.attempt() as use:
        use.add(**amounts)


def test_the_largest_attempt_must_still_fit(store) -> None:
    budget = FileBudget("tests/many.yml", {"tokens": 10_000, "cost": 1.0}, store)
    spend(budget, tokens=4_000, cost=0.1)
    spend(budget, tokens=3_000, cost=None)
    with pytest.raises(BudgetSpent) as caught:
        spend(budget, tokens=1)
    assert str(caught.value) == (
        "the budget of tests/many.yml allows no further attempt: 7,000 of 10,000 tokens used, the "
        "largest attempt took 4,000"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cost", "$2.0000 of $2.0000 used, the largest attempt took $1.0000"),
        ("duration_ms", "2 of 2 ms used"),
        ("tool_calls", "2 of 2 tool calls used"),
        ("sql_queries", "2 of 2 queries used"),
    ],
)
def test_each_kind_has_its_words(store, name: str, text: str) -> None:
    budget = FileBudget("f.yml", {name: 2}, store)
    spend(budget, **{name: 1})
    spend(budget, **{name: 1})
    with pytest.raises(BudgetSpent) as caught:
        spend(budget)
    assert text in str(caught.value)


def test_attempts_under_way_count_as_large_as_the_largest(store) -> None:
    budget = FileBudget("f.yml", {"tokens": 100}, store)
    spend(budget, tokens=40)
    with budget.attempt(), pytest.raises(BudgetSpent):
        spend(budget, tokens=1)
    spend(budget, tokens=1)


def test_what_an_attempt_used_counts_when_it_fails(store) -> None:
    budget = FileBudget("f.yml", {"tokens": 100}, store)

    def fails() -> None:
        with budget.attempt() as use:
            use.add(tokens=90)
            use.add(tokens=10)
            raise ValueError("down")

    with pytest.raises(ValueError, match="down"):
        fails()
    with pytest.raises(BudgetSpent):
        spend(budget)
