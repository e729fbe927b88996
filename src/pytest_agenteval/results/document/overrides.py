"""Verdicts that a person has overridden: ``results_X.overrides.json`` beside the results."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import Document, header_of
from pytest_agenteval.results.document.rows import Row
from pytest_agenteval.support.files import write_atomic

LABELS = ("the case is wrong", "the context is wrong", "the agent is wrong")


@dataclass(frozen=True, slots=True)
class Override:
    """A person's verdict on one attempt, with a note and a triage label (one of ``LABELS``)."""

    verdict: Literal["passed", "failed"]
    note: str = ""
    label: str | None = None
    at: str | None = None


def overrides_path(results: Path) -> Path:
    """Return ``results_X.overrides.json`` of ``results_X.json`` or of the folder ``results_X``."""
    return results.with_name(results.name.removesuffix(".json") + ".overrides.json")


def row_id(row: Row) -> str:
    """Return the identity of an attempt in an overrides file: path|name|model|attempt."""
    return "|".join([*row.key, str(row.attempt)])


def read_overrides(results: Path) -> dict[str, Override]:
    """Return the overrides of a results file, by :func:`row_id`. Raises ``ResultsError`` for a broken
    file.
    """
    place = overrides_path(results)
    if not place.exists():
        return {}
    try:
        found = json.loads(place.read_bytes())["overrides"]
        return {key: _override(value) for key, value in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ResultsError(f"{place}: not an overrides file ({type(error).__name__}: {error})") from error


def _override(value: Mapping[str, Any]) -> Override:
    if value["verdict"] not in ("passed", "failed"):
        raise ValueError(f"verdict {value['verdict']!r} is not passed or failed")
    return Override(value["verdict"], value.get("note") or "", value.get("label"), value.get("at"))


def write_override(results: Path, row: Row, override: Override | None) -> None:
    """Keep (or with ``None`` take back) a person's verdict on ``row``."""
    place = overrides_path(results)
    with _held(place):
        _write(results, place, row, override)


@contextlib.contextmanager
def _held(place: Path) -> Iterator[None]:
    """Hold the file for this thread of this process alone: two tabs may click at once."""
    lock = place.with_name(f".{place.name}.lock")
    descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(results: Path, place: Path, row: Row, override: Override | None) -> None:
    known = read_overrides(results)
    known.pop(row_id(row), None)
    if override is not None:
        known[row_id(row)] = override
    values = {
        key: {"verdict": o.verdict, "note": o.note, "label": o.label, "at": o.at} for key, o in known.items()
    }
    write_atomic(place, json.dumps({"schema_version": 1, "overrides": values}, indent=1))


def keep_overrides(results: Path, held: Iterable[tuple[Row, Override]]) -> int:
    """Keep a person's verdicts with results that were made of those they stood beside; return how many."""
    count = 0
    for row, override in held:
        write_override(results, row, override)
        count += 1
    return count


def overrides_of(results: Path, rows: Iterable[Row]) -> list[tuple[Row, Override]]:
    """Return a person's verdicts on ``results``, each with its row among ``rows``."""
    known = read_overrides(results)
    return [(row, known[row_id(row)]) for row in rows if row_id(row) in known]


def with_overrides(document: Document) -> Document:
    """Return the document with a person's verdicts in place of its own; ``run.overrides`` counts them."""
    known = read_overrides(document.path) if document.path is not None else {}
    if not known:
        return document
    rows = [_overridden(row, known.get(row_id(row))) for row in document.rows]
    applied = sum(new is not old for new, old in zip(rows, document.rows, strict=True))
    old = document.header
    skipped = old["cases"].get("skipped", 0)
    header = header_of(
        {**document.run, "overrides": applied}, old.get("started_at") or "", old["timestamp"], rows, skipped
    )
    return replace(document, header=header, rows=rows)


def _overridden(row: Row, override: Override | None) -> Row:
    if override is None:
        return row
    note = f" ({override.note})" if override.note else ""
    message = f"overridden: {override.verdict}{note}; was: {row.message}"
    return replace(row, verdict=override.verdict, message=message, why_text="")
