"""The columns of a pandas DataFrame: Arrow arrays where those keep all, else the frame's own values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_agenteval.table.arrow import sql_type, standard_array

_OWN = ("period", "interval", "sparse")
"""Dtypes that Arrow takes by their storage, or not at all."""


def pandas_columns(frame: Any) -> Iterator[tuple[str, Any, str | None]]:
    """Yield (name, values, SQL type) of each named index level and of each column; NULL is ``None``."""
    for level in range(frame.index.nlevels):
        name = frame.index.names[level]
        if name is not None:
            yield (_name(name), *_column(frame.index.get_level_values(level).to_series(index=None)))
    for position, name in enumerate(frame.columns):
        yield (_name(name), *_column(frame.iloc[:, position]))


def _name(name: Any) -> str:
    """Return a column's name; of several levels those that say something, joined."""
    if isinstance(name, tuple):
        return "_".join(str(part) for part in name if str(part) != "")
    return str(name)


def _column(series: Any) -> tuple[Any, str | None]:
    import pyarrow

    if str(series.dtype) == "category":
        series = series.astype(series.cat.categories.dtype)
    kind = str(series.dtype).lower()
    cells = series.tolist() if kind == "object" else None
    if not kind.startswith(_OWN) and (cells is None or _texts(cells)):
        try:
            data = pyarrow.Array.from_pandas(series)
        except (pyarrow.ArrowException, UnicodeError, OverflowError, TypeError, ValueError):
            pass  # what Arrow refuses is kept value by value below
        else:
            return standard_array(data), sql_type(data.type)
    present = series.notna()
    cells = series.tolist() if cells is None else cells
    return [value if there else None for value, there in zip(cells, present, strict=True)], None


def _texts(cells: list[Any]) -> bool:
    """Return whether a column of objects holds texts alone, as pandas before 3 kept them."""
    return all(type(cell) is str or cell is None or (type(cell) is float and cell != cell) for cell in cells)
