"""The results document: a pure function of a run's folder, streamed with one entry in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_agenteval.results.document.entries import entry_of, scalars_of
from pytest_agenteval.results.document.rows import CaseRow, Row, cases_of, row_of
from pytest_agenteval.results.document.totals import totals
from pytest_agenteval.results.journal.journal import head_of
from pytest_agenteval.results.journal.records import PlannedItem, planned_from
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.support.files import replacing
from pytest_agenteval.support.typed_values import dumps, pack

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Document:
    """A results document. ``header`` holds every key but ``results``, in their order.

    ``rows`` are the attempts without texts and tables; ``entries()`` streams them whole, afresh on
    each call, in the same order. ``path`` is where it was read from.
    """

    header: dict[str, Any]
    rows: Sequence[Row]
    entries: Callable[[], Iterator[dict[str, Any]]]
    path: Path | None = None
    fetch: Callable[[int], dict[str, Any]] | None = None

    @property
    def cases(self) -> list[CaseRow]:
        """The cases (case x model) in document order."""
        return cases_of(self.rows)

    def entry(self, number: int) -> dict[str, Any]:
        """The whole entry of ``rows[number]``; quick for our files, for others as far as it stands."""
        if self.fetch is not None:
            return self.fetch(number)
        return next(islice(self.entries(), number, None))

    @property
    def run(self) -> dict[str, Any]:
        """What is known of the run ({} for files of other programs)."""
        return self.header.get("run") or {}


@dataclass(frozen=True, slots=True)
class LinePosition:
    """Where a journal line lies, and its head."""

    file: Path
    offset: int
    length: int
    head: Mapping[str, Any]

    def body(self) -> dict[str, Any]:
        """The line's large part."""
        with open(self.file, "rb") as file:
            file.seek(self.offset)
            found = json.loads(file.read(self.length))
        return dict(found["body"])


@dataclass(slots=True)
class JournalItem:
    """All that a run's files say of one item."""

    planned: PlannedItem
    skipped: str | None = None
    reruns: set[int] = field(default_factory=set)
    started: set[int] = field(default_factory=set)
    attempts: dict[tuple[int, int], LinePosition] = field(default_factory=dict)
    answers: dict[tuple[int, int], LinePosition] = field(default_factory=dict)
    carried: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    @property
    def last(self) -> int | None:
        """The rerun that counts; ``None``: never started."""
        return max(self.reruns, default=None)

    def finished(self, number: int) -> tuple[LinePosition | None, LinePosition | None]:
        """The attempt's and its answer's spots in the rerun that counts."""
        place = (self.last if self.last is not None else -1, number)
        place = self.carried.get(place, place)
        return self.attempts.get(place), self.answers.get(place)

    def source(self, number: int) -> str:
        """The id (nodeid|rerun|attempt) of the record that counts for an attempt."""
        rerun, attempt = self.carried.get((self.last or 0, number), (self.last or 0, number))
        return f"{self.planned.nodeid}|{rerun}|{attempt}"

    def numbers(self) -> range:
        """The attempt numbers of the item, from 1."""
        seen = [n for rerun, n in (*self.attempts, *self.answers, *self.carried) if rerun == self.last]
        return range(1, max([self.planned.k, *seen]) + 1)


@dataclass(frozen=True, slots=True)
class Index:
    """A run's files, indexed: items in planned order, first and last moment, torn lines."""

    items: Mapping[str, JournalItem]
    first: str
    last: str
    torn: int


def index_folder(folder: RunFolder) -> Index:
    """Read every journal of the run once; a torn line (its process was killed) is left out, counted."""
    items: dict[str, JournalItem] = {}
    moments: list[str] = []
    torn = 0
    for spot in _spots(folder.journals()):
        if spot is None:
            torn += 1
            continue
        at = spot.head["at"]
        moments = [min([*moments, at]), max([*moments, at])]
        _note(items, spot)
    return Index(items, min(moments, default=""), max(moments, default=""), torn)


def _spots(files: Iterable[Path]) -> Iterator[LinePosition | None]:
    """Every line of the files, planned ones first (they give the order of the items); ``None``: torn."""
    ordered = sorted(files, key=lambda path: (not path.name.startswith("planned-"), path.name))
    for path in ordered:
        offset = 0
        with open(path, "rb") as file:
            for line in file:
                try:
                    head = head_of(line.decode("ascii")) if line.endswith(b"\n") else None
                except ValueError:
                    head = None
                whole = head is not None and {"kind", "nodeid", "at"} <= head.keys()
                yield LinePosition(path, offset, len(line), head) if head is not None and whole else None
                offset += len(line)


