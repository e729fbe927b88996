from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.results.document.document import Document, from_folder, write_document
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.verdicts import parse_rule
from pytest_agenteval.results.journal.journal import Journal as RealJournal
from pytest_agenteval.results.journal.records import PlannedItem
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.types import Answer, Attempt, Usage

OPEN: list[RealJournal] = []


@pytest.fixture(autouse=True)
def closed_journals() -> Iterator[None]:
    """Close the journals that a test has opened."""
    yield
    while OPEN:
        OPEN.pop().close()


class Journal(RealJournal):
    """A journal that is closed when its test ends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        OPEN.append(self)


NOW = datetime(2026, 3, 1, 12, 0, 0)


def item(name: str = "revenue", model: str = "demo:a", **more: Any) -> PlannedItem:
    """A planned item of tests/a.yml; ``rule`` is the pass rule as text."""
    path = more.pop("path", "tests/a.yml")
    rule = parse_rule(more.pop("rule", "all"))
    hashes = {"case_hash": f"case-{name}", "ask_hash": f"ask-{name}"}
    values = {**hashes, "prompt": f"What is {name}?", **more}
    return PlannedItem(
        nodeid=f"{path}::{name}[{model}]", path=path, name=name, model=model, pass_rule=rule, **values
    )


def answered(text: str = "42", tokens: int | None = 30, cost: float | None = 0.01, **more: Any) -> Answer:
    usage = None if tokens is None else Usage(input=tokens - 10, output=10)
    return Answer(text=text, usage=usage, cost=cost, duration_ms=1000.0, **more)


def judged(number: int = 1, verdict: Any = "passed", message: str = "", **more: Any) -> Attempt:
    shown = message or {"passed": "match", "failed": "values differ"}.get(verdict, verdict)
    if verdict == "error":
        more = {"stage": "agent", "reason": "agent_error", "error": shown, **more}
    elif "answer" not in more:
        more["answer"] = answered()
    return Attempt(number, verdict, shown, duration_ms=1000.0, **more)


Verdicts = Sequence[str]
Plan = dict[PlannedItem, Verdicts | None]


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return tmp_path / "tests" / "outputs"


@pytest.fixture
def run_folder(outputs: Path) -> Callable[[Plan], RunFolder]:
    """A run's folder in which each item got the verdicts given (``None``: it never started)."""

    def make(plan: Plan, info: dict[str, Any] | None = None) -> RunFolder:
        folder = RunFolder.reserve(outputs, NOW)
        folder.write_run({"started_at": "2026-03-01T12:00:00+00:00", "label": "nightly", **(info or {})})
        journal = Journal(folder, "main")
        journal.planned(list(plan))
        for planned, verdicts in plan.items():
            if verdicts is None:
                continue
            journal.started(planned.nodeid)
            for number, verdict in enumerate(verdicts, 1):
                journal.attempt(planned.nodeid, 0, judged(number, verdict))
        journal.close()
        return folder

    return make


@pytest.fixture
def stored(run_folder: Callable[..., RunFolder]) -> Callable[..., Document]:
    """The same as a results file, read back."""

    def make(plan: Plan, info: dict[str, Any] | None = None) -> Document:
        folder = run_folder(plan, info)
        return read_document(write_document(from_folder(folder), folder.document))

    return make
