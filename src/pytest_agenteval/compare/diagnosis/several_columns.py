"""Diagnoses over several columns: exchanged columns, other counts, scrambled rows, and the rest."""

from __future__ import annotations

from pytest_agenteval.compare.alignment import Alignment, key_positions
from pytest_agenteval.compare.diagnosis.context import DiagnosisContext
from pytest_agenteval.compare.diagnosis.one_column import shown
from pytest_agenteval.compare.diagnosis.shape import rows_differ_text
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.support.text import counted

MOST_SWAPS = 200
DIMENSIONS = ("text", "date", "timestamp", "instant", "uuid", "time")


def columns_swapped(scene: DiagnosisContext, alignment: Alignment) -> Diagnosis | None:
    """Exchanging the names of two columns makes a match."""
    fixed = {i for i, (e, _) in enumerate(scene.pairs) if scene.columns.how[e] not in ("value", "likeness")}
    tried = 0
    for i, j in scene.swaps(alignment):
        if i not in fixed or j not in fixed or tried > MOST_SWAPS:
            continue
        (e, a), (f, b) = scene.pairs[i], scene.pairs[j]
        if not (scene.engine.alike(e, b) and scene.engine.alike(f, a)):
            continue
        tried += 1
        columns = list(scene.paired)
        columns[i], columns[j] = scene.engine.column(e, b), scene.engine.column(f, a)
        if scene.match(columns):
            names = (scene.name(i), scene.name(j))
            text = f"`{names[0]}` and `{names[1]}` are exchanged: with the names swapped the tables match"
            return Diagnosis("columns_swapped", text, names, {"exchanged": list(names)})
    return None


def duplicate_counts(scene: DiagnosisContext, alignment: Alignment) -> Diagnosis | None:
    """Every answered row is in the reference, but not as often."""
    if scene.options.duplicates == "set" or scene.expected_rows != scene.actual_rows or scene.matched:
        return None
    size = scene.expected_rows
    if scene.unknown(scene.spare, False):
        return None
    if scene.distinct(True) == size and scene.distinct(False) == size:
        return None  # rows only near each other, none repeated
    text = (
        f"every answered row is an expected one, but {counted(len(scene.lost), 'row')} of {size:,} "
        "should be another: rows repeated in their place"
    )
    return Diagnosis("duplicate_counts", text, (), {"rows": len(scene.lost)})


def rows_scrambled(scene: DiagnosisContext, alignment: Alignment) -> Diagnosis | None:
    """Each column holds the right values, the rows do not."""
    if scene.expected_rows != scene.actual_rows or len(scene.pairs) < 2 or scene.columns.missing:
        return None
    first = [scene.pairs[position] for position in alignment.differing]
    if scene.matched or not all(scene.engine.alike(e, a) for e, a in dict.fromkeys([*first, *scene.pairs])):
        return None
    text = (
        f"every column holds the expected values, but {len(scene.lost):,} of "
        f"{counted(scene.expected_rows, 'row')} combine them differently"
    )
    return Diagnosis("rows_scrambled", text, (), {"rows": len(scene.lost)})


def bounded(scene: DiagnosisContext, alignment: Alignment) -> Diagnosis | None:
    """The search came to its bound: no assignment, or no pairing, was found."""
    if scene.columns.ambiguous:
        names = tuple(
            scene.expected.columns[e].name
            for e in range(len(scene.expected.columns))
            if scene.columns.how.get(e, "likeness") == "likeness"
        )
        text = (
            f"{counted(len(names), 'expected column')} without a partner by name look too much alike to be "
            "assigned by value: name them as in the reference, or use column_aliases"
        )
        return Diagnosis("ambiguous_columns", text, names, {"columns": len(names)})
    if scene.exhausted:
        text = "too many rows lie within each other's tolerance to be paired: lower rtol, atol or decimals"
        return Diagnosis("too_many_near_ties", text, (), {})
    return None


def rows_replaced(scene: DiagnosisContext, alignment: Alignment) -> Diagnosis | None:
    """The same number of rows, but rows of other keys: rows on both sides only."""
    keys = key_positions(scene)
    size = scene.expected_rows
    if size < 2 or scene.actual_rows != size or keys is None:
        return None
    if len(keys) == len(scene.pairs):
        kinds = {scene.kind(i).name for i in keys}
        if len(scene.lost) == size or not kinds <= set(DIMENSIONS):
            return None
    # the key tells rows apart and has no tolerance: one that both sides hold belongs to one row on each
    shared = len(scene.join(keys, scene.lost, scene.spare))
    lost, spare = len(scene.lost) - shared, len(scene.spare) - shared
    return rows_differ_text(scene, lost, spare) if lost and spare else None


def values_differ(scene: DiagnosisContext, alignment: Alignment) -> Diagnosis:
    """None of the other words: the columns that differ, in how many rows, and an example."""
    names = [scene.name(position) for position in alignment.differing]
    count = alignment.sizes[0]
    if not names:
        text = f"{counted(max(alignment.sizes[1:]), 'row')} without a partner"
        return Diagnosis("values_differ", text, (), {"rows": count})
    e, a = alignment.changed[0]
    position = next(i for i in alignment.differing if scene.differ(i, [(e, a)])[0])
    values = scene.value(position, e, True), scene.value(position, a, False)
    where = ", ".join(
        f"{scene.name(k)} = {shown(scene.value(k, e, True))}" for k in alignment.keys if k != position
    )
    text = (
        f"{' and '.join(f'`{name}`' for name in names[:3])}{' and more' if len(names) > 3 else ''} "
        f"{'differs' if len(names) == 1 else 'differ'} in {count:,} of "
        f"{counted(scene.expected_rows, 'row')}: "
        f"expected {shown(values[0])}, got {shown(values[1])}" + (f" where {where}" if where else "")
    )
    return Diagnosis("values_differ", text, tuple(names), {"rows": count, "columns": names})
