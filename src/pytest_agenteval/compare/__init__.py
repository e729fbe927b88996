r"""Comparison: two tables into what differs.

::

    from pytest_agenteval.compare import compare, parse_options, render
    found = compare(expected, actual, parse_options({"ordered": True, "order_by": ["total desc"]}))
    print("\n".join(render(found)))

The contract (which cells are equal, how rows and columns are paired, what each diagnosis word means)
is written down for users in docs/comparing.md.

The module itself can be called: ``from pytest_agenteval import compare`` gives this module, and
``compare(expected, actual)`` is then the function of that name.
"""

from __future__ import annotations

import sys
from types import ModuleType

from pytest_agenteval.compare.options import (
    ColumnOptions,
    ComparisonOptions,
    OptionsError,
    OrderKey,
    option_faults,
    parse_options,
)
from pytest_agenteval.compare.render import render
from pytest_agenteval.compare.result import Comparison, Counts, Diagnosis, MappedColumn, SampleCell, SampleRow
from pytest_agenteval.compare.tables import compare
from pytest_agenteval.table import Table

__all__ = [
    "ColumnOptions",
    "Comparison",
    "ComparisonOptions",
    "Counts",
    "Diagnosis",
    "MappedColumn",
    "OptionsError",
    "OrderKey",
    "SampleCell",
    "SampleRow",
    "compare",
    "option_faults",
    "parse_options",
    "render",
]


class _CallableModule(ModuleType):
    """This module, called as its main function."""

    def __call__(
        self, expected: Table, actual: Table | None, options: ComparisonOptions | None = None
    ) -> Comparison:
        return compare(expected, actual, options)


sys.modules[__name__].__class__ = _CallableModule
