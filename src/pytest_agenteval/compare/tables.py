"""Two tables into a ``Comparison``: the steps in their order."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic

from pytest_agenteval.compare.alignment import Alignment
from pytest_agenteval.compare.columns import ColumnMap, map_columns
from pytest_agenteval.compare.diagnosis.names_differ import explain
from pytest_agenteval.compare.engine import C, ComparisonEngine, P
from pytest_agenteval.compare.options import ComparisonOptions
from pytest_agenteval.compare.ordering import order_indexes, tie_runs
from pytest_agenteval.compare.python_engine.engine import PythonEngine
from pytest_agenteval.compare.python_engine.matching import TooMuchWork
from pytest_agenteval.compare.result import Comparison, Counts, Diagnosis, MappedColumn, SampleCell, SampleRow
from pytest_agenteval.compare.sample import MOST_ROWS, sample_rows
from pytest_agenteval.compare.values.numbers import CLOSE, EXACT, ROUNDED
from pytest_agenteval.support.text import counted
from pytest_agenteval.table import Table

PLAIN_CELLS = 1000
ORDER_NOTE = "the reference is ordered; add `ordered: true` if order matters"


def compare(expected: Table, actual: Table | None, options: ComparisonOptions | None = None) -> Comparison:
    """Return whether ``actual`` equals ``expected`` under ``options``, and what differs.

    ``actual`` is ``None`` where the agent returned no data: that fails, it is not an empty table. Columns
    are read by the expected column's SQL type. Never raises for any value in either table.
    """
    # an agent in this process may have set the context to two digits, or to raise
    with decimal.localcontext(decimal.Context(prec=28, rounding=decimal.ROUND_HALF_EVEN)):
        return _compare(expected, actual, options or ComparisonOptions())


def _compare(expected: Table, actual: Table | None, options: ComparisonOptions) -> Comparison:
    if actual is None:
        text = f"the agent returned no table; {counted(expected.row_count, 'row')} expected"
        counts = Counts(expected=expected.row_count)
        return Comparison(False, "no data returned", Diagnosis("no_answer", text), counts=counts)
    if not expected.row_count and not actual.row_count:
        return Comparison(True, "both empty")
    if not actual.row_count:
        return _empty_answer(expected, options)
    try:
        return _compared(engine_for(expected, actual, options), options)
    except TooMuchWork:
        return _compared(_array_engine(expected, actual, options), options)


def _compared(engine: ComparisonEngine[C, P], options: ComparisonOptions) -> Comparison:
    order = order_indexes(engine.expected, options)
    runs = tie_runs(engine, order) if options.ordered and options.duplicates == "bag" else None
    columns = map_columns(engine, options, runs)
    if options.ordered and options.duplicates == "set":
        return _ordered_sets(engine, columns, options)
    return _Verdict(engine, columns, order, runs).comparison()


def engine_for(expected: Table, actual: Table, options: ComparisonOptions) -> ComparisonEngine[Any, Any]:
    """Return the plain engine for small tables (it imports no array library), the array engine for others."""
    cells = max(len(table.columns) * table.row_count for table in (expected, actual))
    if cells <= PLAIN_CELLS:
        return PythonEngine(expected, actual, options)
    return _array_engine(expected, actual, options)


def _array_engine(expected: Table, actual: Table, options: ComparisonOptions) -> ComparisonEngine[Any, Any]:
    from pytest_agenteval.compare.array_engine.engine import ArrayEngine

    return ArrayEngine(expected, actual, options)


def _ordered_sets(
    engine: ComparisonEngine[C, P], columns: ColumnMap, options: ComparisonOptions
) -> Comparison:
    """Return lists in which repeated rows count once: the first of equal rows stays, on both sides."""
    tables = []
    for table, expected in ((engine.expected, True), (engine.actual, False)):
        rows = engine.first_rows(columns.pairs, expected)
        tables.append(table if len(rows) == table.row_count else table.take(rows))
    found = compare(tables[0], tables[1], replace(options, duplicates="bag"))
    return replace(found, message="values differ") if found.message.startswith("row count") else found


def _empty_answer(expected: Table, options: ComparisonOptions) -> Comparison:
    """Compare an answer without rows; its columns are not looked at."""
    rows = expected.row_count
    text = f"the answer has no rows, {counted(rows, 'row')} expected"
    sample = tuple(
        SampleRow("missing", number, None, tuple(SampleCell(value, None, True) for value in row))
        for number, row in enumerate(expected.rows(MOST_ROWS), 1)
    )
    return Comparison(
        False,
        "actual is empty",
        Diagnosis("rows_missing", text, (), {"missing": rows, "expected": rows}),
        tuple(MappedColumn(c.name, c.name, "name", c.type) for c in expected.columns),
        notes=(ORDER_NOTE,) if options.order_by and not options.ordered else (),
        counts=Counts(expected=rows, missing=rows),
        sample=sample,
    )


class _Verdict(Generic[C, P]):
    """The judgement on two tables whose columns are mapped."""

    def __init__(
        self,
        engine: ComparisonEngine[C, P],
        columns: ColumnMap,
        order: list[int] | None,
        runs: list[range] | None,
    ) -> None:
        self.engine, self.columns, self.options = engine, columns, engine.options
        self.expected, self.actual = engine.expected, engine.actual
        self.order, self.runs = order, runs

    def comparison(self) -> Comparison:
        refusal = self._refusal()
        pairing = None if refusal else self._pairing()
        if pairing is not None and pairing.matched:
            return self._match(pairing)
        return self._failure(refusal or "values differ")

    def _refusal(self) -> str | None:
        """Return why the tables cannot be equal before a row is looked at; nao's words."""
        if not self.expected.row_count:
            return "expected is empty"
        if self.columns.unnamed:
            return f"missing columns: {sorted(self.expected.columns[e].name for e in self.columns.unnamed)}"
        if self.options.extra_columns == "forbid" and self.columns.extra:
            return f"extra columns: {sorted(self.actual.columns[a].name for a in self.columns.extra)}"
        if self.options.duplicates == "bag" and self.actual.row_count != self.expected.row_count:
            return f"row count: {self.actual.row_count} vs {self.expected.row_count}"
        return None

    def _pairing(self) -> P:
        if self.runs is not None:
            return self.engine.pair_runs(self.columns.pairs, self.runs)
        return self.engine.pair(self.columns.pairs)

    def _mapping(self, columns: ColumnMap) -> tuple[MappedColumn, ...]:
        return tuple(
            MappedColumn(
                self.expected.columns[e].name,
                self.actual.columns[a].name,
                columns.how[e],
                self.expected.columns[e].type,
            )
            for e, a in columns.pairs
        )

    def _notes(self) -> tuple[str, ...]:
        ordered = self.options.order_by and not self.options.ordered
        return (ORDER_NOTE,) if ordered else ()

    def _extra(self, columns: ColumnMap) -> tuple[str, ...]:
        return tuple(self.actual.columns[a].name for a in columns.extra)

    def _match(self, pairing: P) -> Comparison:
        grades = LeniencyCounts(self.engine, self.columns, pairing)
        extra = self._extra(self.columns)
        parts = [word for word in (grades.word,) if word]
        parts += [f"extra columns ignored: {', '.join(extra)}"] if extra else []
        mapping = self._mapping(self.columns)
        return Comparison(
            True,
            f"match ({'; '.join(parts)})" if parts else "match",
            mapping=mapping,
            extra_columns=extra,
            leniencies=(*grades.leniencies, *_renamed(mapping)),
            warnings=grades.warnings,
            notes=self._notes(),
            counts=Counts(self.expected.row_count, self.actual.row_count, self.expected.row_count),
        )

    def _failure(self, message: str) -> Comparison:
        context, diagnosis, alignment = explain(self.engine, self.columns, self.runs, self.order)
        mapping = self._mapping(context.columns)
        return Comparison(
            False,
            message,
            diagnosis,
            mapping,
            tuple(self.expected.columns[e].name for e in context.columns.unnamed),
            self._extra(context.columns),
            leniencies=_renamed(mapping),
            notes=self._notes(),
            # where no column is shared there are no rows to put side by side, let alone equal ones
            counts=_counts(self.expected, self.actual, alignment if mapping else None),
            sample=sample_rows(context, alignment) if mapping else (),
            keys=alignment.keys,
            differing_columns=tuple(context.name(i) for i in alignment.differing),
        )


