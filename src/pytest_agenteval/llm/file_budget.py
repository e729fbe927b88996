"""The ``budget`` beside ``cases:``: what all attempts at the cases of one file may use together."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_agenteval.errors import BudgetSpent
from pytest_agenteval.support.processes import is_alive, pid_of
from pytest_agenteval.support.shared_state import SharedState

UNITS: Mapping[str, str] = {
    "tokens": " tokens",
    "duration_ms": " ms",
    "tool_calls": " tool calls",
    "sql_queries": " queries",
}


@dataclass(slots=True)
class AttemptConsumption:
    """What one attempt used, by the names of a budget; what is not known is left out."""

    amounts: dict[str, float] = field(default_factory=dict)

    def add(self, **amounts: float | None) -> None:
        """Add what is known."""
        for name, amount in amounts.items():
            if amount is not None:
                self.amounts[name] = self.amounts.get(name, 0.0) + amount


class FileBudget:
    """The budget of the file ``shown``; ``limits`` by name (tokens, cost, ...)."""

    def __init__(self, shown: str, limits: Mapping[str, float], store: SharedState) -> None:
        self._shown = shown
        self._limits = dict(limits)
        self._store = store
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def attempt(self) -> Iterator[AttemptConsumption]:
        """Provide account for one attempt. Raises ``BudgetSpent`` when one as large as the largest does not
        fit.
        """
        key = f"{os.getpid()}:{next(self._numbers)}"
        with self._store.open() as state:
            running = [other for other in state.get("running", []) if is_alive(pid_of(other))]
            for name, limit in self._limits.items():
                used, largest = state.get("used", {}).get(name, 0.0), state.get("largest", {}).get(name, 0.0)
                # a billionth of slack: ten attempts of 0.1 sum to a little more than 1.0
                if used >= limit or used + largest * (len(running) + 1) > limit + 1e-9:
                    raise BudgetSpent(self._refusal(name, used, limit, largest))
            state["running"] = [*running, key]
        use = AttemptConsumption()
        try:
            yield use
        finally:
            with self._store.open() as state:
                state["running"] = [other for other in state.get("running", []) if other != key]
                for name, amount in use.amounts.items():
                    used, largest = state.setdefault("used", {}), state.setdefault("largest", {})
                    used[name] = used.get(name, 0.0) + amount
                    largest[name] = max(largest.get(name, 0.0), amount)

    def _refusal(self, name: str, used: float, limit: float, largest: float) -> str:
        unit = UNITS.get(name, "")

        def shown(value: float) -> str:
            return f"${value:.4f}" if name == "cost" else f"{value:,.0f}"

        return (
            f"the budget of {self._shown} allows no further attempt: {shown(used)} of {shown(limit)}{unit} "
            f"used, the largest attempt took {shown(largest)}"
        )
