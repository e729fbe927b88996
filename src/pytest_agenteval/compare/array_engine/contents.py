"""What a column holds when read by itself, so that columns can be distinguished without pairing rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import ArraySide, Floats, KeyCoder, ToleranceNumbers
from pytest_agenteval.compare.array_engine.number_rule import ArrayNumberRule, reach
from pytest_agenteval.compare.array_engine.row_hashes import hash_rows, level
from pytest_agenteval.compare.options import ColumnOptions

RANKS = 16


class ContentCoder(KeyCoder):
    """Codes that depend on the key alone, so that columns read apart can be compared."""

    def code(self, key: Any) -> int:
        """Return a 64-bit hash of the key."""
        return hash(key)


@dataclass(slots=True)
class ColumnContent:
    """A hash per cell without its numbers, and the numbers, also sorted.

    ``print`` is the same for columns whose exact parts are the same bag; ``ranks`` are sorted numbers
    at even distances, which tell most different columns apart at once.
    """

    hashes: NDArray[np.uint64]
    numbers: list[ToleranceNumbers]
    print: int = 0
    sorted: list[Floats] = field(default_factory=list)
    ranks: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def shape(self) -> tuple[int, tuple[int, ...]]:
        """What must be equal before numbers are looked at."""
        return self.print, tuple(map(len, self.sorted))


def content_of(side: ArraySide, rows: int) -> ColumnContent:
    """Return the content of one column of ``rows`` rows."""
    hashes = hash_rows([level(side.keys, True, True, rows)], rows)
    # a column of NULLs alone holds no number, whichever way it was read
    numbers = [n for n in side.numbers if n.present is None or bool(n.present.any())]
    ordered = [np.sort(n.floats if n.present is None else n.floats[n.present]) for n in numbers]
    mixed = hashes * np.uint64(0xD1342543DE82EF95)
    mixed ^= mixed >> np.uint64(31)
    ranks = [values[np.linspace(0, len(values) - 1, RANKS).astype(np.int64)] for values in ordered]
    total = int(mixed.sum(dtype=np.uint64))
    return ColumnContent(hashes, numbers, total, ordered, np.concatenate(ranks) if ranks else np.zeros(0))


def bound(options: ColumnOptions, x: Floats) -> Floats:
    """Return how far a number equal to each of ``x`` may be from it at most."""
    empty = ToleranceNumbers(x)
    return reach(ArrayNumberRule(options, empty, empty).base, x)


class ContentIndex:
    """Columns by what they hold, so that those like another one are found without trying them all."""

    def __init__(self, contents: Sequence[tuple[int, ColumnContent]]) -> None:
        self._groups: dict[tuple[int, tuple[int, ...]], list[tuple[int, ColumnContent]]] = {}
        for column, content in contents:
            self._groups.setdefault(content.shape, []).append((column, content))
        self._ranks: dict[tuple[int, tuple[int, ...]], Floats] = {}

    def like(self, mine: ColumnContent, options: ColumnOptions) -> list[int]:
        """Return the columns that may hold the same bag as ``mine`` under the tolerance."""
        shape = mine.shape
        group = self._groups.get(shape, [])
        if not group or not len(mine.ranks):
            return [column for column, _ in group]
        if shape not in self._ranks:
            self._ranks[shape] = np.stack([content.ranks for _, content in group])
        far = np.abs(self._ranks[shape] - mine.ranks) > bound(options, mine.ranks)
        bounds = [bound(options, x) for x in mine.sorted]
        return [
            group[at][0]
            for at in np.flatnonzero(~far.any(axis=1)).tolist()
            if all(
                bool(np.all(np.abs(x - y) <= near))
                for x, y, near in zip(mine.sorted, group[at][1].sorted, bounds, strict=True)
            )
        ]
