"""Diagnoses over several columns: exchanged columns, other counts, scrambled rows, and the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_agenteval.compare.alignment import Alignment, key_positions
from pytest_agenteval.compare.diagnosis.context import DiagnosisContext
from pytest_agenteval.compare.diagnosis.one_column import shown
from pytest_agenteval.compare.diagnosis.shape import rows_differ_text
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.support.text import counted

MOST_SWAPS = 200
DIMENSIONS = ("text", "date", "timestamp", "instant", "uuid", "time")


def columns_swapped(context: DiagnosisContext[Any], alignment: Alignment) -> Diagnosis | None:
    """Diagnose two columns that match once their names are exchanged."""
    fixed = {
        i
        for i, (e, _) in enumerate(context.pairs)
        if context.columns.how[e] not in ("value", "partial_match")
    }
    tried = 0
    for i, j in context.swaps(alignment):
        if i not in fixed or j not in fixed or tried > MOST_SWAPS:
            continue
        (e, a), (f, b) = context.pairs[i], context.pairs[j]
        if not (context.engine.alike(e, b) and context.engine.alike(f, a)):
            continue
        tried += 1
        columns = list(context.paired)
        columns[i], columns[j] = context.engine.column(e, b), context.engine.column(f, a)
        if context.match(columns):
            names = (context.name(i), context.name(j))
            text = f"`{names[0]}` and `{names[1]}` are exchanged: with the names swapped the tables match"
            return Diagnosis("columns_swapped", text, names, {"exchanged": list(names)})
    return None


def duplicate_counts(context: DiagnosisContext[Any], alignment: Alignment) -> Diagnosis | None:
    """Diagnose answered rows that are all in the reference, but not as often."""
    if context.options.duplicates == "set" or context.expected_rows != context.actual_rows or context.matched:
        return None
    size = context.expected_rows
    if context.unknown(context.unmatched_actual, False):
        return None
    if context.distinct(True) == size and context.distinct(False) == size:
        return None  # rows only near each other, none repeated
    text = (
        f"every answered row is an expected one, but {counted(len(context.unmatched_expected), 'row')} "
        f"of {size:,} should be another: rows repeated in their place"
    )
    return Diagnosis("duplicate_counts", text, (), {"rows": len(context.unmatched_expected)})


def rows_scrambled(context: DiagnosisContext[Any], alignment: Alignment) -> Diagnosis | None:
    """Diagnose columns that hold the right values in rows that do not."""
    if context.expected_rows != context.actual_rows or len(context.pairs) < 2 or context.columns.missing:
        return None
    first = [context.pairs[position] for position in alignment.differing]
    if context.matched or not all(
        context.engine.alike(e, a) for e, a in dict.fromkeys([*first, *context.pairs])
    ):
        return None
    text = (
        f"every column holds the expected values, but {len(context.unmatched_expected):,} of "
        f"{counted(context.expected_rows, 'row')} combine them differently"
    )
    return Diagnosis("rows_scrambled", text, (), {"rows": len(context.unmatched_expected)})


def bounded(context: DiagnosisContext[Any], alignment: Alignment) -> Diagnosis | None:
    """Diagnose a search that came to its bound: no assignment, or no pairing, was found."""
    if context.columns.ambiguous:
        names = tuple(
            context.expected.columns[e].name
            for e in range(len(context.expected.columns))
            if context.columns.how.get(e, "partial_match") == "partial_match"
        )
        text = (
            f"{counted(len(names), 'expected column')} without a partner by name look too much alike to be "
            "assigned by value: name them as in the reference, or use column_aliases"
        )
        return Diagnosis("ambiguous_columns", text, names, {"columns": len(names)})
    if context.exhausted:
        text = "too many rows lie within each other's tolerance to be paired: lower rtol, atol or decimals"
        return Diagnosis("too_many_near_ties", text, (), {})
    return None


def rows_replaced(context: DiagnosisContext[Any], alignment: Alignment) -> Diagnosis | None:
    """Return the same number of rows, but rows of other keys: rows on both sides only."""
    keys = key_positions(context)
    size = context.expected_rows
    if size < 2 or context.actual_rows != size or keys is None:
        return None
    if len(keys) == len(context.pairs):
        kinds = {context.kind(i).name for i in keys}
        if len(context.unmatched_expected) == size or not kinds <= set(DIMENSIONS):
            return None
    # the key distinguishes rows and has no tolerance: one that both sides hold belongs to one row on each
    shared = len(context.join(keys, context.unmatched_expected, context.unmatched_actual))
    lost, spare = len(context.unmatched_expected), len(context.unmatched_actual)
    if lost == shared or spare == shared:
        return None
    found = rows_differ_text(context, lost, spare)
    if not shared:
        return found
    names = " and ".join(f"`{context.name(i)}`" for i in keys)
    which = "1 of these shares" if shared == 1 else f"{shared:,} of these share"
    return replace(found, sentence=f"{found.sentence}; {which} {names} with another row")


def values_differ(context: DiagnosisContext[Any], alignment: Alignment) -> Diagnosis:
    """Diagnose what no other code covers: the columns that differ, in how many rows, and an example."""
    names = [context.name(position) for position in alignment.differing]
    count = alignment.sizes[0]
    if not names:
        text = f"{counted(max(alignment.sizes[1:]), 'row')} without a partner"
        return Diagnosis("values_differ", text, (), {"rows": count})
    e, a = alignment.changed[0]
    position = next(i for i in alignment.differing if context.differ(i, [(e, a)])[0])
    values = context.value(position, e, True), context.value(position, a, False)
    where = ", ".join(
        f"{context.name(k)} = {shown(context.value(k, e, True))}" for k in alignment.keys if k != position
    )
    text = (
        f"{' and '.join(f'`{name}`' for name in names[:3])}{' and more' if len(names) > 3 else ''} "
        f"{'differs' if len(names) == 1 else 'differ'} in {count:,} of "
        f"{counted(context.expected_rows, 'row')}: expected {shown(values[0])}, got {shown(values[1])}"
        + (f" where {where}" if where else "")
    )
    return Diagnosis("values_differ", text, tuple(names), {"rows": count, "columns": names})