def _note(items: dict[str, JournalItem], spot: LinePosition) -> None:
    head = spot.head
    nodeid, kind = head["nodeid"], head["kind"]
    if kind == "planned":
        if nodeid in items:
            items[nodeid].planned = planned_from(head)
        else:
            items[nodeid] = JournalItem(planned_from(head))
        return
    item = items.setdefault(nodeid, JournalItem(_unplanned(nodeid)))
    if kind == "skipped":
        item.skipped = head["reason"]
        return
    rerun = head["rerun"]
    item.reruns.add(rerun)
    if kind in ("started", "attempt", "carried", "imported"):
        item.started.add(rerun)
    if kind == "attempt":
        item.attempts[rerun, head["attempt"]] = spot
    elif kind == "answer":
        item.answers[rerun, head["attempt"]] = spot
    elif kind == "carried":
        _, source_rerun, source_attempt = head["source"].rsplit("|", 2)
        item.carried[rerun, head["attempt"]] = (int(source_rerun), int(source_attempt))


def _unplanned(nodeid: str) -> PlannedItem:
    path, _, name = nodeid.partition("::")
    return PlannedItem(nodeid=nodeid, path=path, name=name or nodeid, model="")


def from_folder(folder: RunFolder) -> Document:
    """The document of a run: finished, interrupted, resumed or still running."""
    return from_index(index_folder(folder), folder.read_run())[0]


def from_index(index: Index, run: Mapping[str, Any]) -> tuple[Document, list[tuple[JournalItem, int]]]:
    """The document of an index, and for each of its rows the item and the attempt's number."""
    order = {model: n for n, model in enumerate(dict.fromkeys(i.planned.model for i in index.items.values()))}
    items = sorted(index.items.values(), key=lambda item: order[item.planned.model])
    ran = [item for item in items if item.skipped is None or item.reruns]
    places = [(item, number) for item in ran for number in item.numbers()]
    rows = [row_of(scalars_of(item.planned, number, *_heads(item, number))) for item, number in places]
    skipped = [(i.planned.nodeid, i.skipped) for i in items if i.skipped is not None and not i.reruns]

    def fetch(row: int) -> dict[str, Any]:
        item, number = places[row]
        attempt, answer = item.finished(number)
        return entry_of(
            scalars_of(item.planned, number, *_heads(item, number)),
            attempt.body() if attempt else None,
            answer.body() if answer else None,
        )

    header = _header(run, index, rows, skipped)
    return Document(header, rows, lambda: map(fetch, range(len(places))), None, fetch), places


def _heads(
    item: JournalItem, number: int
) -> tuple[int | None, Mapping[str, Any] | None, Mapping[str, Any] | None]:
    attempt, answer = item.finished(number)
    began = item.last if item.last in item.started else None
    return began, attempt.head if attempt else None, answer.head if answer else None


def _header(
    run: Mapping[str, Any], index: Index, rows: Sequence[Row], skipped: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    info = {key: value for key, value in run.items() if key != "started_at"}
    if skipped:
        info["skipped"] = [{"nodeid": nodeid, "reason": reason} for nodeid, reason in skipped]
    if index.torn:
        info["torn_lines"] = index.torn
    return header_of(info, run.get("started_at") or index.first, index.last, rows, len(skipped))


def header_of(
    run: Mapping[str, Any], started_at: str, timestamp: str, rows: Sequence[Row], skipped: int
) -> dict[str, Any]:
    """A document's header, keys in the order of the format."""
    return {
        "schema_version": SCHEMA_VERSION,
        "timestamp": timestamp,
        "started_at": started_at,
        "run": dict(run),
        **totals(rows, skipped),
    }


def write_document(document: Document, path: Path) -> Path:
    """Write it (temporary file, then rename): one key a line, one results entry a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, encoding="ascii") as file:
        file.write("{\n")
        plain, _ = pack({key: value for key, value in document.header.items() if key != "results"})
        for key, value in plain.items():  # a hook may have put anything into it
            file.write(f"{dumps(key)}: {dumps(value)},\n")
        file.write('"results": [')
        for number, entry in enumerate(document.entries()):
            file.write((",\n" if number else "\n") + dumps(entry))
        file.write("\n]\n}\n")
    return path
