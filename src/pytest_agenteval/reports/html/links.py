"""How pages refer to each other: addresses on a server, fragments in the one-file report."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import quote, urlencode

from pytest_agenteval.reports.html.filters import PageQuery


class Links(Protocol):
    """Where things are, from the pages of one run."""

    def run(self, query: PageQuery | None = None, **changes: object) -> str:
        """Return the run's page, with a query."""
        ...

    def attempt(self, number: int, query: PageQuery | None = None) -> str:
        """Return the page of an attempt (``number`` of the results entry, from 1)."""
        ...

    def history(self, path: str, name: str) -> str | None:
        """Return a case over runs; ``None`` where there is no such page."""
        ...


class ServerLinks:
    """Addresses of the viewer for one run."""

    def __init__(self, run_id: str) -> None:
        self._base = f"/runs/{quote(run_id, safe='')}"

    def run(self, query: PageQuery | None = None, **changes: object) -> str:
        """Return ``/runs/ID?show=failures``."""
        return self._base + (query.text(**changes) if query is not None else "")

    def attempt(self, number: int, query: PageQuery | None = None) -> str:
        """Return ``/runs/ID/attempts/3?show=failures``: the query keeps previous and next within the
        filter.
        """
        kept = query.text(page=1) if query is not None else ""
        return f"{self._base}/attempts/{number}{kept}"

    def history(self, path: str, name: str) -> str | None:
        """Return ``/history?path=...&name=...``."""
        return f"/history?{urlencode({'path': path, 'name': name})}"

    def file(self, name: str) -> str:
        """Return ``/runs/ID/NAME``: the results file or the one-file report."""
        return f"{self._base}/{name}"


class PageLinks:
    """Fragments within the one-file report."""

    def run(self, query: PageQuery | None = None, **changes: object) -> str:
        """Return the top; filters are the script's business there."""
        return "#top"

    def attempt(self, number: int, query: PageQuery | None = None) -> str:
        """Return ``#attempt-3``."""
        return f"#attempt-{number}"

    def history(self, path: str, name: str) -> str | None:
        """Return no link: one file knows one run."""
        return None
