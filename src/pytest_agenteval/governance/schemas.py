"""Which tables and columns the configured databases have, for those that can be asked."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.support.processes import temp_prefix

if TYPE_CHECKING:
    from pytest_agenteval.config.settings import Settings


def ask_databases(
    sources: Mapping[str, str], root: Path, settings: Settings
) -> tuple[dict[str, Mapping[str, Sequence[str]]], list[str]]:
    """Return (columns by table, by database; why a database could not be asked). Files are asked as
    copies.
    """
    from pytest_agenteval.databases import Databases

    schemas: dict[str, Mapping[str, Sequence[str]]] = {}
    notes: list[str] = []
    if not sources:
        return schemas, notes
    with tempfile.TemporaryDirectory(prefix=temp_prefix()) as folder:
        databases = Databases(
            sources,
            folder=Path(folder),
            root=root,
            timeout=settings.sql_timeout,
            snapshot_limit=settings.snapshot_limit,
        )
        with databases:
            for name in databases.names:
                try:
                    schemas[name] = databases.get(name).schema()
                except DatabaseError as wrong:
                    notes.append(f"database {name!r} was not asked: {' '.join(str(wrong).split())}")
    return schemas, notes
