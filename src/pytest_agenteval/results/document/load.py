"""Reading results: our documents, folders of unfinished runs, and files of nao, dazense and pda.

Ours have one entry a line, scalars first, so that totals of 200 MB are read without parsing a table.
Others are parsed whole when small and indexed entry by entry when large.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import SCHEMA_VERSION, Document, from_folder
from pytest_agenteval.results.document.entries import has_answer
from pytest_agenteval.results.document.rows import Row, row_of, usage_of, with_counted_k
from pytest_agenteval.results.document.streaming import index_foreign
from pytest_agenteval.results.document.totals import totals
from pytest_agenteval.results.journal.records import answer_from
from pytest_agenteval.results.journal.run_folder import RunFolder, documents, newest_first, run_folders
from pytest_agenteval.support.json_codec import unpack
from pytest_agenteval.table import Table
from pytest_agenteval.types import Answer, Findings

LARGE = 32 * 1024**2
"""Bytes above which a foreign file is indexed, with one entry in memory."""

ENDING = 64
"""Bytes in which a results file of ours ends."""
SCALARS_END = b',"asked":'
WANTED = "needed is the results file of a run, results_*.json in tests/outputs"
TOTALS = {"cases", "summary", "by_model", "pass_metrics"}
RESULTS_LINE = b'"results": ['


def read_document(
    path: Path | str, *, progress: Callable[[float], object] | None = None, ended: bool = False
) -> Document:
    """Return a results file, or the folder of an unfinished run, as a document.

    A folder whose run goes on is what there is so far, with the verdict ``running``, unless it is to be
    read as if it had ``ended``. ``progress`` gets the share (0..1) of a large foreign file that has
    been read. Raises ``ResultsError`` for what is missing, broken, not a results file, or written by a
    newer version of this package.
    """
    place = Path(path)
    if place.is_dir():
        return _read_folder(place, ended)
    if not place.is_file():
        raise ResultsError(f"{place}: no such results file or folder")
    try:
        document = _read_ours(place) if _is_ours(place) else _read_foreign(place, progress)
    except json.JSONDecodeError as error:
        place_of = f"line {error.lineno}, column {error.colno}"
        raise ResultsError(
            f"{place}: not a results file but no JSON ({error.msg}: {place_of}); {WANTED}"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ResultsError(f"{place}: not a results file ({type(error).__name__}: {error})") from error
    version = document.header.get("schema_version", 0)
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise ResultsError(
            f"{place}: schema_version {version} is newer than {SCHEMA_VERSION}, the newest that this "
            "version reads; install a newer pytest-agenteval"
        )
    return document


def _read_folder(place: Path, ended: bool) -> Document:
    folder = RunFolder.open(place)
    if not folder.journals():
        raise ResultsError(f"{place}: not the folder of a run (no .jsonl file in it)")
    document = from_folder(folder, live=folder.live and not ended)
    return replace(document, path=place)


def findings_of(entry: Mapping[str, Any]) -> Findings | None:
    """What an entry says was found out about its verdict, as an attempt holds it (``None``: nothing)."""
    luck, cause, lines = (entry.get(name) for name in ("luck", "cause", "sql_difference"))
    found = Findings(
        luck if isinstance(luck, Mapping) else None,
        cause if isinstance(cause, Mapping) else None,
        lines if isinstance(lines, list) else (),
    )
    return found if found.luck or found.cause or found.sql_difference else None


def header_of_file(path: Path) -> dict[str, Any] | None:
    """Return the header of a results file of this plugin, read without its results;
    ``None`` for any other file.

    Also ``None`` where totals are missing or the version is newer: the whole file says more. Raises
    ``ResultsError`` where the file ends in the middle.
    """
    try:
        if not _is_ours(path):
            return None
        lines: list[bytes] = []
        with open(path, "rb") as file:
            for line in file:
                if line.startswith(RESULTS_LINE):
                    break
                lines.append(line)
        if not _ends_whole(path):
            raise ValueError("the file ends in the middle")
        header = _header_from(lines)
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: not a results file ({type(error).__name__}: {error})") from error
    known = isinstance(header.get("schema_version"), int) and header["schema_version"] <= SCHEMA_VERSION
    return header if known and header.keys() >= TOTALS else None


def past_documents(
    output_dir: Path, unreadable: Callable[[ResultsError], object] = lambda error: None
) -> Iterator[Document]:
    """Yield the results below ``output_dir`` that hold a case, newest first, each read when it is asked for.

    A run in which every case was skipped (``agenteval_run = explicit``) is nothing to go on with or to
    compare with. A file that cannot be read is left out, and ``unreadable`` gets the reason: other programs
    write there too, and a full disk leaves half a file.
    """
    for path in documents(output_dir):
        try:
            header = header_of_file(path)
            if header is None or header["summary"].get("total"):
                yield read_document(path)
        except ResultsError as error:
            unreadable(error)


def last_run(output_dir: Path) -> Path | None:
    """Return the newest run: its folder where it is unfinished, else its document; ``None``: no run yet.

    A file that cannot be read is not it (:func:`left_out`).
    """
    begun = [folder for folder in run_folders(output_dir) if any(folder.glob("*.jsonl"))]
    past = (document.path for document in past_documents(output_dir) if document.path is not None)
    found = newest_first([*begun[:1], *islice(past, 1)])
    if not found:
        return None
    folder = found[0].with_suffix("")
    return folder if folder.is_dir() else found[0]


def left_out(output_dir: Path) -> list[str]:
    """Return why the files that look newer than the last run are not it:
    each name, and what is wrong with it.
    """
    found: list[ResultsError] = []
    next(past_documents(output_dir, found.append), None)
    return [str(error).removeprefix(f"{output_dir}/") for error in found]


def _header_from(lines: list[bytes]) -> dict[str, Any]:
    return dict(json.loads(b"".join(lines).rstrip().removesuffix(b",") + b"}"))


def _is_ours(place: Path) -> bool:
    with open(place, "rb") as file:
        return file.readline().strip() == b"{" and file.readline().startswith(b'"schema_version":')


def _read_ours(place: Path) -> Document:
    header_lines: list[bytes] = []
    rows: list[Row] = []
    offsets: list[int] = []
    at = 0
    with open(place, "rb") as file:
        for line in file:
            if offsets or line.startswith(RESULTS_LINE):
                if line.startswith(b'{"'):
                    rows.append(row_of(json.loads(_head(line))))
                offsets.append(at)
            else:
                header_lines.append(line)
            at += len(line)
    if not _ends_whole(place):
        raise ValueError("the file ends in the middle")
    header = _header_from(header_lines)
    starts = offsets[1 : len(rows) + 1]

    def fetch(number: int) -> dict[str, Any]:
        with open(place, "rb") as file:
            file.seek(starts[number])
            return dict(json.loads(file.readline().rstrip().removesuffix(b",")))

    return Document(header, rows, lambda: _our_entries(place), place, fetch)


def _head(line: bytes) -> bytes:
    cut = line.find(SCALARS_END)
    return line[:cut] + b"}" if cut >= 0 else line.rstrip().removesuffix(b",")


def _ends_whole(place: Path) -> bool:
    with open(place, "rb") as file:
        file.seek(max(file.seek(0, 2) - ENDING, 0))
        # git may have written CRLF, an editor taken the last newline or added one
        return file.read().replace(b"\r", b"").rstrip().endswith(b"\n]\n}")


def _our_entries(place: Path) -> Iterator[dict[str, Any]]:
    with open(place, "rb") as file:
        inside = False
        for line in file:
            if inside and line.startswith(b'{"'):
                yield json.loads(line.rstrip().removesuffix(b","))
            inside = inside or line.startswith(RESULTS_LINE)


def _read_foreign(place: Path, progress: Callable[[float], object] | None) -> Document:
    if place.stat().st_size > LARGE:
        rows: list[Row] = []
        index = index_foreign(place, lambda entry: rows.append(row_of(entry)), progress)
        return _foreign(index.header, rows, index.entries, place, index.entry)
    found = json.loads(place.read_bytes().decode("utf-8-sig"))
    if not isinstance(found, dict) or "results" not in found:
        summary = isinstance(found, dict) and found.keys() >= TOTALS
        what = "a summary (--agent-summary)" if summary else "JSON without `results`"
        raise ResultsError(f"{place}: not a results file but {what}; {WANTED}")
    results = found["results"]
    if not isinstance(results, list):
        raise ValueError("'results' is not a list")
    header = {key: value for key, value in found.items() if key != "results"}
    return _foreign(header, [row_of(entry) for entry in results], lambda: iter(results), place)


def _foreign(
    header: Mapping[str, Any],
    found: list[Row],
    entries: Callable[[], Iterator[dict[str, Any]]],
    place: Path,
    fetch: Callable[[int], dict[str, Any]] | None = None,
) -> Document:
    """Make totals anew (nao's ``failed`` counts errors), so that every file is counted alike."""
    rows = with_counted_k(found)
    known = {"schema_version": 0, "timestamp": "", "started_at": None, "run": {}}
    return Document({**known, **header, **totals(rows)}, rows, entries, place, fetch)


def answer_of(entry: Mapping[str, Any]) -> Answer | None:
    """Return the answer of a results entry, with its types; ``None`` where the agent gave none."""
    details = entry.get("details") or {}
    if not has_answer(details):
        return None
    usage = {key: value for key, value in (usage_of(entry)["agent"] or {}).items() if key != "cost"}
    body = {
        key: details.get(key) for key in ("response_text", "tool_calls", "conversation", "answer", "types")
    }
    said = {"cost": entry.get("cost"), **(body.pop("answer") or {})}
    return answer_from(
        {**body, "answer": said, "usage": usage, "wire_attempts": entry.get("wire_attempts") or []}
    )


def table_of(details: Mapping[str, Any], name: str) -> Table | None:
    """Return ``expected_table`` or ``actual_table`` of an entry's details, with its types.

    Files of nao hold ``expected_data`` / ``actual_data`` only; their columns have no types.
    """
    held = details.get(name)
    if held is None:
        records = details.get(name.replace("_table", "_data"))
        return Table.from_records(records) if isinstance(records, list) else None
    kinds = details.get("types") or {}
    own = {
        path.removeprefix(f"/{name}"): kind for path, kind in kinds.items() if path.startswith(f"/{name}/")
    }
    found = unpack({key: held[key] for key in ("columns", "rows", "row_count")}, {**own, "": "table"})
    return found if isinstance(found, Table) else None
