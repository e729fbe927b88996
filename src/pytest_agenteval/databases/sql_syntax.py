"""Whether SQL can be read at all, before any database is opened: what is wrong with it, and where."""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_PLACE = re.compile(r"\n\s*\nLINE (?P<line>\d+): (?P<text>[^\n]*)\n(?P<blanks> *)\^")


class SqlFault(NamedTuple):
    """What is wrong with a statement, and at which of its lines and columns (from 1)."""

    text: str
    line: int = 1
    column: int = 1


def sql_fault(sql: str, dialect: str | None) -> SqlFault | None:
    """Return what keeps ``sql`` from being read; ``None`` where nothing does, or it is not known.

    DuckDB's own parser speaks for DuckDB (sqlglot's name of the ``dialect``). Other servers know more SQL
    than any parser here: theirs is only looked at for being there.
    """
    if not re.search(r"\w", _COMMENTS.sub(" ", sql)):
        return SqlFault("holds no statement")
    if dialect != "duckdb":
        return None
    import duckdb

    try:
        duckdb.extract_statements(sql)
    except duckdb.ParserException as error:
        return _read(str(error))
    except duckdb.Error:
        return None
    return None


def _read(said: str) -> SqlFault:
    """Return DuckDB's words and the place it points at."""
    text = said.partition("\n")[0].removeprefix("Parser Error: ")
    place = _PLACE.search(said)
    if place is None:
        return SqlFault(text)
    lead = len(f"LINE {place['line']}: ")
    return SqlFault(text, int(place["line"]), max(len(place["blanks"]) - lead, 0) + 1)
