"""The journal of one process: one flushed JSON line per event, so that nothing paid for is lost.

Kinds of lines: ``planned``, ``gone``, ``skipped``, ``started``, ``call``, ``answer``, ``attempt``,
``carried``. What follows ``"body":`` is large; all before it is small and enough for totals
(:func:`head_of`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_agenteval.results.document.entries import parts_of
from pytest_agenteval.results.journal.file import JournalFile
from pytest_agenteval.results.journal.records import (
    PlannedItem,
    answer_body,
    attempt_body,
    attempt_head,
    comparison_parts,
    finite,
    planned_record,
    table_hash,
    tool_call_count,
    usage_record,
)
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.support import clock
from pytest_agenteval.support.json_codec import dumps, pack
from pytest_agenteval.support.private import signed
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, Attempt

TABLES = ("expected_table", "actual_table")
BODY = ',"body":'
UNANSWERED = ("agent", "timeout")
"""Stages of an error in which the agent has not answered."""


class Journal:
    """Writes the events of one process; usable from several threads.

    ``process`` names the file (``main``, ``gw0``). With ``folder`` ``None`` (a worker on another
    machine) the lines are kept until :meth:`take_lines`, and the controller writes them with
    :meth:`write_lines`; ``rerun_base`` is then the controller's folder's. ``redactor`` takes secrets
    out of what is written. Writing raises ``JournalFailed`` when the disk refuses.
    """

    def __init__(
        self,
        folder: RunFolder | None,
        process: str,
        *,
        redactor: Redactor | None = None,
        rerun_base: int = 0,
    ) -> None:
        self.folder = folder
        self.process = process
        self.rerun_base = folder.rerun_base if folder else rerun_base
        self._redactor = redactor
        self._lock = threading.Lock()
        self._file = JournalFile(folder.path, process) if folder else None
        self._key = folder.key if folder else None
        self._kept: list[str] = []
        self._answered: set[str] = set()
        self._hashes: list[tuple[Table, str]] = []

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def planned(self, items: Sequence[PlannedItem]) -> bool:
        """Write the run's items once; ``False`` when another process of the run has done so."""
        at = _now()
        base = {"rerun": self.rerun_base}
        lines = [self._line(planned_record(item, number, at) | base) for number, item in enumerate(items)]
        if self.folder is None:
            self._put(lines)
            return True
        place = self.folder.path / f"planned-{self.folder.generation}.jsonl"
        prepared = place.with_name(f".{place.name}.{self.process}")
        prepared.write_bytes(self._signed(lines))
        try:
            place.hardlink_to(prepared)
        except FileExistsError:
            return False
        except OSError:  # a file system without links; the loser finds the file, perhaps still short
            return _written(place, lines)
        finally:
            prepared.unlink()
        return True

    def skipped(self, nodeid: str, reason: str, rerun: int = 0) -> None:
        """Record an item that is not to run, on purpose (``skip``, ``explicit``)."""
        self._event("skipped", nodeid, rerun, reason=reason)

    def gone(self, nodeid: str) -> None:
        """An item of an earlier generation is no more: its case was deleted or renamed."""
        self._event("gone", nodeid, 0)

    def started(self, nodeid: str, rerun: int = 0) -> None:
        """Record that an item begins; without attempts behind it, its process died."""
        self._event("started", nodeid, rerun, process=self.process)

    def call(self, nodeid: str, rerun: int, attempt: int) -> None:
        """Record that an agent is about to be asked: from here on it may cost."""
        self._event("call", nodeid, rerun, attempt=attempt)

    def answer(self, nodeid: str, rerun: int, attempt: int, answer: Answer) -> None:
        """Record that an agent's call has returned; called by the thread that made the call."""
        self._answer(nodeid, rerun, attempt, answer, finished=True)

    def judged_again(self, nodeid: str, rerun: int, attempt: int, answer: Answer, at: str) -> None:
        """Write an answer of ``at``, an ISO time, that is judged again without a call."""
        self._answer(nodeid, rerun, attempt, answer, finished=True, at=at, again=True)

    def _answer(
        self, nodeid: str, rerun: int, attempt: int, answer: Answer, *, finished: bool, **more: Any
    ) -> None:
        self._answered.add(f"{nodeid}|{rerun}|{attempt}")
        head = {
            "tokens": answer.usage.tokens if answer.usage else None,
            "cost": finite(answer.cost),
            "duration_ms": finite(answer.duration_ms),
            "tool_call_count": tool_call_count(answer),
            "usage": {"agent": usage_record(answer.usage, answer.cost)},
        }
        body = answer_body(answer, finished=finished)
        self._event("answer", nodeid, rerun, attempt=attempt, **more, head=pack(head)[0], body=body)

    def attempt(self, nodeid: str, rerun: int, attempt: Attempt) -> None:
        """Record an attempt's verdict; its answer is written first where it was not yet."""
        answer = attempt.answer
        if answer is not None and f"{nodeid}|{rerun}|{attempt.number}" not in self._answered:
            # what an agent had said when it failed is kept, but it is not an answer to judge
            self._answer(nodeid, rerun, attempt.number, answer, finished=attempt.stage not in UNANSWERED)
        actual = attempt.extraction.table if attempt.extraction else None
        tables = (attempt.reference, actual, *attempt.references)
        hashed = {id(table): self._hash(table) for table in tables if table is not None}
        self._event(
            "attempt",
            nodeid,
            rerun,
            attempt=attempt.number,
            answered=answer is not None,
            head=pack(attempt_head(attempt, hashed))[0],
            body=attempt_body(attempt, hashed, comparison_parts(attempt.comparison)),
        )

    def carried(self, nodeid: str, rerun: int, attempt: int, source: str) -> None:
        """Record that a resumed run keeps an earlier attempt: ``source`` is its id, nodeid|rerun|attempt."""
        self._event("carried", nodeid, rerun, attempt=attempt, source=source)

    def imported(self, nodeid: str, rerun: int, attempt: int, entry: Mapping[str, Any]) -> None:
        """Record that a resumed run keeps an attempt of a results file, with its answer."""
        answer, verdict = parts_of(entry)
        if answer is not None:
            self._answered.add(f"{nodeid}|{rerun}|{attempt}")
            at = entry.get("answered_at") or _now()
            self._event("answer", nodeid, rerun, at=at, attempt=attempt, again=True, **answer)
        self._event("attempt", nodeid, rerun, attempt=attempt, answered=answer is not None, **verdict)

    def write_lines(self, lines: Iterable[str]) -> None:
        """Write lines that a worker on another machine has sent."""
        self._put([line if line.endswith("\n") else line + "\n" for line in lines])

    def take_lines(self) -> list[str]:
        """Return the lines kept so far (only without a folder), each once."""
        with self._lock:
            lines, self._kept = self._kept, []
        return lines

    def close(self) -> None:
        """Close the file; the journal opens another one if more is written."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    def _event(self, kind: str, nodeid: str, rerun: int, **rest: Any) -> None:
        record = {"kind": kind, "nodeid": nodeid, "rerun": self.rerun_base + rerun, "at": _now()} | rest
        self._put([self._line(record)])

    def _line(self, record: dict[str, Any]) -> str:
        return dumps(_without_secrets(record, self._redactor) if self._redactor else record) + "\n"

    def _put(self, lines: list[str]) -> None:
        with self._lock:
            if self._file is None:
                self._kept.extend(lines)
                return
            self._file.write(self._signed(lines))

    def _signed(self, lines: Iterable[str]) -> bytes:
        """Return the lines with a code each: what programs write into the folder does not count."""
        data = [line.encode("ascii") for line in lines]
        return b"".join(data if self._key is None else [signed(line, self._key) for line in data])

    def _hash(self, table: Table) -> str:
        """Return the table's hash; references are shared by attempts, so the last few are remembered."""
        with self._lock:
            known = next((digest for other, digest in self._hashes if other is table), None)
        if known is None:
            known = table_hash(table)
            with self._lock:
                self._hashes = [*self._hashes[-31:], (table, known)]
        return known


