"""``RunContext``: what is fixed for the cases of one run in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.config.project_folder import claim_rules, unread_note
from pytest_agenteval.config.settings import Settings
from pytest_agenteval.databases.sources import dialects_of
from pytest_agenteval.engine.case_settings import CaseSettings
from pytest_agenteval.engine.process import Process
from pytest_agenteval.results.journal.records import PlannedItem
from pytest_agenteval.results.journal.run_folder import output_folder
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.support.redaction import Redactor

if TYPE_CHECKING:
    from pytest_agenteval.cases.discovery import ClaimRules
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.checks.registry import FindMore, Registry
    from pytest_agenteval.config.project_file import Project


def no_checks(registry: Registry) -> None:
    """Register no checks beside the built-in ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Where a run works, with which settings, as which process.

    ``root`` is pytest's rootdir. ``register`` lets plugins add checks to the registry; ``find_checks``
    finds those that are not built in where pytest does not run its hooks. ``speaks``:
    something in the project is ours (``discovery.ClaimRules``).
    """

    root: Path
    settings: Settings
    project: Project
    process: Process
    redactor: Redactor
    register: Callable[[Registry], object] = no_checks
    find_checks: FindMore | None = None
    speaks: bool = True
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
        return output_folder(self.root, self.settings.output, self.home)

    @property
    def home(self) -> Path:
        """The folder of the project file, rootdir where there is none: what is named there lies below it."""
        return self.project.root

    @property
    def claims(self) -> ClaimRules:
        """Which files are cases."""
        return claim_rules(self.root, self.settings.files, self.speaks, self.project.path)

    @property
    def dialects(self) -> Mapping[str, str]:
        """The SQL that each database speaks, where its URL can be made."""
        return dialects_of(self.project.usable_urls(dict(self.settings.databases))[0])

    def registry(self) -> Registry:
        """Return the checks there are, those of plugins, of the project file and of entry points included."""
        from pytest_agenteval.checks.registered import add_named
        from pytest_agenteval.checks.registry import default_registry

        named = partial(add_named, references=self.project.checks, root=self.home)
        registry = default_registry(self.find_checks or named)
        self.register(registry)
        return registry

    def unread(self, path: Path) -> str:
        """Say that another project file lies nearer to a case than the one of this run ('': none does)."""
        return unread_note(path, self.root, self.home)

    def require_ours(self, reference: str) -> None:
        """Raise ``SettingsError`` for an object that a case file must not name: one of another project."""
        from pytest_agenteval.errors import SettingsError
        from pytest_agenteval.support.importing import outsider

        why = outsider(reference, self.root, self.home, self.settings.trusted_modules)
        if why is not None:
            raise SettingsError(why)

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
            model=model or self.redactor.text(self.settings.target or self.settings.fixture),
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
            reviewed=self.choices.is_reviewed(case),
            known=case.metadata.get("known") is True,
            quarantined=self.choices.is_quarantined(case),
        )
