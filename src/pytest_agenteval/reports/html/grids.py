"""Tables of answers and references as grids of text, and the aligned difference between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agenteval.support.text import show_value
from pytest_agenteval.table import Table

CELL = 500
"""Characters of a value in a cell."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """A value as text; ``null`` and ``number`` say how it is set, ``mark`` (differs, missing, extra) why."""

    text: str
    null: bool = False
    number: bool = False
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table to show: column names with types, rows of cells, ``total`` rows in all."""

    columns: Sequence[tuple[str, str | None]]
    rows: Sequence[Sequence[GridCell]]
    total: int
    marks: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class DiffCell:
    """A cell of the aligned difference: one value where they agree, else both."""

    expected: GridCell
    actual: GridCell
    differs: bool
    delta: str


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A row of it. ``state``: differs, missing, extra or same; row numbers from 1."""

    state: str
    expected_row: int | None
    actual_row: int | None
    cells: Sequence[DiffCell]


@dataclass(frozen=True, slots=True)
class Diff:
    """A comparison to show: the columns as (expected, answered, how), the sample, what it leaves out."""

    columns: Sequence[tuple[str, str, str]]
    rows: Sequence[DiffRow]
    counts: Mapping[str, int]
    left_out: Sequence[str]


def grid_cell(value: Any, mark: str = "") -> GridCell:
    """Return a value for a cell."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    number = number or type(value).__name__ == "Decimal"
    return GridCell(show_value(value, CELL), value is None, number, mark)


def grid_of(table: Table | None, limit: int, total: int | None = None, marks: Any = None) -> Grid | None:
    """Return a table's first ``limit`` rows. ``marks``: row (from 1) -> {column name: mark, "":
    mark of the row}.
    """
    if table is None:
        return None
    of_rows: Mapping[int, Mapping[str, str]] = marks or {}
    names = table.names
    rows = [
        [grid_cell(value, of_rows.get(at, {}).get(name, "")) for name, value in zip(names, row, strict=True)]
        for at, row in enumerate(table.rows(limit), 1)
    ]
    columns = list(zip(names, table.types, strict=True))
    found = {at: kept[""] for at, kept in of_rows.items() if "" in kept}
    return Grid(columns, rows, table.row_count if total is None else total, found)


def diff_of(diff: Mapping[str, Any] | None) -> Diff | None:
    """Return the aligned difference in an entry (``None``: no comparison,
    or one without columns in common).
    """
    if not diff or not diff.get("sample") or not diff.get("mapping"):
        return None
    columns = [(str(c["expected"]), str(c["actual"]), str(c["how"])) for c in diff["mapping"]]
    rows = [
        DiffRow(row["state"], row["expected_row"], row["actual_row"], [_diff_cell(c) for c in row["cells"]])
        for row in diff["sample"]
    ]
    counts = diff.get("counts") or {}
    return Diff(columns, rows, counts, list(_left_out(rows, counts)))


def _diff_cell(cell: Mapping[str, Any]) -> DiffCell:
    delta = str(cell.get("delta") or "")
    return DiffCell(grid_cell(cell["expected"]), grid_cell(cell["actual"]), bool(cell["differs"]), delta)


def _left_out(rows: Sequence[DiffRow], counts: Mapping[str, int]) -> list[str]:
    words = (("differing", "differs"), ("missing", "missing"), ("extra", "extra"))
    more = ((name, counts.get(name, 0) - sum(r.state == state for r in rows)) for name, state in words)
    return [f"{number:,} more {name}" for name, number in more if number > 0]


def marks_of(diff: Mapping[str, Any] | None, side: str) -> dict[int, dict[str, str]]:
    """Return which cells of the ``expected`` or ``actual`` table the sample says differ,
    for :func:`grid_of`.
    """
    found: dict[int, dict[str, str]] = {}
    if not diff:
        return found
    names = [str(column[side]) for column in diff.get("mapping") or []]
    for row in diff.get("sample") or []:
        at = row.get(f"{side}_row")
        if at is None:
            continue
        if row["state"] in ("missing", "extra"):
            found[at] = {"": row["state"]}
        else:
            marked = {n: "differs" for n, c in zip(names, row["cells"], strict=False) if c["differs"]}
            if marked:
                found[at] = marked
    return found
