"""Judging saved answers again: the project's cases, the saved tables, no agent."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.checks.judge import JUDGED
from pytest_agenteval.engine.case_runner import CaseRunner, Fixtures
from pytest_agenteval.engine.flips import Flip, flip_of
from pytest_agenteval.results.document.document import Document, from_folder
from pytest_agenteval.results.document.entries import has_answer, upgraded
from pytest_agenteval.results.document.load import answer_of, findings_of, table_of
from pytest_agenteval.results.document.rows import Row
from pytest_agenteval.results.document.verdicts import VERDICT_CONTRACT, parse_rule
from pytest_agenteval.results.journal.journal import Journal
from pytest_agenteval.results.journal.records import PlannedItem
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.support.processes import temp_prefix
from pytest_agenteval.types import Answer, Attempt, CheckResult, Evidence, Extraction, Reference

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case, ParsedCheck
    from pytest_agenteval.engine.run import Run

NAO_ROWS = 100
"""nao cuts its tables there without saying so."""


class NotRescorable(Exception):
    """Raised for an entry that cannot be rescored; the reason is reported with a count."""


@dataclass(slots=True)
class Rescored:
    """What rescoring did: ``kept`` counts by reason what was not judged again, ``flips`` are new verdicts.

    ``contracts`` are the versions of the rules, before and now.
    """

    contracts: tuple[str, str]
    kept: Counter[str] = field(default_factory=Counter)
    flips: list[Flip] = field(default_factory=list)


@contextmanager
def rescored_document(old: Document, place: Path) -> Iterator[tuple[Document, Rescored]]:
    """Provide the document with every verdict made anew, and what that did.

    It is read from temporary files: write it inside the ``with``. ``place`` lies in the project whose
    cases are used. Raises ``SettingsError`` for a project that cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix=temp_prefix()) as name:
        folder = RunFolder.reserve(Path(name) / "outputs", datetime.now())
        rescorer = _Rescorer(_run(place, Path(name)))
        try:
            with Journal(folder, "main") as journal:
                done = _judge_all(old, rescorer, journal)
        finally:
            rescorer.run.close()
        started = {"started_at": old.header.get("started_at") or old.header.get("timestamp")}
        again = {"rescored": len(old.rows) - sum(done.kept.values()), "verdict_contract": VERDICT_CONTRACT}
        folder.write_run({**old.run, **started, **again})
        yield from_folder(folder), done


def _judge_all(old: Document, rescorer: _Rescorer, journal: Journal) -> Rescored:
    done = Rescored((str(old.run.get("verdict_contract") or "1"), VERDICT_CONTRACT))
    rows = {nodeid_of(row): row for row in old.rows}
    items = {nodeid: rescorer.planned(row, nodeid) for nodeid, row in rows.items()}
    journal.planned(list(items.values()))
    for row, entry in zip(old.rows, old.entries(), strict=True):
        nodeid = nodeid_of(row)
        journal.started(nodeid)
        journal.imported(nodeid, 0, row.attempt, _with_moment(upgraded(entry, row), old))
        try:
            attempt = rescorer.attempt(row, entry)
        except NotRescorable as reason:
            done.kept[str(reason)] += 1
        else:
            journal.attempt(nodeid, 0, attempt)
            flip = flip_of(row, entry, attempt, items[nodeid].case_hash)
            done.flips += [flip] if flip is not None else []
    for skip in old.run.get("skipped") or ():
        journal.skipped(skip["nodeid"], skip["reason"])
    return done


def _with_moment(entry: dict[str, Any], old: Document) -> dict[str, Any]:
    """Return an entry of another program knows no moment of its answer: that of its file."""
    if entry.get("answered_at") is not None or not has_answer(entry["details"]):
        return entry
    try:
        stamp = datetime.fromisoformat(str(old.header.get("timestamp")))
    except ValueError:
        return entry
    return {**entry, "answered_at": stamp.astimezone().isoformat()}


def nodeid_of(row: Row) -> str:
    """Return the row's id; files of other programs know none."""
    return row.nodeid or f"{row.path}::{row.name}[{row.model}]"


