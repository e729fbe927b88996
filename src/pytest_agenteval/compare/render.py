"""A comparison as plain text: the cause first, then an aligned diff, at 80 columns without colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_agenteval.compare.result import Comparison, SampleRow
from pytest_agenteval.compare.values.sql_types import kind_of
from pytest_agenteval.support.text import clip, counted, escape_line, fit, show_value, text_width

MARK = " *"
GAP = "  "
MOST_ROWS = 10
"""Rows of a kind (differing, missing, extra) that are drawn; a page shows all that a comparison keeps."""
_OTHER_SHAPE = ("missing_column", "pivoted", "transposed", "wrong_grain", "extra_column")


def render(comparison: Comparison, width: int = 80) -> list[str]:
    """Return the lines that explain ``comparison``, none wider than ``width`` columns of a terminal.

    First the message with the diagnosis, then how columns were matched and what a match needed,
    then the aligned rows: expected over answered, differing cells marked with ``*``. Control
    characters and terminal escapes of the values are written out.
    """
    width = max(width, 40)
    lines = _wrapped(_headline(comparison), width)
    for label, texts in (
        ("columns", _mapping(comparison)),
        ("allowed", comparison.leniencies if comparison.matched else ()),
        ("warning", comparison.warnings),
        ("note", comparison.notes),
    ):
        for text in texts:
            lines += _wrapped(f"{label}: {text}", width)
    if comparison.sample and comparison.mapping:
        lines += ["", *_Diff(comparison, width).lines(), *_wrapped(_rest(comparison), width, GAP)]
    return lines


def _headline(comparison: Comparison) -> str:
    """Return ``values differ: all 12 values are 100 times the expected [scaled]``."""
    found = comparison.diagnosis
    return f"{comparison.message}: {found.sentence} [{found.word}]" if found else comparison.message


def _mapping(comparison: Comparison) -> list[str]:
    """Return how columns were matched, where that is not plain;
    of another shape, what there is on both sides.
    """
    if comparison.matched:
        return []
    if comparison.diagnosis and comparison.diagnosis.word in _OTHER_SHAPE:
        tied = [c for c in comparison.mapping if c.how != "partial_match"]
        loose = [c for c in comparison.mapping if c.how == "partial_match"]
        shown = {c.expected for c in loose}
        missing = [name for name in comparison.missing_columns if name not in shown]
        expected = [*(c.expected for c in [*tied, *loose]), *missing]
        actual = [*(c.actual for c in [*tied, *loose]), *comparison.extra_columns]
        return [f"expected {', '.join(expected)}", f"answered {', '.join(actual) or 'none'}"]
    renamed = [column.text for column in comparison.mapping if column.expected != column.actual]
    lines = [", ".join(renamed)] if renamed else []
    if comparison.extra_columns:
        lines.append(f"not asked for: {', '.join(comparison.extra_columns)}")
    return lines


def _wrapped(text: str, width: int, start: str = "") -> list[str]:
    """Return lines of whole words, counted in terminal columns; a word longer than a line is cut."""
    lines = [start]
    for word in escape_line(text).split(" "):
        glued = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if text_width(glued) <= width:
            lines[-1] = glued
            continue
        lines += [GAP] if lines[-1].strip() else []
        lines[-1] += word
        while text_width(lines[-1]) > width:
            cut = clip(lines[-1], width)
            lines[-1:] = [cut, GAP + lines[-1][len(cut) :]]
    return lines


def _drawn(comparison: Comparison) -> list[SampleRow]:
    """Return the first rows of each kind."""
    seen: Counter[str] = Counter()
    drawn = []
    for row in comparison.sample:
        seen[row.state] += 1
        drawn += [row] if seen[row.state] <= MOST_ROWS else []
    return drawn


def _rest(comparison: Comparison) -> str:
    """Return what the sample leaves out, in counts."""
    counts = comparison.counts
    more = []
    for state, count, word in (
        ("differs", counts.differing, "differing"),
        ("missing", counts.missing, "missing"),
        ("extra", counts.extra, "extra"),
    ):
        left = count - sum(1 for row in _drawn(comparison) if row.state == state)
        more += [f"{left:,} more {word}"] if left > 0 else []
    equal = f"{counts.equal:,} of {counts.expected:,} expected rows equal"
    return "; ".join([*more, f"{equal}, {counts.actual:,} answered"])


@dataclass(frozen=True, slots=True)
class _Text:
    """One cell of the drawn table."""

    text: str = ""
    marked: bool = False


class _Diff:
    """The aligned rows as a table: a label, the chosen columns, the deltas."""

    def __init__(self, comparison: Comparison, width: int) -> None:
        self.comparison, self.width = comparison, width
        self.chosen = self._choose()
        self.rows = [line for row in _drawn(comparison) for line in self._lines(row)]
        self.names = [escape_line(comparison.mapping[i].expected) for i in self.chosen]
        order = comparison.diagnosis is not None and "order" in comparison.diagnosis.word
        if any(row[-1].text for row in self.rows) and not order:
            self.names.append("delta")
        else:
            self.rows = [row[:-1] for row in self.rows]

    def _choose(self) -> list[int]:
        """Return key columns, then the differing ones; all where there is nothing to single out."""
        rows = [row for row in self.comparison.sample if row.state == "differs"]
        every = range(len(self.comparison.mapping))
        differing = [i for i in every if any(row.cells[i].differs for row in rows)]
        return list(dict.fromkeys([*self.comparison.keys, *differing])) if differing else list(every)

    def _lines(self, row: SampleRow) -> list[list[_Text]]:
        if row.state != "differs":
            missing = row.state == "missing"
            values = [show_value(c.expected if missing else c.actual) for c in row.cells]
            return [[_Text(row.state), *(_Text(values[i]) for i in self.chosen), _Text()]]
        first, second = [_Text("expected")], [_Text("answered")]
        changed = [i for i in self.chosen if row.cells[i].differs]
        for i in self.chosen:
            cell = row.cells[i]
            first.append(_Text(show_value(cell.expected)))
            repeated = not cell.differs and i in self.comparison.keys
            second.append(_Text("" if repeated else show_value(cell.actual), cell.differs))
        deltas = [(self.comparison.mapping[i].expected, row.cells[i].delta) for i in changed]
        notes = [
            escape_line(f"{name} {delta}" if len(changed) > 1 else delta) for name, delta in deltas if delta
        ]
        return [[*first, _Text()], [*second, _Text(", ".join(notes[:3]))]]

    def lines(self) -> list[str]:
        """Return the table, and the names of the columns that are not shown."""
        head = [_Text(), *map(_Text, self.names)]
        marks = [any(row[i].marked for row in self.rows) for i in range(len(head))]
        room = self._room(head, marks)
        kept = [i for i, size in enumerate(room) if size]
        right = [self._numeric(i) for i in range(len(head))]
        drawn = [
            GAP.join(_padded(row[i], room[i], right[i], marks[i]) for i in kept).rstrip()
            for row in [head, *self.rows]
        ]
        return drawn + self._left_out(room)

    def _left_out(self, room: Sequence[int]) -> list[str]:
        names = [c.expected for i, c in enumerate(self.comparison.mapping) if i not in self.chosen]
        names += [name for name, size in zip(self.names, room[1:], strict=True) if not size]
        if not names:
            return []
        count = counted(len(names), "more column")
        text = f"{GAP}not shown, {count}: {', '.join(map(escape_line, names))}"
        return [fit(text, self.width, "...")]

    def _numeric(self, index: int) -> bool:
        if index == 0 or index > len(self.chosen):
            return False
        kind = kind_of(self.comparison.mapping[self.chosen[index - 1]].type)
        return kind is not None and kind.numeric

    def _room(self, head: list[_Text], marks: Sequence[bool]) -> list[int]:
        """Return column widths that fit: the widest are cut first;
        the last are left out (0) where all fails.
        """
        grid = [head, *self.rows]
        sizes = [
            max(text_width(row[i].text) for row in grid) + len(MARK) * marks[i] for i in range(len(head))
        ]
        least = [min(size, 10) for size in sizes]
        while _total(least) > self.width and sum(map(bool, least)) > 2:
            last = max(i for i, size in enumerate(least) if size)
            least[last] = sizes[last] = 0
        while _total(sizes) > self.width and (over := [i for i, s in enumerate(sizes) if s > least[i]]):
            sizes[max(over, key=lambda i: sizes[i])] -= 1
        return sizes


def _total(sizes: Sequence[int]) -> int:
    return sum(sizes) + len(GAP) * (sum(map(bool, sizes)) - 1)


def _padded(cell: _Text, size: int, right: bool, marks: bool) -> str:
    """Return one cell at its width, numbers to the right; a cut one ends in dots, its mark kept."""
    room = size - len(MARK) * marks
    text = fit(cell.text, max(room, 4), "...")
    blanks = " " * (room - text_width(text))
    mark = (MARK if cell.marked else " " * len(MARK)) if marks else ""
    return (blanks + text if right else text + blanks) + mark
