"""From an answer to a case file: what an agent said once, as a test that a person is to check."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_agenteval.errors import AgentEvalError
from pytest_agenteval.reports.html.attempt_view import agent_sql_of
from pytest_agenteval.results.document.load import table_of
from pytest_agenteval.results.document.rows import Row
from pytest_agenteval.support.text import escape_text, fit, one_line
from pytest_agenteval.types import DEFAULT_SQL_TOOLS

HEAD = "# made by agenteval from an answer: nobody has checked the reference yet\n"
DISLIKED = "# a person did not like this answer: its SQL may well be wrong\n"
EXPECTED_ROWS = 50
"""Rows of an answer that become expected rows, where the agent ran no SQL."""


class NoCase(AgentEvalError):
    """There is nothing to ask in it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A case to be. ``turns`` are what a person said; ``source`` says where it comes from."""

    name: str
    turns: Sequence[str]
    sql: str | None = None
    expected: Mapping[str, Any] | None = None
    database: str | None = None
    outcome: str | None = None
    tags: Sequence[str] = ()
    source: Mapping[str, Any] = field(default_factory=dict)
    caution: str = ""

    def keys(self) -> dict[str, Any]:
        """Return the case as its file holds it."""
        turns = [text.strip("\n") for text in self.turns]
        held: dict[str, Any] = {"name": self.name, "prompt": turns[0] if len(turns) == 1 else turns}
        if self.database:
            held["database"] = self.database
        if self.sql:
            held["sql"] = self.sql.strip() + "\n"
        elif self.expected:
            held["expected"] = dict(self.expected)
        elif self.outcome in ("refuse", "clarify"):
            held["outcome"] = self.outcome
        if self.tags:
            held["tags"] = list(self.tags)
        held["metadata"] = {"reviewed": False, **self.source}
        return held


def caution_of(row: Row) -> str:
    """Return what to know before an answer becomes a reference ('' where it passed, or nothing judged it)."""
    if row.verdict in ("passed", "review"):
        return ""
    word = "failed its case" if row.verdict == "failed" else f"ended in {row.verdict.replace('_', ' ')}"
    return f"this answer {word}: {fit(one_line(row.why), 200)}"


def draft_of(
    entry: Mapping[str, Any],
    source: Mapping[str, Any],
    name: str | None = None,
    *,
    caution: str = "",
    sql_tools: Sequence[str] = DEFAULT_SQL_TOOLS,
) -> Draft:
    """Return the draft of a results entry. Raises ``NoCase`` where the results do not hold what was asked."""
    turns = [str(turn) for turn in entry.get("turns") or [entry.get("prompt")] if turn]
    if not turns:
        raise NoCase(
            f"{entry.get('name')}: the results do not say what was asked, so there is no prompt to save"
        )
    details = entry.get("details") or {}
    if masked := details.get("masked"):
        count = "1 value of its answer was" if masked == 1 else f"{masked:,} values of its answer were"
        raise NoCase(f"{entry.get('name')}: {count} masked as secrets, so a case made of it could never pass")
    sql = agent_sql_of(entry, sql_tools)
    origin = {
        "answered_by": entry.get("model") or None,
        "case": entry.get("nodeid") or entry.get("name"),
        "attempt": entry.get("attempt"),
        **source,
    }
    return Draft(
        name=name or str(entry.get("name") or turns[0][:60]),
        turns=turns,
        sql=sql,
        expected=None if sql else _expected(details),
        database=entry.get("database") or None,
        outcome=entry.get("observed"),
        source={"source": {key: value for key, value in origin.items() if value is not None}},
        caution=caution,
    )


def _expected(details: Mapping[str, Any]) -> dict[str, Any] | None:
    table = table_of(details, "actual_table")
    if table is None or not 0 < table.row_count <= EXPECTED_ROWS or len(set(table.names)) < len(table.names):
        return None
    rows = [[_plain(value) for value in row] for row in table.rows()]
    return {"columns": table.names, "rows": rows}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def case_text(draft: Draft) -> str:
    """Return the draft as YAML; texts of several lines stand as blocks. Control characters are written
    out.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: Any, value: str) -> Any:
        value = escape_text(value.replace("\r\n", "\n"))
        block = "\n" in value and not re.search(r"[ \t]+$", value, re.MULTILINE) and "\t" not in value
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if block else None)

    Dumper.add_representer(str, text)
    body = yaml.dump(_tidy(draft.keys()), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
    caution = f"# {one_line(draft.caution)}\n" if draft.caution else ""
    return HEAD + caution + (DISLIKED if draft.source.get("rating") == "down" else "") + str(body)


def _tidy(value: Any) -> Any:
    """Remove blanks at line ends: they would keep YAML from showing a text as a block."""
    if isinstance(value, Mapping):
        return {
            str(key): "\n".join(line.rstrip().expandtabs(4) for line in entry.splitlines()) + "\n"
            if key == "sql" and isinstance(entry, str)
            else _tidy(entry)
            for key, entry in value.items()
        }
    return [_tidy(entry) for entry in value] if isinstance(value, list) else value


def slug(name: str) -> str:
    """Return a file name for a case: letters, digits, ``_`` and ``-``, at most 60."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")[:60].strip("_-").lower() or "case"


def save_case(folder: Path, draft: Draft) -> tuple[Path, bool]:
    """Write the draft to a new file in ``folder``; ``name_2.yml`` where there is one. Never overwrites.

    Returns the file and whether it is new: a case that asks and expects the same, saved before, is not
    saved again. Raises ``OSError``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = case_text(draft)
    stem = slug(draft.name)
    number = 1
    while True:
        place = folder / (f"{stem}.yml" if number == 1 else f"{stem}_{number}.yml")
        other = place.with_suffix(".yaml")
        try:
            if not other.exists():
                with open(place, "x", encoding="utf-8") as file:
                    file.write(text)
                return place, True
        except FileExistsError:
            other = place
        if _same_case(other, text):
            return other, False
        number += 1


def _same_case(place: Path, text: str) -> bool:
    """Return whether a file asks and expects what ``text`` does."""
    import yaml

    try:
        held, made = (yaml.safe_load(source) for source in (place.read_text(encoding="utf-8"), text))
    except (OSError, ValueError, yaml.YAMLError):
        return False
    names = ("prompt", "sql", "expected", "outcome", "database")
    return isinstance(held, dict) and all(held.get(name) == made.get(name) for name in names)


def case_folder(root: Path, path: str | None) -> Path:
    """Return where a case from results belongs: beside the case it answers, else ``tests`` below ``root``."""
    if path:
        beside = (root / path).parent
        if (root / path).is_file() and beside.resolve().is_relative_to(root.resolve()):
            return beside
    return root / "tests"
