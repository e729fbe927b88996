"""A triple: a case, an answer as it arrives, the right verdict; and what the house says of it.

It goes the whole way: the case is read from YAML, the answer is normalised as any agent's, then comes
extraction, comparison and checks. Only what a database would return stands ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.cases.loader import load_cases
from pytest_agenteval.cases.model import Case, PassRule
from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.compare import parse_options
from pytest_agenteval.databases import Databases
from pytest_agenteval.engine.evaluate import evaluate
from pytest_agenteval.errors import AgentFailed, ExtractionFailed
from pytest_agenteval.extraction.executed_queries import executed_queries, statements
from pytest_agenteval.extraction.steps import extract
from pytest_agenteval.types import Answer, Attempt, Extraction, Reference

REGISTRY = default_registry()


class NotExpressible(Exception):
    """An answer that this form cannot hold (a column of several types in Arrow)."""


@dataclass(frozen=True, slots=True)
class Triple:
    """``case`` is YAML; ``answer()`` is what the agent returns; ``right`` is passed or failed.

    ``references`` are the tables that its SQL gives, by statement. ``why`` is what makes it right.
    """

    id: str
    group: str
    form: str
    case: str
    answer: Callable[[], Any]
    right: str
    references: Mapping[str, Reference] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was said of a triple."""

    triple: Triple
    verdict: str
    message: str

    @property
    def kind(self) -> str:
        """``right``, ``false pass``, ``false failure``, ``no verdict``, ``not expressible``."""
        if self.verdict == "not expressible" or self.verdict == self.triple.right:
            return "right" if self.verdict == self.triple.right else self.verdict
        if self.verdict == "passed":
            return "false pass"
        return "false failure" if self.triple.right == "passed" else "no verdict"


class TripleSteps:
    """``CaseSteps`` of a triple: no judge, no database, no model for extraction."""

    root = "."
    judge = None
    k = 1
    rule = PassRule()
    aliases: ClassVar[dict[str, Any]] = {}

    def __init__(self, case: Case, triple: Triple) -> None:
        self.case = case
        self.comparison = case.comparison
        self._triple = triple

    def kept(self, number: int) -> Attempt | None:
        return None

    def prepare(self) -> None:
        pass

    def ask(self, number: int) -> Answer:
        try:
            return normalize(self._triple.answer())
        except NotExpressible:
            raise
        except (TypeError, ValueError) as error:
            raise AgentFailed(str(error)) from error

    def reference(self, sql: str) -> Reference:
        return self._triple.references[sql.strip()]

    def extract(self, answer: Answer, references: Sequence[Reference]) -> Extraction:
        try:
            return extract(
                answer,
                expected_columns=references[0].table.names if references else None,
                question=self.case.prompt,
                aliases=self.comparison.get("column_aliases"),
            )
        except ExtractionFailed:
            if references:
                raise
            return Extraction(None, "none")

    def statements(self, answer: Answer) -> Any:
        return statements(executed_queries(answer))

    def unread(self, answer: Answer) -> tuple[()]:
        return ()

    def listed(self, answer: Answer) -> None:
        return None

    def leak(self, answer: Answer) -> None:
        return None

    def on_attempt(self, attempt: Attempt) -> None:
        pass

    def explained(self, attempt: Attempt, evidence: Any) -> Attempt:
        return attempt

    def schema(self) -> dict[str, Any]:
        return {}

    def dialect(self) -> str | None:
        return None

    def resolve(self, reference: str) -> Any:
        raise LookupError(reference)


def reference_of(connection: Any, sql: str) -> Reference:
    """What the house reads of a reference: its rows by its own engine, typed."""
    with TemporaryDirectory() as name:
        place = Path(name)
        with Databases({"shop": connection}, folder=place, root=place, cached=False) as databases:
            return Reference(databases.get("shop").reference(sql), sql)


def judge(triple: Triple, folder: Path) -> Judged:
    """The whole way of a triple; ``folder`` takes its case file."""
    place = folder / "tests" / "case.yml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(triple.case, encoding="utf-8")
    loaded = load_cases(
        place, checks=REGISTRY, root=folder, parse_comparison=lambda options: parse_options(options)
    )
    if loaded.errors:
        raise AssertionError(f"{triple.id}: {'; '.join(problem.text for problem in loaded.errors)}")
    try:
        result = evaluate(TripleSteps(loaded.cases[0], triple))
    except NotExpressible as reason:
        return Judged(triple, "not expressible", str(reason))
    (attempt,) = result.attempts
    if attempt.error is not None and "NotExpressible" in attempt.error:
        return Judged(triple, "not expressible", attempt.message)
    return Judged(triple, result.verdict, result.cause)


def judge_all(triples: Iterable[Triple], folder: Path) -> list[Judged]:
    return [judge(triple, folder) for triple in triples]


def counted(judged: Iterable[Judged]) -> Counter[str]:
    """How many of each kind."""
    return Counter(one.kind for one in judged)
