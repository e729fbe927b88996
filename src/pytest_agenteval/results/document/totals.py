"""The totals of a document: cases, summary, by_model, pass_metrics; functions of its rows alone.

Keys that are nao's keep nao's formula and are numbers, 0 where nothing is known: its own viewer and
scripts compute with them. What is known stands beside them (``unpriced``, ``by_model[].cases``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from pytest_agenteval.results.analysis import statistics
from pytest_agenteval.results.document.rows import CaseRow, Row, cases_of

PARTS = ("agent", "extraction", "judge")


Superseded = Mapping[str, Mapping[str, Any]]
"""By model ``{answers, tokens, cost}`` of answers that were paid for and replaced by a later rerun."""


def totals(rows: Sequence[Row], skipped: int = 0, superseded: Superseded | None = None) -> dict[str, Any]:
    """Return ``{cases, summary, by_model, pass_metrics}`` of the attempts; ``skipped`` items have none."""
    cases = cases_of(rows)
    return {
        "cases": case_totals(cases, skipped),
        "summary": summary(rows, cases, superseded),
        "by_model": by_model(rows, cases, superseded),
        "pass_metrics": pass_metrics(cases),
    }


def causes_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What failed cases have in common, the commonest first: (kind, table, column) of what is proved."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for case in cases_of(rows):
        if case.status == "failed" and case.deciding.cause is not None:
            groups.setdefault(case.deciding.cause, []).append(case.key[1])
    found = [
        {"kind": kind, "table": table, "column": column, "count": len(names), "cases": names}
        for (kind, table, column), names in groups.items()
    ]
    return sorted(found, key=lambda entry: -len(entry["cases"]))


def case_totals(cases: Sequence[CaseRow], skipped: int = 0) -> dict[str, Any]:
    """Return counts of cases (case x model) by verdict; ``xfailed`` and ``quarantined`` are none of the
    others.
    """
    count = Counter(case.status for case in cases)
    return {
        "total": len(cases) + skipped,
        "passed": count["passed"],
        "failed": count["failed"],
        "errors": count["error"],
        "review": count["review"],
        "not_run": count["not_run"],
        **({"running": count["running"]} if count["running"] else {}),
        "skipped": skipped,
        "xfailed": count["xfailed"],
        "quarantined": count["quarantined"],
        "unreviewed": sum(case.rows[0].reviewed is False for case in cases),
        "quarantined_passed": sum(case.quarantined and case.verdict == "passed" for case in cases),
        "pass_rate": pass_rate(cases),
        "score": _mean(case.score for case in cases),
    }


def pass_rate(cases: Iterable[CaseRow]) -> float | None:
    """Return 100 x passed / (passed + failed + errors), one decimal;
    expected failures and quarantine left out.
    """
    count = Counter(case.verdict for case in cases if case.counts_in_rates)
    judged = count["passed"] + count["failed"] + count["error"]
    return round(100 * count["passed"] / judged, 1) if judged else None


def summary(
    rows: Sequence[Row], cases: Sequence[CaseRow], superseded: Superseded | None = None
) -> dict[str, Any]:
    """Return counts and sums over attempts, in nao's words; ``failed`` leaves errors out."""
    figures = _figures(rows, (superseded or {}).values())
    duration = figures["total_duration_ms"]
    return {
        "total": figures["total"],
        "passed": figures["passed"],
        "failed": figures["failed"],
        "total_tokens": figures["total_tokens"],
        "total_cost": figures["total_cost"],
        "total_duration_ms": duration,
        "total_duration_s": round(duration / 1000, 2),
        "total_tool_calls": figures["total_tool_calls"],
        "avg_duration_ms": figures["avg_duration_ms"],
        "avg_tool_calls": figures["avg_tool_calls"],
        "errors": figures["errors"],
        "review": figures["review"],
        "not_run": figures["not_run"],
        "unpriced": figures["unpriced"],
        "score": _mean(case.score for case in cases),
        "usage": {part: _usage(rows, part) for part in PARTS},
    }


def by_model(
    rows: Sequence[Row], cases: Sequence[CaseRow], superseded: Superseded | None = None
) -> list[dict[str, Any]]:
    """Return one entry per model, ranked: pass rate of its cases, then cost (unpriced last), then name.

    ``pass_rate`` is nao's, 100 x passed / total over attempts; ours stands in ``cases``.
    """
    entries = []
    for model in dict.fromkeys(row.model for row in rows):
        own = [case for case in cases if case.key[2] == model]
        judged = [case for case in own if case.counts_in_rates]
        replaced = [entry for name, entry in (superseded or {}).items() if name == model]
        figures = _figures([row for row in rows if row.model == model], replaced)
        spread = statistics.interval([case.counts for case in judged])
        entries.append(
            {
                "model": model,
                "total": figures["total"],
                "passed": figures["passed"],
                "failed": figures["failed"],
                "pass_rate": round(100 * figures["passed"] / figures["total"], 1),
                "total_tokens": figures["total_tokens"],
                "total_cost": figures["total_cost"],
                "total_duration_ms": figures["total_duration_ms"],
                "avg_duration_ms": figures["avg_duration_ms"],
                "total_tool_calls": figures["total_tool_calls"],
                "avg_tool_calls": figures["avg_tool_calls"],
                "k": max((case.k for case in own), default=1),
                **_suite(judged),
                "k_cases": len(_asked_k_times(judged)),
                "interval": [round(100 * end, 1) for end in spread] if spread else None,
                "errors": figures["errors"],
                "not_run": figures["not_run"],
                "unpriced": figures["unpriced"],
                "cases": case_totals(own),
            }
        )
    return sorted(entries, key=rank)


