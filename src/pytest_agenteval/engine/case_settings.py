"""What the settings and a case together decide: target, models, attempts, time; the command line wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agenteval.config.settings import Settings
from pytest_agenteval.types import NAO_KINDS

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case, PassRule


@dataclass(frozen=True, slots=True)
class CaseSettings:
    """The settings of a run, asked about a case."""

    settings: Settings

    def target_of(self, case: Case) -> str | None:
        """Return the target that a case uses instead of the fixture: command line, then the case's own."""
        if self.settings.target is not None and self.settings.source("target") == "command line":
            return self.settings.target
        return f"python:{case.agent}" if case.agent is not None else None

    def models_of(self, case: Case, *, fixture: bool) -> tuple[str, ...]:
        """Return the models a case runs with; () for one item without a model."""
        asked = self.settings.model
        if asked:
            return asked if case.models is None else tuple(m for m in asked if m in case.models)
        if case.models is not None:
            return case.models
        target = self.target_of(case) or (None if fixture else self.settings.target)
        default = self._default_model(target)
        return () if default is None else (default,)

    def is_without_model(self, case: Case) -> bool:
        """Return whether the case's ``models`` leave none of those asked for."""
        asked = self.settings.model
        return bool(asked) and case.models is not None and not set(asked) & set(case.models)

    def _default_model(self, target: str | None) -> str | None:
        if target is None:
            return None
        if target.partition(":")[0] not in (*NAO_KINDS, "llm"):
            return None
        from pytest_agenteval.llm.client import DEFAULT_MODEL

        return DEFAULT_MODEL

    def attempts_of(self, case: Case) -> tuple[int, PassRule]:
        """Return how often a case is asked and how many must pass: command line, case, then the rest."""
        from pytest_agenteval.cases.model import PassRule

        own = None if self.settings.source("k") == "command line" else case.k
        return own or self.settings.k or 1, case.pass_rule or PassRule()

    def is_reviewed(self, case: Case) -> bool | None:
        """Return whether a person approved the case as it is; ``None``: it does not say."""
        from pytest_agenteval.cases.review import review_state

        state = review_state(case)
        return None if state == "unknown" else state == "approved"

    def is_quarantined(self, case: Case) -> bool:
        """Return whether the case's verdict counts nowhere: no one approved it (``agenteval_unreviewed``).

        Without the setting that holds for cases that ``import``, ``add`` or ``draft`` wrote.
        """
        from pytest_agenteval.cases.review import is_made

        if self.is_reviewed(case) is not False:
            return False
        setting = self.settings.unreviewed
        return is_made(case) if setting is None else setting == "quarantine"

    @property
    def gated(self) -> bool:
        """Whether gates decide about failed cases (results.md, Exit codes and gates)."""
        return bool(self.settings.fail_under) or self.settings.baseline is not None

    def timeout_of(self, case: Case) -> float:
        """Return seconds an attempt may take: command line, case, then the rest."""
        if self.settings.source("timeout") == "command line" or case.timeout is None:
            return self.settings.timeout
        return case.timeout
