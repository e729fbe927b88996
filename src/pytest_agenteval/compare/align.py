"""Which rows to show side by side, and which columns name a row."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pytest_agenteval.compare.numbers import NO
from pytest_agenteval.compare.scene import Scene

MOST_SCORED = 60_000
_NAMING = (
    ("text", "uuid", "date", "timestamp", "instant", "time"),
    ("text", "uuid", "date", "timestamp", "instant", "time", "integer", "boolean", "blob"),
)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Row pairs that differ, rows without a partner, and the positions of differing and key columns."""

    changed: tuple[tuple[int, int], ...]
    lost: tuple[int, ...]
    spare: tuple[int, ...]
    differing: tuple[int, ...]
    keys: tuple[int, ...]
    equal: int = 0


def key_positions(scene: Scene) -> tuple[int, ...] | None:
    """The fewest leading columns without tolerance that are unique on both sides; texts and dates first."""
    for names in _NAMING:
        positions = [
            i for i in range(len(scene.pairs)) if scene.kind(i).name in names and scene.paired[i].rule is None
        ]
        for length in range(1, len(positions) + 1):
            if all(_unique(scene, positions[:length], side) for side in (True, False)):
                return tuple(positions[:length])
    return None


def _unique(scene: Scene, positions: Sequence[int], expected: bool) -> bool:
    rows = scene.expected_rows if expected else scene.actual_rows
    seen = {_key(scene, positions, row, expected) for row in range(rows)}
    return len(seen) == rows


def _key(scene: Scene, positions: Sequence[int], row: int, expected: bool) -> Hashable:
    columns = [scene.paired[i] for i in positions]
    return tuple([(c.expected if expected else c.actual)[row][0] for c in columns])


def align(scene: Scene, split: bool = False) -> Alignment:
    """Put the rows side by side that belong together. ``split``: rows of other keys stay apart."""
    keys = key_positions(scene)
    if scene.runs is not None and scene.expected_rows == scene.actual_rows:
        pairs = [(i, i) for i in range(scene.expected_rows)]
        changed = [pair for pair in pairs if _differs(scene, *pair)]
        return _alignment(scene, changed, [], [], keys)
    lost, spare = list(scene.bag.lost), list(scene.bag.spare)
    changed = _by_key(scene, keys, lost, spare) if keys else []
    if not split:
        changed += _by_likeness(scene, lost, spare)
        if len(lost) == len(spare) and (len(lost) == 1 or not keys):
            changed += list(zip(lost, spare, strict=True))
            lost, spare = [], []
    return _alignment(scene, sorted(changed), lost, spare, keys)


def _by_key(scene: Scene, keys: Sequence[int], lost: list[int], spare: list[int]) -> list[tuple[int, int]]:
    by_key = {_key(scene, keys, a, False): a for a in spare}
    pairs = [(e, by_key[key]) for e in lost if (key := _key(scene, keys, e, True)) in by_key]
    _remove(pairs, lost, spare)
    return pairs


def _by_likeness(scene: Scene, lost: list[int], spare: list[int]) -> list[tuple[int, int]]:
    """Rows that agree in at least half of their columns, the most alike first."""
    if not lost or not spare or len(lost) * len(spare) * len(scene.paired) > MOST_SCORED:
        return []
    scored = []
    for e in lost:
        for a in spare:
            score = sum(1 for column in scene.paired if column.grade(e, a) != NO)
            if score * 2 >= len(scene.paired) and score:
                scored.append((-score, e, a))
    pairs: list[tuple[int, int]] = []
    used_e: set[int] = set()
    used_a: set[int] = set()
    for _, e, a in sorted(scored):
        if e not in used_e and a not in used_a:
            pairs.append((e, a))
            used_e.add(e)
            used_a.add(a)
    _remove(pairs, lost, spare)
    return pairs


def _remove(pairs: list[tuple[int, int]], lost: list[int], spare: list[int]) -> None:
    gone_e, gone_a = {e for e, _ in pairs}, {a for _, a in pairs}
    lost[:] = [e for e in lost if e not in gone_e]
    spare[:] = [a for a in spare if a not in gone_a]


def _differs(scene: Scene, e: int, a: int) -> bool:
    return any(column.grade(e, a) == NO for column in scene.paired)


def _alignment(
    scene: Scene,
    changed: list[tuple[int, int]],
    lost: list[int],
    spare: list[int],
    keys: tuple[int, ...] | None,
) -> Alignment:
    differing = tuple(
        i for i, column in enumerate(scene.paired) if any(column.grade(e, a) == NO for e, a in changed)
    )
    naming = keys or tuple(i for i in range(len(scene.pairs)) if scene.kind(i).name in _NAMING[0])[:2]
    equal = scene.expected_rows - len(changed) - len(lost)
    return Alignment(tuple(changed), tuple(lost), tuple(spare), differing, naming, max(equal, 0))
