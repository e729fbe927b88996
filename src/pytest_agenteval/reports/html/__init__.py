"""Results as web pages: what the viewer serves and the one-file report are made of the same templates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agenteval.results.document.document import Document

__all__ = ["write_html"]


def write_html(document: Document, path: Path) -> Path:
    """Write ``document`` as one self-contained page to ``path`` (its folder is made where missing).

    The page needs no network and no server; with scripts off it can be read all the same. A person's
    verdicts in ``results_X.overrides.json`` count. Raises ``OSError`` where it cannot be written.
    """
    from pytest_agenteval.reports.html.one_file import write_report

    return write_report(document, path)
