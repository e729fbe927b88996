"""Going on with an unfinished run: what to keep, what to judge again, what to ask again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import Document, JournalItem, from_index, index_folder
from pytest_agenteval.results.document.load import (
    answer_of,
    last_run,
    left_out,
    past_documents,
    read_document,
    table_of,
)
from pytest_agenteval.results.document.rows import CaseKey, Row
from pytest_agenteval.results.journal.journal import Journal
from pytest_agenteval.results.journal.records import PlannedItem, answer_from, check_of
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.types import Answer, Attempt, Extraction, SavedComparison, Usage

Action = Literal["keep", "judge", "call"]

RULED = ("passed", "failed", "review")
ASK_AGAIN = ("agent", "timeout", "reference")
"""Stages of an error after which there is no finished answer."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to do with one attempt of a resumed run.

    ``keep``: it is finished (``row``); :func:`keep` takes it over. ``judge``: ``answer()`` is the
    finished answer. ``call``: ask the agent. ``source`` is its id in the run's own folder (``None``
    when it comes from a document), ``entry()`` its results entry.
    """

    number: int
    action: Action
    row: Row | None = None
    source: str | None = None
    answer: Callable[[], Answer | None] = lambda: None
    entry: Callable[[], dict[str, Any]] = dict

    def attempt(self) -> Attempt:
        """A kept attempt: its verdict and cost; of one that did not pass also what a report shows of it."""
        row = self.row
        if row is None or self.action != "keep":
            raise ValueError(f"attempt {self.number} is to be asked, there is nothing to keep")
        stage: Any = row.stage
        told = _cost_of(row) if row.verdict == "passed" else _shown_of(self.entry(), self.answer())
        return Attempt(
            number=self.number,
            verdict=row.verdict,
            message=row.message,
            stage=stage,
            reason=row.reason,
            error=row.error,
            score=row.score,
            duration_ms=row.duration_ms,
            **told,
        )


def _cost_of(row: Row) -> dict[str, Any]:
    usage = Usage(total=row.tokens) if row.tokens is not None else None
    return {"answer": Answer(usage=usage, cost=row.cost)}


def _shown_of(entry: Mapping[str, Any], answer: Answer | None) -> dict[str, Any]:
    """What a person reads of an attempt that did not pass: difference, checks, both tables' sources."""
    details = entry.get("details") or {}
    found = entry.get("extraction")
    source = Extraction(table_of(details, "actual_table"), found["source"], found["query"]) if found else None
    return {
        "answer": answer,
        "extraction": source,
        "reference_sql": details.get("reference_sql"),
        "checks": tuple(map(check_of, entry.get("checks") or ())),
        "traceback": entry.get("traceback"),
        "saved": SavedComparison(entry.get("cause") or "", details.get("comparison") or ""),
    }


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """An earlier run, by case. ``folder`` is set when the run goes on in its own folder.

    ``older`` are the runs before it: a case that it did not hold (``--lf``, ``-k``) has its last finished
    answers there.
    """

    path: Path
    steps_by_key: Mapping[CaseKey, Mapping[int, Step]]
    hashes: Mapping[CaseKey, tuple[str, str]]
    folder: RunFolder | None = None
    older: OlderRuns | None = None

    def steps(self, item: PlannedItem) -> list[Step]:
        """What to do with each of the item's k attempts.

        Without a finished answer to the same question (hash of prompt, turns, database) it is asked
        again; a changed case (comparison, checks) is judged again, not asked again.
        """
        key = item.path, item.name, item.model
        held = self
        if key not in self.hashes and self.older is not None:
            held = self.older.find(key) or self
        case_hash, ask_hash = held.hashes.get(key, ("", ""))
        known = held.steps_by_key.get(key, {})
        numbers = range(1, item.k + 1)
        if not ask_hash or ask_hash != item.ask_hash:
            return [Step(number, "call") for number in numbers]
        steps = [known.get(number, Step(number, "call")) for number in numbers]
        if case_hash == item.case_hash:
            return steps
        return [_judged_again(step) for step in steps]


class OlderRuns:
    """The runs before the last one, of the same agent: each is read when a case is in none after it."""

    def __init__(self, documents: Iterator[Document], last: Document) -> None:
        self._documents = documents
        self._same = _agent_of(last)
        self._read: list[EarlierRun] = []

    def find(self, key: CaseKey) -> EarlierRun | None:
        """The newest of them that holds the case."""
        for earlier in self._read:
            if key in earlier.hashes:
                return earlier
        for document in self._documents:
            if document.path is None or _agent_of(document) != self._same:
                continue
            earlier = _from_document(document.path, document)
            self._read.append(earlier)
            if key in earlier.hashes:
                return earlier
        return None


