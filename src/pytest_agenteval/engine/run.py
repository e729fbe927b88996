"""``Run``: what the cases of one run share in one process, opened when first needed."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.engine.case_files import CaseFiles
from pytest_agenteval.engine.context import RunContext
from pytest_agenteval.engine.resources import Resources, resource
from pytest_agenteval.engine.unreachable import UnreachableAgents
from pytest_agenteval.errors import DatabaseError, RunStopped
from pytest_agenteval.results.journal.journal import Journal
from pytest_agenteval.results.journal.records import PlannedItem
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.support.processes import temp_prefix
from pytest_agenteval.types import NAO_KINDS

if TYPE_CHECKING:
    from pytest_agenteval.agents.base import AgentContext, RunnableAgent
    from pytest_agenteval.agents.kinds.replay import Recorder
    from pytest_agenteval.agents.runtime.runtime import AgentRuntime
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.databases import Databases
    from pytest_agenteval.llm.budget import Ledger
    from pytest_agenteval.llm.client import Models
    from pytest_agenteval.llm.file_budget import AttemptConsumption, FileBudget
    from pytest_agenteval.results.journal.resume import EarlierRun
    from pytest_agenteval.trust.explain import Explainer
    from pytest_agenteval.types import ChatModel

NO_AGENT = (
    "no agent: define a fixture named {fixture} in conftest.py, or give --agent-target "
    "(python:pkg.mod:name, command:PROGRAM, http:URL, nao:URL, llm:, replay:FILE), "
    "or agenteval_target in the ini file, or a project file"
)


class Run:
    """One run in one process: its ``context``, its case ``files``, and the ``resources`` it has opened.

    ``on_stuck`` ends the process, given the key of a call that blocks it for good; ``report`` is a file
    descriptor for where all threads are, should not even that be possible.
    """

    def __init__(
        self,
        context: RunContext,
        *,
        on_stuck: Callable[[str], None] | None = None,
        report: int | None = None,
    ) -> None:
        self.context = context
        self._on_stuck = on_stuck
        self._report = report
        self.files = CaseFiles(context)
        self.unreachable = UnreachableAgents()
        self.resources = Resources()
        self.begun = False
        self._calls = Resources()
        self._abandoned: tuple[str, ...] = ()
        self._folder: RunFolder | None = None
        self._stopped: str | None = None
        self._agents: dict[str, RunnableAgent] = {}
        self._given: dict[int, tuple[Any, Databases]] = {}
        self._file_budgets: dict[str, FileBudget] = {}

    # -- the agent --------------------------------------------------------------------------

    @resource
    def runtime(self) -> AgentRuntime:
        """Return what calls agents."""
        from pytest_agenteval.agents.runtime.deadlines import ProcessLimit
        from pytest_agenteval.agents.runtime.runtime import AgentRuntime

        runtime = AgentRuntime(
            thread=self.context.settings.thread,
            overlapping=self.context.settings.concurrency > 1,
            root=self.context.root,
            redact=self.context.redactor.text,
            on_stuck=self._on_stuck,
            limit=ProcessLimit(self._report) if self._report is not None else None,
        )

        def shutdown() -> None:
            self._abandoned += runtime.shutdown()

        self._calls.add(shutdown)
        return runtime

    def agent_of(self, case: Case, fixture: Any, place: str) -> RunnableAgent:
        """Return the agent that answers a case; ``fixture`` is what the fixture gave (``None`` without one).

        Raises ``AgentFailed`` or ``SettingsError`` where there is none or it cannot be made.
        """
        from pytest_agenteval.agents.targets import adapt, make_agent
        from pytest_agenteval.errors import AgentFailed

        settings = self.context.settings
        target = self.context.choices.target_of(case)
        if target is None and fixture is not None:
            return adapt(fixture, place, self.context.root)
        target = target or settings.target
        if target is None:
            hint = self.context.unread(case.path) + self.files.why(case.path)
            raise AgentFailed(NO_AGENT.format(fixture=settings.fixture) + hint)
        if case.agent is not None and settings.source("target") != "command line":
            self.context.require_ours(case.agent)
        with self.resources.lock:
            if target not in self._agents:
                self._agents[target] = make_agent(target, self.agent_context)
            return self._agents[target]

    @resource
    def agent_context(self) -> AgentContext:
        """Return what kinds of agents may need to build theirs."""
        from pytest_agenteval.agents.base import AgentContext

        context = self.context
        return AgentContext(
            root=context.home,
            settings=context.settings,
            redactor=context.redactor,
            project=context.project,
            models=self.models,
            databases=self.databases,
            nao_token=context.process.login,
        )

    def login(self) -> str | None:
        """Log in to the nao server that is the target; the workers of this run share the session."""
        settings = self.context.settings
        if settings.target is None or settings.run == "explicit":
            return None
        if settings.target.partition(":")[0] not in NAO_KINDS:
            return None
        from pytest_agenteval.agents.base import AgentContext
        from pytest_agenteval.agents.kinds.nao import login_for_workers

        context = AgentContext(root=self.context.home, settings=settings, redactor=self.context.redactor)
        return login_for_workers(settings.target, context)

    # -- databases, own models, budgets -----------------------------------------------------

    @resource
    def usable_databases(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return URLs by name, as configured (ini, then project file);
        and by name why others cannot be used.
        """
        return self.context.project.usable_urls(dict(self.context.settings.databases))

    @resource
    def databases(self) -> Databases:
        """Return the configured databases of this process."""
        from pytest_agenteval.databases import Databases

        urls, reasons = self.usable_databases
        for url in urls.values():
            self.context.redactor.add_named("url", url)
        settings = self.context.settings
        databases = Databases(
            urls,
            reasons,
            folder=self._private(),
            key=self.folder().key if self.context.process.local else None,
            root=self.context.root,
            timeout=settings.sql_timeout,
            max_rows=settings.sql_max_rows,
            snapshot_limit=settings.snapshot_limit,
        )
        self.resources.add(databases.close, interrupt=databases.interrupt)
        return databases

    def prepare(self, names: Iterable[str | None]) -> None:
        """Snapshot these databases before an agent can write; ``None`` means the only configured one.

        A snapshot that fails is reported by each case that needs it.
        """
        for name in dict.fromkeys(names) if any(self.usable_databases) else ():
            with suppress(DatabaseError):
                self.databases.get(name).prepare()

    def given_databases(self, given: Any, *, cached: bool) -> Databases:
        """Return the databases that a fixture gave; kept while the fixture gives the same object."""
        with self.resources.lock:
            kept = self._given.get(id(given))
            if kept is None or kept[0] is not given:
                databases = self.databases.with_given(given, cached=cached)
                self.resources.add(databases.close, interrupt=databases.interrupt)
                kept = self._given[id(given)] = (given, databases)
            return kept[1]

    @resource
    def explainer(self) -> Explainer:
        """Finds out what wrong answers did and whether right ones are right by luck."""
        from pytest_agenteval.trust.explain import Explainer

        settings = self.context.settings
        return Explainer(
            luck=settings.luck,
            asked=settings.source("luck") != "default",
            causes=settings.cause,
            constraints="; ".join(settings.constraints),
            references=self.files.references,
        )

    @resource
    def ledger(self) -> Ledger:
        """Return what the run may spend, shared by its processes."""
        from pytest_agenteval.llm.budget import Ledger

        limited = self.context.settings.budget is not None and self.context.process.local
        return Ledger(self.context.settings.budget, self._private() / "ledger.json" if limited else None)

    @resource
    def models(self) -> Models:
        """Return the run's own models: agents, extraction and judges share them."""
        from pytest_agenteval.llm.client import Models
        from pytest_agenteval.llm.http_client import HttpClient

        context = self.context
        client = HttpClient(retries=context.settings.retries, redact=context.redactor.text)
        self.resources.add(client.close, interrupt=client.abort)
        return Models(
            client,
            providers=context.project.providers,
            meta_costs=context.project.meta_costs,
            ledger=self.ledger,
            remember=context.redactor.add,
        )

    def model(self, name: str | None) -> ChatModel | None:
        """Return one of the run's own models (extraction, judge); ``None`` where none is configured."""
        return None if name is None else self.models.get(name)

    def file_budget(self, case: Case) -> AbstractContextManager[AttemptConsumption]:
        """Return a context for one attempt: what it uses counts against the budget of its file, if any."""
        from pytest_agenteval.llm.file_budget import AttemptConsumption, FileBudget
        from pytest_agenteval.support.shared_state import SharedState

        if case.file_budget is None:
            return nullcontext(AttemptConsumption())
        shown = self.context.shown(case.path)
        with self.resources.lock:
            if shown not in self._file_budgets:
                given = {name: getattr(case.file_budget, name) for name in case.file_budget.__slots__}
                limits = {name: limit for name, limit in given.items() if limit is not None}
                file = f"budget_{hashlib.sha256(shown.encode()).hexdigest()[:16]}.json"
                place = self._private() / file if self.context.process.local else None
                self._file_budgets[shown] = FileBudget(shown, limits, SharedState(place))
            return self._file_budgets[shown].attempt()

    # -- results ----------------------------------------------------------------------------

    def find_folder(self) -> RunFolder | None:
        """Return the run's folder, if any of its processes has made it."""
        return RunFolder.find(self.context.output, self.context.process.run_id)

    def folder(self) -> RunFolder:
        """Return the run's folder, made when it is first needed."""
        with self.resources.lock:
            if self._folder is None:
                found = self.find_folder() if self.context.process.local else None
                self._folder = found or self._new_folder()
            return self._folder

    def _private(self) -> Path:
        """Return where the run keeps what agents have no business with."""
        folder = self.folder()
        return folder.private if self.context.process.local else folder.path

    def _new_folder(self) -> RunFolder:
        process = self.context.process
        if not process.local:  # on another machine: for snapshots only, the lines travel
            folder = RunFolder(Path(tempfile.mkdtemp(prefix=temp_prefix())), process.run_id)
            self.resources.add(folder.remove)
            return folder
        if process.earlier is not None and Path(process.earlier).is_dir():
            return RunFolder.resume(Path(process.earlier), process.run_id)
        return RunFolder.reserve(
            self.context.output, process.started, process.run_id, goes_on_with=process.earlier
        )

    @resource
    def earlier(self) -> EarlierRun | None:
        """Return the run that this one goes on with, as it was left. Raises ``ResultsError``."""
        process = self.context.process
        if process.earlier is None:
            return None
        from pytest_agenteval.results.journal.resume import find_earlier

        self.folder()  # taken over before it is read, so that what this run writes can be distinguished
        return find_earlier(
            process.earlier,
            self.context.output,
            self.context.root,
            token=process.run_id,
            # a run that is named is the one that is meant, not the newest of several
            alone=self.context.settings.resume_from is not None,
        )

    @resource
    def journal(self) -> Journal:
        """Return this process's journal."""
        process = self.context.process
        folder = self.folder() if process.local else None
        journal = Journal(folder, process.name, redactor=self.context.redactor)
        self.resources.add(journal.close)
        return journal

    def begin(
        self, items: Callable[[], Sequence[PlannedItem]], info: Callable[[], Mapping[str, Any]]
    ) -> None:
        """Write down what is planned and what run this is, once per run, before the first case runs."""
        with self.resources.lock:
            if self.begun:
                return
            self.begun = True
            planned = items()
            if self.journal.planned(planned) and self.context.process.local:
                self.folder().write_run(info())
                for nodeid in self._gone({item.nodeid for item in planned}):
                    self.journal.gone(nodeid)

    def _gone(self, planned: Collection[str]) -> list[str]:
        """Return the items of the run that is gone on with whose cases were deleted or renamed since."""
        from pytest_agenteval.results.journal.index import index_folder

        folder = self.folder()
        if not folder.generation:
            return []
        earlier = index_folder(folder, before=folder.generation).items
        return [
            nodeid
            for nodeid, item in earlier.items()
            if nodeid not in planned and self.files.lacks(item.planned.path, item.planned.name)
        ]

    @resource
    def recorder(self) -> Recorder | None:
        """Return what keeps answers for replay, None without ``--agent-record``."""
        if self.context.settings.record is None:
            return None
        from pytest_agenteval.agents.kinds.replay import Recorder

        return Recorder(self.context.root / self.context.settings.record, self.context.redactor)

    # -- the end ----------------------------------------------------------------------------

    def stop(self, why: str) -> None:
        """Let no further call of an agent begin, in any process of the run."""
        self._stopped = why
        folder = self.find_folder() if self.context.process.local else None
        if folder is not None:
            folder.stop(why)

    def check_goes_on(self) -> None:
        """Check that the run was not stopped. Raises ``RunStopped``."""
        folder = self._folder if self.context.process.local else None
        why = self._stopped or (folder.stopped if folder is not None else None)
        if why is not None:
            raise RunStopped(f"not asked: the run was stopped ({why})")

    def abort(self) -> None:
        """End requests and queries under way: the run was interrupted."""
        self.resources.interrupt()

    def close(self) -> tuple[str, ...]:
        """End what this process has started; returns the calls that could not be ended."""
        self.resources.interrupt()
        self._calls.close()
        self.resources.close()
        process = self.context.process
        if process.local and process.name == "main" and (folder := self.find_folder()) is not None:
            folder.remove_copies()  # this process is the last; what else there is, a resumed run needs
        return self._abandoned
