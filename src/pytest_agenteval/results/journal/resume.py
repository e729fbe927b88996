"""Resume a run: which attempts to keep, to judge again, to ask again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.entries import entry_of, scalars_of
from pytest_agenteval.results.document.load import (
    answer_of,
    findings_of,
    last_run,
    left_out,
    past_documents,
    read_document,
    table_of,
)
from pytest_agenteval.results.document.rows import CaseKey, Row, row_of
from pytest_agenteval.results.journal.index import JournalItem, index_folder
from pytest_agenteval.results.journal.journal import UNANSWERED, Journal
from pytest_agenteval.results.journal.records import FINISHED, PlannedItem, answer_from, check_of
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.types import Answer, Attempt, Extraction, SavedComparison, Usage

Action = Literal["keep", "judge", "call"]

RULED = ("passed", "failed", "review")


@dataclass(frozen=True, slots=True)
class Step:
    """What to do with one attempt of a resumed run.

    ``keep``: it is finished (``row``); :func:`keep` takes it over. ``judge``: ``answer()`` is the
    finished answer, given at ``row.answered_at``. ``call``: ask the agent. ``source`` is its id in the
    run's own folder (``None`` when it comes from a document), ``entry()`` its results entry.
    """

    number: int
    action: Action
    row: Row | None = None
    source: str | None = None
    answer: Callable[[], Answer | None] = lambda: None
    entry: Callable[[], dict[str, Any]] = dict

    def attempt(self) -> Attempt:
        """Return a kept attempt: its verdict and cost; of one that did not pass also what a report shows of
        it.
        """
        row = self.row
        if row is None or self.action != "keep":
            raise ValueError(f"attempt {self.number} is to be asked, there is nothing to keep")
        stage: Any = row.stage
        more = _cost_of(row) if row.verdict == "passed" else _shown_of(self.entry(), self.answer())
        return Attempt(
            number=self.number,
            verdict=row.verdict,
            message=row.message,
            stage=stage,
            reason=row.reason,
            error=row.error,
            score=row.score,
            duration_ms=row.duration_ms,
            **more,
        )


def _cost_of(row: Row) -> dict[str, Any]:
    usage = Usage(total=row.tokens) if row.tokens is not None else None
    return {"answer": Answer(usage=usage, cost=row.cost)}


def _shown_of(entry: Mapping[str, Any], answer: Answer | None) -> dict[str, Any]:
    """Return what a person reads of an attempt that did not pass:
    difference, checks, both tables' sources.
    """
    details = entry.get("details") or {}
    saved = entry.get("extraction")
    table = table_of(details, "actual_table")
    return {
        "answer": answer,
        "extraction": Extraction(table, saved["source"], saved["query"]) if saved else None,
        "reference_sql": details.get("reference_sql"),
        "checks": tuple(map(check_of, entry.get("checks") or ())),
        "traceback": entry.get("traceback"),
        "findings": findings_of(entry),
        "saved": SavedComparison(entry.get("why") or "", details.get("comparison") or ""),
    }


Find: TypeAlias = Callable[[PlannedItem], Mapping[int, Step] | None]


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """An earlier run. ``find`` gives an item's steps by number; ``None`` where the run did not hold it.

    ``folder`` is set when the run goes on in its own folder. ``older`` are the runs before it: a case that
    it did not hold (``--lf``, ``-k``) has its last finished answers there.
    """

    path: Path
    find: Find
    folder: RunFolder | None = None
    older: OlderRuns | None = None

    def steps(self, item: PlannedItem) -> list[Step]:
        """Return what to do with each of the item's k attempts.

        Without a finished answer to the same question (hash of prompt, turns, database) it is asked
        again; a changed case (comparison, checks) is judged again, not asked again.
        """
        earlier: Mapping[int, Step] | None = {}
        if item.ask_hash:
            earlier = self.find(item)
            if earlier is None and self.older is not None:
                earlier = self.older.find(item)
        return [(earlier or {}).get(number, Step(number, "call")) for number in range(1, item.k + 1)]


class OlderRuns:
    """The runs before the last one, of the same agent: each is read when a case is in none after it."""

    def __init__(self, documents: Iterator[Document], last: Mapping[str, Any]) -> None:
        self._documents = documents
        self._same = _agent_of(last)
        self._read: list[Find] = []

    def find(self, item: PlannedItem) -> Mapping[int, Step] | None:
        """Return the steps of the newest of them that holds the case."""
        for find in self._read:
            if (steps := find(item)) is not None:
                return steps
        for document in self._documents:
            if document.path is None or _agent_of(document.run) != self._same:
                continue
            find = _finder(document)
            self._read.append(find)
            if (steps := find(item)) is not None:
                return steps
        return None


def _agent_of(run: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what answered in a run: another target, or other context files, give other answers."""
    return run.get("target"), run.get("context_hash")