def _run(place: Path, scratch: Path) -> Run:
    from pytest_agenteval.config.known_secrets import redactor_of
    from pytest_agenteval.config.location import find_place
    from pytest_agenteval.engine.context import RunContext
    from pytest_agenteval.engine.process import Process
    from pytest_agenteval.engine.run import Run

    found = find_place([place])
    settings = replace(found.settings, output=str(scratch / "databases"))
    now = f"{datetime.now():%Y%m%d_%H%M%S}"
    return Run(
        RunContext(
            root=found.root,
            settings=settings,
            project=found.project,
            process=Process("rescore", "rescore", now),
            redactor=redactor_of(found.project, settings),
            speaks=found.speaks,
            find_checks=found.find_checks,
        )
    )


@dataclass(slots=True)
class _Rescorer:
    """Judges one entry after the other; case files are read once."""

    run: Run
    files: dict[str, Mapping[str, Case]] = field(default_factory=dict)

    def planned(self, row: Row, nodeid: str) -> PlannedItem:
        """Return the item as the project has it now, else as the results say it was."""
        item = PlannedItem(
            nodeid=nodeid,
            path=row.path,
            name=row.name,
            model=row.model,
            k=row.k,
            pass_rule=parse_rule(row.pass_rule),
            case_hash=row.case_hash,
            ask_hash=row.ask_hash,
            tags=row.tags,
            xfail=row.xfail,
        )
        try:
            case = self.case(row)
        except NotRescorable:
            return item
        now = self.run.context.planned_item(case, nodeid, row.model)
        return replace(now, model=row.model, name=row.name, path=row.path, k=row.k)

    def case(self, row: Row) -> Case:
        """Return the case of a row. Raises ``NotRescorable``."""
        cases = self._cases(row.path) if row.path else self._everywhere()
        case = cases.get(row.name)
        if case is None:
            raise NotRescorable(f"no case {row.name!r} in {row.path or 'the project'}")
        return case

    def _cases(self, path: str) -> Mapping[str, Case]:
        if path not in self.files:
            from pytest_agenteval.cases.discovery import claim

            place = self.run.context.root / path
            if not place.is_file():
                raise NotRescorable(f"{path} is gone")
            claimed = claim(place, self.run.context.claims, named=True)
            if claimed is None:
                raise NotRescorable(f"{path} is no case file")
            loaded = self.run.files.load(place, claim=claimed, own_databases=True, marks=())
            if loaded.errors:
                first, *more = [problem.render(self.run.context.root) for problem in loaded.errors]
                raise NotRescorable(first + (f" (and {len(more)} more)" if more else ""))
            self.files[path] = {case.name: case for case in loaded.cases}
        return self.files[path]

    def _everywhere(self) -> Mapping[str, Case]:
        """Return cases by name, for files that know no paths; names that occur twice are left out."""
        if "" not in self.files:
            from pytest_agenteval.cases.discovery import find

            context = self.run.context
            files = find([context.home], context.claims)
            paths = [path.relative_to(context.root).as_posix() for path, _ in files]
            cases = [case for path in paths for case in self._cases(path).values()]
            count = Counter(case.name for case in cases)
            self.files[""] = {case.name: case for case in cases if count[case.name] == 1}
        return self.files[""]

    def attempt(self, row: Row, entry: Mapping[str, Any]) -> Attempt:
        """Return the attempt judged again. Raises ``NotRescorable``."""
        from pytest_agenteval.engine.evaluate import evaluate

        answer = answer_of(entry)
        if answer is None or (row.verdict == "error" and row.stage in ("agent", "timeout", "reference")):
            raise NotRescorable("no finished answer")
        _whole_or_raise(entry)
        saved = SavedCase(self.run, self.case(row), row, entry, answer)
        evaluate(saved)
        return replace(saved.attempts[0], number=row.attempt, duration_ms=row.duration_ms)


def _whole_or_raise(entry: Mapping[str, Any]) -> None:
    """Refuse what was cut: part of the rows would be judged as if it were all."""
    details = entry.get("details") or {}
    if masked := details.get("masked"):
        raise NotRescorable("1 value was masked" if masked == 1 else f"{masked:,} values were masked")
    for rows in (details.get("cut") or {}).values():
        raise NotRescorable(f"{rows:,} rows were cut to 1,000")
    for name in ("expected_table", "actual_table"):
        table = details.get(name)
        if table is not None and table["row_count"] > len(table["rows"]):
            raise NotRescorable(f"{table['row_count']:,} rows were cut to {len(table['rows']):,}")
        data = details.get(name.replace("_table", "_data"))
        if table is None and isinstance(data, list) and len(data) >= NAO_ROWS:
            raise NotRescorable(f"{len(data)} rows, where other programs cut without saying so")


