"""What is said once at the end of a run about files that may be cases: one line for each kind.

It is loaded in every pytest run, so it imports next to nothing. A worker of xdist sends its notes to the
controller as it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from pytest_agenteval.plugin.items import session_state

_SENT = "agenteval_notes"
_WORDS: Mapping[str, tuple[str, str]] = {
    "near misses": (
        "agenteval: {0} but asks nothing (prompt, question, say, input): not taken for a case{1}; "
        "name files of cases in agenteval_files",
        " (and {} more like it)",
    ),
    "warnings": ("agenteval: {0}{1}", " (and {} more)"),
    "unreachable": ("agenteval: agent unreachable, {n} not run (first {0}){1}", ""),
    "unchanged": ("agenteval: {0}{1}", ""),
    "overlap": ("agenteval: calls did not overlap: {0}{1}", ""),
    "elsewhere": (
        "agenteval: no case was found, but {0}{1}; cases lie below a folder named tests, or are named in "
        "agenteval_files",
        " (and {} more like it)",
    ),
}


def add_note(config: pytest.Config, kind: str, text: str) -> None:
    """Keep a note of one ``kind`` for the end of the run; equal ones are kept once."""
    session_state(config).notes.setdefault(kind, {})[text] = None


def has_note(config: pytest.Config, kind: str) -> bool:
    """Return whether there is a note of a kind."""
    return kind in session_state(config).notes


def send_notes(config: pytest.Config) -> None:
    """Hand a worker's notes to xdist."""
    if hasattr(config, "workeroutput"):
        notes = session_state(config).notes
        config.workeroutput[_SENT] = {kind: list(texts) for kind, texts in notes.items()}


def receive_notes(config: pytest.Config, node: Any) -> None:
    """Keep what a worker has sent."""
    sent: Mapping[str, Iterable[str]] = getattr(node, "workeroutput", {}).get(_SENT, {})
    for kind, texts in sent.items():
        for text in texts:
            add_note(config, kind, text)


def note_lines(config: pytest.Config) -> Iterator[str]:
    """Yield one line for each kind of note: the first, and how many more there are."""
    for kind, texts in session_state(config).notes.items():
        first, *more = texts
        line, rest = _WORDS[kind]
        yield line.format(first, rest.format(f"{len(more):,}") if more else "", n=f"{len(texts):,}")
