"""Whether a person has approved a case: ``metadata.reviewed``, and what it was approved of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Literal

from pytest_agenteval.cases.model import Case

ReviewState = Literal["approved", "unreviewed", "stale", "unknown"]


def reference_digest(prompt: str, references: Iterable[str]) -> str:
    """Return the sha256 (hex) of a prompt and its reference SQL, without blanks around them."""
    texts = [text.strip() for text in (prompt, *references)]
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def review_sha(case: Case) -> str:
    """Return what ``reviewed.sha`` of an approved case is: 12 digits of its digest."""
    return reference_digest("\n".join(turn.say for turn in case.turns), case.statements)[:12]


def is_made(case: Case) -> bool:
    """Return whether ``import``, ``add`` or ``draft`` wrote the case."""
    return isinstance(case.metadata.get("source"), Mapping)


def review_state(case: Case, today: date | None = None) -> ReviewState:
    """Return the state of a case.

    ``stale``: it was approved with another prompt or reference (``sha``), or until a day that has passed
    (``expires``). ``unknown``: the case does not say, and a person wrote it.
    """
    held = case.metadata.get("reviewed")
    if isinstance(held, Mapping):
        sha, expires = held.get("sha"), held.get("expires")
        if sha is not None and not review_sha(case).startswith(str(sha)[:12]):
            return "stale"
        if expires is not None and _passed(expires, today or date.today()):
            return "stale"
        return "approved"
    if held is True:
        return "approved"
    return "unreviewed" if held is False or is_made(case) else "unknown"


def _passed(expires: object, today: date) -> bool:
    """Return whether a day has passed; what cannot be read as a day has: no approval lasts by a typo."""
    if isinstance(expires, datetime):
        return expires.date() < today
    if isinstance(expires, date):
        return expires < today
    try:
        return date.fromisoformat(str(expires)[:10]) < today
    except ValueError:
        return True
