"""``CaseSteps``: the seam between the order of a case's steps (``evaluate``) and the one that carries them
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pytest_agenteval.cases.model import Case, PassRule
from pytest_agenteval.types import (
    Answer,
    Attempt,
    Evidence,
    Extraction,
    Reference,
    Services,
    Statement,
    UnreadCall,
)


class CaseSteps(Services, Protocol):
    """One case on one model, and how each step of it is carried out.

    ``CaseRunner`` asks the agent and runs the SQL, ``SavedCase`` reads what a results file holds. Checks
    get the same object as their ``Services``.
    """

    @property
    def case(self) -> Case:
        """The case."""

    @property
    def k(self) -> int:
        """How many attempts it has."""

    @property
    def rule(self) -> PassRule:
        """How many of them must pass."""

    @property
    def comparison(self) -> Mapping[str, Any]:
        """Its comparison options over those of the suite."""

    def kept(self, number: int, /) -> Attempt | None:
        """Return attempt ``number`` (from 1) where a resumed run has it already."""

    def prepare(self) -> None:
        """Find the agent and the databases. Raises ``StageError`` when the case cannot run at all."""

    def ask(self, number: int, /) -> Answer:
        """Return the answer of an attempt, recorded before it is returned. Raises ``AgentFailed``."""

    def reference(self, sql: str, /) -> Reference:
        """Return the table of a reference. Raises ``ReferenceFailed``."""

    def extract(self, answer: Answer, references: Sequence[Reference], /) -> Extraction:
        """Return the agent's table; of the accepted ``references`` it gets the column names, never a value.

        Raises ``ExtractionFailed``.
        """

    def statements(self, answer: Answer, /) -> Sequence[Statement]:
        """Return the statements that the agent executed."""

    def unread(self, answer: Answer, /) -> Sequence[UnreadCall]:
        """Return calls that may have executed others."""

    def leak(self, answer: Answer, /) -> str | None:
        """Return how the answer key was read (``None``: it was not)."""

    def listed(self, answer: Answer, /) -> str | None:
        """Return how names of the answer key were listed without being read (``None``: they were not)."""

    def explained(self, attempt: Attempt, evidence: Evidence, /) -> Attempt:
        """The attempt with what is found out about its verdict: luck, cause, what differs in the SQL."""

    def on_attempt(self, attempt: Attempt, /) -> None:
        """Record an attempt that has ended."""
