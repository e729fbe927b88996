"""Case files into pytest items: one test function per case and model.

A case file is a ``pytest.Module`` with one synthetic function per case and model. It is the one approach
in which fixtures of every scope, parametrized and async ones included, work on pytest 8.4 to 9.2. Models
are not parameters: editors and other tools take an item with a ``callspec`` for one of a ``.py`` file.
"""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agenteval.config.project_folder import claim_rules, project_folder
from pytest_agenteval.plugin.items import AgentEvalWarning, CaseFailed, case_of, model_of, session_state
from pytest_agenteval.plugin.notes import add_note
from pytest_agenteval.plugin.options import home_of, run_of, speaks_of_us
from pytest_agenteval.support.files import shown_path

if TYPE_CHECKING:
    from pytest_agenteval.cases.discovery import ClaimRules, FileClaim
    from pytest_agenteval.cases.model import Case, Mark, Xfail
    from pytest_agenteval.engine.run import Run
    from pytest_agenteval.errors import Problem


MOST_SNIFFED = 200
"""Files outside of ``tests`` that are looked at where no case was found."""


def _template(request: pytest.FixtureRequest, **fixtures: Any) -> None:
    from pytest_agenteval.plugin.runtest import run_item

    run_item(request.node, fixtures)


class CaseFile(pytest.Module):
    """A YAML file of cases.

    ``cases`` maps the names of its functions (a pytest id, with the model in brackets) to case and
    model once the file is collected.
    """

    cases: dict[str, tuple[Case, str | None]]
    claim: FileClaim

    def _getobj(self) -> types.ModuleType:
        """Return the synthetic module the functions of this file live in."""
        return types.ModuleType(self.path.stem)

    def istestfunction(self, obj: object, name: str) -> bool:
        """Take every function we put into the module for a test, whatever its name."""
        return True

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Make one item per case and model. Raises ``CollectError`` with every problem of the file."""
        run = run_of(self.config)
        session_state(self.config).has_cases = True
        own = self.has_fixture("agenteval_databases")
        loaded = run.files.load(self.path, claim=self.claim, own_databases=own, marks=registered(self.config))
        self.cases = {}
        errors = [problem for problem in loaded.problems if problem.severity == "error"]
        errors += self._warn(loaded.warnings, run) if not errors else []
        if errors:
            raise self.CollectError("\n".join(problem.render(self.config.rootpath) for problem in errors))
        for case in loaded.cases:
            names = ["request", *self._fixture_names(case, run)]
            if self._is_parametrized(names[1:]):
                # pytest combines the parameters, in the order it has for them
                yield from self._items(case, None, [*names, "agenteval_model"])
                continue
            for model in self.models_of(case, run):
                yield from self._items(case, model, names)

    def _warn(self, problems: Sequence[Problem], run: Run) -> list[Problem]:
        """Show warnings; returns those that the warning filters make errors.

        A foreign file's fault is not a Python warning: ``error`` would stop the user's suite.
        """
        raised = []
        ours = self.claim.speaks or self.has_fixture(run.context.settings.fixture)
        for problem in problems:
            text = problem.render(self.config.rootpath)
            if not ours:
                add_note(self.config, "warnings", text)
                continue
            try:
                warnings.warn_explicit(AgentEvalWarning(text), None, str(problem.path), problem.line)
            except AgentEvalWarning:
                raised.append(problem)
        return raised

    def models_of(self, case: Case, run: Run) -> Sequence[str | None]:
        """Return the models a case runs with; one ``None`` where there is none."""
        return run.context.choices.models_of(
            case, fixture=self.has_fixture(run.context.settings.fixture)
        ) or (None,)

    def _is_parametrized(self, names: Iterable[str], seen: frozenset[str] = frozenset()) -> bool:
        """Return whether a fixture, or one that it uses, has parameters of its own."""
        for name in names:
            defined = () if name in seen else self._definitions(name)
            if defined and (
                getattr(defined[-1], "params", None) is not None
                or self._is_parametrized(defined[-1].argnames, seen | {name})
            ):
                return True
        return False

    def _items(
        self, case: Case, model: str | None, names: Sequence[str]
    ) -> Iterable[pytest.Item | pytest.Collector]:
        name = case.id if model is None else f"{case.id}[{model}]"
        self.cases[name] = (case, model)
        function = self._function(name, case, model, names)
        setattr(self.obj, name, function)
        made = self.ihook.pytest_pycollect_makeitem(collector=self, name=name, obj=function)
        for item in made if isinstance(made, list) else [made]:
            if isinstance(item, pytest.Item):
                item.extra_keyword_matches.add(case.name)
            yield item

    def _function(self, name: str, case: Case, model: str | None, names: Sequence[str]) -> types.FunctionType:
        """Make a function that asks for the case's fixtures and sits, for reports, in the YAML file."""
        code = _template.__code__.replace(
            co_filename=str(self.path), co_firstlineno=case.line, co_name=name, co_qualname=name
        )
        function = types.FunctionType(code, _template.__globals__, name)
        function.__module__ = self.obj.__name__
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        function.__signature__ = signature  # type: ignore[attr-defined]
        for mark in self._marks(case, model):
            function = mark(function)
        return function

    def _fixture_names(self, case: Case, run: Run) -> list[str]:
        wanted = [*case.setup]
        if case.isolate:
            wanted.append("agenteval_isolated_databases")
        if run.context.choices.target_of(case) is None and self.has_fixture(run.context.settings.fixture):
            wanted.append(run.context.settings.fixture)
        if self.has_fixture("agenteval_databases"):
            wanted.append("agenteval_databases")
        return list(dict.fromkeys(wanted))

    def has_fixture(self, name: str) -> bool:
        """Return whether a fixture of this name is visible to the cases of this file."""
        return bool(self._definitions(name))

    def _definitions(self, name: str) -> Sequence[Any]:
        manager = getattr(self.session, "_fixturemanager", None)
        return (manager.getfixturedefs(name, self) if manager is not None else None) or ()

    def _marks(self, case: Case, model: str | None) -> Iterator[pytest.MarkDecorator]:
        context = run_of(self.config).context
        yield pytest.mark.agenteval
        for tag in case.tags:
            self.config.addinivalue_line("markers", f"{tag}: tag of agenteval cases")
            yield getattr(pytest.mark, tag)
        for mark in case.marks:
            yield _decorator(mark)
        if case.skip is not None:
            yield pytest.mark.skip(reason=case.skip)
        elif context.settings.unreviewed == "skip" and context.choices.is_reviewed(case) is False:
            yield pytest.mark.skip(reason="nobody has approved this case (agenteval_unreviewed = skip)")
        if case.xfail is not None and (case.xfail.models is None or model in case.xfail.models):
            yield expected_failure(case.xfail)


