"""Checks of the agent's table: one value of it, and its rows."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pytest_agenteval.checks.base import (
    Check,
    Text,
    Texts,
    ordered_bounds,
    refuse_both,
    require_one,
)
from pytest_agenteval.support.column_names import find_name
from pytest_agenteval.support.scalars import is_null
from pytest_agenteval.support.text import did_you_mean
from pytest_agenteval.table import Table
from pytest_agenteval.types import CheckResult, Evidence

NO_DATA = "no data returned"


def _bound(value: Any) -> Any:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float | dt.date)):
        raise ValueError("should be a number or a date")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no bound: it would check nothing")
    return value


Bound = Annotated[Any, AfterValidator(_bound)]
"""A number, a date or a timestamp."""


def _scalar(value: Any) -> Any:
    if isinstance(value, Mapping | list | tuple):
        raise ValueError("should be one value, not a list or a map")
    return value


class ValueCheck(Check):
    """One value of the answer: a cell of its table, else the value it handed over."""

    type: Literal["value"] = "value"
    column: Text | None = Field(default=None, description="column name (default: the first column)")
    row: int = Field(default=0, description="row, from 0; negative counts from the end")
    equals: Annotated[Any, AfterValidator(_scalar)] = Field(
        default=None, description="the value; numbers by value, `null` is NULL"
    )
    min: Bound = Field(default=None, description="lower bound, allowed itself; a number or a date")
    max: Bound = Field(default=None, description="upper bound, allowed itself; a number or a date")
    approx: float | None = Field(default=None, description="a number to be near to")
    rtol: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0.01, description="how near `approx` means, as a share of it"
    )

    @model_validator(mode="after")
    def _bounds_agree(self) -> Self:
        require_one(self, "equals", "min", "max", "approx")
        refuse_both(self, "equals", "min", "max", "approx")
        refuse_both(self, "approx", "min", "max")
        if "rtol" in self.model_fields_set and self.approx is None:
            raise ValueError("'rtol' without 'approx' means nothing: give approx, or leave it out")
        try:
            ordered_bounds(self.min, self.max)
        except TypeError:
            raise ValueError("min and max must both be numbers or both be dates") from None
        return self

    def check(self, evidence: Evidence) -> CheckResult:
        """Look the value up, then compare it."""
        label = f"value {self.column}" if self.column else "value"
        plain = not self.row and self.column is None
        if plain and evidence.value is None and evidence.table is None and evidence.text.strip():
            found: Any = evidence.text.strip()  # a function that returns a text has given that value
        elif not plain or evidence.value is None:
            found = self._cell(evidence.table)
            if isinstance(found, CheckResult):
                return found
        else:
            found = evidence.value
        passed, wanted = self._judge(found)
        shown = display(found)
        why = f"{label}: {shown}" if passed else f"{label}: {shown}, expected {wanted}"
        return self.result(passed, why)

    def _cell(self, table: Table | None) -> Any:
        """Return the cell, or the result that says why there is none."""
        if table is None:
            return self.result(False, NO_DATA)
        if not -table.row_count <= self.row < table.row_count:
            return self.result(False, f"value: no row {self.row}, the answer has {table.row_count} rows")
        index = 0
        if self.column is not None:
            place = find_name(table.names, self.column)
            if place is None:
                hint = did_you_mean(self.column, table.names)
                return self.result(False, f"value: the answer has no column {self.column!r}{hint}")
            index = place
        return table.column(index)[self.row]

    def _judge(self, found: Any) -> tuple[bool, str]:
        if "equals" in self.model_fields_set:
            return same_value(found, self.equals), display(self.equals)
        if self.approx is not None:
            number = as_number(found)
            wanted = Decimal(str(self.approx))
            near = number is not None and abs(number - wanted) <= abs(wanted) * Decimal(str(self.rtol))
            return near, f"{display(self.approx)} within {self.rtol:g} of it"
        return self._within(found)

    def _within(self, found: Any) -> tuple[bool, str]:
        low, high = self.min, self.max
        if low is None:
            wanted = f"at most {display(high)}"
        elif high is None:
            wanted = f"at least {display(low)}"
        else:
            wanted = f"{display(low)} to {display(high)}"
        value, bounds = comparable(found, low, high)
        if value is None:
            return False, wanted
        return all((bounds[0] is None or value >= bounds[0], bounds[1] is None or value <= bounds[1])), wanted


class RowsCheck(Check):
    """How many rows the answer's table has, and what holds of its columns."""

    type: Literal["rows"] = "rows"
    equals: Annotated[int, Field(ge=0)] | None = Field(default=None, description="exactly so many rows")
    min: Annotated[int, Field(ge=0)] | None = Field(default=None, description="at least so many rows")
    max: Annotated[int, Field(ge=0)] | None = Field(default=None, description="at most so many rows")
    unique: Texts | None = Field(default=None, description="columns that together repeat in no two rows")
    not_null: Texts | None = Field(default=None, description="columns without NULL")

    @model_validator(mode="after")
    def _bounds_agree(self) -> Self:
        require_one(self, "equals", "min", "max", "unique", "not_null")
        refuse_both(self, "equals", "min", "max")
        ordered_bounds(self.min, self.max)
        return self

    def check(self, evidence: Evidence) -> CheckResult:
        """Name every fault, not only the first."""
        table = evidence.table
        if table is None:
            return self.result(False, NO_DATA)
        faults = [*self._count_faults(table.row_count), *self._column_faults(table)]
        if faults:
            return self.result(False, f"rows: {'; '.join(faults)}")
        return self.result(True, f"rows: {table.row_count}")

    def _count_faults(self, count: int) -> list[str]:
        faults = []
        if self.equals is not None and count != self.equals:
            faults.append(f"{count}, expected {self.equals}")
        if self.min is not None and count < self.min:
            faults.append(f"{count}, expected at least {self.min}")
        if self.max is not None and count > self.max:
            faults.append(f"{count}, expected at most {self.max}")
        return faults

    def _column_faults(self, table: Table) -> list[str]:
        faults = []
        for name in dict.fromkeys((*(self.unique or ()), *(self.not_null or ()))):
            if find_name(table.names, name) is None and (table.columns or table.row_count):
                faults.append(f"the answer has no column {name!r}{did_you_mean(name, table.names)}")
        if faults or not table.row_count:
            return faults
        if self.unique:
            faults += _repeated(table, self.unique)
        for name in self.not_null or ():
            index = find_name(table.names, name)
            nulls = sum(is_null(value) for value in table.column(index or 0))
            if nulls:
                faults.append(f"{name} is NULL in {nulls} of {table.row_count} rows")
        return faults


