"""Diagnoses of one column: a word holds when undoing it in that column makes the tables match."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Any

from pytest_agenteval.compare.diagnosis.column_context import ColumnContext
from pytest_agenteval.compare.diagnosis.context import unreadable
from pytest_agenteval.compare.fitting import MOMENTS
from pytest_agenteval.compare.python_engine.matching import PairedColumn
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.compare.values.canonical import clean_text, label
from pytest_agenteval.compare.values.cells import NUMBER, Cell, ColumnReading, read_cell
from pytest_agenteval.compare.values.numbers import NO, as_float, read_number, shortest
from pytest_agenteval.support.scalars import NULL_WORDS, is_nan, is_null, plain
from pytest_agenteval.support.text import counted, cut, escape_line
from pytest_agenteval.support.text import show_value as text_of


def changed(context: ColumnContext, position: int, undo: Callable[[Cell], Cell]) -> bool:
    """Return whether the tables match when ``undo`` is applied to both sides of one column."""
    column = context.cells(position)
    undone = PairedColumn([undo(c) for c in column.expected], [undo(c) for c in column.actual], column.rule)
    return context.agrees_with(position, undone)


def keyed(function: Callable[[str], Hashable]) -> Callable[[Cell], Cell]:
    """Return an undo of text cells; other cells stay as they are."""

    def undo(cell: Cell) -> Cell:
        return (function(cell[0]), cell[1]) if isinstance(cell[0], str) and cell[0] != NUMBER else cell

    return undo


def differing(context: ColumnContext, position: int) -> list[tuple[int, int]]:
    """Return the aligned rows that differ in a column."""
    column = context.cells(position)
    return [(e, a) for e, a in context.aligned(position) if column.grade(e, a) == NO]


def shown(value: Any) -> str:
    """Return a value in a sentence: short, text in quotes."""
    value = plain(value)
    if isinstance(value, str):
        return escape_line(repr(cut(value, 40)))
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not is_null(value):
        return label(value)[:60]
    return text_of(value, 40)


def found(context: ColumnContext, position: int, word: str, text: str, **proof: Any) -> Diagnosis | None:
    """Return the diagnosis of one column, with an example and how many rows it is about.

    ``None`` where no aligned row differs: a word that is seen nowhere is not said.
    """
    pairs = differing(context, position)
    if not pairs:
        return None
    expected, actual = context.raw(position)
    (e, a), count = pairs[0], len(pairs)
    proof = {"rows": context.expected_rows, "differing": count, **proof}
    rows = f"{count:,} of {counted(context.expected_rows, 'row')}"
    sample = f"expected {shown(expected[e])}, got {shown(actual[a])}"
    return Diagnosis(word, f"{text} ({rows}; {sample})", (context.name(position),), proof)


def _strange(context: ColumnContext, position: int) -> list[int]:
    """Return answered rows whose value is none of the column's kind;
    spelled NULLs only where none is expected.
    """
    raw = context.raw(position)[1]
    nulls = any(cell[0] is None for cell in context.cells(position).expected)
    cells = enumerate(context.cells(position).actual)
    return [a for a, cell in cells if unreadable(cell) and not (nulls and _spelled_null(raw[a]))]


def _spelled_null(value: Any) -> bool:
    return isinstance(value, str) and (not value.strip() or value.strip().lower() in NULL_WORDS)


def type_(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose values that cannot be read as the expected type."""
    rows = [] if context.kind(position).name in MOMENTS else _strange(context, position)
    if not rows:
        return None
    value = context.raw(position)[1][rows[0]]
    count = counted(len(rows), "value")
    text = f"`{context.name(position)}`: {count} cannot be read as {_kind(context, position)}"
    return found(context, position, "type", f"{text}, such as {shown(value)}", unreadable=len(rows))


def _kind(context: ColumnContext, position: int) -> str:
    return context.sql_type(position) or context.kind(position).name