def find_earlier(
    resume_from: str | None, output_dir: Path, root: Path, *, token: str = "", alone: bool = False
) -> EarlierRun:
    """Return the run of ``--agent-resume-from FILE|DIR`` (relative to ``root``), or the last run.

    ``token`` is this run's own: what it has written into the folder already is not part of the earlier
    run. Unless it is to be taken ``alone``, the runs before it come along, for cases that it did not
    hold. Raises ``ResultsError`` where there is no run or it cannot be read.
    """
    if resume_from:
        place = root / resume_from
        if not place.exists():
            raise ResultsError(f"--agent-resume-from {resume_from}: no such file or folder")
    else:
        last = last_run(output_dir)
        if last is None:
            raise ResultsError(f"--agent-resume: there is no run in {output_dir}{_not_taken(output_dir)}")
        place = last
    beside = place.with_suffix("")
    if place.suffix == ".json" and beside.is_dir():
        place = beside
    older = None if alone else past_documents(output_dir)
    if place.is_dir():
        return _from_folder(place, token, older)
    document = read_document(place)
    return EarlierRun(place, _finder(document), older=OlderRuns(older, document.run) if older else None)


def _not_taken(output_dir: Path) -> str:
    return "".join(f"; left out: {text}" for text in left_out(output_dir))


def _from_folder(place: Path, token: str, older: Iterator[Document] | None) -> EarlierRun:
    folder = RunFolder.open(place)
    if not folder.token or not folder.journals():
        raise ResultsError(f"{place}: not the folder of a run (no .jsonl file in it)")
    taken_over = bool(token) and folder.token == token
    index = index_folder(folder, before=folder.generation if taken_over else None)
    items: dict[CaseKey, JournalItem] = {
        (item.planned.path, item.planned.name, item.planned.model): item for item in index.items.values()
    }
    next_generation = folder.generation if taken_over else folder.generation + 1

    def find(planned: PlannedItem) -> dict[int, Step] | None:
        item = items.get((planned.path, planned.name, planned.model))
        if item is None:
            return None
        last = item.under(planned, next_generation).last
        if last is None:  # another question
            return {}
        judged_by = item.plan_of(last).case_hash
        item = item.under(replace(planned, case_hash=judged_by), next_generation)
        steps = {number: _journal_step(item, number) for number in item.numbers()}
        if judged_by == planned.case_hash:
            return steps
        return {number: _judged_again(step) for number, step in steps.items()}

    return EarlierRun(place, find, folder, OlderRuns(older, folder.read_run()) if older else None)


def _journal_step(item: JournalItem, number: int) -> Step:
    scalars = scalars_of(item.planned, number, *item.heads(number))
    attempt, said = item.finished(number)

    def entry() -> dict[str, Any]:
        return entry_of(scalars, attempt.body() if attempt else None, said.body() if said else None)

    def finished() -> bool:
        return said is not None and bool((said.body().get("answer") or {}).get(FINISHED))

    def answer() -> Answer | None:
        body = {"masked": True} if said is None else said.body()
        return None if body.get("masked") else answer_from(body)

    return replace(_step(row_of(scalars), item.source(number), answer, finished), entry=entry)


def _finder(document: Document) -> Find:
    indexes: dict[CaseKey, dict[int, int]] = {}
    for index, row in enumerate(document.rows):
        indexes.setdefault(row.key, {})[row.attempt] = index

    def find(planned: PlannedItem) -> dict[int, Step] | None:
        attempts = indexes.get((planned.path, planned.name, planned.model))
        if attempts is None:
            return None
        return {
            number: _document_step(document, index, planned)
            for number, index in attempts.items()
            if document.rows[index].ask_hash == planned.ask_hash
        }

    return find


def _document_step(document: Document, index: int, planned: PlannedItem) -> Step:
    row = document.rows[index]
    entry = partial(document.entry, index)

    def answer() -> Answer | None:
        details = entry().get("details") or {}
        # part of the rows, or masked values: another verdict
        return None if details.get("cut") or details.get("masked") else answer_of(entry())

    def finished() -> bool:
        details = entry().get("details") or {}
        return bool((details.get("answer") or {}).get(FINISHED))

    step = replace(_step(row, None, answer, finished), entry=entry)
    return step if row.case_hash == planned.case_hash else _judged_again(step)


def _judged_again(step: Step) -> Step:
    """Return the step where the case's rules have changed: a finished attempt is judged by the new ones."""
    if step.action != "keep":
        return step
    return replace(step, action="judge" if step.answer() is not None else "call")


def _step(
    row: Row, source: str | None, answer: Callable[[], Answer | None], finished: Callable[[], bool]
) -> Step:
    if row.verdict in RULED:
        return Step(row.attempt, "keep", row, source, answer)
    if row.answered_at is not None and _can_be_judged(row, finished) and answer() is not None:
        return Step(row.attempt, "judge", row, source, answer)
    return Step(row.attempt, "call", row)


def _can_be_judged(row: Row, finished: Callable[[], bool]) -> bool:
    """Return whether the attempt's answer is one that the agent has finished and that counts.

    An error in the agent's stage may come before, within or after the answer: Ctrl-C and
    pytest-timeout end the wait for an answer that still arrives.
    """
    if row.verdict == "error" and row.stage == "agent" and row.reason != "interrupted":
        return False
    if row.verdict == "error" and row.stage in (*UNANSWERED, "reference"):
        return finished()
    return True


def keep(journal: Journal, nodeid: str, rerun: int, step: Step) -> None:
    """Take a finished attempt over into the resumed run's journal."""
    if step.source is not None:
        journal.carried(nodeid, rerun, step.number, step.source)
    else:
        journal.imported(nodeid, rerun, step.number, step.entry())
