"""The results document: a pure function of a run's folder, streamed with one entry in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_agenteval.results.document.entries import entry_of, scalars_of
from pytest_agenteval.results.document.rows import CaseRow, Row, cases_of, row_of
from pytest_agenteval.results.document.totals import causes_of, totals
from pytest_agenteval.results.journal.index import Index, JournalItem, index_folder
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.support.files import replacing
from pytest_agenteval.support.json_codec import dumps, pack
from pytest_agenteval.types import DEFAULT_SQL_TOOLS

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
        """Return the whole entry of ``rows[number]``; quick for our files, for others as far as it stands."""
        if self.fetch is not None:
            return self.fetch(number)
        return next(islice(self.entries(), number, None))

    @property
    def run(self) -> dict[str, Any]:
        """What is known of the run ({} for files of other programs)."""
        return self.header.get("run") or {}

    @property
    def sql_tools(self) -> tuple[str, ...]:
        """The tools whose calls are queries: what the run was given, else the default."""
        given = (self.run.get("config") or {}).get("sql_tools")
        return tuple(map(str, given)) if isinstance(given, list) and given else DEFAULT_SQL_TOOLS


def from_folder(folder: RunFolder, *, live: bool = False) -> Document:
    """Return the document of a run that ended (finished, interrupted, resumed),
    or of a ``live`` one so far.
    """
    return from_index(index_folder(folder), folder.read_run(), live=live)[0]


def from_index(
    index: Index, run: Mapping[str, Any], *, live: bool = False
) -> tuple[Document, list[tuple[JournalItem, int]]]:
    """Return the document of an index, and for each of its rows the item and the attempt's number."""
    order = {model: n for n, model in enumerate(dict.fromkeys(i.planned.model for i in index.items.values()))}
    items = sorted(
        (item for item in index.items.values() if item.counts), key=lambda item: order[item.planned.model]
    )
    ran = [item for item in items if item.skipped is None or item.reruns]
    places = [(item, number) for item in ran for number in item.numbers()]

    def scalars(item: JournalItem, number: int) -> dict[str, Any]:
        return scalars_of(item.planned, number, *item.heads(number), live=live)

    rows = [row_of(scalars(item, number)) for item, number in places]
    skipped = [(i.planned.nodeid, i.skipped) for i in items if i.skipped is not None and not i.reruns]

    def fetch(row: int) -> dict[str, Any]:
        item, number = places[row]
        attempt, answer = item.finished(number)
        return entry_of(
            scalars(item, number),
            attempt.body() if attempt else None,
            answer.body() if answer else None,
        )

    header = _header({**run, "running": True} if live else run, index, rows, skipped)
    return Document(header, rows, lambda: map(fetch, range(len(places))), None, fetch), places


def _header(
    run: Mapping[str, Any], index: Index, rows: Sequence[Row], skipped: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    info = {key: value for key, value in run.items() if key != "started_at"}
    if skipped:
        info["skipped"] = [{"nodeid": nodeid, "reason": reason} for nodeid, reason in skipped]
    if index.torn:
        info["torn_lines"] = index.torn
    if superseded := _superseded(index):
        info["superseded"] = superseded
    if index.foreign:
        info["foreign_lines"] = list(index.foreign)
    return header_of(info, run.get("started_at") or index.first, index.last, rows, len(skipped))


def _superseded(index: Index) -> dict[str, dict[str, Any]]:
    """Return by model what answers have cost that a later rerun replaced."""
    found: dict[str, dict[str, Any]] = {}
    for item in index.items.values():
        for answer in item.superseded():
            entry = found.setdefault(item.planned.model, {"answers": 0, "tokens": 0, "cost": 0.0})
            entry["answers"] += 1
            entry["tokens"] += answer.head["head"].get("tokens") or 0
            entry["cost"] = round(entry["cost"] + (answer.head["head"].get("cost") or 0.0), 10)
    return found


def header_of(
    run: Mapping[str, Any], started_at: str, timestamp: str, rows: Sequence[Row], skipped: int
) -> dict[str, Any]:
    """Return a document's header, keys in the order of the format."""
    causes = causes_of(rows)
    return {
        "schema_version": SCHEMA_VERSION,
        "timestamp": timestamp,
        "started_at": started_at,
        "run": {**run, **({"causes": causes} if causes else {})},
        **totals(rows, skipped, run.get("superseded")),
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