def _decorator(mark: Mark) -> pytest.MarkDecorator:
    decorator: pytest.MarkDecorator = getattr(pytest.mark, mark.name)
    return decorator.with_args(*mark.args, **mark.kwargs) if mark.args or mark.kwargs else decorator


def expected_failure(xfail: Xfail) -> pytest.MarkDecorator:
    """Return an xfail that a wrong answer satisfies and an error of the machinery does not."""
    return pytest.mark.xfail(reason=xfail.reason, raises=CaseFailed)


def collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    """Make a collector for ``file_path`` if it holds cases."""
    from pytest_agenteval.cases.discovery import claim, near_miss

    config = parent.config
    if not config.pluginmanager.hasplugin("python"):  # -p no:python: cases are items of that plugin
        return None
    rules = claims_of(config, file_path)
    found = claim(file_path, rules, named=parent.session.isinitpath(file_path))
    if found is None:
        if (key := near_miss(file_path, rules)) is not None:
            add_note(config, "near misses", f"{shown_path(file_path, config.rootpath)} has {key!r}")
        elif rules.speaks and not rules.globs:
            session_state(config).left_alone.append(file_path)
        return None
    file: CaseFile = CaseFile.from_parent(parent, path=file_path)
    file.claim = found
    return file


def claims_of(config: pytest.Config, path: Path) -> ClaimRules:
    """Return which files are cases in this project; a project file nearer to ``path`` mentions this plugin,
    too.
    """
    state = session_state(config)
    if state.claims is None:
        globs = config.getini("agenteval_files") or ()
        state.claims = claim_rules(config.rootpath, globs, speaks_of_us(config), home_of(config).file)
    rules = state.claims
    if not rules.speaks and (file := project_folder(path.parent, rules.root).file) is not None:
        return claim_rules(rules.root, (), True, file)
    return rules


def registered(config: pytest.Config) -> list[str]:
    """Return the names of the registered marks."""
    lines: list[str] = config.getini("markers")
    return [line.split(":")[0].split("(")[0].strip() for line in lines if "tag of agenteval" not in line]


def parametrize_models(metafunc: pytest.Metafunc) -> None:
    """Make one item per model; an xfail for some models sits on their parameters."""
    case, file = case_of(metafunc.definition), metafunc.definition.parent
    if case is None or not isinstance(file, CaseFile) or model_of(metafunc.definition) is not None:
        return
    params = []
    models = file.models_of(case, run_of(metafunc.config))
    for model in models:
        xfail = case.xfail if case.xfail is not None and model in (case.xfail.models or ()) else None
        marks = [expected_failure(xfail)] if xfail is not None else []
        params.append(pytest.param(model, marks=marks, id=model))
    if models != (None,):
        metafunc.parametrize("agenteval_model", params, indirect=True)


def note_elsewhere(config: pytest.Config) -> None:
    """Name files that look like cases and lie where nobody looks for them, where no case was found."""
    from pytest_agenteval.cases.discovery import sniff

    for path in session_state(config).left_alone[:MOST_SNIFFED]:
        if "outputs" not in path.parts and (signs := sniff(path.read_bytes(), speaks=False)):
            add_note(config, "elsewhere", f"{shown_path(path, config.rootpath)} has {signs}")
