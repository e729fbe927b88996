"""What the files of a run say, item by item, read once; bodies stay on disk.

A resumed run goes on in the same files as a later *generation*: the reruns of generation 1 count from
1000 on. An attempt belongs to the plan of its generation, so a case that was edited in between never
gets the verdict, nor a changed question the answer, that the old one had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_agenteval.results.journal.journal import head_of
from pytest_agenteval.results.journal.records import PlannedItem, planned_from
from pytest_agenteval.results.journal.run_folder import RERUNS, RunFolder
from pytest_agenteval.support.private import is_signed

_PLANNED_FILE = re.compile(r"planned-(\d+)\.jsonl")


@dataclass(frozen=True, slots=True)
class LinePosition:
    """Where a journal line lies, and its head."""

    file: Path
    offset: int
    length: int
    head: Mapping[str, Any]

    def body(self) -> dict[str, Any]:
        """Read the line's large part."""
        with open(self.file, "rb") as file:
            file.seek(self.offset)
            record = json.loads(file.read(self.length))
        return dict(record["body"])


@dataclass(slots=True)
class JournalItem:
    """All that a run's files say of one item.

    ``plans`` are by generation, everything else by (rerun, attempt). ``answers`` is the last answer of
    each, ``paid`` every answer that a call of this run gave (not those taken over or judged again).
    ``calls`` are the generations of the calls that began, ``gone`` is the one that did not find its case.
    """

    plans: dict[int, PlannedItem]
    skipped: str | None = None
    reruns: set[int] = field(default_factory=set)
    started: set[int] = field(default_factory=set)
    attempts: dict[tuple[int, int], LinePosition] = field(default_factory=dict)
    answers: dict[tuple[int, int], LinePosition] = field(default_factory=dict)
    carried: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    paid: list[LinePosition] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    gone: int | None = None

    @property
    def counts(self) -> bool:
        """Whether the item belongs to the run: a case that is no more counts by its cost alone."""
        return self.gone is None or self.gone < max(self.plans)

    @property
    def planned(self) -> PlannedItem:
        """The item as it was planned last."""
        return self.plans[max(self.plans)]

    def plan_of(self, rerun: int) -> PlannedItem:
        """Return the plan that a rerun followed."""
        generation = rerun // RERUNS
        return self.plans[max((g for g in self.plans if g <= generation), default=min(self.plans))]

    def under(self, plan: PlannedItem, generation: int) -> JournalItem:
        """Return the item as a run sees it that plans it like this now."""
        return replace(self, plans={**self.plans, generation: plan})

    @property
    def last(self) -> int | None:
        """The rerun that counts: the last that asked the planned question (``None``: none has)."""
        asked = self.planned.ask_hash
        return max((rerun for rerun in self.reruns if self.plan_of(rerun).ask_hash == asked), default=None)

    def finished(self, number: int) -> tuple[LinePosition | None, LinePosition | None]:
        """Return where the attempt and its answer lie, in the rerun that counts.

        An answer to the planned question that was judged by other rules is there without its attempt.
        """
        last = self.last
        if last is None:
            return None, None
        place = self.carried.get((last, number), (last, number))
        attempt = self.attempts.get(place)
        if attempt is not None and self.plan_of(last).case_hash != self.planned.case_hash:
            attempt = attempt if attempt.head["head"]["verdict"] == "error" else None
        return attempt, self.answers.get(place)

    def source(self, number: int) -> str:
        """Return the id (nodeid|rerun|attempt) of the record that counts for an attempt."""
        place = (self.last or 0, number)
        rerun, attempt = self.carried.get(place, place)
        return f"{self.planned.nodeid}|{rerun}|{attempt}"

    def numbers(self) -> range:
        """Return the attempt numbers of the item, from 1."""
        last = self.last
        seen = [n for rerun, n in (*self.attempts, *self.answers, *self.carried) if rerun == last]
        return range(1, max([self.planned.k, *seen]) + 1)

    def heads(self, number: int) -> tuple[int | None, Mapping[str, Any] | None, Mapping[str, Any] | None]:
        """Return the rerun that began (``None``: none) and the heads of the attempt and of its answer."""
        attempt, answer = self.finished(number)
        began = self.last if self.last in self.started else None
        return began, attempt.head if attempt else None, answer.head if answer else None

    def superseded(self) -> list[LinePosition]:
        """Return the answers that were paid for and count for no attempt: a later rerun replaced them.

        Of an answer that was judged again without a call the first record counts.
        """
        counted = []
        for number in self.numbers() if self.counts else ():
            answer = self.finished(number)[1]
            if answer is not None:
                again = answer.head.get("again")
                counted.append(answer if not again else self._first_of(number, answer))
        return [answer for answer in self.paid if not any(answer is one for one in counted)]

    def _first_of(self, number: int, answer: LinePosition) -> LinePosition | None:
        """Return the record of the call whose answer was judged again."""
        at = answer.head["at"]
        return next((p for p in self.paid if p.head["attempt"] == number and p.head["at"] == at), None)


