"""What the diagnosis looks at: two tables, the column map, and the pairing of their rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_agenteval.compare.cells import NUMBER, Cell, Unreadable
from pytest_agenteval.compare.columns import ColumnMap
from pytest_agenteval.compare.engine import PlainEngine, pair_all
from pytest_agenteval.compare.kinds import Kind
from pytest_agenteval.compare.numbers import Number
from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.pairing import PairedColumn, Pairing, pair_list
from pytest_agenteval.compare.result import Diagnosis


@dataclass(slots=True)
class Scene:
    """One failed comparison. ``runs`` are the tie runs of an ordered comparison, else ``None``.

    ``order`` are the expected indexes of the sort keys, ``None`` where they are not known.
    """

    engine: PlainEngine
    options: ComparisonOptions
    columns: ColumnMap
    runs: Sequence[range] | None = None
    order: Sequence[int] | None = None
    pairs: list[tuple[int, int]] = field(init=False)
    paired: list[PairedColumn] = field(init=False)
    bag: Pairing = field(init=False)
    _without: dict[int, bool] = field(init=False)

    def __post_init__(self) -> None:
        self.pairs = list(self.columns.pairs)
        self.paired = [self.engine.column(e, a) for e, a in self.pairs]
        self.bag = pair_all(self.paired, self.engine)
        self._without = {}

    @property
    def expected_rows(self) -> int:
        """Rows of the expected table."""
        return self.engine.expected.row_count

    @property
    def actual_rows(self) -> int:
        """Rows of the answered table."""
        return self.engine.actual.row_count

    def name(self, position: int) -> str:
        """The expected name of the mapped column at ``position``."""
        return self.engine.expected.columns[self.pairs[position][0]].name

    def kind(self, position: int) -> Kind:
        """The kind of the mapped column at ``position``."""
        return self.engine.kind(self.pairs[position][0])

    def raw(self, position: int) -> tuple[list[Any], list[Any]]:
        """The values of the mapped column at ``position`` as they came, expected and answered."""
        e, a = self.pairs[position]
        return self.engine.raw(True, e), self.engine.raw(False, a)

    def match(self, columns: Sequence[PairedColumn]) -> bool:
        """Whether the tables would match with these columns."""
        if self.runs is not None:
            if self.expected_rows != self.actual_rows:
                return False
            return pair_list(columns, self.runs, self.actual_rows, self.expected_rows).matched
        return pair_all(columns, self.engine).matched

    def rest(self, position: int) -> list[PairedColumn]:
        """All mapped columns but the one at ``position``."""
        return [column for i, column in enumerate(self.paired) if i != position]

    def agrees_without(self, position: int) -> bool:
        """Whether the tables match when one column is left out: it alone is to blame."""
        if position not in self._without:
            self._without[position] = self.match(self.rest(position))
        return self._without[position]

    def agrees_with(self, position: int, column: PairedColumn) -> bool:
        """Whether the tables match when one column is replaced."""
        columns = list(self.paired)
        columns[position] = column
        return self.match(columns)

    def loose(self) -> tuple[list[int], list[int]]:
        """Columns on either side that no name, alias or position ties together."""
        tied = [(e, a) for e, a in self.pairs if self.columns.how[e] not in ("value", "likeness")]
        es = [e for e, _ in self.pairs if all(e != t for t, _ in tied)]
        as_ = [a for _, a in self.pairs if all(a != t for _, t in tied)]
        return [*es, *self.columns.missing], [*as_, *self.columns.extra]


def number_of(cell: Cell) -> Number | None:
    """The number a cell of a numeric column holds (an infinity too); ``None`` for anything else."""
    key, numbers = cell
    if numbers:
        return numbers[0] if key == NUMBER else None
    if isinstance(key, (int, float)) and not isinstance(key, bool):
        return key
    return key if type(key).__name__ == "Decimal" else None  # type: ignore[return-value]


def numbers_of(cells: Iterable[Cell]) -> list[Number]:
    """The numbers among the cells of a numeric column."""
    return [number for number in map(number_of, cells) if number is not None]


def row_key(columns: Sequence[PairedColumn], row: int, expected: bool) -> Hashable:
    """All that a row holds, for counting distinct rows (numbers exactly)."""
    return tuple([(column.expected if expected else column.actual)[row] for column in columns])


def unreadable(cell: Cell) -> bool:
    """Whether a cell could not be read as its column's kind."""
    return isinstance(cell[0], Unreadable)


def plural(count: int, word: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def listed(names: Iterable[str], most: int = 4) -> str:
    """``a``, ``b`` and 3 more, in back quotes."""
    names = list(names)
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


__all__ = [
    "Diagnosis",
    "Scene",
    "listed",
    "number_of",
    "numbers_of",
    "plural",
    "row_key",
    "unreadable",
]
