"""The case files of a run, and the checks that they may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.engine.context import RunContext

if TYPE_CHECKING:
    from pytest_agenteval.cases.discovery import FileClaim
    from pytest_agenteval.cases.loader import LoadedFile
    from pytest_agenteval.checks.registry import Registry


class CaseFiles:
    """Loads case files with the run's settings and remembers which have been read."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._read: dict[str, str] = {}
        self._references: dict[str | None, dict[str, None]] = {}
        self._names: dict[str, frozenset[str]] = {}

    @cached_property
    def registry(self) -> Registry:
        """The checks there are, those of plugins, of the project file and of entry points included."""
        return self._context.registry()

    def load(self, path: Path, *, claim: FileClaim, own_databases: bool, marks: Sequence[str]) -> LoadedFile:
        """Load a file's cases. ``own_databases``: a fixture defines them, so any name may be right."""
        from pytest_agenteval.cases.loader import PYTEST_MARKS, load_cases
        from pytest_agenteval.compare import parse_options

        context = self._context

        def parse(options: Mapping[str, Any]) -> Any:
            return parse_options(options, suite=context.suite_comparison)

        names = (*context.project.databases, *dict(context.settings.databases))
        loaded = load_cases(
            path,
            checks=self.registry,
            claim=claim,
            dialects={} if own_databases else context.dialects,
            hint=context.unread(path),
            root=context.home,
            strict=context.settings.strict,
            databases=None if own_databases else names,
            marks=PYTEST_MARKS | set(marks),
            parse_comparison=parse,
        )
        if loaded.cases:
            self._read[context.shown(path)] = "" if claim.speaks else claim.why
        if not loaded.errors:
            self._names[context.shown(path)] = frozenset(case.name for case in loaded.cases)
        for case in loaded.cases:
            self._references.setdefault(case.database, {}).update(dict.fromkeys(case.statements))
        return loaded

    def lacks(self, shown: str, name: str) -> bool:
        """Return whether a case is no more, given its file as reports show it: it was deleted or renamed."""
        names = self._names.get(shown)
        return name not in names if names is not None else not (self._context.root / shown).exists()

    def references(self, database: str) -> tuple[str, ...]:
        """Return the reference SQL of the cases read so far that use a database."""
        found = {**self._references.get(database, {}), **self._references.get(None, {})}
        return tuple(found)

    @property
    def read(self) -> tuple[str, ...]:
        """The files with cases that were read so far; an agent must not see them."""
        return tuple(sorted(self._read))

    def why(self, path: Path) -> str:
        """Return why a file was taken for one of cases in a project that does not mention this plugin,
        else ''.
        """
        return self._read.get(self._context.shown(path), "")