def rank(entry: Any) -> tuple[float, bool, float, str]:
    """Return the sort key of a by_model entry: best pass rate of its cases, cheapest (unpriced last),
    name.
    """
    cost = known_cost(entry)
    unpriced = cost is None or bool(entry.get("unpriced"))
    return -(entry["cases"]["pass_rate"] or 0.0), unpriced, cost or 0.0, entry["model"]


def known_tokens(figures: Mapping[str, Any]) -> int | None:
    """Return ``total_tokens`` of a summary or a by_model entry; ``None`` where no attempt says any."""
    return figures["total_tokens"] or None


def known_cost(figures: Mapping[str, Any]) -> float | None:
    """Return ``total_cost`` in USD of a summary or a by_model entry; ``None`` where no price is known.

    A sum of 0 is a price only where there are tokens and all of them are priced.
    """
    cost: float | None = figures["total_cost"]
    free = bool(figures["total_tokens"]) and not figures["unpriced"]
    return cost if cost or free else None


def mean_per_attempt(figures: Mapping[str, Any], key: str) -> float:
    """Return a sum of a summary or a by_model entry over the attempts that ran (nao's means count all of
    them).
    """
    ran = figures["total"] - figures.get("not_run", 0)
    return float(figures[key]) / ran if ran else 0.0


def pass_metrics(cases: Sequence[CaseRow]) -> dict[str, Any]:
    """Return pass@1 (mean), pass@k (any), pass^k (all) by case and over the suite; ``None``: not known."""
    tests = [
        {"name": case.key[1], "path": case.key[0], "model": case.key[2], "k": case.k, **case_metrics(case)}
        for case in cases
    ]
    tests.sort(key=lambda test: (test["name"], test["model"], test["path"]))
    judged = [case for case in cases if case.counts_in_rates]
    return {
        "k": max((case.k for case in cases), default=1),
        "k_cases": len(_asked_k_times(judged)),
        "aggregate": _suite(judged),
        "by_test": tests,
    }


def case_metrics(case: CaseRow) -> dict[str, float | None]:
    """Return the three pass metrics of one case; errors, reviews and missing attempts are left out."""
    passed, judged = case.counts
    return {
        "pass_at_1": passed / judged if judged else None,
        "pass_at_k": statistics.pass_at_k(judged, passed, case.k),
        "pass_hat_k": statistics.pass_hat_k(judged, passed, case.k),
    }


def _suite(cases: Sequence[CaseRow]) -> dict[str, float | None]:
    """Return means over the cases: pass@1 of all, pass@k and pass^k of those that have k judged attempts.

    A case asked once says nothing of three attempts, and of one cut short only the lucky half is known.
    """
    every = [case_metrics(case) for case in cases]
    whole = [case_metrics(case) for case in _asked_k_times(cases)]
    found = {"pass_at_1": _mean(metrics["pass_at_1"] for metrics in every)}
    return found | {name: _mean(metrics[name] for metrics in whole) for name in ("pass_at_k", "pass_hat_k")}


def _asked_k_times(cases: Sequence[CaseRow]) -> list[CaseRow]:
    """Return the cases with as many judged attempts as the most that a case was to have."""
    k = max((case.k for case in cases), default=1)
    return [case for case in cases if case.k == k <= case.decision.judged]


def _figures(rows: Sequence[Row], superseded: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return counts of the attempts, and sums; what was paid for counts, whatever became of the answer."""
    replaced = list(superseded)
    count = Counter(row.verdict for row in rows)
    tokens = [row.tokens for row in rows if row.tokens is not None]
    costs = [row.cost for row in rows if row.cost is not None]
    duration = sum(row.duration_ms for row in rows)
    tools = sum(row.tool_call_count for row in rows)
    return {
        "total": len(rows),
        "passed": count["passed"],
        "failed": count["failed"],
        "errors": count["error"],
        "review": count["review"],
        "not_run": count["not_run"],
        "total_tokens": sum(tokens) + sum(entry["tokens"] for entry in replaced),
        "total_cost": round(math.fsum([*costs, *(entry["cost"] for entry in replaced)]), 10),
        "unpriced": sum(row.cost is None and bool(row.tokens) for row in rows),
        "total_duration_ms": duration,
        "total_tool_calls": tools,
        "avg_duration_ms": float(round(duration / len(rows))) if rows else 0.0,
        "avg_tool_calls": round(tools / len(rows), 1) if rows else 0.0,
    }


def _usage(rows: Iterable[Row], part: str) -> dict[str, Any] | None:
    found = [row.usage[part] for row in rows if row.usage.get(part)]
    if not found:
        return None
    # a model's name and the time to its first token are facts of one attempt, no sums
    names = dict.fromkeys(
        name for usage in found for name in usage if name not in ("model", "first_token_ms")
    )
    known = {name: [usage[name] for usage in found if usage.get(name) is not None] for name in names}
    return {name: round(math.fsum(v), 10) if name == "cost" else sum(v) for name, v in known.items() if v}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
