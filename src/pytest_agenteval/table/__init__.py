"""``Table``, the only thing databases, extraction and comparison pass, and how Arrow and pandas are read."""

from __future__ import annotations

from pytest_agenteval.table.arrow import arrow_value, arrow_values, bit_text, standard_array, within_python
from pytest_agenteval.table.moments import duration_text, moment_of_days, moment_of_ticks
from pytest_agenteval.table.table import Column, Table

__all__ = [
    "Column",
    "Table",
    "arrow_value",
    "arrow_values",
    "bit_text",
    "duration_text",
    "moment_of_days",
    "moment_of_ticks",
    "standard_array",
    "within_python",
]
