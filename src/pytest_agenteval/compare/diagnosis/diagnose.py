"""Choose the first diagnosis that applies, in the documented order."""

from __future__ import annotations

from typing import Any

from pytest_agenteval.compare.alignment import Alignment, align
from pytest_agenteval.compare.diagnosis import (
    numeric as number_words,
)
from pytest_agenteval.compare.diagnosis import (
    one_column as words,
)
from pytest_agenteval.compare.diagnosis import (
    several_columns as joint,
)
from pytest_agenteval.compare.diagnosis import (
    shape,
)
from pytest_agenteval.compare.diagnosis.context import DiagnosisContext
from pytest_agenteval.compare.diagnosis.one_column import Word
from pytest_agenteval.compare.ordering import diagnose_order
from pytest_agenteval.compare.python_engine.matching import TooMuchWork
from pytest_agenteval.compare.result import Diagnosis

FORM = (
    shape.extra_column,
    shape.wrong_grain,
    shape.pivoted,
    shape.transposed,
)
SHAPE = (
    shape.missing_column,
    shape.total_row,
    shape.truncated_by_limit,
    shape.rows_missing,
    shape.rows_extra,
    shape.fan_out,
    shape.duplicates,
    shape.rows_differ,
)
ONE_COLUMN: tuple[Word, ...] = (
    words.type_,
    words.date_format,
    number_words.rounded,
    number_words.truncated,
    words.precision_lost,
    words.leading_zeros,
    words.percent_text,
    words.case,
    words.whitespace,
    words.inverted,
    number_words.scaled,
    number_words.sign,
    number_words.cumulative,
    number_words.column_offset,
    number_words.date_shift,
    number_words.timezone_shift,
    words.null_vs_zero,
    words.null_vs_false,
    words.null_vs_empty,
    words.null_vs_text,
    words.null_instead_of_value,
    words.list_order,
)
JOINT = (
    joint.bounded,
    joint.duplicate_counts,
    joint.rows_scrambled,
    joint.rows_replaced,
)


FEW_SUSPECTS = 20
MOST_SUMMED = 20_000


def diagnose_form(context: DiagnosisContext[Any]) -> tuple[Diagnosis, Alignment] | None:
    """Return the first word about which columns there are, before unnamed ones are paired."""
    for rule in FORM:
        found = rule(context)
        if found:
            return found, align(context)
    return None


def diagnose(context: DiagnosisContext[Any]) -> tuple[Diagnosis, Alignment]:
    """Return what is wrong with a failed comparison, and the rows to show for it."""
    for rule in SHAPE:
        found = rule(context)
        if found:
            return found, align(context, split=found.word.startswith("rows_"))
    found = diagnose_order(context)
    alignment = align(context)
    found = found or joint.columns_swapped(context, alignment)
    if not found:
        positions = [i for i in blamable(context, alignment) if context.agrees_without(i)]
        try:
            found = first_word(context, positions)
        except TooMuchWork:
            if context.hands_over:
                raise
            found = None  # too much of the sample lies near each other to prove a word
    for joined in JOINT if not found else ():
        found = joined(context, alignment)
        if found:
            break
    if found is not None and found.word == "rows_differ":
        alignment = align(context, split=True)
    return found or joint.values_differ(context, alignment), alignment


def blamable(context: DiagnosisContext[Any], alignment: Alignment) -> list[int]:
    """Return the columns that may be to blame alone: where two hold other values, none is.

    That is looked at first where many columns would each have to be left out in turn.
    """
    suspects = context.suspects(alignment)
    if len(suspects) <= FEW_SUSPECTS:
        return suspects
    unlike: list[int] = []
    for position, (e, a) in enumerate(context.pairs):
        if not context.engine.alike(e, a):
            unlike.append(position)
            if len(unlike) > 1:
                return []
    return [i for i in suspects if i in unlike] if unlike else suspects


def first_word(context: DiagnosisContext[Any], positions: list[int]) -> Diagnosis | None:
    """Return the first word, in order, that holds for one of the columns in all rows.

    A sample of a large table tells quickly which words cannot hold; what it leaves is tried on all rows.
    """
    close = {position: context.close_up(position) for position in positions}
    for word in ONE_COLUMN:
        for position in positions:
            found = word(close[position], position)
            # a sum runs over all rows: no sample shows it
            runs = word is number_words.cumulative and max(context.engine.rows) <= MOST_SUMMED
            if found is None and not runs:
                continue
            whole = context.whole(position)
            if whole is not close[position]:
                found = None if whole is None else word(whole, position)
            if found is not None:
                return found
    return None
