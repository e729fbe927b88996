"""Did the agent read the answer key? A case file named, or the reference SQL in what a tool returned."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_agenteval.support.text import cut_line
from pytest_agenteval.types import Answer, ToolCall

WINDOW = 40
"""So many characters of a reference in a tool's result are not a coincidence."""


BUNDLE = "dataset.yaml"


OUTPUTS = re.compile(r"(?<![\w./~-])[\w./~-]{0,300}?\bresults_\d{8}_\d{6}[\w./-]*+")
"""Files and folders of runs: what they hold has expected values in it."""

_RECORDED = re.compile(r'"(?:expected_data|expected_table|reference_sql|reference_hash)\\?"\s?:')
_KEY_FILES = re.compile(r"\b(?:sql_file|file)\s*:\s*[\"']?([\w./-]+\.\w+)")
_PATH_LINE = re.compile(
    r"[\s\"'|`+\u2500-\u257f.-]*+(?:[dl-][rwxstST-]{9}[ .+@].{0,200}|\d{1,12}\s+)?"
    r"[\w./\\~@()\[\]-]*+[\s\"',*/:]*+"
)
_ENCODED = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{40,}={0,2}")


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What an agent must not read.

    ``files`` are paths relative to rootdir: of case files, and of the files that they name; ``references``
    the SQL of the case, ``expected`` the values it was given with as (column, value).
    """

    files: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    expected: tuple[tuple[str, str], ...] = ()


def key_files(case_file: Path, root: Path) -> tuple[str, ...]:
    """Return the files that a case file names as references and expected rows, relative to ``root``."""
    try:
        text = case_file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    found = {(case_file.parent / name).resolve() for name in _KEY_FILES.findall(text)}
    return tuple(sorted(path.relative_to(root).as_posix() for path in found if path.is_relative_to(root)))


def leaked(answer: Answer, case_files: Iterable[str], references: Iterable[str]) -> str | None:
    """Return ``answer key read: read_file tests/total_revenue.yml``, or ``None``; see :func:`key_read`."""
    return key_read(answer, AnswerKey(tuple(case_files), tuple(references)))


def key_read(answer: Answer, key: AnswerKey) -> str | None:
    """Return ``answer key read: read_file tests/total_revenue.yml``, or ``None``.

    What counts: a file of the key or of a run's results named together with its content, 40 characters of
    a reference in what a tool gave (also encoded in base64), two expected values beside their column names.
    What the agent wrote itself (the arguments of this call and of those before it) may come back: that is
    not a leak; nor is a list of names (:func:`key_listed`). Bundles (``dataset.yaml``) hold governance
    cases, yet an agent has to read them.
    """
    if not answer.tool_calls:
        return None
    files = _files(key)
    keys = [folded for folded in map(_fold, key.references) if len(folded) >= WINDOW]
    written = ""
    for call in answer.tool_calls:
        args, results = list(_texts(call.args)), _results(call)
        written += "\n" + _fold(" ".join(args))
        named = _named_file(files, args, results) or _outputs_named(args, results)
        if named is not None and _has_content(named, args, results, call):
            return f"answer key read: {call.name} {named}"
        texts = [*results, *_decoded(results)]
        if any(_holds(reference, _fold(text), written) for text in texts for reference in keys):
            return f"answer key read: {call.name} {_subject(call)}".rstrip()
        if any(_RECORDED.search(text) for text in results) or _shows_expected(key.expected, args, texts):
            return f"answer key read: {call.name} {_subject(call)}".rstrip()
    return None


def key_listed(answer: Answer, key: AnswerKey) -> str | None:
    """Return ``answer key listed: find tests/total_revenue.yml``: the agent knows the name, no more."""
    files = _files(key)
    for call in answer.tool_calls:
        args, results = list(_texts(call.args)), _results(call)
        named = _named_file(files, args, results)
        if named is not None and not _has_content(named, args, results, call):
            return f"answer key listed: {call.name} {named}"
    return None


def _files(key: AnswerKey) -> list[str]:
    return [_slashes(path) for path in key.files if PurePosixPath(path).name != BUNDLE]


def _results(call: ToolCall) -> list[str]:
    return [*_texts(call.result), *([call.error] if call.error else [])]


def _outputs_named(args: list[str], results: list[str]) -> str | None:
    """Return the file of a run's results that the arguments of a call name."""
    found = next((hit for text in args if (hit := OUTPUTS.search(_slashes(text)))), None)
    return None if found is None else found[0]


def _has_content(named: str, args: list[str], results: list[str], call: ToolCall) -> bool:
    """Return whether a call that named a file shows more of it than its name."""
    if call.status == "error":
        return False
    by_call = named in _slashes("\n".join(args)) or PurePosixPath(named).name in "\n".join(args)
    if not results:
        return by_call  # it was asked for, and what came back is not known
    lines = [line for text in results for line in _slashes(text).splitlines() if line.strip()]
    if by_call:
        return not all(_PATH_LINE.fullmatch(line) for line in lines) or not any(
            PurePosixPath(named).name in line for line in lines
        )
    # found by a search: tests/x.yml:3:  sql: SELECT ...
    searched = re.compile(rf"(?:^|/){re.escape(PurePosixPath(named).name)}[:-]\s?(?:\d+[:-])?\s?\S")
    return any(searched.search(line) for line in lines) or _hit_with_text(call.result, named)


