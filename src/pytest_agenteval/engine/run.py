"""``Run``: the resources of one run in one process, made when they are first needed."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.config.settings import Settings
from pytest_agenteval.engine.case_settings import CaseSettings
from pytest_agenteval.engine.process import Process
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.results.journal.journal import Journal
from pytest_agenteval.results.journal.records import PlannedItem
from pytest_agenteval.results.journal.run_folder import RunFolder, output_folder
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.support.processes import temp_prefix
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.types import NAO_KINDS

if TYPE_CHECKING:
    from pytest_agenteval.agents.base import AgentContext, RunnableAgent
    from pytest_agenteval.agents.kinds.replay import Recorder
    from pytest_agenteval.agents.runtime.runtime import AgentRuntime
    from pytest_agenteval.cases.discovery import FileClaim
    from pytest_agenteval.cases.loader import LoadedFile
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.checks.registry import Registry
    from pytest_agenteval.config.project_file import Project
    from pytest_agenteval.databases import Databases
    from pytest_agenteval.llm.budget import Ledger
    from pytest_agenteval.llm.client import Models
    from pytest_agenteval.llm.file_budget import AttemptConsumption, FileBudget
    from pytest_agenteval.results.journal.resume import EarlierRun
    from pytest_agenteval.types import ChatModel

NO_AGENT = (
    "no agent: define a fixture named {fixture} in conftest.py, or give --agent-target "
    "(python:pkg.mod:name, command:PROGRAM, http:URL, nao:URL, llm:, replay:FILE), "
    "or agenteval_target in the ini file, or a project file"
)


class Run:
    """What the cases of one process share. ``register`` lets plugins add checks to the registry."""

    def __init__(
        self,
        *,
        root: Path,
        settings: Settings,
        project: Project,
        process: Process,
        register: Callable[[Registry], object],
    ) -> None:
        self.root = root
        self.settings = settings
        self.choices = CaseSettings(settings)
        self.project = project
        self.process = process
        self.redactor = Redactor()
        self.redactor.add_environment(os.environ)
        project.secrets.listen(self.redactor.add_named)
        self._register = register
        self._lock = threading.RLock()
        self._journal: Journal | None = None
        self._folder: RunFolder | None = None
        self._case_files: set[str] = set()
        self.begun, self.began = False, datetime.now(UTC)

    # -- cases ------------------------------------------------------------------------------

    @cached_property
    def registry(self) -> Registry:
        """The checks there are, those of plugins included."""
        from pytest_agenteval.checks.registry import default_registry

        registry = default_registry()
        self._register(registry)
        return registry

    def load(self, path: Path, *, claim: FileClaim, own_databases: bool, marks: Sequence[str]) -> LoadedFile:
        """The cases of a file. ``own_databases``: a fixture defines them, so any name may be right."""
        from pytest_agenteval.cases.loader import PYTEST_MARKS, load_cases
        from pytest_agenteval.compare import parse_options

        def parse(options: Mapping[str, Any]) -> Any:
            return parse_options(options, suite=self.suite_comparison)

        names = (*self.project.databases, *dict(self.settings.databases))
        loaded = load_cases(
            path,
            checks=self.registry,
            kind=claim.kind,
            claimed=claim.strict,
            root=self.root,
            strict=self.settings.strict,
            databases=None if own_databases else names,
            marks=PYTEST_MARKS | set(marks),
            parse_comparison=parse,
        )
        if loaded.cases:
            self._case_files.add(self.shown(path))
        return loaded

    @property
    def suite_comparison(self) -> Mapping[str, Any]:
        """The comparison options of every case; Polaris wants the same columns (comparison.md, Options)."""
        default = {"extra_columns": "forbid"} if self.project.kind == "pda" else {}
        return {**default, **self.project.comparison}

    def shown(self, path: Path) -> str:
        """A path as reports show it: relative to rootdir where it lies below."""
        return shown_path(path, self.root)

    @property
    def case_files(self) -> tuple[str, ...]:
        """The case files read so far; an agent must not see them."""
        return tuple(sorted(self._case_files))

    @cached_property
    def usable_databases(self) -> tuple[dict[str, str], dict[str, str]]:
        """Databases by name, as configured (ini, then project file); and why others cannot be used."""
        return self.project.usable_urls(dict(self.settings.databases))

    # -- the agent --------------------------------------------------------------------------

    @cached_property
    def runtime(self) -> AgentRuntime:
        """Calls agents."""
        from pytest_agenteval.agents.runtime.runtime import AgentRuntime

        overlapping = self.settings.concurrency > 1
        return AgentRuntime(
            thread=self.settings.thread,
            overlapping=overlapping,
            root=self.root,
            redact=self.redactor.text,
        )

    @cached_property
    def _agents(self) -> dict[str, RunnableAgent]:
        return {}

    def agent_of(self, case: Case, fixture: Any, place: str) -> RunnableAgent:
        """The agent that answers a case; ``fixture`` is what the fixture gave (``None``: there is none).

        Raises ``AgentFailed`` or ``SettingsError`` where there is none or it cannot be made.
        """
        from pytest_agenteval.agents.targets import adapt, make_agent
        from pytest_agenteval.errors import AgentFailed

        target = self.choices.target_of(case)
        if target is None and fixture is not None:
            return adapt(fixture, place, self.root)
        target = target or self.settings.target
        if target is None:
            raise AgentFailed(NO_AGENT.format(fixture=self.settings.fixture))
        with self._lock:
            if target not in self._agents:
                self._agents[target] = make_agent(target, self.agent_context)
            return self._agents[target]

    @cached_property
    def agent_context(self) -> AgentContext:
        """What kinds of agents may need to build theirs."""
        from pytest_agenteval.agents.base import AgentContext

        services = {
            "models": self.models,
            "databases": self.databases,
            "project": self.project,
            "nao_token": self.process.login,
        }
        return AgentContext(root=self.root, settings=self.settings, redactor=self.redactor, services=services)

    def login(self) -> str | None:
        """A session with the nao server that is the target, for the workers of this run to share."""
        if self.settings.target is None or self.settings.run == "explicit":
            return None
        if self.settings.target.partition(":")[0] not in NAO_KINDS:
            return None
        from pytest_agenteval.agents.base import AgentContext
        from pytest_agenteval.agents.kinds.nao import login_for_workers

        context = AgentContext(root=self.root, settings=self.settings, redactor=self.redactor)
        return login_for_workers(self.settings.target, context)

    # -- databases, models of ours ----------------------------------------------------------

    @cached_property
    def databases(self) -> Databases:
        """The configured databases of this process."""
        from pytest_agenteval.databases import Databases

        for url in self.usable_databases[0].values():
            self.redactor.add_named("url", url)
        return Databases(
            *self.usable_databases,
            folder=self.folder().path,
            root=self.root,
            timeout=self.settings.sql_timeout,
            max_rows=self.settings.sql_max_rows,
            snapshot_limit=self.settings.snapshot_limit,
        )

    def prepare(self, names: Iterable[str | None]) -> None:
        """Take the snapshots of these databases (``None``: the only one) before an agent can write.

        One that cannot be taken is told by each case that needs it.
        """
        for name in dict.fromkeys(names) if any(self.usable_databases) else ():
            with suppress(DatabaseError):
                self.databases.get(name).prepare()

    def given_databases(self, given: Any, *, cached: bool) -> Databases:
        """The databases that a fixture gave; kept while the fixture gives the same object."""
        with self._lock:
            known = self._given.get(id(given))
            if known is None or known[0] is not given:
                known = (given, self.databases.with_given(given, cached=cached))
                self._given[id(given)] = known
            return known[1]

    @cached_property
    def _given(self) -> dict[int, tuple[Any, Databases]]:
        return {}

    @cached_property
    def ledger(self) -> Ledger:
        """What the run may spend, shared by its processes."""
        from pytest_agenteval.llm.budget import Ledger

        limited = self.settings.budget is not None and self.process.local
        return Ledger(self.settings.budget, self.folder().path / "ledger.json" if limited else None)

    @cached_property
    def models(self) -> Models:
        """Our own models: agents, extraction and judges share them."""
        from pytest_agenteval.llm.client import Models
        from pytest_agenteval.llm.http_client import HttpClient

        wire = HttpClient(retries=self.settings.retries, redact=self.redactor.text)
        return Models(
            wire,
            providers=self.project.providers,
            meta_costs=self.project.meta_costs,
            ledger=self.ledger,
            remember=self.redactor.add,
        )

    def file_budget(self, case: Case) -> AbstractContextManager[AttemptConsumption]:
        """Around an attempt: what it uses counts against the budget of its file, if that has one."""
        from pytest_agenteval.llm.file_budget import AttemptConsumption, FileBudget
        from pytest_agenteval.support.shared_state import SharedState

        if case.file_budget is None:
            return nullcontext(AttemptConsumption())
        shown = self.shown(case.path)
        with self._lock:
            if shown not in self._file_budgets:
                given = {name: getattr(case.file_budget, name) for name in case.file_budget.__slots__}
                limits = {name: limit for name, limit in given.items() if limit is not None}
                file = f"budget_{hashlib.sha256(shown.encode()).hexdigest()[:16]}.json"
                place = self.folder().path / file if self.process.local else None
                self._file_budgets[shown] = FileBudget(shown, limits, SharedState(place))
            return self._file_budgets[shown].attempt()

    @cached_property
    def _file_budgets(self) -> dict[str, FileBudget]:
        return {}

    def model(self, name: str | None) -> ChatModel | None:
        """One of our own models (extraction, judge), or ``None`` where none is configured."""
        return None if name is None else self.models.get(name)

    # -- results ----------------------------------------------------------------------------

    @property
    def output(self) -> Path:
        """Where results go."""
        return output_folder(self.root, self.settings.output)

    def find_folder(self) -> RunFolder | None:
        """The run's folder, if any of its processes has made it."""
        return RunFolder.find(self.output, self.process.run_id)

    def folder(self) -> RunFolder:
        """The run's folder, made when it is first needed."""
        with self._lock:
            if self._folder is None:
                self._folder = (self.find_folder() if self.process.local else None) or self._new_folder()
            return self._folder

    def _new_folder(self) -> RunFolder:
        if not self.process.local:  # on another machine: for snapshots only, the lines travel
            return RunFolder(Path(tempfile.mkdtemp(prefix=temp_prefix())), self.process.run_id)
        earlier = self.process.earlier
        if earlier is not None and Path(earlier).is_dir():
            return RunFolder.resume(Path(earlier), self.process.run_id)
        return RunFolder.reserve(self.output, self.process.started, self.process.run_id)

    @cached_property
    def earlier(self) -> EarlierRun | None:
        """The run that this one goes on with, as it was left. Raises ``ResultsError``."""
        if self.process.earlier is None:
            return None
        from pytest_agenteval.results.journal.resume import find_earlier

        # a run that is named is the one that is meant, not the newest of several
        alone = self.settings.resume_from is not None
        return find_earlier(self.process.earlier, self.output, self.root, alone=alone)

    @property
    def journal(self) -> Journal:
        """This process's journal."""
        with self._lock:
            if self._journal is None:
                folder = self.folder() if self.process.local else None
                self._journal = Journal(folder, self.process.name, redact=self.redactor.text)
            return self._journal

    def begin(
        self, items: Callable[[], Sequence[PlannedItem]], info: Callable[[], Mapping[str, Any]]
    ) -> None:
        """Write down what is planned and what run this is, once per run, before the first case runs."""
        with self._lock:
            if self.begun:
                return
            self.begun = True
            if self.journal.planned(items()) and self.process.local:
                self.folder().write_run(info())

    def planned_item(self, case: Case, nodeid: str, model: str | None) -> PlannedItem:
        """What the journal keeps of an item before it runs."""
        k, rule = self.choices.attempts_of(case)
        xfail = case.xfail
        hit = xfail is not None and (xfail.models is None or model in xfail.models)
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
            xfail=xfail.reason if xfail is not None and hit else None,
        )

    @cached_property
    def recorder(self) -> Recorder | None:
        """Keeps answers for replay, where ``--agent-record`` asks for it."""
        if self.settings.record is None:
            return None
        from pytest_agenteval.agents.kinds.replay import Recorder

        return Recorder(self.root / self.settings.record, self.redactor)

    def close_journal(self) -> None:
        """Close the journal's file; it opens another if more is written."""
        if self._journal is not None:
            self._journal.close()

    def abort(self) -> None:
        """End requests and queries under way: the run was interrupted."""
        if "models" in self.__dict__:
            self.models.wire.abort()
        if "databases" in self.__dict__:
            self.databases.interrupt()

    def close(self) -> tuple[str, ...]:
        """End what this process has started; returns the calls that could not be ended."""
        if "models" in self.__dict__:
            self.models.wire.abort()
        abandoned = self.runtime.shutdown() if "runtime" in self.__dict__ else ()
        opened = [self.databases] if "databases" in self.__dict__ else []
        for databases in (*opened, *(found for _, found in self._given.values())):
            databases.interrupt()
            databases.close()
        if "models" in self.__dict__:
            self.models.wire.close()
        self.close_journal()
        if not self.process.local:
            if self._folder is not None:
                self._folder.remove()
        elif self.process.name == "main" and (folder := self.find_folder()) is not None:
            folder.remove_copies()  # this process is the last; what else there is, a resumed run needs
        return abandoned
