"""Did the agent read the answer key? A case file named, or the reference SQL in what a tool returned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from pytest_agenteval.support.text import cut_line
from pytest_agenteval.types import Answer, ToolCall

WINDOW = 40
"""So many characters of a reference in a tool's result are not a coincidence."""


BUNDLE = "dataset.yaml"


def leaked(answer: Answer, case_files: Iterable[str], references: Iterable[str]) -> str | None:
    """Return ``answer key read: read_file tests/total_revenue.yml``, or ``None``.

    ``case_files`` are paths relative to rootdir, ``references`` the SQL of the case. What the agent
    wrote itself (the arguments of this call and of those before it) may come back: that is not a leak.
    Bundles (``dataset.yaml``) hold governance cases, yet an agent has to read them.
    """
    if not answer.tool_calls:
        return None
    files = [_slashes(path) for path in case_files if PurePosixPath(path).name != BUNDLE]
    keys = [folded for folded in map(_fold, references) if len(folded) >= WINDOW]
    written = ""
    for call in answer.tool_calls:
        args = list(_texts(call.args))
        results = [*_texts(call.result), *([call.error] if call.error else [])]
        written += "\n" + _fold(" ".join(args))
        named = _named_file(files, args, results)
        if named is not None:
            return f"answer key read: {call.name} {named}"
        if any(_holds(key, _fold(text), written) for text in results for key in keys):
            return f"answer key read: {call.name} {_subject(call)}".rstrip()
    return None


def _named_file(files: list[str], args: list[str], results: list[str]) -> str | None:
    """Return the case file a call names: by its path, or by its name where its folder is named too."""
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
    return re.sub(r"(?:\s|\\[nrt])+", " ", text.replace('\\"', '"')).strip().rstrip("; ")


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
