"""Diagnoses of one column: a word holds when undoing it in that column makes the tables match."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Any

from pytest_agenteval.compare.diagnosis.context import PythonDiagnosisContext, unreadable
from pytest_agenteval.compare.python_engine.matching import PairedColumn, pair_bag
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.compare.values.canonical import clean_text, label
from pytest_agenteval.compare.values.cells import NUMBER, Cell, ColumnReading, read_cell
from pytest_agenteval.compare.values.numbers import as_float, shortest
from pytest_agenteval.support.scalars import NULL_WORDS, is_nan, is_null, plain
from pytest_agenteval.support.text import counted, cut, escape_line
from pytest_agenteval.support.text import show_value as text_of

MOMENTS = ("date", "timestamp", "instant")


def changed(scene: PythonDiagnosisContext, position: int, undo: Callable[[Cell], Cell]) -> bool:
    """Whether the tables match when ``undo`` is applied to both sides of one column."""
    column = scene.paired[position]
    undone = PairedColumn([undo(c) for c in column.expected], [undo(c) for c in column.actual], column.rule)
    return scene.agrees_with(position, undone)


def keyed(function: Callable[[str], Hashable]) -> Callable[[Cell], Cell]:
    """An undo of text cells; other cells stay as they are."""

    def undo(cell: Cell) -> Cell:
        return (function(cell[0]), cell[1]) if isinstance(cell[0], str) and cell[0] != NUMBER else cell

    return undo


def example(scene: PythonDiagnosisContext, position: int) -> str:
    """The first differing pair of values of a column, for the sentence."""
    expected, actual = scene.raw(position)
    pairs = [(e, a) for e, a in aligned(scene, position) if scene.paired[position].grade(e, a) == 3]
    return next((f"expected {shown(expected[e])}, got {shown(actual[a])}" for e, a in pairs), "")


def shown(value: Any) -> str:
    """A value in a sentence: short, text in quotes."""
    value = plain(value)
    if isinstance(value, str):
        return escape_line(repr(cut(value, 40)))
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not is_null(value):
        return label(value)[:60]
    return text_of(value, 40)


def aligned(scene: PythonDiagnosisContext, position: int) -> list[tuple[int, int]]:
    """Pairs of rows that agree in all other columns (in row order where nothing tells them apart)."""
    if scene.runs is not None and scene.expected_rows == scene.actual_rows:
        return [(i, i) for i in range(scene.expected_rows)]
    size, work = scene.expected_rows, scene.engine.work
    first = pair_bag(scene.paired, range(size), range(scene.actual_rows), size, work)
    rest = pair_bag(scene.rest(position), first.lost, first.spare, size, work)
    return sorted(
        [(e, a) for e, a in enumerate(first.partner) if a >= 0]
        + [(e, rest.partner[e]) for e in first.lost if rest.partner[e] >= 0]
    )


def differing(scene: PythonDiagnosisContext, position: int) -> int:
    """How many of the aligned rows differ in a column."""
    column = scene.paired[position]
    return sum(1 for e, a in aligned(scene, position) if column.grade(e, a) == 3)


def found(scene: PythonDiagnosisContext, position: int, word: str, text: str, **proof: Any) -> Diagnosis:
    """The diagnosis of one column, with an example and how many rows it is about."""
    sample = example(scene, position)
    count = differing(scene, position)
    proof = {"rows": scene.expected_rows, "differing": count, **proof}
    rows = f"{count:,} of {counted(scene.expected_rows, 'row')}{scene.scope}"
    full = f"{text} ({rows}; {sample})" if sample else f"{text} ({rows})"
    return Diagnosis(word, full, (scene.name(position),), proof)


def _strange(scene: PythonDiagnosisContext, position: int) -> list[int]:
    """Answered rows whose value is none of the column's kind; spelled NULLs only where none is expected."""
    raw = scene.raw(position)[1]
    nulls = any(cell[0] is None for cell in scene.paired[position].expected)
    cells = enumerate(scene.paired[position].actual)
    return [a for a, cell in cells if unreadable(cell) and not (nulls and _spelled_null(raw[a]))]