def _written(place: Path, lines: Sequence[str]) -> bool:
    """Write a new file; ``False`` when it is there already."""
    try:
        with open(place, "x", encoding="ascii") as file:
            file.write("".join(lines))
    except FileExistsError:
        return False
    return True


def head_of(line: str) -> dict[str, Any]:
    """Return the small part of a journal line (all before its body). Raises ``ValueError`` on a torn line."""
    cut = line.find(BODY)
    if cut >= 0 and not line.rstrip().endswith("}"):
        raise ValueError("torn line")
    found = json.loads(line if cut < 0 else line[:cut] + "}")
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _without_secrets(record: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Return a line's record; ``masked`` in its body counts the values that are no longer what was judged."""
    body = record.get("body")
    if body is None:
        return dict(redactor.data(record))
    made = {key: redactor.data(value) for key, value in record.items() if key != "body"}
    if record["kind"] == "answer":
        shown, count = redactor.answer(body)
    else:
        tables = [redactor.masked(body.get(name)) for name in TABLES]
        shown = {
            **redactor.data({k: v for k, v in body.items() if k not in TABLES}),
            **dict(zip(TABLES, (t for t, _ in tables), strict=True)),
        }
        count = sum(number for _, number in tables)
    return {**made, "body": {**shown, "masked": count} if count else shown}


def _now() -> str:
    return clock.now().astimezone().isoformat()
