from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from pytest_agenteval.errors import AgentFailed, BudgetSpent
from pytest_agenteval.llm.budget import Ledger
from pytest_agenteval.types import Answer


@pytest.fixture(params=["memory", "file"])
def path(request, tmp_path):
    return tmp_path / "run" / "budget.json" if request.param == "file" else None


def pay(ledger: Ledger, usd: float | None) -> None:
    with ledger.call() as bill:
        bill.cost = usd


def test_the_dearest_call_must_still_fit(path) -> None:
    ledger = Ledger(1.0, path)
    pay(ledger, 0.3)
    pay(ledger, 0.1)
    pay(ledger, 0.3)
    pay(ledger, 0.05)
    with pytest.raises(BudgetSpent) as caught:
        pay(ledger, 0.01)
    assert str(caught.value) == (
        "the run's budget of $1.00 allows no further call: $0.7500 spent, the dearest call cost $0.3000 "
        "(--agent-budget)"
    )
    spent = ledger.spent()
    assert (spent.usd, spent.calls, spent.stopped, spent.unpriced) == (pytest.approx(0.75), 4, 1, 0)
    assert spent.reserved == {}


def test_small_amounts_are_not_rounded_away(path) -> None:
    ledger = Ledger(0.005, path)
    pay(ledger, 0.004)
    with pytest.raises(BudgetSpent) as caught:
        pay(ledger, 0.004)
    assert str(caught.value) == (
        "the run's budget of $0.005 allows no further call: $0.0040 spent, the dearest call cost $0.0040 "
        "(--agent-budget)"
    )
    small = Ledger(0.00001)
    pay(small, 0.00002)
    with pytest.raises(BudgetSpent, match=r"budget of \$0\.00001 allows .* \$0\.00002 spent"):
        pay(small, 0.00002)


def test_a_budget_of_exactly_ten_calls_allows_ten(path) -> None:
    ledger = Ledger(1.0, path)
    for _ in range(10):
        pay(ledger, 0.1)
    with pytest.raises(BudgetSpent):
        pay(ledger, 0.1)


def test_a_budget_of_nothing_allows_nothing(path) -> None:
    with pytest.raises(BudgetSpent):
        pay(Ledger(0.0, path), 0.0)


def test_without_a_limit_spending_is_counted(path) -> None:
    ledger = Ledger(None, path)
    pay(ledger, 100.0)
    pay(ledger, None)
    spent = ledger.spent()
    assert (spent.usd, spent.calls, spent.unpriced) == (100.0, 2, 1)


def test_what_a_failed_call_has_spent_is_billed(path) -> None:
    ledger = Ledger(1.0, path)
    with pytest.raises(AgentFailed), ledger.call():
        raise AgentFailed("down", answer=Answer(cost=0.25))
    with pytest.raises(ValueError, match="ours"), ledger.call():
        raise ValueError("ours")
    spent = ledger.spent()
    assert (spent.usd, spent.calls, spent.unpriced, spent.reserved) == (0.25, 2, 0, {})


def test_calls_under_way_hold_what_the_dearest_cost(path) -> None:
    ledger = Ledger(1.0, path)
    pay(ledger, 0.4)
    refused: list[str] = []

    def other() -> None:
        try:
            pay(ledger, 0.4)
        except BudgetSpent as error:
            refused.append(str(error))

    with ledger.call() as bill:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        bill.cost = 0.1
    assert "$0.4000 reserved for 1 calls under way" in refused[0]
    pay(ledger, 0.4)


def test_what_a_dead_process_reserved_comes_back(tmp_path) -> None:
    path = tmp_path / "budget.json"
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True)
    dead = int(gone.stdout)
    path.write_text(json.dumps({"usd": 0.1, "dearest": 0.4, "reserved": {f"{dead}:1": 0.4, "1:1": 0.2}}))
    ledger = Ledger(0.8, path)
    pay(ledger, 0.0)
    assert ledger.spent().reserved == {"1:1": 0.2}


SPENDER = """
import sys
from pathlib import Path
from pytest_agenteval.errors import BudgetSpent
from pytest_agenteval.llm.budget import Ledger
ledger = Ledger(2.0, Path(sys.argv[1]))
calls = 0
try:
    while True:
        with ledger.call() as bill:
            bill.cost = 0.05
        calls += 1
except BudgetSpent:
    print(calls)
"""


def test_processes_and_threads_share_one_ledger(tmp_path) -> None:
    path = tmp_path / "budget.json"
    command = [sys.executable, "-c", SPENDER, str(path)]
    workers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ.copy()) for _ in range(3)
    ]
    ledger = Ledger(2.0, path)
    mine: list[int] = []

    def spend() -> None:
        try:
            while True:
                pay(ledger, 0.05)
                mine.append(1)
        except BudgetSpent:
            pass

    threads = [threading.Thread(target=spend) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    calls = len(mine) + sum(int(worker.communicate(timeout=30)[0]) for worker in workers)
    spent = ledger.spent()
    assert calls == spent.calls
    assert spent.usd == pytest.approx(0.05 * calls)
    # overrun-free; a caller may give up while others hold reservations, so fewer than 40 is possible
    assert spent.usd <= 2.0 + 1e-9
    assert spent.usd >= 2.0 - 0.05 * 6
    assert spent.reserved == {}


def test_calls_inside_a_call_are_billed_as_they_come_and_once(path) -> None:
    ledger = Ledger(1.0, path)
    with ledger.call() as bill:
        pay(ledger, 0.1)
        pay(ledger, 0.2)
        assert ledger.spent().usd == pytest.approx(0.3)
        bill.cost = 0.35
    spent = ledger.spent()
    assert (spent.calls, spent.usd, spent.dearest) == (1, pytest.approx(0.35), pytest.approx(0.35))

    def attempt(*costs: float) -> None:
        with ledger.call():
            for usd in costs:
                pay(ledger, usd)
            raise AgentFailed("down")

    with pytest.raises(AgentFailed, match="down"):
        attempt(0.2)
    assert ledger.spent().usd == pytest.approx(0.55)
    with pytest.raises(BudgetSpent):
        attempt(0.5, 0.01)
    spent = ledger.spent()
    assert (spent.calls, spent.stopped, spent.unpriced) == (3, 1, 0)
    assert spent.usd == pytest.approx(1.05)


def test_another_ledgers_call_is_no_part(path) -> None:
    ledger, other = Ledger(1.0, path), Ledger(None)
    with other.call():
        pay(ledger, 0.4)
    assert (ledger.spent().calls, ledger.spent().dearest) == (1, 0.4)