def _counts(expected: Table, actual: Table, alignment: Alignment | None) -> Counts:
    if alignment is None:
        return Counts(expected.row_count, actual.row_count)
    return Counts(
        expected.row_count,
        actual.row_count,
        alignment.equal,
        *alignment.sizes,
    )


def _renamed(mapping: Sequence[MappedColumn]) -> tuple[str, ...]:
    words = {"alias": "by alias", "value": "by value", "position": "by position"}
    return tuple(
        f"`{column.expected}` <- `{column.actual}` {words[column.how]}"
        for column in mapping
        if column.how in words and column.expected != column.actual
    )


class LeniencyCounts(Generic[C, P]):
    """Which leniency the cells of a match needed."""

    def __init__(self, engine: ComparisonEngine[C, P], columns: ColumnMap, pairing: P) -> None:
        self.leniencies: list[str] = []
        self.warnings: tuple[str, ...] = ()
        worst = EXACT
        for e, a in columns.pairs:
            column = engine.expected.columns[e]
            worst = max(worst, self._read(engine, (e, a), column.name, pairing))
            factor = engine.reading(e, a).factor
            if factor != 1:
                self.leniencies.append(f"`{column.name}`: taken times {factor:f} (percent: either)")
        self.word = {CLOSE: "approximate", ROUNDED: "rounded"}.get(worst, "")

    def _read(self, engine: ComparisonEngine[C, P], pair: tuple[int, int], name: str, pairing: P) -> int:
        close, rounded, small = engine.leniency(*pair, pairing)
        if rounded:
            options = engine.options.for_column(name)
            unit = f"{options.decimals} decimals"
            if options.significant:
                unit = f"{options.significant} significant digits"
            self.leniencies.append(f"`{name}`: rounded to {unit} ({counted(rounded, 'cell')})")
        if small:
            self.warnings += (
                f"`{name}`: {counted(small, 'value')} below 1 matched only after rounding; "
                "set `decimals` or `significant` if small values matter",
            )
        if close:
            self.leniencies.append(f"`{name}`: within tolerance ({counted(close, 'cell')})")
        return ROUNDED if rounded else CLOSE if close else EXACT
