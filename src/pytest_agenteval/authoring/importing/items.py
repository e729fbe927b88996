"""What a reader of a format makes of a source: items, and what it left out."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.cases.review import reference_digest


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """One question of a source, as far as the source says it.

    ``place`` names it within its file (``row 3``, ``line 7``, an id); ``key`` finds it again when the
    source is imported another time. ``sql`` holds the accepted references, ``answer`` a number, a text
    or ``None``. ``keys`` are further keys of the case, ``known`` says that the agent is shown the item.
    """

    place: str
    prompt: str
    sql: tuple[str, ...] = ()
    key: str = ""
    name: str = ""
    answer: int | float | str | None = None
    refuse: bool = False
    variants: tuple[str, ...] = ()
    database: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    reviewed: Mapping[str, Any] | None = None
    known: bool = False
    dialect: str | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    """Why the case is written with ``skip`` ('': it is not)."""

    @property
    def taken(self) -> str:
        """The hash of prompt and references, by which a later import sees what has changed."""
        return taken(self.prompt, self.sql)

    @property
    def identity(self) -> str:
        """``key``, else the question without case, punctuation and spaces."""
        return self.key or normalised(self.prompt)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in a source that did not become a case, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """A statement of a query log or a dashboard, without the question it answers."""

    sql: str
    runs: int = 1
    users: int = 1
    last_run: str = ""
    runnable: bool = True


@dataclass(frozen=True, slots=True)
class ReadSource:
    """All that a reader found in one source."""

    items: Sequence[ImportedItem] = ()
    left_out: Sequence[LeftOut] = ()
    queries: Sequence[LoggedQuery] = ()
    warnings: Sequence[str] = ()


def clean_prompt(text: str) -> str:
    """Return the prompt in NFC without outer blanks; nothing else of it changes."""
    return unicodedata.normalize("NFC", text).strip()


def normalised(text: str) -> str:
    """Return a question reduced to what makes two of them the same."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(sign if sign.isalnum() else " " for sign in folded).split())


def taken(prompt: str, sql: Sequence[str]) -> str:
    """Return the SHA-256 of a prompt and its references."""
    return reference_digest(prompt, sql)
