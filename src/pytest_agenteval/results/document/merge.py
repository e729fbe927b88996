"""Merge results files: shards, other machines, resumed and repeated runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import Document, header_of
from pytest_agenteval.results.document.entries import upgraded
from pytest_agenteval.results.document.overrides import Override, read_overrides, row_id
from pytest_agenteval.results.document.rows import CaseKey, Row

UNFINISHED = ("agent", "timeout", "worker", "reference")


@dataclass(frozen=True, slots=True)
class _Place:
    """An attempt: its document, its number there, its row."""

    document: int
    number: int
    row: Row


def merge_documents(documents: Sequence[Document]) -> Document:
    """Return one document of several: the one that a single run would have given.

    Cases come in the order of the files. The same attempt in several files (a resumed run carries its
    finished ones) counts once, the last file's; an attempt without a finished answer gives way to one
    with; different finished answers to one case are further attempts (n > k: the unbiased estimates).
    Raises ``ResultsError`` for fewer than one document.
    """
    if not documents:
        raise ResultsError("nothing to merge")
    places = _places(documents)

    def entries() -> Iterator[dict[str, Any]]:
        for place in places:
            yield upgraded(documents[place.document].entry(place.number), place.row)

    rows = [place.row for place in places]
    ran = {row.nodeid for row in rows}
    skips = [skip for document in documents for skip in document.run.get("skipped") or ()]
    skipped = {skip["nodeid"]: skip for skip in skips if skip["nodeid"] not in ran}
    header = header_of(
        _run(documents, list(skipped.values())),
        min(d.header.get("started_at") or d.header.get("timestamp") or "" for d in documents),
        max(d.header.get("timestamp") or "" for d in documents),
        rows,
        len(skipped),
    )
    return Document(header, rows, entries)


def merged_overrides(documents: Sequence[Document]) -> list[tuple[Row, Override]]:
    """Return a person's verdicts on the files, each with its row in the document that is made of them."""
    known = [read_overrides(document.path) if document.path else {} for document in documents]
    found = []
    for place in _places(documents) if any(known) else ():
        held = known[place.document].get(row_id(documents[place.document].rows[place.number]))
        if held is not None:
            found.append((place.row, held))
    return found


def _places(documents: Sequence[Document]) -> list[_Place]:
    """Return the attempts that the merged document holds, in its order."""
    groups: dict[CaseKey, list[_Place]] = {}
    for number, document in enumerate(documents):
        for index, row in enumerate(document.rows):
            groups.setdefault(row.key, []).append(_Place(number, index, row))
    models = {model: n for n, model in enumerate(dict.fromkeys(key[2] for key in groups))}
    order = sorted(groups, key=lambda key: models[key[2]])
    return [place for key in order for place in _attempts(groups[key])]


def _attempts(places: list[_Place]) -> list[_Place]:
    """Return the attempts of one case, numbered from 1: doubles once, unfinished ones only where needed."""
    by_identity: dict[object, _Place] = {}
    for place in places:
        by_identity[_identity(place.row)] = place
    finished = [place for place in by_identity.values() if _finished(place.row)]
    k = max(place.row.k for place in places)
    wanted = max(k, Counter(place.document for place in places).most_common(1)[0][1])
    open_numbers = sorted({place.row.attempt for place in places} - {p.row.attempt for p in finished})
    rest = [p for p in by_identity.values() if not _finished(p.row) and p.row.attempt in open_numbers]
    rest = list({p.row.attempt: p for p in rest}.values())[: max(0, wanted - len(finished))]
    chosen = sorted([*finished, *rest], key=lambda p: (p.row.attempt, p.document, p.number))
    return [replace(place, row=replace(place.row, attempt=n)) for n, place in enumerate(chosen, 1)]


def _identity(row: Row) -> object:
    """Return what makes two rows the same attempt: the moment of the answer;
    in files without it, all of it.
    """
    if row.answered_at:
        return row.answered_at, row.attempt
    if not _finished(row):
        return row.attempt, row.verdict, row.stage
    return replace(row, usage={})


def _finished(row: Row) -> bool:
    if row.verdict in ("passed", "failed", "review"):
        return True
    return row.verdict == "error" and row.stage not in UNFINISHED


def _run(documents: Sequence[Document], skipped: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the runs agree on; where they differ, the first one's, and the number of files merged."""
    info: dict[str, Any] = {}
    for document in documents:
        for key, value in document.run.items():
            info.setdefault(key, value)
    info.pop("gates", None)
    info.pop("skipped", None)
    if skipped:
        info["skipped"] = skipped
    superseded: dict[str, Counter[str]] = {}
    for document in documents:
        for model, entry in (document.run.get("superseded") or {}).items():
            superseded.setdefault(model, Counter()).update(entry)
    if superseded:
        info["superseded"] = {model: dict(sums) for model, sums in superseded.items()}
    contexts = {d.run.get("context_hash") for d in documents}
    if len(contexts) > 1:
        info["context_hash"] = None
    return {**info, "merged": len(documents)}