class SavedCase(CaseRunner):
    """The ``CaseSteps`` of rescoring: a results entry in place of agent, database and extraction model.

    ``attempts`` is what was judged.
    """

    def __init__(self, run: Run, case: Case, row: Row, entry: Mapping[str, Any], answer: Answer) -> None:
        super().__init__(run, case, nodeid_of(row), row.model, 0, Fixtures())
        self.case = _with_saved_judgements(case, entry, has_judge=self.judge is not None)
        self.k = 1
        self.attempts: list[Attempt] = []
        self._entry = entry
        self._answer = answer

    def kept(self, number: int) -> Attempt | None:
        """Keep nothing: every entry is judged again."""
        return None

    def prepare(self) -> None:
        """Prepare nothing: rescoring needs neither agent nor database."""

    def ask(self, number: int) -> Answer:
        """Return the saved answer."""
        return self._answer

    def reference(self, sql: str) -> Reference:
        """Return the saved table while the SQL is the same; else run it. Raises ``ReferenceFailed``."""
        details = self._entry["details"]
        table = table_of(details, "expected_table")
        if table is None or _folded(sql) != _folded(details.get("reference_sql") or ""):
            return super().reference(sql)
        from pytest_agenteval.databases import outermost_order_by

        keys = outermost_order_by(sql, None) if self.ordered else ()
        return Reference(table, sql, tuple(keys or ()))

    def extract(self, answer: Answer, references: Sequence[Reference]) -> Extraction:
        """Return the table that a model's query gave as it was; any other is looked for again."""
        extraction = self._entry.get("extraction")
        table = table_of(self._entry["details"], "actual_table")
        source = extraction["source"] if extraction else "given"
        if (
            answer is self._answer
            and table is not None
            and (extraction is None or source in ("query", "json"))
        ):
            return Extraction(table, source, extraction["query"] if extraction else None)
        return super().extract(answer, references)

    def explained(self, attempt: Attempt, evidence: Evidence) -> Attempt:
        """Keep what was found out while the verdict stays."""
        if attempt.verdict != self._entry.get("verdict"):
            return attempt
        return replace(attempt, findings=findings_of(self._entry))

    def on_attempt(self, attempt: Attempt) -> None:
        """Keep what was judged."""
        self.attempts.append(attempt)


def _folded(sql: str) -> str:
    return " ".join(sql.split()).rstrip("; ")


def _with_saved_judgements(case: Case, entry: Mapping[str, Any], *, has_judge: bool) -> Case:
    """Return the case with a judge's saved results in place of its judge checks,
    unless a judge is configured.
    """
    saved = [record for record in entry.get("checks") or () if _judged(record)]
    if has_judge or not saved:
        return case

    from pytest_agenteval.checks.judge.checks import FactualityCheck

    def again(checks: Sequence[ParsedCheck], expected: tuple[str, ...] = ()) -> tuple[ParsedCheck, ...]:
        stated = (FactualityCheck(type="factuality", expected=expected),) if expected else ()
        found = (*checks, *stated)
        return tuple(_Judgement(check, saved) if check.type in JUDGED else check for check in found)

    turns = tuple(
        replace(turn, assertions=again(turn.assertions, turn.expected_response), expected_response=())
        for turn in case.turns
    )
    own = any(check.type == "factuality" for check in case.assertions)
    return replace(
        case, turns=turns, assertions=again(case.assertions, () if own else case.expected_response)
    )


def _judged(record: Mapping[str, Any]) -> bool:
    return record.get("type") in JUDGED and not (record.get("details") or {}).get("not_asked")


class _Judgement:
    """A judge check that knows what the judge said; each saved result is used once."""

    def __init__(self, check: ParsedCheck, saved: list[dict[str, Any]]) -> None:
        self._check = check
        self._saved = saved
        self.type, self.name = check.type, check.name
        self.severity, self.turn = check.severity, check.turn

    def check(self, evidence: Evidence) -> CheckResult:
        """Return the saved result; without one the judge is needed. Raises ``CheckFailed``."""
        for record in self._saved:
            if (record["type"], record["name"]) == (self.type, self.name):
                self._saved.remove(record)
                return CheckResult(
                    self.type,
                    record["passed"],
                    record["why"],
                    score=record["score"] or 0.0,
                    reason=record.get("reason") or "judge",
                    details=record.get("details") or {},
                )
        return self._check.check(evidence)
