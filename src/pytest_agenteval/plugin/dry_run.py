"""``--agent-dry-run``: what a run would ask, and what it would cost; nothing is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_agenteval.plugin.items import case_of, model_of, our_items
from pytest_agenteval.plugin.options import run_of


def print_plan(reporter: Any, config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Print items, models, attempts, calls, and the cost by what the last results paid for them."""
    run = run_of(config)
    prices, source = last_costs(config)
    calls: dict[str, int] = defaultdict(int)
    known: dict[str, float] = defaultdict(float)
    unpriced = 0
    ours = our_items(items)
    for item in ours:
        case = case_of(item)
        assert case is not None
        planned = run.context.planned_item(case, item.nodeid, model_of(item))
        calls[planned.model] += planned.k
        price = prices.get((planned.path, planned.name, planned.model))
        if price is None:
            unpriced += planned.k
        else:
            known[planned.model] += price * planned.k
    reporter.section("Dry run: nothing was asked")
    for model, count in calls.items():
        reporter.write_line(f"{model}: {count} calls{_cost(known.get(model))}")
    total = sum(calls.values())
    reporter.write_line(f"{len(ours)} cases, {total} calls{_cost(sum(known.values()) if known else None)}")
    if source is None:
        reporter.write_line("no cost is known: there are no results yet")
    else:
        reporter.write_line(f"costs are those of {source}; {unpriced} calls have none there")


def _cost(usd: float | None) -> str:
    return "" if usd is None else f", about ${usd:.4f}"


def last_costs(config: pytest.Config) -> tuple[dict[tuple[str, str, str], float], str | None]:
    """Return the mean cost (USD) of an attempt by (path, name, model) in the last results, and their file."""
    from pytest_agenteval.results.document.load import past_documents

    last = next(past_documents(run_of(config).context.output), None)
    if last is None or last.path is None:
        return {}, None
    seen: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in last.rows:
        if row.cost is not None:
            seen[row.key].append(row.cost)
    return {key: sum(costs) / len(costs) for key, costs in seen.items()}, last.path.name
