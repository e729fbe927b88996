"""What one case says, normalised: aliases resolved, files read, checks validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_agenteval.table import Table
from pytest_agenteval.types import CheckResult, Evidence, Outcome


class ParsedCheck(Protocol):
    """One thing to check about an answer (``checks.Check`` implements it)."""

    @property
    def type(self) -> Any:
        """Its word in YAML."""

    @property
    def name(self) -> str | None:
        """What the report calls it."""

    @property
    def severity(self) -> Any:
        """``fail`` or ``warn`` (reported, never decides)."""

    @property
    def turn(self) -> int | None:
        """The turn it looks at, from 0 (``None``: all)."""

    def check(self, evidence: Evidence) -> CheckResult:
        """Judge ``evidence``. Raises ``CheckFailed`` when the check cannot be carried out."""
        ...


@dataclass(frozen=True, slots=True)
class PassRule:
    """How many of k attempts must pass. ``text`` is as written: ``all``, ``any``, ``0.67``, ``2/3``."""

    text: str = "all"
    share: float = 1.0

    def needed(self, k: int) -> int:
        """Return the smallest number of passes of ``k`` that meets the rule (at least 1).

        A share is met when passed/k rounded to two decimals reaches it (0.67 accepts 2 of 3);
        ``majority`` is more than half.
        """
        if self.text == "any":
            return 1
        if self.text == "majority":
            return k // 2 + 1
        return next((n for n in range(1, k + 1) if round(n / k, 2) >= round(self.share, 2)), k)


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one attempt: tokens, USD, ms, tool calls, statements."""

    tokens: int | None = None
    cost: float | None = None
    duration_ms: float | None = None
    tool_calls: int | None = None
    sql_queries: int | None = None


@dataclass(frozen=True, slots=True)
class Xfail:
    """An expected failure, for all models or those named."""

    reason: str = ""
    models: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A pytest mark: its name and the literal arguments written behind it."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the user and what is expected of its answer alone."""

    say: str
    sql: tuple[str, ...] = ()
    expected: Table | None = None
    expected_response: tuple[str, ...] = ()
    assertions: tuple[ParsedCheck, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test case, which starts at ``line`` and ``column`` (from 1) of ``path``; ``id`` is its pytest id.

    ``outcome_judged`` is false for governance cases, where the decision is a check, and where no outcome
    is written and an expected response, a judge or ``asked`` decides whether asking back was right.
    ``k``, ``pass_rule`` and ``timeout`` are ``None`` where the case does not say. ``vars`` have
    already been put into the texts. ``case_hash`` is the sha256 of the normalised case without name,
    tags, owner and metadata; ``ask_hash`` that of what is asked (turns, input, database, and what
    else the agent is given). ``sql_place`` is the line and column of the case's own ``sql``.
    """

    path: Path
    line: int
    name: str
    id: str
    turns: tuple[Turn, ...]
    column: int = 1
    description: str | None = None
    input: Any = None
    agent: str | None = None
    sql: tuple[str, ...] = ()
    expected: Table | None = None
    expected_response: tuple[str, ...] = ()
    database: str | None = None
    assertions: tuple[ParsedCheck, ...] = ()
    comparison: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome = "answer"
    outcome_judged: bool = True
    models: tuple[str, ...] | None = None
    k: int | None = None
    pass_rule: PassRule | None = None
    timeout: float | None = None
    budget: Budget | None = None
    file_budget: Budget | None = None
    caller: Any = None
    vars: Mapping[str, Any] = field(default_factory=dict)
    context: str | None = None
    setup: tuple[str, ...] = ()
    isolate: bool = False
    approve: bool | tuple[str, ...] = False
    clarification: bool = False
    variant_of: str | None = None
    tags: tuple[str, ...] = ()
    owner: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    skip: str | None = None
    xfail: Xfail | None = None
    marks: tuple[Mark, ...] = ()
    case_hash: str = ""
    ask_hash: str = ""
    sql_place: tuple[int, int] | None = None

    @property
    def statements(self) -> tuple[str, ...]:
        """Every reference SQL: of the whole case, then of its turns."""
        return (*self.sql, *(sql for turn in self.turns for sql in turn.sql))

    @property
    def prompt(self) -> str:
        """The first message ('' for a case that has only an ``input``)."""
        return self.turns[0].say if self.turns else ""
