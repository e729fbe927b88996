"""``RunContext``: what is fixed for the cases of one run in one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.config.settings import Settings
from pytest_agenteval.engine.case_settings import CaseSettings
from pytest_agenteval.engine.process import Process
from pytest_agenteval.results.journal.records import PlannedItem
from pytest_agenteval.results.journal.run_folder import output_folder
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.support.redaction import Redactor

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.checks.registry import Registry
    from pytest_agenteval.config.project_file import Project


def environment_redactor(project: Project) -> Redactor:
    """Return a redactor that knows the secrets of the environment and of the project file."""
    redactor = Redactor()
    redactor.add_environment(os.environ)
    project.secrets.listen(redactor.add_named)
    return redactor


def no_checks(registry: Registry) -> None:
    """Register no checks beside the built-in ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Where a run works, with which settings, as which process.

    ``register`` lets plugins add checks to the registry.
    """

    root: Path
    settings: Settings
    project: Project
    process: Process
    redactor: Redactor
    register: Callable[[Registry], object] = no_checks
    choices: CaseSettings = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", CaseSettings(self.settings))

    @property
    def suite_comparison(self) -> Mapping[str, Any]:
        """The comparison options of every case; Polaris wants the same columns (comparison.md, Options)."""
        default = {"extra_columns": "forbid"} if self.project.kind == "pda" else {}
        return {**default, **self.project.comparison}

    @property
    def output(self) -> Path:
        """Where results go."""
        return output_folder(self.root, self.settings.output)

    def shown(self, path: Path) -> str:
        """Return a path as reports show it: relative to rootdir where it lies below."""
        return shown_path(path, self.root)

    def planned_item(self, case: Case, nodeid: str, model: str | None) -> PlannedItem:
        """Return what the journal keeps of an item before it runs."""
        k, rule = self.choices.attempts_of(case)
        xfail = case.xfail
        expected = xfail is not None and (xfail.models is None or model in xfail.models)
        return PlannedItem(
            nodeid=nodeid,
            path=self.shown(case.path),
            name=case.name,
            model=model or self.settings.target or self.settings.fixture,
            k=k,
            pass_rule=rule,
            case_hash=case.case_hash,
            ask_hash=case.ask_hash,
            prompt=case.prompt,
            turns=tuple(turn.say for turn in case.turns),
            database=case.database,
            tags=case.tags,
            owner=case.owner,
            outcome=case.outcome,
            xfail=xfail.reason if xfail is not None and expected else None,
        )
