"""Which rows to show side by side, and which columns name a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_agenteval.compare.diagnosis.context import DiagnosisContext

MOST_SCORED = 60_000
MOST_KEPT = 1000
_NAMING = (
    ("text", "uuid", "date", "timestamp", "instant", "time"),
    ("text", "uuid", "date", "timestamp", "instant", "time", "integer", "boolean", "blob"),
)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Row pairs that differ, rows without a partner, and the positions of differing and key columns.

    At most 1,000 of each are kept; ``sizes`` counts them all (changed, lost, spare), ``equal`` the rest.
    ``unique``: the keys distinguish the rows of each side.
    """

    changed: tuple[tuple[int, int], ...]
    unmatched_expected: tuple[int, ...]
    unmatched_actual: tuple[int, ...]
    differing: tuple[int, ...]
    keys: tuple[int, ...]
    equal: int
    sizes: tuple[int, int, int]
    unique: bool


def key_positions(context: DiagnosisContext[Any]) -> tuple[int, ...] | None:
    """Return the fewest leading columns without tolerance that are unique on both sides;
    texts and dates first.
    """
    if context.key is ...:
        context.key = _key_positions(context)
    key: tuple[int, ...] | None = context.key
    return key


def _key_positions(context: DiagnosisContext[Any]) -> tuple[int, ...] | None:
    for names in _NAMING:
        positions = [
            i for i in range(len(context.pairs)) if context.kind(i).name in names and context.exact(i)
        ]
        for length in range(1, min(len(positions), 6) + 1):
            if all(context.unique(positions[:length], side) for side in (True, False)):
                return _steadier(context, tuple(positions[:length]))
    return None


def _steadier(context: DiagnosisContext[Any], keys: tuple[int, ...]) -> tuple[int, ...]:
    """Return a column before the key that names all rows on both sides,
    where one column alone differs under it.

    The text of an order may change while its id does not; where more than that changed, it is another row.
    """
    unmatched_expected, unmatched_actual = list(context.unmatched_expected), list(context.unmatched_actual)
    if (
        not unmatched_expected
        or len(unmatched_expected) != len(unmatched_actual)
        or len(unmatched_expected) > MOST_KEPT
        or context.columns.missing
    ):
        return keys
    if len(context.join(keys, unmatched_expected, unmatched_actual)) == len(unmatched_expected):
        return keys
    for i in range(min(keys)):
        if context.kind(i).name not in _NAMING[1] or not context.exact(i):
            continue
        if not all(context.unique((i,), side) for side in (True, False)):
            continue
        pairs = context.join((i,), unmatched_expected, unmatched_actual)
        differing = [j for j in range(len(context.pairs)) if any(context.differ(j, pairs))]
        if len(pairs) == len(unmatched_expected) and len(differing) == 1:
            return (i,)
    return keys


def align(context: DiagnosisContext[Any], split: bool = False) -> Alignment:
    """Put the rows side by side that belong together. ``split``: rows of other keys stay apart."""
    keys = key_positions(context)
    if context.runs is not None and context.expected_rows == context.actual_rows:
        return _alignment(context, [(row, row) for row in context.moved()], [], [], keys)
    unmatched_expected, unmatched_actual = (
        [int(e) for e in context.unmatched_expected],
        [int(a) for a in context.unmatched_actual],
    )
    changed = context.join(keys, unmatched_expected, unmatched_actual) if keys else []
    _remove(changed, unmatched_expected, unmatched_actual)
    if not split:
        changed += _by_likeness(context, unmatched_expected, unmatched_actual)
        if len(unmatched_expected) == len(unmatched_actual) and (len(unmatched_expected) == 1 or not keys):
            changed += list(zip(unmatched_expected, unmatched_actual, strict=True))
            unmatched_expected, unmatched_actual = [], []
    return _alignment(context, sorted(changed), unmatched_expected, unmatched_actual, keys)


def _by_likeness(
    context: DiagnosisContext[Any], unmatched_expected: list[int], unmatched_actual: list[int]
) -> list[tuple[int, int]]:
    """Return rows that agree in at least half of their columns, the most alike first."""
    width = len(context.pairs)
    if (
        not unmatched_expected
        or not unmatched_actual
        or len(unmatched_expected) * len(unmatched_actual) * width > MOST_SCORED
    ):
        return []
    pairs = [(e, a) for e in unmatched_expected for a in unmatched_actual]
    columns = [context.differ(position, pairs) for position in range(width)]
    scored = []
    for pair, flags in zip(pairs, zip(*columns, strict=True), strict=True):
        score = width - sum(flags)
        if score and score * 2 >= width:
            scored.append((-score, *pair))
    found: list[tuple[int, int]] = []
    used_e: set[int] = set()
    used_a: set[int] = set()
    for _, e, a in sorted(scored):
        if e not in used_e and a not in used_a:
            found.append((e, a))
            used_e.add(e)
            used_a.add(a)
    _remove(found, unmatched_expected, unmatched_actual)
    return found


def _remove(pairs: list[tuple[int, int]], unmatched_expected: list[int], unmatched_actual: list[int]) -> None:
    gone_e, gone_a = {e for e, _ in pairs}, {a for _, a in pairs}
    unmatched_expected[:] = [e for e in unmatched_expected if e not in gone_e]
    unmatched_actual[:] = [a for a in unmatched_actual if a not in gone_a]


def _alignment(
    context: DiagnosisContext[Any],
    changed: list[tuple[int, int]],
    unmatched_expected: list[int],
    unmatched_actual: list[int],
    keys: tuple[int, ...] | None,
) -> Alignment:
    differing = tuple(i for i in range(len(context.pairs)) if any(context.differ(i, changed)))
    naming = keys or tuple(i for i in range(len(context.pairs)) if context.kind(i).name in _NAMING[0])[:2]
    sizes = (len(changed), len(unmatched_expected), len(unmatched_actual))
    equal = max(context.expected_rows - len(changed) - len(unmatched_expected), 0)
    shown = [tuple(rows[:MOST_KEPT]) for rows in (unmatched_expected, unmatched_actual)]
    return Alignment(
        tuple(changed[:MOST_KEPT]), shown[0], shown[1], differing, naming, equal, sizes, keys is not None
    )
