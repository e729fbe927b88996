"""Case files into pytest items: one test function per case, parametrized by model.

A case file is a ``pytest.Module`` with one synthetic function per case. It is the one approach in
which fixtures of every scope, parametrized and async ones included, work on pytest 8.4 to 9.2.
"""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agenteval.plugin.items import AgentEvalWarning, CaseFailed, case_of, session_state
from pytest_agenteval.plugin.options import run_of

if TYPE_CHECKING:
    from pytest_agenteval.cases.discovery import FileClaim
    from pytest_agenteval.cases.model import Case, Mark, Xfail
    from pytest_agenteval.engine.run import Run


def _template(request: pytest.FixtureRequest, **fixtures: Any) -> None:
    from pytest_agenteval.plugin.runtest import run_item

    run_item(request.node, fixtures)


class CaseFile(pytest.Module):
    """A YAML file of cases. ``cases`` maps pytest ids to cases once it is collected."""

    cases: dict[str, Case]
    claim: FileClaim

    def _getobj(self) -> types.ModuleType:
        """The synthetic module the functions of this file live in."""
        return types.ModuleType(self.path.stem)

    def istestfunction(self, obj: object, name: str) -> bool:
        """Every function we put into the module is a test, whatever its name."""
        return True

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """One item per case and model. Raises ``CollectError`` with every problem of the file."""
        run = run_of(self.config)
        session_state(self.config).has_cases = True
        own = self.has_fixture("agenteval_databases")
        loaded = run.files.load(self.path, claim=self.claim, own_databases=own, marks=registered(self.config))
        self.cases = {case.id: case for case in loaded.cases}
        errors = [problem for problem in loaded.problems if problem.severity == "error"]
        if errors:
            raise self.CollectError("\n".join(problem.render(self.config.rootpath) for problem in errors))
        for problem in loaded.problems:
            text = problem.render(self.config.rootpath)
            warnings.warn_explicit(AgentEvalWarning(text), None, str(problem.path), problem.line)
        for case in loaded.cases:
            yield from self._items(case, run)

    def _items(self, case: Case, run: Run) -> Iterable[pytest.Item | pytest.Collector]:
        function = self._function(case, run)
        setattr(self.obj, case.id, function)
        made = self.ihook.pytest_pycollect_makeitem(collector=self, name=case.id, obj=function)
        for item in made if isinstance(made, list) else [made]:
            if isinstance(item, pytest.Item):
                item.extra_keyword_matches.add(case.name)
            yield item

    def _function(self, case: Case, run: Run) -> types.FunctionType:
        """A function that asks for the case's fixtures and sits, for reports, in the YAML file."""
        code = _template.__code__.replace(
            co_filename=str(self.path), co_firstlineno=case.line, co_name=case.id, co_qualname=case.id
        )
        function = types.FunctionType(code, _template.__globals__, case.id)
        function.__module__ = self.obj.__name__
        names = ["request", *self._fixture_names(case, run)]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        function.__signature__ = signature  # type: ignore[attr-defined]
        for mark in self._marks(case):
            function = mark(function)
        return function

    def _fixture_names(self, case: Case, run: Run) -> list[str]:
        wanted = [*case.setup]
        if run.context.choices.models_of(case, fixture=self.has_fixture(run.context.settings.fixture)):
            wanted.append("agenteval_model")
        if case.isolate:
            wanted.append("agenteval_isolated_databases")
        if run.context.choices.target_of(case) is None and self.has_fixture(run.context.settings.fixture):
            wanted.append(run.context.settings.fixture)
        if self.has_fixture("agenteval_databases"):
            wanted.append("agenteval_databases")
        return list(dict.fromkeys(wanted))

    def has_fixture(self, name: str) -> bool:
        """Whether a fixture of this name is visible to the cases of this file."""
        manager = getattr(self.session, "_fixturemanager", None)
        return bool(manager and manager.getfixturedefs(name, self))

    def _marks(self, case: Case) -> Iterator[pytest.MarkDecorator]:
        yield pytest.mark.agenteval
        for tag in case.tags:
            self.config.addinivalue_line("markers", f"{tag}: tag of agenteval cases")
            yield getattr(pytest.mark, tag)
        for mark in case.marks:
            yield _decorator(mark)
        if case.skip is not None:
            yield pytest.mark.skip(reason=case.skip)
        if case.xfail is not None and case.xfail.models is None:
            yield expected_failure(case.xfail)


def _decorator(mark: Mark) -> pytest.MarkDecorator:
    decorator: pytest.MarkDecorator = getattr(pytest.mark, mark.name)
    return decorator.with_args(*mark.args, **mark.kwargs) if mark.args or mark.kwargs else decorator


def expected_failure(xfail: Xfail) -> pytest.MarkDecorator:
    """An xfail that a wrong answer satisfies and an error of the machinery does not."""
    return pytest.mark.xfail(reason=xfail.reason, raises=CaseFailed)


def collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    """A collector for ``file_path`` if it holds cases."""
    from pytest_agenteval.cases.discovery import claim

    config = parent.config
    globs = config.getini("agenteval_files") or ()
    found = claim(file_path, root=config.rootpath, globs=globs, named=parent.session.isinitpath(file_path))
    if found is None:
        return None
    file: CaseFile = CaseFile.from_parent(parent, path=file_path)
    file.claim = found
    return file


def registered(config: pytest.Config) -> list[str]:
    """The names of the registered marks."""
    lines: list[str] = config.getini("markers")
    return [line.split(":")[0].split("(")[0].strip() for line in lines if "tag of agenteval" not in line]


def parametrize_models(metafunc: pytest.Metafunc) -> None:
    """One item per model; an xfail for some models sits on their parameters."""
    case = case_of(metafunc.definition)
    if case is None or "agenteval_model" not in metafunc.fixturenames:
        return
    run = run_of(metafunc.config)
    file = metafunc.definition.parent
    assert isinstance(file, CaseFile)
    models = run.context.choices.models_of(case, fixture=file.has_fixture(run.context.settings.fixture))
    params = []
    for model in models:
        hit = case.xfail is not None and case.xfail.models is not None and model in case.xfail.models
        marks = [expected_failure(case.xfail)] if hit and case.xfail else []
        params.append(pytest.param(model, marks=marks, id=model))
    metafunc.parametrize("agenteval_model", params, indirect=True)