def _agent_of(document: Document) -> tuple[Any, Any]:
    """What answered in a run: another target, or other context files, give other answers."""
    return document.run.get("target"), document.run.get("context_hash")


def _judged_again(step: Step) -> Step:
    if step.action != "keep":
        return step
    return replace(step, action="judge" if step.answer() is not None else "call")


def find_earlier(resume_from: str | None, output_dir: Path, root: Path, *, alone: bool = False) -> EarlierRun:
    """The run of ``--agent-resume-from FILE|DIR`` (relative to ``root``), or the last run.

    Unless it is to be taken ``alone``, the runs before it come along, for cases that it did not hold.
    Raises ``ResultsError`` where there is none or it cannot be read.
    """
    if resume_from:
        place = root / resume_from
        if not place.exists():
            raise ResultsError(f"--agent-resume-from {resume_from}: no such file or folder")
    else:
        found = last_run(output_dir)
        if found is None:
            raise ResultsError(f"--agent-resume: there is no run in {output_dir}{_not_taken(output_dir)}")
        place = found
    beside = place.with_suffix("")
    if place.suffix == ".json" and beside.is_dir():
        place = beside
    older = None if alone else past_documents(output_dir)
    return _from_folder(place, older) if place.is_dir() else _from_document(place, older=older)


def _not_taken(output_dir: Path) -> str:
    return "".join(f"; left out: {text}" for text in left_out(output_dir))


def _from_folder(place: Path, older: Iterator[Document] | None = None) -> EarlierRun:
    folder = RunFolder.open(place)
    if not folder.journals():
        raise ResultsError(f"{place}: not the folder of a run (no .jsonl file in it)")
    index = index_folder(folder)
    document, places = from_index(index, folder.read_run())
    steps: dict[CaseKey, dict[int, Step]] = {}
    for number, (row, (item, attempt)) in enumerate(zip(document.rows, places, strict=True)):
        entry = partial(document.entry, number)
        step = _step(row, item.source(attempt), _spot_answer(item, attempt), entry)
        steps.setdefault(row.key, {})[attempt] = step
    return EarlierRun(place, steps, _hashes(document), folder, OlderRuns(older, document) if older else None)


def _spot_answer(item: JournalItem, attempt: int) -> Callable[[], Answer | None]:
    spot = item.finished(attempt)[1]
    return lambda: None if spot is None else answer_from(spot.body())


def _from_document(
    place: Path, known: Document | None = None, older: Iterator[Document] | None = None
) -> EarlierRun:
    document = known or read_document(place)
    steps: dict[CaseKey, dict[int, Step]] = {}
    for number, row in enumerate(document.rows):
        step = _step(row, None, _entry_answer(document, number), partial(document.entry, number))
        steps.setdefault(row.key, {})[row.attempt] = step
    before = OlderRuns(older, document) if older else None
    return EarlierRun(place, steps, _hashes(document), older=before)


def _entry_answer(document: Document, number: int) -> Callable[[], Answer | None]:
    def answer() -> Answer | None:
        entry = document.entry(number)
        cut = (entry.get("details") or {}).get("cut")
        return None if cut else answer_of(entry)  # judging part of the rows would be another verdict

    return answer


def _step(
    row: Row, source: str | None, answer: Callable[[], Answer | None], entry: Callable[[], dict[str, Any]]
) -> Step:
    if row.verdict in RULED:
        return Step(row.attempt, "keep", row, source, answer, entry)
    unjudged = row.verdict == "not_run" or (row.verdict == "error" and row.stage not in ASK_AGAIN)
    if unjudged and row.answered_at is not None and answer() is not None:
        return Step(row.attempt, "judge", row, source, answer, entry)
    return Step(row.attempt, "call", row)


def _hashes(document: Document) -> dict[CaseKey, tuple[str, str]]:
    return {row.key: (row.case_hash, row.ask_hash) for row in document.rows}


def keep(journal: Journal, nodeid: str, rerun: int, step: Step) -> None:
    """Take a finished attempt over into the resumed run's journal."""
    if step.source is not None:
        journal.carried(nodeid, rerun, step.number, step.source)
    else:
        journal.imported(nodeid, rerun, step.number, step.entry())