def _spelled_null(value: Any) -> bool:
    return isinstance(value, str) and (not value.strip() or value.strip().lower() in NULL_WORDS)


def type_(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """Values that cannot be read as the expected type."""
    rows = [] if scene.kind(position).name in MOMENTS else _strange(scene, position)
    if not rows:
        return None
    value = scene.raw(position)[1][rows[0]]
    text = (
        f"`{scene.name(position)}`: {counted(len(rows), 'value')} cannot be read as {_kind(scene, position)}"
    )
    return found(scene, position, "type", f"{text}, such as {shown(value)}", unreadable=len(rows))


def _kind(scene: PythonDiagnosisContext, position: int) -> str:
    e, _ = scene.pairs[position]
    return scene.engine.expected.columns[e].type or scene.kind(position).name


def date_format(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """Dates in another form than ISO."""
    rows = _strange(scene, position) if scene.kind(position).name in MOMENTS else []
    if not rows:
        return None
    value = scene.raw(position)[1][rows[0]]
    text = f"`{scene.name(position)}`: {counted(len(rows), 'value')} not written as YYYY-MM-DD"
    return found(scene, position, "date_format", f"{text}, such as {shown(value)}", unreadable=len(rows))


def precision_lost(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """Integers that went through float64."""
    column = scene.paired[position]
    if scene.kind(position).name != "integer" or column.rule is not None:
        return None
    big = {c[0] for c in column.expected if isinstance(c[0], int) and abs(c[0]) > 2**53}
    as_double = {x: as_float(x) for x in big}
    forms = {}
    for value in as_double.values():
        if abs(value) < 1e300:
            forms.update({int(value): value, int(shortest(value)): value})

    def undo(cell: Cell) -> Cell:
        key = cell[0]
        if isinstance(key, int) and (key in as_double or key in forms):
            return as_double.get(key, forms.get(key)), ()
        return cell

    if not big or not changed(scene, position, undo):
        return None
    text = f"`{scene.name(position)}`: integers beyond 2^53 went through a float64 and lost their last digits"
    return found(scene, position, "precision_lost", text)


def leading_zeros(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """Codes whose leading zeros are gone."""
    if scene.kind(position).name != "text":
        return None

    def undo(text: str) -> str:
        return (text.lstrip("0") or "0") if text.isascii() and text.isdigit() else text

    if not changed(scene, position, keyed(undo)):
        return None
    return found(scene, position, "leading_zeros", f"`{scene.name(position)}`: leading zeros lost or added")


def case(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """Text in other upper and lower case."""
    if scene.kind(position).name != "text" or not changed(
        scene, position, keyed(lambda text: clean_text(text.casefold()))
    ):
        return None
    return found(scene, position, "case", f"`{scene.name(position)}`: upper and lower case differ")


def whitespace(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """Text with other blanks inside."""
    if scene.kind(position).name != "text":
        return None
    if not changed(scene, position, keyed(lambda text: re.sub(r"[\s\u200b-\u200d\u2060\ufeff]+", "", text))):
        return None
    return found(scene, position, "whitespace", f"`{scene.name(position)}`: blanks inside the text differ")


def inverted(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """Booleans the other way round."""
    column = scene.paired[position]
    values = {c[0] for c in column.expected if isinstance(c[0], bool)}
    if scene.kind(position).name != "boolean" or len(values) < 2:
        return None
    turned = [(not c[0], ()) if isinstance(c[0], bool) else c for c in column.actual]
    if not scene.agrees_with(position, PairedColumn(column.expected, turned)):
        return None
    text = f"`{scene.name(position)}`: true and false are exchanged"
    return found(scene, position, "inverted", text)


def _null_word(word: str, what: str, zero: Callable[[PythonDiagnosisContext, int], Cell | None]) -> Any:
    def diagnose(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
        value = zero(scene, position)
        if value is None:
            return None
        column = scene.paired[position]
        sides = []
        for cells, raw in zip((column.expected, column.actual), scene.raw(position), strict=True):
            sides.append(
                [
                    value if c[0] is None and not is_nan(plain(r)) else c
                    for c, r in zip(cells, raw, strict=True)
                ]
            )
        if not scene.agrees_with(position, PairedColumn(sides[0], sides[1], column.rule)):
            return None
        return found(
            scene, position, word, f"`{scene.name(position)}`: NULL on one side, {what} on the other"
        )

    return diagnose


def _zero(scene: PythonDiagnosisContext, position: int) -> Cell | None:
    kind = scene.kind(position)
    if kind.numeric:
        return (NUMBER, (0,)) if scene.paired[position].rule is not None else (0, ())
    return ("0", ()) if kind.name == "text" else (("number", 0), ()) if kind.name == "any" else None


def _false(scene: PythonDiagnosisContext, position: int) -> Cell | None:
    name = scene.kind(position).name
    if name == "any":
        return ("boolean", False), ()
    return (False, ()) if name == "boolean" else ("false", ()) if name == "text" else None


def _empty(scene: PythonDiagnosisContext, position: int) -> Cell | None:
    name = scene.kind(position).name
    if name == "any":
        return ("text", ""), ()
    return read_cell("", ColumnReading(scene.kind(position))) if not scene.kind(position).numeric else None


null_vs_zero = _null_word("null_vs_zero", "0", _zero)
null_vs_false = _null_word("null_vs_false", "false", _false)
null_vs_empty = _null_word("null_vs_empty", "an empty text", _empty)


def null_vs_text(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """NULL on one side, its name as text on the other."""
    column = scene.paired[position]
    sides: list[list[Cell]] = []
    words: set[str] = set()
    for cells, raw in zip((column.expected, column.actual), scene.raw(position), strict=True):
        side: list[Cell] = []
        for cell, value in zip(cells, raw, strict=True):
            spelled = isinstance(value, str) and value.strip().lower() in NULL_WORDS
            words |= {value.strip()} if spelled else set()
            side.append((None, ()) if spelled else ("NaN", ()) if is_nan(plain(value)) else cell)
        sides.append(side)
    if not words or not scene.agrees_with(position, PairedColumn(sides[0], sides[1], column.rule)):
        return None
    word = min(words)
    return found(
        scene,
        position,
        "null_vs_text",
        f"`{scene.name(position)}`: NULL on one side, the text {word!r} on the other",
    )


def null_instead_of_value(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """The answer is NULL where there is a value."""
    column = scene.paired[position]
    raw = scene.raw(position)[1]
    gone = [a for a, c in enumerate(column.actual) if c[0] is None and not is_nan(plain(raw[a]))]
    if not gone or scene.expected_rows != scene.actual_rows:
        return None
    size = scene.expected_rows
    if scene.runs is not None:
        wild = set(gone)
        expected = [(None, ()) if i in wild else c for i, c in enumerate(column.expected)]
        if not scene.agrees_with(position, PairedColumn(expected, column.actual, column.rule)):
            return None
    else:
        others = [a for a in range(size) if column.actual[a][0] is not None or a not in set(gone)]
        work = scene.engine.work
        first = pair_bag(scene.paired, range(size), others, size, work)
        if first.spare or not pair_bag(scene.rest(position), first.lost, gone, size, work).matched:
            return None
    text = f"`{scene.name(position)}`: NULL where a value is expected"
    return found(scene, position, "null_instead_of_value", text, nulls=len(gone))


def list_order(scene: PythonDiagnosisContext, position: int) -> Diagnosis | None:
    """The elements of lists (or of a joined text) in another order."""

    def undo(cell: Cell) -> Cell:
        key, numbers = cell
        if isinstance(key, tuple) and len(key) == 2 and key[0] == "list":
            return ("list", tuple(sorted(key[1], key=repr))), tuple(sorted(numbers))
        if isinstance(key, str) and key != NUMBER:
            parts = [part.strip() for part in re.split(r"[,;|]", key)]
            return (tuple(sorted(parts)), ()) if len(parts) > 1 else cell
        return cell

    if not changed(scene, position, undo):
        return None
    return found(
        scene, position, "list_order", f"`{scene.name(position)}`: the same elements in another order"
    )


Word = Callable[[PythonDiagnosisContext, int], Diagnosis | None]
