"""The run's budget: one ledger that all workers of a run share through a small file."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pytest_agenteval.errors import AgentFailed, BudgetSpent
from pytest_agenteval.support.processes import is_alive, pid_of
from pytest_agenteval.support.shared_state import SharedState


@dataclass(slots=True)
class Ledger:
    """What a run may spend, in USD (``limit`` ``None``: anything), and what it has spent.

    ``path`` is a file in the run's folder that all workers of the run use; ``None`` keeps the
    ledger in this process. Thread-safe.
    """

    limit: float | None
    path: Path | None = None
    _store: SharedState = field(init=False, repr=False)
    _numbers: Iterator[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._store = SharedState(self.path)
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def call(self) -> Iterator[CallCost]:
        """Provide account for one paid call: ``with ledger.call() as bill: ...; bill.cost = 0.01``.

        Before the call the dearest one seen so far is reserved; raises ``BudgetSpent`` when it does
        not fit. So the overrun stays below what the calls in flight cost. A call that raises is
        billed what its error knows (``error.answer.cost``). Calls may lie in each other: a model's
        turns inside an agent's attempt are billed as they come, and once.
        """
        outer = _AROUND.get()
        if outer is not None and outer.ledger is self:
            with self._part(outer) as part:
                yield part
            return
        bill = CallCost(ledger=self, key=self._reserve())
        token = _AROUND.set(bill)
        try:
            yield bill
        except AgentFailed as error:
            if bill.cost is None and error.answer is not None:
                bill.cost = error.answer.cost
            bill.failed = True
            raise
        except BaseException:
            bill.failed = True
            raise
        finally:
            _AROUND.reset(token)
            self._settle(bill)

    @contextlib.contextmanager
    def _part(self, outer: CallCost) -> Iterator[CallCost]:
        """Provide account for a call inside a call (a model's turn inside an agent's attempt):
        billed at once.

        The outer call holds a reservation for it already, so it is only stopped when the others leave
        nothing. The outer bill then adds what its parts have not paid.
        """
        with self._state() as state:
            others = sum(state.reserved.values()) - state.reserved.get(outer.key, 0.0)
            if self.limit is not None and state.usd + others >= self.limit:
                state.stopped += 1
                raise BudgetSpent(self._refusal(state))
        part = CallCost(ledger=self, key=outer.key)
        try:
            yield part
        finally:
            with self._state() as state:
                state.usd += part.cost or 0.0
                outer.paid += part.cost or 0.0

    def spent(self) -> LedgerTotals:
        """Return the ledger as it stands."""
        with self._state() as state:
            return LedgerTotals(**asdict(state))

    def _reserve(self) -> str:
        key = f"{os.getpid()}:{next(self._numbers)}"
        with self._state() as state:
            state.forget_the_dead()
            if self.limit is not None and not state.fits(self.limit):
                state.stopped += 1
                raise BudgetSpent(self._refusal(state))
            state.reserved[key] = state.dearest
        return key

    def _settle(self, bill: CallCost) -> None:
        with self._state() as state:
            state.reserved.pop(bill.key, None)
            state.calls += 1
            whole = max(bill.cost or 0.0, bill.paid)
            state.usd += whole - bill.paid
            state.dearest = max(state.dearest, whole)
            if bill.cost is None and not bill.paid and not bill.failed:
                state.unpriced += 1

    def _refusal(self, state: LedgerTotals) -> str:
        held = sum(state.reserved.values())
        under_way = f", {_usd(held)} reserved for {len(state.reserved)} calls under way" if held else ""
        return (
            f"the run's budget of {_usd(self.limit or 0.0, 2)} allows no further call: "
            f"{_usd(state.usd)} spent{under_way}, the dearest call cost {_usd(state.dearest)} "
            "(--agent-budget)"
        )

    @contextlib.contextmanager
    def _state(self) -> Iterator[LedgerTotals]:
        """Provide the state for this caller alone, kept afterwards, also when the block raises."""
        with self._store.open() as raw:
            state = LedgerTotals(**raw)
            try:
                yield state
            finally:
                raw.update(asdict(state))


def _usd(amount: float, places: int = 4) -> str:
    """Return ``$1.00``, ``$0.005``: at least ``places`` decimals,
    and more where those would round it away.
    """
    while places < 9 and abs(round(amount, places) - amount) > 0.01 * abs(amount):
        places += 1
    return f"${amount:.{places}f}"


@dataclass(slots=True)
class LedgerTotals:
    """A ledger's state. ``usd`` spent on ``calls`` calls, ``unpriced`` of them at an unknown price.

    ``dearest`` is the dearest call (USD), ``reserved`` what is held for calls under way (USD by
    ``process:number``), ``stopped`` counts calls that the budget did not allow.
    """

    usd: float = 0.0
    dearest: float = 0.0
    calls: int = 0
    unpriced: int = 0
    stopped: int = 0
    reserved: dict[str, float] = field(default_factory=dict)

    def fits(self, limit: float) -> bool:
        """Return whether one more call, as dear as the dearest, stays within ``limit``."""
        # a billionth of slack: ten calls of 0.1 sum to a little more than 1.0
        return self.usd < limit and self.usd + sum(self.reserved.values()) + self.dearest <= limit + 1e-9

    def forget_the_dead(self) -> None:
        """Give back what processes reserved that are gone."""
        self.reserved = {key: held for key, held in self.reserved.items() if is_alive(pid_of(key))}


@dataclass(slots=True)
class CallCost:
    """What one call cost in USD; ``None``: not known. ``paid`` is what calls inside it have cost."""

    cost: float | None = None
    failed: bool = False
    paid: float = 0.0
    ledger: Ledger | None = field(default=None, repr=False)
    key: str = ""


# which call the current thread or task is in; agents run in copies of the caller's context
_AROUND: ContextVar[CallCost | None] = ContextVar("agenteval_bill", default=None)