def date_format(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose dates in another form than ISO."""
    rows = _strange(context, position) if context.kind(position).name in MOMENTS else []
    if not rows:
        return None
    value = context.raw(position)[1][rows[0]]
    text = f"`{context.name(position)}`: {counted(len(rows), 'value')} not written as YYYY-MM-DD"
    return found(context, position, "date_format", f"{text}, such as {shown(value)}", unreadable=len(rows))


def precision_lost(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose integers that went through float64."""
    column = context.cells(position)
    if context.kind(position).name != "integer" or column.rule is not None:
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

    if not big or not changed(context, position, undo):
        return None
    text = (
        f"`{context.name(position)}`: integers beyond 2^53 went through a float64 and lost their last digits"
    )
    return found(context, position, "precision_lost", text)


def leading_zeros(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose codes whose leading zeros are gone."""
    if context.kind(position).name != "text":
        return None

    def undo(text: str) -> str:
        return (text.lstrip("0") or "0") if text.isascii() and text.isdigit() else text

    if not changed(context, position, keyed(undo)):
        return None
    return found(
        context, position, "leading_zeros", f"`{context.name(position)}`: leading zeros lost or added"
    )


def percent_text(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose percentages that are text with a sign on one side, and numbers or bare text on the other."""
    signed = [
        any(isinstance(v, str) and "%" in v for v in map(plain, side)) for side in context.raw(position)
    ]
    if context.kind(position).name != "text" or signed[0] == signed[1]:
        return None
    for shares in (False, True):

        def undo(text: str, shares: bool = shares) -> Hashable:
            number = read_number(text)
            if number is None or isinstance(number.value, float):
                return text
            return (number.value / 100 if number.percent and shares else number.value).normalize()

        if changed(context, position, keyed(undo)):
            what = "a share" if shares else "a number"
            text = f"`{context.name(position)}`: a percentage with its sign is text, {what} is not"
            return found(context, position, "percent_text", text)
    return None


def case(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose text in other upper and lower case."""
    if context.kind(position).name != "text" or not changed(
        context, position, keyed(lambda text: clean_text(text.casefold()))
    ):
        return None
    return found(context, position, "case", f"`{context.name(position)}`: upper and lower case differ")


def whitespace(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose text with other blanks inside."""
    if context.kind(position).name != "text":
        return None
    if not changed(
        context, position, keyed(lambda text: re.sub(r"[\s\u200b-\u200d\u2060\ufeff]+", "", text))
    ):
        return None
    return found(
        context, position, "whitespace", f"`{context.name(position)}`: blanks inside the text differ"
    )


def inverted(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose booleans that are the other way round."""
    column = context.cells(position)
    values = {c[0] for c in column.expected if isinstance(c[0], bool)}
    if context.kind(position).name != "boolean" or len(values) < 2:
        return None
    turned = [(not c[0], ()) if isinstance(c[0], bool) else c for c in column.actual]
    if not context.agrees_with(position, PairedColumn(column.expected, turned)):
        return None
    text = f"`{context.name(position)}`: true and false are exchanged"
    return found(context, position, "inverted", text)


def _null_word(word: str, what: str, zero: Callable[[ColumnContext, int], Cell | None]) -> Any:
    def diagnose(context: ColumnContext, position: int) -> Diagnosis | None:
        value = zero(context, position)
        if value is None:
            return None
        column = context.cells(position)
        sides = []
        for cells, raw in zip((column.expected, column.actual), context.raw(position), strict=True):
            sides.append(
                [
                    value if c[0] is None and not is_nan(plain(r)) else c
                    for c, r in zip(cells, raw, strict=True)
                ]
            )
        if not context.agrees_with(position, PairedColumn(sides[0], sides[1], column.rule)):
            return None
        return found(
            context, position, word, f"`{context.name(position)}`: NULL on one side, {what} on the other"
        )

    return diagnose


def _zero(context: ColumnContext, position: int) -> Cell | None:
    kind = context.kind(position)
    if kind.numeric:
        return (NUMBER, (0,)) if context.cells(position).rule is not None else (0, ())
    return ("0", ()) if kind.name == "text" else (("number", 0), ()) if kind.name == "any" else None


def _false(context: ColumnContext, position: int) -> Cell | None:
    name = context.kind(position).name
    if name == "any":
        return ("boolean", False), ()
    return (False, ()) if name == "boolean" else ("false", ()) if name == "text" else None


def _empty(context: ColumnContext, position: int) -> Cell | None:
    name = context.kind(position).name
    if name == "any":
        return ("text", ""), ()
    return (
        read_cell("", ColumnReading(context.kind(position))) if not context.kind(position).numeric else None
    )


null_vs_zero = _null_word("null_vs_zero", "0", _zero)
null_vs_false = _null_word("null_vs_false", "false", _false)
null_vs_empty = _null_word("null_vs_empty", "an empty text", _empty)


def null_vs_text(context: ColumnContext, position: int) -> Diagnosis | None:
    """Diagnose NULL on one side, its name as text on the other."""
    column = context.cells(position)
    sides: list[list[Cell]] = []
    words: set[str] = set()
    for cells, raw in zip((column.expected, column.actual), context.raw(position), strict=True):
        side: list[Cell] = []
        for cell, value in zip(cells, raw, strict=True):
            spelled = isinstance(value, str) and value.strip().lower() in NULL_WORDS
            words |= {value.strip()} if spelled else set()
            side.append((None, ()) if spelled else ("NaN", ()) if is_nan(plain(value)) else cell)
        sides.append(side)
    if not words or not context.agrees_with(position, PairedColumn(sides[0], sides[1], column.rule)):
        return None
    word = min(words)
    return found(
        context,
        position,
        "null_vs_text",
        f"`{context.name(position)}`: NULL on one side, the text {word!r} on the other",
    )


def null_instead_of_value(context: ColumnContext, position: int) -> Diagnosis | None:
    """Return the answer is NULL where there is a value."""
    column = context.cells(position)
    raw = context.raw(position)[1]
    gone = [a for a, c in enumerate(column.actual) if c[0] is None and not is_nan(plain(raw[a]))]
    if not gone or context.expected_rows != context.actual_rows:
        return None
    if not context.agrees_but_for(position, gone):
        return None
    text = f"`{context.name(position)}`: NULL where a value is expected"
    return found(context, position, "null_instead_of_value", text, nulls=len(gone))


def list_order(context: ColumnContext, position: int) -> Diagnosis | None:
    """Return the elements of lists (or of a joined text) in another order."""

    def undo(cell: Cell, sort: bool = True) -> Cell:
        key, numbers = cell
        if isinstance(key, tuple) and len(key) == 2 and key[0] == "list" and sort:
            return ("list", tuple(sorted(key[1], key=repr))), tuple(sorted(numbers))
        if isinstance(key, str) and key != NUMBER:
            parts = [part.strip() for part in re.split(r"[,;|]", key)]
            return (tuple(sorted(parts) if sort else parts), ()) if len(parts) > 1 else cell
        return cell

    # another separator in the same order is no other order
    if not changed(context, position, undo) or changed(context, position, lambda cell: undo(cell, False)):
        return None
    return found(
        context, position, "list_order", f"`{context.name(position)}`: the same elements in another order"
    )


Word = Callable[[ColumnContext, int], Diagnosis | None]
