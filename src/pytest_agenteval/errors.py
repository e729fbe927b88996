"""Errors of pytest-agenteval.

::

    AgentEvalError
    ├── SettingsError            an option, ini value or project file is wrong (pytest: usage error, exit 4)
    │   └── VariableMissing      an environment variable that a project file names is not set
    ├── ResultsError             a results file or a run's folder cannot be read or used
    ├── JournalFailed            a run's folder takes no more lines: the run ends, nothing more is paid for
    └── StageError               a part of the machinery failed while a case ran: verdict ``error``
        ├── ReferenceFailed      the reference SQL could not be run            stage reference
        ├── AgentFailed          the agent raised, or could not be reached     stage agent
        │   ├── AgentTimeout     the agent did not answer before its deadline  stage timeout
        │   └── BudgetSpent      the run's budget allows no call: verdict ``not_run``
        ├── ExtractionFailed     no table could be chosen from the answer      stage extraction
        ├── ComparisonFailed     the comparison itself broke                   stage comparison
        └── CheckFailed          a check could not be carried out              stage checks
            └── JudgeFailed      a judge was missing or answered nonsense      stage checks
    DatabaseError                a database refused; the caller turns it into a StageError

A wrong answer is never one of these: it is a value (``Comparison``, ``CheckResult``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_agenteval.types import Answer, Stage, Usage


class AgentEvalError(Exception):
    """Base of everything this package raises on purpose."""


class SettingsError(AgentEvalError):
    """An option, an ini value, an environment variable or a project file has a bad value."""


class VariableMissing(SettingsError):
    """A value that is needed now names an environment variable that is not set."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong in a file, with its place.

    ``line`` and ``column`` count from 1; ``severity`` is ``error``, ``warning`` or ``note``.
    """

    path: Path
    line: int
    column: int
    text: str
    severity: str = "error"

    def render(self, root: Path | None = None) -> str:
        """Return ``tests/x.yml:12:3: text``, the path relative to ``root`` where it lies below it."""
        shown = self.path
        if root is not None and self.path.is_relative_to(root):
            shown = self.path.relative_to(root)
        return f"{shown.as_posix()}:{self.line}:{self.column}: {self.text}"


class ResultsError(AgentEvalError):
    """A results file or a run's folder cannot be read or used; the text names it and says why."""


class JournalFailed(AgentEvalError):
    """A run's folder takes no more lines; the text says why, and where they went instead."""


class RunStopped(AgentEvalError):
    """The run was stopped (-x, Ctrl-C, a full disk): no further call begins, the attempt is ``not_run``."""


class StageError(AgentEvalError):
    """The machinery failed at ``stage``; the attempt ends in verdict ``error`` with ``reason``."""

    stage: Stage = "checks"
    reason: str = "error"


class ReferenceFailed(StageError):
    """The reference SQL is broken, not a single SELECT, too slow, too large, or not to be reached."""

    stage = "reference"
    reason = "reference_error"


class AgentFailed(StageError):
    """The agent raised or could not be reached; ``__cause__`` is what it raised, where it did.

    ``answer`` is what there was until then, where anything is known: requests on the wire, tool
    calls, tokens and cost already spent. ``logs`` is what the agent printed and logged before, where
    calls overlap; ``duration_ms`` how long the call took, where it was begun; ``traceback`` the agent's own
    frames and causes as text, where it raised. ``fails``: it counts as a wrong answer
    (``--agent-raises-fail``).
    """

    fails: bool = False
    logs: str = ""
    traceback: str = ""
    duration_ms: float | None = None
    stage: Stage = "agent"
    reason = "agent_error"

    def __init__(self, *args: object, answer: Answer | None = None) -> None:
        super().__init__(*args)
        self.answer = answer


class AgentTimeout(AgentFailed):
    """The agent did not answer before the attempt's deadline."""

    stage: Stage = "timeout"
    reason = "timeout"


class BudgetSpent(AgentFailed):
    """The run's budget allows no further call: the attempt is ``not_run``, neither right nor wrong."""

    reason = "budget"


class ExtractionFailed(StageError):
    """The answer's table could not be decided; the text says what to configure.

    ``usage`` and ``cost`` (USD) are what a model had used until then.
    """

    stage = "extraction"
    reason = "extraction_failed"

    def __init__(self, *args: object, usage: Usage | None = None, cost: float | None = None) -> None:
        super().__init__(*args)
        self.usage = usage
        self.cost = cost


class ComparisonFailed(StageError):
    """The comparison itself broke (a defect of this plugin, never of the answer)."""

    stage = "comparison"
    reason = "comparison_failed"


class CheckFailed(StageError):
    """A check could not be carried out."""

    stage = "checks"
    reason = "check_failed"


class JudgeFailed(CheckFailed):
    """No judge is configured, or the judge did not answer in the form it was asked for."""

    reason = "judge"


class DatabaseError(AgentEvalError):
    """A database could not be opened or a statement was refused, timed out or gave too many rows."""


class QueryLimitReached(DatabaseError):
    """A query was ended at its limit of time or rows: a fault of the limits, not of the statement."""