def _hit_with_text(value: Any, named: str) -> bool:
    """Return whether a map in a result names the file and holds text beside it: a hit of a search."""
    if isinstance(value, list | tuple):
        return any(_hit_with_text(entry, named) for entry in value)
    if not isinstance(value, Mapping):
        return False
    own = [entry for entry in value.values() if isinstance(entry, str)]
    names = any(_slashes(text).endswith(PurePosixPath(named).name) for text in own)
    prose = any(len(text) > 10 and _PATH_LINE.fullmatch(_slashes(text)) is None for text in own)
    return (names and prose) or any(_hit_with_text(entry, named) for entry in value.values())


def _decoded(results: list[str]) -> Iterator[str]:
    """Yield what stands in base64 in ``results``."""
    for text in results:
        for hit in islice(_ENCODED.finditer(text), 50):
            with contextlib.suppress(ValueError):
                yield base64.b64decode(hit[0] + "=" * (-len(hit[0]) % 4)).decode("utf-8", "replace")


def _shows_expected(expected: tuple[tuple[str, str], ...], args: list[str], texts: list[str]) -> bool:
    """Return whether a text shows two expected values beside their column names, as a case file has them.

    What a query printed looks alike, so a call that ran one is not looked at.
    """
    if len(expected) < 2 or re.search(r"\bselect\b", " ".join(args), re.IGNORECASE):
        return False
    for text in texts:
        held = {
            (name, value)
            for name, value in expected
            if re.search(rf"(?<!\w){re.escape(name)}[\"']?\s?:\s?[\"']?{re.escape(value)}(?![\w.])", text)
        }
        if len(held) >= 2:
            return True
    return False


def _named_file(files: list[str], args: list[str], results: list[str]) -> str | None:
    """Return the file of the key that a call names: by its path, or by its name and its folder."""
    everything = _slashes("\n".join((*args, *results)))
    for path in files:
        name = PurePosixPath(path).name
        if name not in everything:
            continue
        if _occurs(path, everything):
            return path
        folder = PurePosixPath(path).parent.name
        words = [_slashes(text).strip("./") for text in args]
        below = any(word == folder or word.endswith("/" + folder) for word in words)
        if folder and below and re.search(rf"(?:^|[\s\"'])(?:\./)?{re.escape(name)}(?![\w.])", everything):
            return path
    return None


def _occurs(path: str, text: str) -> bool:
    """Return ``tests/x.yml``, also as the end of a longer path; not as a part of another name."""
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?!\w|\.\w)", text) is not None


def _holds(key: str, text: str, written: str) -> bool:
    """Return whether ``text`` holds 40 characters of ``key`` that the agent had not written itself.

    Any 40 characters of the key hold a whole block of 20 that starts at a multiple of 20, so only
    those are searched for, and each hit is widened.
    """
    half = WINDOW // 2
    for start in range(0, len(key) - half + 1, half):
        block = key[start : start + half]
        place = text.find(block)
        while place >= 0:
            common = _widen(key, start, text, place)
            # one long name of a table is not part of an answer: a schema or an error may hold it
            if len(common) >= WINDOW and len(common.split()) > 2 and common not in written:
                return True
            place = text.find(block, place + 1)
    return False


def _widen(key: str, start: int, text: str, place: int) -> str:
    """Return the longest run that ``key`` around ``start`` and ``text`` around ``place`` have in common."""
    left = 0
    while left < min(start, place) and key[start - left - 1] == text[place - left - 1]:
        left += 1
    right = WINDOW // 2
    while (
        start + right < len(key) and place + right < len(text) and key[start + right] == text[place + right]
    ):
        right += 1
    return key[start - left : start + right]


def _texts(value: Any) -> Iterator[str]:
    """Yield every text inside ``value``, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _texts(key)
            yield from _texts(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _texts(entry)


def _fold(text: str) -> str:
    """Return blanks (also those escaped in JSON text) folded to one, a final ``;`` dropped."""
    return re.sub(r"(?:\s|\\[nrt])+", " ", text.replace('\\"', '"')).strip().rstrip("; ").casefold()


def _slashes(path: str) -> str:
    return path.replace("\\\\", "/").replace("\\", "/")


def _subject(call: ToolCall) -> str:
    """Return what the call was about: its first text argument, on one line."""
    first = next((text for key, text in _pairs(call.args) if text), "")
    return cut_line(first, 80)


def _pairs(args: Any) -> Iterator[tuple[str, str]]:
    if isinstance(args, str):
        yield "", args
    if isinstance(args, Mapping):
        yield from ((str(key), value) for key, value in args.items() if isinstance(value, str))
