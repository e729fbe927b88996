"""A document as it is shown: files of other programs and of older versions may hold secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.rows import Row
from pytest_agenteval.support.redaction import Redactor


def masked_document(document: Document) -> Document:
    """Return ``document`` without the secrets of the environment and those of a known shape, to be shown.

    An entry with masked values says how many (``details.masked``): it can no longer be judged.
    """
    redactor = Redactor()
    redactor.add_environment(os.environ)

    def masked(entry: dict[str, Any]) -> dict[str, Any]:
        made, count = redactor.masked(entry)
        if not count:
            return entry
        details = dict(made.get("details") or {})
        return {**made, "details": {**details, "masked": details.get("masked") or count}}

    def entries() -> Iterator[dict[str, Any]]:
        return map(masked, document.entries())

    return replace(
        document,
        header=redactor.data(document.header),
        rows=[_masked_row(row, redactor) for row in document.rows],
        entries=entries,
        fetch=None if document.fetch is None else lambda number: masked(document.entry(number)),
    )


def _masked_row(row: Row, redactor: Redactor) -> Row:
    texts = {"message": row.message, "error": row.error, "why_text": row.why_text}
    changed = {name: redactor.text(text) for name, text in texts.items() if text}
    changed = {name: text for name, text in changed.items() if text != texts[name]}
    return replace(row, **changed) if changed else row  # type: ignore[arg-type]
