"""One rule for NULL: drivers, NumPy and pandas mean the same by their own values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pytest_agenteval.checks.table import RowsCheck, display, same_value
from pytest_agenteval.compare import Comparison
from pytest_agenteval.compare import compare as compare_tables
from pytest_agenteval.support.scalars import is_null
from pytest_agenteval.table import Table
from pytest_agenteval.types import Evidence


def compare(expected: Any, actual: Any) -> Comparison:
    sides = [x if isinstance(x, Table) else Table.from_records(x) for x in (expected, actual)]
    return compare_tables(*sides)


NULLS = [
    None,
    float("nan"),
    np.float32("nan"),
    np.float64("nan"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("-sNaN12"),
    pd.NA,
    pd.NaT,
    np.datetime64("NaT", "us"),
    np.timedelta64("NaT", "us"),
]
VALUES = [
    *(0, "", "nan", "NULL", False, Decimal(0), float("inf"), np.float64(1), np.int8(0), [None]),
    *(np.array([np.nan]), np.array([1, 2]), datetime.date(2024, 1, 1), pd.Timestamp("2024-01-01")),
]


@pytest.mark.parametrize("value", NULLS, ids=repr)
def test_null_is_null_to_comparison_and_checks(value: object) -> None:
    assert is_null(value)
    assert compare([{"a": None, "b": 1}], [{"a": value, "b": 1}]).matched
    assert same_value(value, None)
    assert display(value) == "NULL"
    table = Table.from_rows(["a"], [[value]], [None])
    found = RowsCheck(not_null=("a",)).check(Evidence("p", "", table=table))
    assert not found.passed
    assert "a is NULL in 1 of 1 rows" in found.why


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_all_else_is_a_value(value: object) -> None:
    assert not is_null(value)
    assert display(value) != "NULL"
