"""What tests of checks share: evidence and services without a run, made of plain values."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.checks import default_registry, run_check
from pytest_agenteval.checks.runner import first_cell
from pytest_agenteval.table import Table
from pytest_agenteval.types import CheckResult, Completion, Consumption, Evidence, Statement, ToolCall, Usage

SHOP: Mapping[str, Sequence[str]] = {
    "main.customers": ("id", "first_name", "last_name", "email", "signup_date"),
    "main.orders": ("id", "customer_id", "amount", "order_date", "status"),
    "main.payments": ("id", "order_id", "method", "amount"),
}


@dataclass
class House:
    """Services of a run: a schema, a dialect, a judge, rootdir."""

    columns: Mapping[str, Sequence[str]] = field(default_factory=lambda: SHOP)
    name: str | None = "duckdb"
    judge: Any = None
    root: str = "."

    def schema(self) -> Mapping[str, Sequence[str]]:
        return self.columns

    def dialect(self) -> str | None:
        return self.name

    def resolve(self, reference: str) -> Any:
        module, _, name = reference.partition(":")
        return getattr(importlib.import_module(module), name)


@dataclass
class Judge:
    """A chat model that replies what it is told to and keeps every request."""

    replies: list[str]
    name: str = "test:judge"
    requests: list[list[Mapping[str, Any]]] = field(default_factory=list)

    def complete(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> Completion:
        self.requests.append(list(messages))
        text = self.replies[min(len(self.requests), len(self.replies)) - 1]
        return Completion(text, usage=Usage(input=100, output=10), cost=0.001)


def table(**columns: list[Any]) -> Table:
    return Table.from_rows(list(columns), list(zip(*columns.values(), strict=True)))


def call(name: str, args: Any = None, result: Any = None, **more: Any) -> ToolCall:
    return ToolCall(name, args, result, **more)


def evidence(
    text: str = "", *, sql: Sequence[Any] = (), calls: Sequence[ToolCall] = (), **more: Any
) -> Evidence:
    """Evidence; ``sql`` holds texts or (text, rows) pairs that were executed."""
    statements = tuple(Statement(entry) if isinstance(entry, str) else Statement(*entry) for entry in sql)
    given: dict[str, Any] = {
        "prompt": "How much?",
        "text": text,
        "statements": statements,
        "tool_calls": tuple(calls),
        "called": tuple(entry.name for entry in calls),
        "asked": tuple(entry.name for entry in calls if entry.asked),
        "used": Consumption(tool_calls=len(calls), sql_queries=len(statements)),
        "services": House(),
    }
    if isinstance(more.get("table"), Table):
        given["value"] = first_cell(more["table"])
    return Evidence(**{**given, **more})


def parsed(**raw: Any) -> Any:
    found = default_registry().parse(raw)
    assert not isinstance(found, list), found
    return found


def faults(**raw: Any) -> list[str]:
    """The faults of a check that must not parse, as text."""
    found = default_registry().parse(raw)
    assert isinstance(found, list), found
    return [fault.text for fault in found]


def judged(seen: Evidence, **raw: Any) -> CheckResult:
    """The result of one check, written as in YAML."""
    return run_check(parsed(**raw), seen)
