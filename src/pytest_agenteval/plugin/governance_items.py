"""``--agent-validate``: what ``agenteval validate`` finds, as test items.

Every finding is an item, ``policies/policy.yml::validate[1:17]``: an error fails, a warning is
skipped with its text (under ``--agent-strict`` it fails). A file without findings has one item that
passes, so that a report shows that it was looked at.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.errors import Problem
from pytest_agenteval.plugin.options import run_of


class FindingItem(pytest.Item):
    """One finding about a governance file (``None``: there are none)."""

    def __init__(self, *, problem: Problem | None = None, strict: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self.problem = problem
        self.strict = strict

    def runtest(self) -> None:
        """Fail for an error, skip for a warning."""
        if self.problem is None:
            return
        text = self.problem.render(self.config.rootpath)
        if self.problem.severity == "error" or self.strict:
            pytest.fail(text, pytrace=False)
        pytest.skip(text)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the place of the finding."""
        return self.path, self.problem.line - 1 if self.problem is not None else None, self.name


class GovernanceFile(pytest.File):
    """A governance file, with a list of its findings."""

    problems: tuple[Problem, ...] = ()
    strict: bool = False

    def collect(self) -> list[FindingItem]:
        """Return one item per finding, else one for the file."""
        if not self.problems:
            return [FindingItem.from_parent(self, name="validate")]
        names: dict[str, int] = defaultdict(int)
        items = []
        for problem in self.problems:
            name = f"validate[{problem.line}:{problem.column}]"
            names[name] += 1
            if names[name] > 1:
                name = f"validate[{problem.line}:{problem.column}-{names[name]}]"
            items.append(FindingItem.from_parent(self, name=name, problem=problem, strict=self.strict))
        return items


def add_findings(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Validate the project and put an item per finding behind the others."""
    from pytest_agenteval.governance.schemas import ask_databases
    from pytest_agenteval.governance.validate import validate

    run = run_of(session.config)
    sources, unusable = run.usable_databases
    schemas, _ = ask_databases(sources, run.context.root, run.context.settings)
    # without configured databases a fixture may define them: which there are is not known
    found = validate(run.context.root, [*sources, *unusable] or None, schemas)
    by_file: dict[Path, list[Problem]] = {path: [] for path in found.files}
    for problem in found.problems:
        by_file.setdefault(problem.path, []).append(problem)
    for path, problems in by_file.items():
        node = GovernanceFile.from_parent(session, path=path)
        node.problems, node.strict = tuple(problems), run.context.settings.strict
        items += node.collect()
