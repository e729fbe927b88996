"""``--agent-dry-run``: what a run would ask, and what it would cost; nothing is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest

from pytest_agenteval.plugin.items import case_of, model_of, our_items
from pytest_agenteval.plugin.options import run_of

MOST_RESULTS = 50
"""Results files in which a case's last cost is looked for, newest first."""
Key = tuple[str, str, str]


@dataclass(slots=True)
class _Estimate:
    """Calls, those without a known cost, and what the others cost (USD)."""

    calls: int = 0
    unknown: int = 0
    usd: float = 0.0

    def add(self, calls: int, price: float | None) -> None:
        self.calls += calls
        self.unknown += calls if price is None else 0
        self.usd += 0.0 if price is None else price * calls

    @property
    def text(self) -> str:
        """``, about $1.2500``; ``, at least $1.0000; 3 of 4 calls unknown``; ``''`` where all are."""
        if self.unknown == self.calls:
            return ""
        if not self.unknown:
            return f", about ${self.usd:.4f}"
        return f", at least ${self.usd:.4f}; {self.unknown:,} of {self.calls:,} calls unknown"


def print_plan(reporter: Any, config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Print items, models, attempts, calls, and the cost by what each case's own last results paid."""
    run = run_of(config)
    cases = [(item, case) for item in our_items(items) if (case := case_of(item)) is not None]
    planned = [run.context.planned_item(case, item.nodeid, model_of(item)) for item, case in cases]
    prices, sources = last_costs(config, {(plan.path, plan.name, plan.model) for plan in planned})
    models: dict[str, _Estimate] = defaultdict(_Estimate)
    total = _Estimate()
    for plan in planned:
        price = prices.get((plan.path, plan.name, plan.model))
        models[plan.model].add(plan.k, price)
        total.add(plan.k, price)
    reporter.section("Dry run: nothing was asked")
    for model, estimate in models.items():
        reporter.write_line(f"{model}: {estimate.calls} calls{estimate.text}")
    reporter.write_line(f"{len(planned)} cases, {total.calls} calls{total.text}")
    if not sources:
        reporter.write_line("no cost is known: no results yet say what these cases cost")
    else:
        more = f" and {len(sources) - 1} older" if len(sources) > 1 else ""
        reporter.write_line(f"costs are those of {sources[0]}{more}; {total.unknown} calls have none there")


def last_costs(config: pytest.Config, wanted: set[Key]) -> tuple[dict[Key, float], list[str]]:
    """Return the mean cost (USD) of an attempt by (path, name, model), and the files that say so.

    Each case has its cost from the newest results in which it has one, whatever else ran there.
    """
    from pytest_agenteval.results.document.load import past_documents

    prices: dict[Key, float] = {}
    sources: list[str] = []
    for document in islice(past_documents(run_of(config).context.output), MOST_RESULTS):
        if wanted <= prices.keys():
            break
        paid: dict[Key, list[float]] = defaultdict(list)
        for row in document.rows:
            if row.cost is not None and row.key in wanted and row.key not in prices:
                paid[row.key].append(row.cost)
        prices |= {key: sum(costs) / len(costs) for key, costs in paid.items()}
        if paid and document.path is not None:
            sources.append(document.path.name)
    return prices, sources
