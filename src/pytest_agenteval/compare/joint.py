"""Diagnoses over several columns: exchanged columns, other counts, scrambled rows, and the rest."""

from __future__ import annotations

from pytest_agenteval.compare.align import Alignment, key_positions
from pytest_agenteval.compare.pairing import pair_set
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.compare.scene import Scene, plural, row_key
from pytest_agenteval.compare.shape import rows_differ_text
from pytest_agenteval.compare.words import shown

MOST_SWAPS = 200
DIMENSIONS = ("text", "date", "timestamp", "instant", "uuid", "time")


def columns_swapped(scene: Scene) -> Diagnosis | None:
    """Exchanging the names of two columns makes a match."""
    fixed = [i for i, (e, _) in enumerate(scene.pairs) if scene.columns.how[e] not in ("value", "likeness")]
    tried = 0
    for n, i in enumerate(fixed):
        for j in fixed[n + 1 :]:
            (e, a), (f, b) = scene.pairs[i], scene.pairs[j]
            if not (scene.engine.alike(e, b) and scene.engine.alike(f, a)):
                continue
            tried += 1
            if tried > MOST_SWAPS:
                return None
            columns = list(scene.paired)
            columns[i], columns[j] = scene.engine.column(e, b), scene.engine.column(f, a)
            if scene.match(columns):
                names = (scene.name(i), scene.name(j))
                text = f"`{names[0]}` and `{names[1]}` are exchanged: with the names swapped the tables match"
                return Diagnosis("columns_swapped", text, names, {"exchanged": list(names)})
    return None


def duplicate_counts(scene: Scene) -> Diagnosis | None:
    """Every answered row is in the reference, but not as often."""
    if scene.options.duplicates == "set" or scene.expected_rows != scene.actual_rows or scene.bag.matched:
        return None
    size = scene.expected_rows
    if pair_set(scene.paired, range(size), range(scene.actual_rows), size).spare:
        return None
    if all(len({row_key(scene.paired, row, side) for row in range(size)}) == size for side in (True, False)):
        return None  # rows only near each other, none repeated
    text = (
        f"every answered row is an expected one, but {plural(len(scene.bag.lost), 'row')} of {size:,} "
        "should be another: rows repeated in their place"
    )
    return Diagnosis("duplicate_counts", text, (), {"rows": len(scene.bag.lost)})


def rows_scrambled(scene: Scene) -> Diagnosis | None:
    """Each column holds the right values, the rows do not."""
    if scene.expected_rows != scene.actual_rows or len(scene.pairs) < 2 or scene.columns.missing:
        return None
    if scene.bag.matched or not all(scene.engine.alike(e, a) for e, a in scene.pairs):
        return None
    text = (
        f"every column holds the expected values, but {len(scene.bag.lost):,} of "
        f"{plural(scene.expected_rows, 'row')} combine them differently"
    )
    return Diagnosis("rows_scrambled", text, (), {"rows": len(scene.bag.lost)})


def bounded(scene: Scene) -> Diagnosis | None:
    """The search came to its bound: no assignment, or no pairing, was found."""
    if scene.columns.ambiguous:
        names = tuple(
            scene.engine.expected.columns[e].name
            for e in range(len(scene.engine.expected.columns))
            if scene.columns.how.get(e, "likeness") == "likeness"
        )
        text = (
            f"{plural(len(names), 'expected column')} without a partner by name look too much alike to be "
            "assigned by value: name them as in the reference, or use column_aliases"
        )
        return Diagnosis("ambiguous_columns", text, names, {"columns": len(names)})
    if scene.bag.exhausted:
        text = "too many rows lie within each other's tolerance to be paired: lower rtol, atol or decimals"
        return Diagnosis("too_many_near_ties", text, (), {})
    return None


def rows_replaced(scene: Scene) -> Diagnosis | None:
    """The same number of rows, but rows of other keys: rows on both sides only."""
    keys = key_positions(scene)
    size = scene.expected_rows
    if size < 2 or scene.actual_rows != size or keys is None:
        return None
    if len(keys) == len(scene.pairs):
        kinds = {scene.kind(i).name for i in keys}
        if len(scene.bag.lost) == size or not kinds <= set(DIMENSIONS):
            return None
    mine, theirs = (
        {
            tuple((c.expected if side else c.actual)[row][0] for c in (scene.paired[i] for i in keys))
            for row in range(size)
        }
        for side in (True, False)
    )
    lost, spare = len(mine - theirs), len(theirs - mine)
    return rows_differ_text(scene, lost, spare) if lost and spare else None


def values_differ(scene: Scene, alignment: Alignment) -> Diagnosis:
    """None of the other words: the columns that differ, in how many rows, and an example."""
    names = [scene.name(position) for position in alignment.differing]
    count = len(alignment.changed)
    if not names:
        text = f"{plural(len(alignment.lost) or len(alignment.spare), 'row')} without a partner"
        return Diagnosis("values_differ", text, (), {"rows": count})
    e, a = alignment.changed[0]
    position = next(i for i in alignment.differing if scene.paired[i].grade(e, a) == 3)
    values = scene.raw(position)
    where = ", ".join(
        f"{scene.name(k)} = {shown(scene.raw(k)[0][e])}" for k in alignment.keys if k != position
    )
    text = (
        f"{' and '.join(f'`{name}`' for name in names[:3])}{' and more' if len(names) > 3 else ''} "
        f"{'differs' if len(names) == 1 else 'differ'} in {count:,} of {plural(scene.expected_rows, 'row')}: "
        f"expected {shown(values[0][e])}, got {shown(values[1][a])}" + (f" where {where}" if where else "")
    )
    return Diagnosis("values_differ", text, tuple(names), {"rows": count, "columns": names})
