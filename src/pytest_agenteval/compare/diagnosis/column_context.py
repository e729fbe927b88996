"""What a word of one column looks at: its cells on both sides, and whether the tables match without it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pytest_agenteval.compare.python_engine.matching import PairedColumn
from pytest_agenteval.compare.values.sql_types import Kind


class ColumnContext(ABC):
    """Rows of a failed comparison in which columns are studied value by value.

    ``runs`` are the tie runs of an ordered comparison, else ``None``.
    """

    expected_rows: int
    actual_rows: int
    runs: Sequence[range] | None

    @property
    @abstractmethod
    def width(self) -> int:
        """How many columns are mapped."""
        ...

    @abstractmethod
    def name(self, position: int) -> str:
        """Return the expected name of the mapped column at ``position``."""
        ...

    @abstractmethod
    def sql_type(self, position: int) -> str | None:
        """Return the SQL type of the expected column."""
        ...

    @abstractmethod
    def kind(self, position: int) -> Kind:
        """Return the kind of the mapped column at ``position``."""
        ...

    @abstractmethod
    def cells(self, position: int) -> PairedColumn:
        """Return the cells of a mapped column as they are compared."""
        ...

    @abstractmethod
    def raw(self, position: int) -> tuple[list[Any], list[Any]]:
        """Return the values of a mapped column as they came, expected and answered."""
        ...

    @abstractmethod
    def agrees_with(self, position: int, column: PairedColumn) -> bool:
        """Return whether the tables match when one column is replaced."""
        ...

    @abstractmethod
    def aligned(self, position: int) -> list[tuple[int, int]]:
        """Return pairs of rows that agree in all other columns (equal rows with each other)."""
        ...

    @abstractmethod
    def agrees_but_for(self, position: int, rows: Sequence[int]) -> bool:
        """Return whether the tables match when one column is not looked at in these answered rows."""
        ...