@dataclass(frozen=True, slots=True)
class Index:
    """A run's files, indexed: items in planned order, first and last moment, torn lines."""

    items: Mapping[str, JournalItem]
    first: str
    last: str
    torn: int
    foreign: tuple[str, ...] = ()
    """Names of files with lines that none of the run's processes has written."""

    def calls(self, generation: int) -> int:
        """Return how many calls of agents began in this generation."""
        return sum(item.calls.count(generation) for item in self.items.values())

    def taken_over(self, generation: int) -> int:
        """Return how many attempts have an answer that no call of this generation gave."""
        answers = [item.finished(n)[1] for item in self.items.values() for n in item.numbers()]
        return sum(
            answer is not None and (_generation(answer) < generation or bool(answer.head.get("again")))
            for answer in answers
        )


def index_folder(folder: RunFolder, *, before: int | None = None) -> Index:
    """Read every journal of the run once; a torn line (its process was killed) is left out, counted.

    ``before``: leave out what this generation and later ones have written.
    """
    items: dict[str, JournalItem] = {}
    first = last = ""
    torn = 0
    foreign: dict[str, None] = {}
    for position in _positions(folder.journals(), folder.key):
        if position is None:
            torn += 1
            continue
        if isinstance(position, Path):
            foreign[position.name] = None
            continue
        generation = _generation(position)
        if before is not None and generation >= before:
            continue
        at = position.head["at"]
        first = min(first or at, at, key=datetime.fromisoformat)
        last = max(last or at, at, key=datetime.fromisoformat)
        _note(items, position, generation)
    return Index(items, first, last, torn, tuple(foreign))


def _positions(files: Iterable[Path], key: bytes | None) -> Iterator[LinePosition | Path | None]:
    """Yield every line of the files, planned ones first (they give the items' order); ``None``: torn.

    A whole line without the code of ``key`` is of another program: its file is named in its place.
    """
    ordered = sorted(files, key=lambda path: (not path.name.startswith("planned-"), path.name))
    for path in ordered:
        offset = 0
        with open(path, "rb") as file:
            for line in file:
                head = _whole_head(line)
                if head is None:
                    yield None
                elif key is not None and not is_signed(line, key):
                    yield path
                else:
                    yield LinePosition(path, offset, len(line), head)
                offset += len(line)


def _whole_head(line: bytes) -> dict[str, Any] | None:
    """Return the head of a line; ``None`` for a torn line and for one of another program."""
    try:
        head = head_of(line.decode("ascii")) if line.endswith(b"\n") else {}
        datetime.fromisoformat(head.get("at", ""))
    except (ValueError, TypeError):
        return None
    return head if {"kind", "nodeid"} <= head.keys() else None


def _generation(position: LinePosition) -> int:
    rerun = position.head.get("rerun")
    if rerun is not None:
        return int(rerun) // RERUNS
    named = _PLANNED_FILE.fullmatch(position.file.name)  # lines of version 0.1 say it by their file
    return int(named[1]) if named is not None else 0


def _note(items: dict[str, JournalItem], position: LinePosition, generation: int) -> None:
    head = position.head
    nodeid, kind = head["nodeid"], head["kind"]
    if kind == "planned":
        plan = planned_from(head)
        if nodeid in items:
            items[nodeid].plans[generation] = plan
        else:
            items[nodeid] = JournalItem({generation: plan})
        return
    item = items.setdefault(nodeid, JournalItem({0: _unplanned(nodeid)}))
    if kind == "skipped":
        item.skipped = head["reason"]
        return
    if kind == "gone":
        item.gone = generation
        return
    if kind == "call":
        item.calls.append(generation)
        return
    rerun = head["rerun"]
    item.reruns.add(rerun)
    if kind in ("started", "attempt", "carried"):
        item.started.add(rerun)
    if kind == "attempt":
        item.attempts[rerun, head["attempt"]] = position
    elif kind == "answer":
        item.answers[rerun, head["attempt"]] = position
        if not head.get("again"):
            item.paid.append(position)
    elif kind == "carried":
        _, source_rerun, source_attempt = head["source"].rsplit("|", 2)
        item.carried[rerun, head["attempt"]] = (int(source_rerun), int(source_attempt))


def _unplanned(nodeid: str) -> PlannedItem:
    path, _, name = nodeid.partition("::")
    return PlannedItem(nodeid=nodeid, path=path, name=name or nodeid, model="")
