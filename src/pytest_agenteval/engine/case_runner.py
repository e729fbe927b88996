"""From a run and a case to its result: the agent is called, everything is journalled on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pytest_agenteval.checks.runner import prepare_checks
from pytest_agenteval.engine.evaluate import evaluate, references_of
from pytest_agenteval.engine.evidence import column_names, used_by
from pytest_agenteval.engine.unreachable import is_unreachable
from pytest_agenteval.errors import (
    AgentEvalError,
    AgentFailed,
    CheckFailed,
    DatabaseError,
    ExtractionFailed,
    JournalFailed,
    ReferenceFailed,
    StageError,
)
from pytest_agenteval.support import clock
from pytest_agenteval.table import Table
from pytest_agenteval.types import (
    NAO_KINDS,
    Answer,
    Attempt,
    AttemptLimits,
    CaseResult,
    Consumption,
    Evidence,
    Extraction,
    Reference,
    Task,
)

if TYPE_CHECKING:
    from pytest_agenteval.agents.base import RunnableAgent
    from pytest_agenteval.agents.runtime.call_pool import CallFuture, CallPool
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.checks.leak import AnswerKey
    from pytest_agenteval.databases import Database, Databases
    from pytest_agenteval.engine.run import Run
    from pytest_agenteval.llm.file_budget import AttemptConsumption
    from pytest_agenteval.results.journal.resume import Step
    from pytest_agenteval.types import ChatModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixtures:
    """What the user's fixtures gave an item; ``None`` without such a fixture.

    ``databases_cached``: the databases fixture lives as long as the session, so references may be
    kept. ``isolated`` is called before each attempt with its databases' URLs (``isolate``).
    """

    agent: Any = None
    agent_place: str = "fixture"
    databases: Any = None
    databases_cached: bool = False
    isolated: Callable[[Mapping[str, str]], None] | None = None


class CaseRunner:
    """One item: a case on one model in one rerun. It is the ``CaseSteps`` of a run that asks the agent."""

    def __init__(
        self, run: Run, case: Case, nodeid: str, model: str | None, rerun: int, fixtures: Fixtures
    ) -> None:
        self.run = run
        self.context = run.context
        self.case = case
        self.nodeid = nodeid
        self.model = model
        self.rerun = rerun
        self.fixtures = fixtures
        self.raised: BaseException | None = None
        self.logs: dict[int, str] = {}
        self.k, self.rule = self.context.choices.attempts_of(case)
        self.agent: RunnableAgent | None = None
        self._tried = False
        self._unreachable: str | None = None
        self._futures: dict[int, CallFuture[Answer]] = {}

    def result(self) -> CaseResult:
        """Run the case. What goes wrong is a verdict; only what ends the process is raised."""
        self.run.journal.started(self.nodeid, self.rerun)
        result = evaluate(self)
        if self._tried:
            self.run.unreachable.ended(self.model, self._unreachable)
        return result

    # -- what evaluate asks for -------------------------------------------------------------

    @cached_property
    def resumed(self) -> Mapping[int, Step]:
        """What a resumed run does with each attempt; {} for a new run."""
        if self.run.earlier is None or self.rerun:
            return {}
        item = self.context.planned_item(self.case, self.nodeid, self.model)
        return {step.number: step for step in self.run.earlier.steps(item)}

    def kept(self, number: int) -> Attempt | None:
        """Return an attempt that the run which this one goes on with has finished."""
        from pytest_agenteval.results.journal.resume import keep

        step = self.resumed.get(number)
        if step is None or step.action != "keep":
            return None
        keep(self.run.journal, self.nodeid, self.rerun, step)
        return step.attempt()

    def prepare(self) -> None:
        """Find the agent and the databases. Raises ``StageError`` when the case cannot run at all."""
        from pytest_agenteval.agents.targets import unsupported

        if not self.resumed:
            self.run.unreachable.check(self.model)
        try:
            self.agent = self.run.agent_of(self.case, self.fixtures.agent, self.fixtures.agent_place)
        except StageError:
            raise
        except AgentEvalError as error:
            self._note_failure(error)
            raise AgentFailed(str(error)) from error
        reason = unsupported(self.agent, self.case)
        if reason is not None:
            raise AgentFailed(reason)
        try:
            databases = self.databases
            if self.case.database is not None or (self.case.isolate and not databases.names):
                databases.get(self.case.database)
        except DatabaseError as error:
            raise ReferenceFailed(self._explained(error)) from error
        prepare_checks(self.case, self)

    @property
    def submitted(self) -> int:
        """How many of its calls have begun in the pool."""
        return len(self._futures)

    def can_be_asked(self) -> bool:
        """Return whether the agent and all references are available.

        Failures are reported when the case runs.
        """
        try:
            self.prepare()
            references_of(self)
        except StageError:
            return False
        return True

    def submit(self, pool: CallPool) -> None:
        """Begin the calls of all attempts that are to be asked."""
        for number in range(1, self.k + 1):
            step = self.resumed.get(number)
            if step is None or step.action == "call":
                call = partial(self._asked, number)
                self._futures[number] = pool.submit(f"{self.nodeid} attempt {number}", call)

    def ask(self, number: int) -> Answer:
        """Return the answer of an attempt, journalled as soon as it was there. Raises ``AgentFailed``."""
        future = self._futures.get(number)
        return self._asked(number) if future is None else future.result()

    def _asked(self, number: int) -> Answer:
        step = self.resumed.get(number)
        answered = step.answer() if step is not None and step.action == "judge" else None
        if answered is not None and step is not None and step.row is not None:
            # it was given then, not now: no agent is asked, and nothing is paid
            at = step.row.answered_at or ""
            self.run.journal.judged_again(self.nodeid, self.rerun, number, answered, at)
            return answered
        assert self.agent is not None
        self.run.check_goes_on()
        self.run.unreachable.check(self.model)
        timeout = self.context.choices.timeout_of(self.case)
        with self.run.file_budget(self.case) as use, self.run.ledger.call() as bill:
            self.run.journal.call(self.nodeid, self.rerun, number)
            try:
                answer = self._call(self.agent, number, timeout)
            except JournalFailed as error:
                self.run.stop(str(error).partition("; ")[0])
                raise
            except AgentFailed as error:
                if error.answer is not None:
                    error.answer = self._priced(error.answer)
                self._note_failure(error)
                self.raised = error.__cause__
                self.logs[number] = error.logs
                error.fails = bool(error.traceback) and self.context.settings.raises_fail
                self._count(use, error.answer)
                raise
            bill.cost = answer.cost
            self._count(use, answer)
        self._tried, self._unreachable = True, None
        return answer

    def _note_failure(self, error: Exception) -> None:
        """Keep why the agent could not be reached, where it could not."""
        self._tried, self._unreachable = True, str(error) if is_unreachable(error) else None

    def _count(self, use: AttemptConsumption, answer: Answer | None) -> None:
        """Hold what an attempt used against the budget of its file."""
        if self.case.file_budget is not None and answer is not None:
            used = used_by(answer, len(self.statements(answer)))
            use.add(**{name: getattr(used, name) for name in Consumption.__slots__})

    def _call(self, agent: RunnableAgent, number: int, timeout: float) -> Answer:
        def overdue() -> None:
            text = f"no answer within {timeout:g} s; the agent still blocks the main thread"
            late = Attempt(number, "error", text, stage="timeout", reason="timeout", error=text)
            self.run.journal.attempt(self.nodeid, self.rerun, late)

        def call(urls: Mapping[str, str]) -> Answer:
            task = self.task(number, urls)

            def answered(answer: Answer) -> None:
                # before anything else can go wrong: it is paid for
                priced.append(self._priced(answer))
                self.run.journal.answer(self.nodeid, self.rerun, number, priced[0])
                if self.run.recorder is not None:
                    self.run.recorder.record(task, priced[0])

            priced: list[Answer] = []
            self.run.runtime.call(
                agent,
                task,
                timeout=timeout,
                key=f"{self.nodeid} attempt {number}",
                on_overdue=overdue,
                on_answer=answered,
            )
            return priced[0]

        if not self.case.isolate:
            return call(self.databases.urls)
        with self.databases.isolate(self.case.database) as isolated:
            if self.fixtures.isolated is not None:
                self.fixtures.isolated(isolated.urls)
            answer = call(isolated.urls)
            if changed := isolated.changed():
                raise AgentFailed(f"the agent wrote to the original of {', '.join(changed)}, not to its copy")
        return answer

    def _priced(self, answer: Answer) -> Answer:
        """Return the answer with its cost, whatever kind of agent gave it."""
        known = answer.usage is None and not answer.turns
        return answer if known else self.run.models.priced(answer, self._asked_model)

    @property
    def _asked_model(self) -> str | None:
        return self.model or (self.agent.default_model if self.agent else None)

    def task(self, number: int, urls: Mapping[str, str]) -> Task:
        """Return what the agent is given: never the case's name, path, SQL or expected values."""
        case, budget = self.case, self.case.budget
        only = next(iter(urls)) if len(urls) == 1 and not self.databases.unusable else None
        return Task(
            turns=tuple(turn.say for turn in case.turns),
            model=self._asked_model,
            database=case.database or only,
            databases=dict(urls),
            caller=case.caller,
            vars=case.vars,
            context=case.context,
            approve=case.approve,
            clarification=case.clarification or case.outcome == "clarify",
            limits=AttemptLimits(
                tokens=budget.tokens if budget else None,
                cost=budget.cost if budget else None,
                tool_calls=budget.tool_calls if budget else None,
            ),
            input=case.input,
            attempt=number,
        )

    @property
    def databases(self) -> Databases:
        """The databases of this item: the fixture's, else those configured."""
        if self.fixtures.databases is None:
            return self.run.databases
        return self.run.given_databases(self.fixtures.databases, cached=self.fixtures.databases_cached)

    @property
    def database(self) -> Database:
        """The case's database. Raises ``DatabaseError``."""
        return self.databases.get(self.case.database)

    def reference(self, sql: str) -> Reference:
        """Return a reference's table. Raises ``ReferenceFailed``."""
        from pytest_agenteval.databases import outermost_order_by

        frozen = self._frozen(sql)
        try:
            table = self.database.reference(sql) if frozen is None else frozen
            keys = outermost_order_by(sql, self.database.dialect) if self.ordered else ()
        except DatabaseError as error:
            raise ReferenceFailed(self._explained(error)) from error
        return Reference(table, sql, tuple(keys or ()), frozen is not None)

    def _frozen(self, sql: str) -> Table | None:
        """Return the rows of a frozen reference, ``None`` to run it. Raises ``ReferenceFailed``."""
        wanted = self.context.settings.references
        if wanted == "live":
            return None
        from pytest_agenteval.cases.frozen_files import frozen_files
        from pytest_agenteval.databases.frozen import read_frozen, sql_hash

        path = frozen_files(self.case)[sql]
        shown = self.context.shown(path)
        mend = f"run agenteval freeze {self.context.shown(self.case.path)}"
        try:
            held = read_frozen(path)
        except FileNotFoundError:
            why = f"there is no frozen reference {shown}; {mend}"
        except (DatabaseError, OSError, UnicodeDecodeError) as wrong:
            raise ReferenceFailed(f"{wrong}; {mend} --update") from wrong
        else:
            if held.sql == sql_hash(sql):
                return held.table
            why = f"the frozen reference {shown} is of another SQL; {mend} --update"
        if wanted == "frozen":
            raise ReferenceFailed(why)
        return None

    def _explained(self, error: DatabaseError) -> str:
        """Name the project file that was not read where no database is known."""
        known: Sequence[str] = ()
        with suppress(DatabaseError):
            known = self.databases.names
        return str(error) if known else str(error) + self.context.unread(self.case.path)

    @property
    def ordered(self) -> bool:
        """Whether the order of the rows matters to this case."""
        return bool(self.comparison.get("ordered"))

    def extract(self, answer: Answer, references: Sequence[Reference]) -> Extraction:
        """Return the agent's table; of the accepted ``references`` it gets the column names, never a value.

        With several references the one whose columns an answered table has decides; without any, a
        table is looked for but no model is asked. Raises ``ExtractionFailed``.
        """
        mode = self.context.settings.extract
        accepted = column_names(references)
        if len({tuple(names) for names in accepted}) > 1:
            for names in accepted:
                with suppress(ExtractionFailed):
                    extraction = self._extract(answer, names, "auto", None)
                    if extraction.source in ("given", "matched"):
                        return extraction
        if not accepted:
            with suppress(ExtractionFailed):
                return self._extract(answer, None, "auto", None)
            return Extraction(None, "none")
        return self._extract(answer, accepted[0], mode, self.extraction_model, references)

    @property
    def extraction_model(self) -> ChatModel | None:
        """The model that writes extraction queries: the one named, else the model under test if reachable."""
        named = self.context.settings.extract_model
        if named is not None or self.agent is None or self.model is None:
            return self.run.model(named)
        configured = {provider.provider for provider in self.context.project.providers}
        reachable = self.agent.kind == "llm" or (
            self.agent.kind in NAO_KINDS and self.model.partition(":")[0] in configured
        )
        return self.run.model(self.model) if reachable else None

    def _extract(
        self,
        answer: Answer,
        names: Sequence[str] | None,
        mode: str,
        model: ChatModel | None,
        references: Sequence[Reference] = (),
    ) -> Extraction:
        from pytest_agenteval.extraction.model_extraction import ExtractionLimits
        from pytest_agenteval.extraction.steps import extract

        settings = self.context.settings
        limits = ExtractionLimits(
            timeout=settings.sql_timeout,
            max_rows=settings.sql_max_rows,
            deadline=clock.monotonic() + self.context.choices.timeout_of(self.case),
        )
        return extract(
            answer,
            mode=mode,
            expected_columns=names,
            question=self.case.prompt,
            sql_tools=settings.sql_tools,
            aliases=self.comparison.get("column_aliases"),
            model=model,
            limits=limits,
            rerun=self._rerun if settings.rerun and self._has_database else None,
            fits=lambda table: self._fits(table, references),
        )

    @property
    def _has_database(self) -> bool:
        """Whether there is a database of the case that the agent's statement may be run on."""
        try:
            return self.database is not None
        except DatabaseError:
            return False

    def _rerun(self, sql: str) -> Table:
        """Return the table of the agent's statement on the snapshot,
        under the guard and limits of references.
        """
        return self.database.query(sql)

    def _fits(self, table: Table, references: Sequence[Reference]) -> bool:
        """Return whether a table passes the comparison with one of the references."""
        from pytest_agenteval.compare import compare, parse_options

        options = parse_options(self.comparison)
        return any(
            compare(reference.table, table, options.with_order(reference.order_by)).matched
            for reference in references
        )

    @cached_property
    def comparison(self) -> Mapping[str, Any]:
        """The case's comparison options over those of the suite."""
        from pytest_agenteval.checks.data import suite_options

        return suite_options(self.context.suite_comparison, self.case.comparison)

    def statements(self, answer: Answer) -> Any:
        """Return the statements the agent really executed."""
        from pytest_agenteval.extraction.executed_queries import executed_queries, statements

        return statements(executed_queries(answer, self.context.settings.sql_tools))

    def unread(self, answer: Answer) -> Any:
        """Return tool calls that look like SQL but are not configured as SQL tools.

        None where ``agenteval_sql_tools`` is set.
        """
        from pytest_agenteval.extraction.executed_queries import unread_calls

        named = self.context.settings.source("sql_tools") != "default"
        return () if named else unread_calls(answer, self.context.settings.sql_tools)

    def leak(self, answer: Answer) -> str | None:
        """Return how the answer key was read, if it was."""
        from pytest_agenteval.checks.leak import key_read

        return key_read(answer, self._key)

    def listed(self, answer: Answer) -> str | None:
        """Return how names of the answer key were listed, if they were."""
        from pytest_agenteval.checks.leak import key_listed

        return key_listed(answer, self._key)

    @cached_property
    def _key(self) -> AnswerKey:
        """What the agent must not read."""
        from pytest_agenteval.checks.leak import AnswerKey, key_files

        case = self.case
        tables = [case.expected, *(turn.expected for turn in case.turns)]
        expected = [
            (name, str(value))
            for table in tables
            if table is not None
            for row in table.rows(50)
            for name, value in zip(table.names, row, strict=True)
            if value is not None
        ]
        files = (*self.run.files.read, *key_files(case.path, self.context.root))
        return AnswerKey(files, case.statements, tuple(dict.fromkeys(expected)))

    def explained(self, attempt: Attempt, evidence: Evidence) -> Attempt:
        """The attempt with what is found out about its verdict; nothing is loaded where nothing is asked."""
        from pytest_agenteval.engine.explaining import explained

        return explained(self, attempt, evidence)

    def on_attempt(self, attempt: Attempt) -> None:
        """Journal an attempt."""
        self.run.journal.attempt(self.nodeid, self.rerun, attempt)

    # -- services for checks ----------------------------------------------------------------

    @property
    def root(self) -> str:
        """The project's folder."""
        return str(self.context.home)

    @property
    def judge(self) -> ChatModel | None:
        """The judge, where one is configured."""
        return self.run.model(self.context.settings.judge_model)

    def schema(self) -> Mapping[str, Sequence[str]]:
        """Return column names by ``schema.table``: of the case's database, of all where it names none.

        {} where no database is configured. Raises ``CheckFailed`` when one cannot be read.
        """
        merged: dict[str, list[str]] = {}
        try:
            for database in self._possible_databases():
                for table, columns in database.schema().items():
                    names = merged.setdefault(table, [])
                    names += [column for column in columns if column not in names]
        except DatabaseError as error:
            raise CheckFailed(f"the columns of the tables are not known: {error}") from error
        return merged

    def dialect(self) -> str | None:
        """Return the sqlglot dialect of the case's database; where it names none, the one that all share.

        Raises ``CheckFailed`` when there are several and they differ.
        """
        dialects = {database.name: database.dialect for database in self._possible_databases()}
        if len(set(dialects.values())) > 1:
            shown = ", ".join(f"{name} ({dialect})" for name, dialect in dialects.items())
            raise CheckFailed(
                f"which SQL did the agent write? there are several databases, {shown}: "
                "name the case's `database`, or the `dialect` of a sql check"
            )
        return next(iter(dialects.values()), None)

    def _possible_databases(self) -> list[Database]:
        """Return the databases whose tables the agent may have read."""
        names = self.databases.names if self.case.database is None else (self.case.database,)
        return [self.databases.get(name) for name in names]

    def resolve(self, reference: str) -> Any:
        """Return the object behind ``pkg.mod:name``. Raises ``SettingsError`` for one of another project."""
        from pytest_agenteval.support.importing import load_object

        self.context.require_ours(reference)
        return load_object(reference, self.context.home)
