"""Large files of other programs, indexed: where each entry of ``results`` lies, with one in memory.

A window moves over the text and the standard decoder reads value after value in it: about the time
that ``json.load`` takes, without its memory.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

CHUNK = 4 * 1024**2
"""Bytes read at a time."""

_BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class StreamingIndex:
    """The header of a file, and the bytes (start, end) of each of its results."""

    path: Path
    header: dict[str, Any]
    spans: list[tuple[int, int]]

    def entry(self, number: int) -> dict[str, Any]:
        """Return the whole entry, counted from 0."""
        start, end = self.spans[number]
        with open(self.path, "rb") as file:
            file.seek(start)
            return dict(json.loads(file.read(end - start)))

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield all entries, in order."""
        with open(self.path, "rb") as file:
            for start, end in self.spans:
                file.seek(start)
                yield json.loads(file.read(end - start))


def index_foreign(
    path: Path,
    visit: Callable[[dict[str, Any]], object],
    progress: Callable[[float], object] | None = None,
) -> StreamingIndex:
    """Index a file; ``visit`` is given each entry once. Raises ``ValueError`` for what is not a results
    file.
    """
    header: dict[str, Any] = {}
    spans: list[tuple[int, int]] | None = None
    with open(path, "rb") as file:
        window = _Window(file, path.stat().st_size, progress)
        for key in _members(window):
            if key == "results":
                spans = _results(window, visit)
            else:
                header[key] = window.value()
    if spans is None:
        raise ValueError("there is no 'results' in it")
    return StreamingIndex(path, header, spans)


def _members(window: _Window) -> Iterator[str]:
    window.take("{")
    if window.peek() == "}":
        return
    while True:
        key = window.value()
        if not isinstance(key, str):
            raise ValueError(f"a key is a text, not {key!r}")
        window.take(":")
        yield key
        if window.take(",}") == "}":
            return


def _results(window: _Window, visit: Callable[[dict[str, Any]], object]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    if window.peek() != "[":
        raise ValueError("'results' is not a list")
    window.take("[")
    if window.peek() == "]":
        window.take("]")
        return spans
    while True:
        window.peek()
        start = window.byte
        entry = window.value()
        spans.append((start, window.byte))
        visit(entry)
        if window.take(",]") == "]":
            return spans


class _Window:
    """A part of the text, read on when a value does not end in it. ``byte``: where in the file we are."""

    def __init__(self, file: BinaryIO, size: int, progress: Callable[[float], object] | None) -> None:
        self.byte = 0
        self._file, self._size, self._progress = file, max(size, 1), progress
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._scan = json.JSONDecoder().raw_decode
        self._text, self._at, self._end = "", 0, False
        if file.read(3) == codecs.BOM_UTF8:
            self.byte = 3
        else:
            file.seek(0)

    def peek(self) -> str:
        """Return the next character that is not a blank. Raises ``ValueError`` at the end."""
        while True:
            hit = _BLANK.match(self._text, self._at)
            self._move(hit.end() if hit else self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            self._more()

    def take(self, wanted: str) -> str:
        """Return the next character, one of ``wanted``."""
        found = self.peek()
        if found not in wanted:
            raise ValueError(f"{' or '.join(wanted)} expected at byte {self.byte}, not {found!r}")
        self._move(self._at + 1)
        return found

    def value(self) -> Any:
        """Return the next JSON value."""
        self.peek()
        while True:
            try:
                found, end = self._scan(self._text, self._at)
            except json.JSONDecodeError:
                if self._end:
                    raise
            else:
                # a number may go on behind the edge: "1" of "10", "1" of "1." or "1e+"
                if self._end or (end < len(self._text) and self._text[end] not in ".eE+-"):
                    self._move(end)
                    return found
            self._more()

    def _move(self, end: int) -> None:
        passed = self._text[self._at : end]
        self.byte += len(passed) if passed.isascii() else len(passed.encode())
        self._at = end

    def _more(self) -> None:
        if self._end:
            raise ValueError("the file ends in the middle")
        kept = self._text[self._at :]
        # of a value longer than the window twice as much each time, or it would be read over and over
        read = self._file.read(max(CHUNK, len(kept)))
        self._end = not read
        self._text, self._at = kept + self._decoder.decode(read, final=self._end), 0
        if self._progress is not None:
            self._progress(min(1.0, self.byte / self._size))