def _repeated(table: Table, names: tuple[str, ...]) -> list[str]:
    columns = [table.column(find_name(table.names, name) or 0) for name in names]
    counts = Counter(tuple(repr(value) for value in row) for row in zip(*columns, strict=True))
    key, times = counts.most_common(1)[0]
    if times == 1:
        return []
    more = sum(count > 1 for count in counts.values()) - 1
    others = f" and {more} more" if more else ""
    return [f"{', '.join(names)} is not unique: {', '.join(key)} occurs {times} times{others}"]


def as_number(value: Any) -> Decimal | None:
    """Return the number a value is, also when it is written as text (``1,585.00``); a bool is none."""
    if isinstance(value, bool) or value is None:
        return None
    text = value.strip().replace(",", "") if isinstance(value, str) else str(value)
    try:
        number = Decimal(text)
    except (InvalidOperation, ValueError):
        return None
    return number if number.is_finite() else None


def comparable(found: Any, *bounds: Any) -> tuple[Any, list[Any]]:
    """Return ``found`` and ``bounds`` as values that can be ordered; ``None`` for a value that cannot be."""
    dates = any(isinstance(bound, dt.date) for bound in bounds)
    read = as_moment if dates else as_number
    return read(found), [None if bound is None else read(bound) for bound in bounds]


def as_moment(value: Any) -> dt.datetime | None:
    """Return a date (midnight), a timestamp (its zone dropped) or their ISO text as a timestamp."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else None


def same_value(found: Any, expected: Any) -> bool:
    """Compare by value: numbers within 1e-9 of each other, dates as moments, all else exactly."""
    if expected is None or is_null(found):
        return expected is None and is_null(found)
    if isinstance(expected, bool) or isinstance(found, bool):
        return isinstance(expected, bool) and isinstance(found, bool) and expected == found
    if isinstance(expected, dt.date):
        return as_moment(found) == as_moment(expected)
    if isinstance(expected, int | float):
        return _same_number(as_number(found), Decimal(str(expected)))
    return str(found) == str(expected)


def _same_number(found: Decimal | None, expected: Decimal) -> bool:
    """Compare integers exactly (ids!), all else within 1e-9 of the expected number."""
    if found is None or found == expected:
        return found is not None
    if found == found.to_integral_value() and expected == expected.to_integral_value():
        return False
    return abs(found - expected) <= abs(expected) * Decimal("1e-9")


def display(value: Any) -> str:
    """Return a value in a message: NULL for none, text in quotes, all else as it prints."""
    if is_null(value):
        return "NULL"
    return repr(value) if isinstance(value, str) else str(value)
