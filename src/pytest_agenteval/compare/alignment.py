"""Which rows to show side by side, and which columns name a row."""

from __future__ import annotations

from dataclasses import dataclass

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
    ``unique``: the keys tell the rows of each side apart.
    """

    changed: tuple[tuple[int, int], ...]
    lost: tuple[int, ...]
    spare: tuple[int, ...]
    differing: tuple[int, ...]
    keys: tuple[int, ...]
    equal: int
    sizes: tuple[int, int, int]
    unique: bool


def key_positions(scene: DiagnosisContext) -> tuple[int, ...] | None:
    """The fewest leading columns without tolerance that are unique on both sides; texts and dates first."""
    if scene.key is ...:
        scene.key = _key_positions(scene)
    key: tuple[int, ...] | None = scene.key
    return key


def _key_positions(scene: DiagnosisContext) -> tuple[int, ...] | None:
    for names in _NAMING:
        positions = [i for i in range(len(scene.pairs)) if scene.kind(i).name in names and scene.exact(i)]
        for length in range(1, min(len(positions), 6) + 1):
            if all(scene.unique(positions[:length], side) for side in (True, False)):
                return _steadier(scene, tuple(positions[:length]))
    return None


def _steadier(scene: DiagnosisContext, keys: tuple[int, ...]) -> tuple[int, ...]:
    """A column before the key that names all rows on both sides, where one column alone differs under it.

    The text of an order may change while its id does not; where more than that changed, it is another row.
    """
    lost, spare = list(scene.lost), list(scene.spare)
    if not lost or len(lost) != len(spare) or len(lost) > MOST_KEPT or scene.columns.missing:
        return keys
    if len(scene.join(keys, lost, spare)) == len(lost):
        return keys
    for i in range(min(keys)):
        if scene.kind(i).name not in _NAMING[1] or not scene.exact(i):
            continue
        if not all(scene.unique((i,), side) for side in (True, False)):
            continue
        pairs = scene.join((i,), lost, spare)
        differing = [j for j in range(len(scene.pairs)) if any(scene.differ(j, pairs))]
        if len(pairs) == len(lost) and len(differing) == 1:
            return (i,)
    return keys


def align(scene: DiagnosisContext, split: bool = False) -> Alignment:
    """Put the rows side by side that belong together. ``split``: rows of other keys stay apart."""
    keys = key_positions(scene)
    if scene.runs is not None and scene.expected_rows == scene.actual_rows:
        return _alignment(scene, [(row, row) for row in scene.moved()], [], [], keys)
    lost, spare = [int(e) for e in scene.lost], [int(a) for a in scene.spare]
    changed = scene.join(keys, lost, spare) if keys else []
    _remove(changed, lost, spare)
    if not split:
        changed += _by_likeness(scene, lost, spare)
        if len(lost) == len(spare) and (len(lost) == 1 or not keys):
            changed += list(zip(lost, spare, strict=True))
            lost, spare = [], []
    return _alignment(scene, sorted(changed), lost, spare, keys)


def _by_likeness(scene: DiagnosisContext, lost: list[int], spare: list[int]) -> list[tuple[int, int]]:
    """Rows that agree in at least half of their columns, the most alike first."""
    width = len(scene.pairs)
    if not lost or not spare or len(lost) * len(spare) * width > MOST_SCORED:
        return []
    pairs = [(e, a) for e in lost for a in spare]
    columns = [scene.differ(position, pairs) for position in range(width)]
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
    _remove(found, lost, spare)
    return found


def _remove(pairs: list[tuple[int, int]], lost: list[int], spare: list[int]) -> None:
    gone_e, gone_a = {e for e, _ in pairs}, {a for _, a in pairs}
    lost[:] = [e for e in lost if e not in gone_e]
    spare[:] = [a for a in spare if a not in gone_a]


def _alignment(
    scene: DiagnosisContext,
    changed: list[tuple[int, int]],
    lost: list[int],
    spare: list[int],
    keys: tuple[int, ...] | None,
) -> Alignment:
    differing = tuple(i for i in range(len(scene.pairs)) if any(scene.differ(i, changed)))
    naming = keys or tuple(i for i in range(len(scene.pairs)) if scene.kind(i).name in _NAMING[0])[:2]
    sizes = (len(changed), len(lost), len(spare))
    equal = max(scene.expected_rows - len(changed) - len(lost), 0)
    shown = [tuple(rows[:MOST_KEPT]) for rows in (lost, spare)]
    return Alignment(
        tuple(changed[:MOST_KEPT]), shown[0], shown[1], differing, naming, equal, sizes, keys is not None
    )
