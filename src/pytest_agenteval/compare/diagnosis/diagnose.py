"""The first word of the contract that holds, in the contract's order."""

from __future__ import annotations

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
from pytest_agenteval.compare.diagnosis.context import DiagnosisContext, PythonDiagnosisContext
from pytest_agenteval.compare.diagnosis.one_column import Word
from pytest_agenteval.compare.ordering import diagnose_order
from pytest_agenteval.compare.python_engine.matching import TooMuchWork
from pytest_agenteval.compare.result import Diagnosis

SHAPE = (
    shape.extra_column,
    shape.wrong_grain,
    shape.pivoted,
    shape.transposed,
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


def diagnose(scene: DiagnosisContext) -> tuple[Diagnosis, Alignment]:
    """What is wrong with a failed comparison, and the rows to show for it."""
    for rule in SHAPE:
        found = rule(scene)
        if found:
            return found, align(scene, split=found.word.startswith("rows_"))
    found = diagnose_order(scene)
    alignment = align(scene)
    found = found or joint.columns_swapped(scene, alignment)
    if not found:
        positions = [i for i in scene.suspects(alignment) if scene.agrees_without(i)]
        try:
            found = first_word(scene, positions)
        except TooMuchWork:
            if isinstance(scene, PythonDiagnosisContext):
                raise
            found = None  # too much of the sample lies near each other to prove a word
    for joined in JOINT if not found else ():
        found = joined(scene, alignment)
        if found:
            break
    if found is not None and found.word == "rows_differ":
        alignment = align(scene, split=True)
    return found or joint.values_differ(scene, alignment), alignment


def first_word(scene: DiagnosisContext, positions: list[int]) -> Diagnosis | None:
    """The first word, in order, that holds for one of the columns."""
    close = {position: scene.close_up(position) for position in positions}
    for word in ONE_COLUMN:
        for position in positions:
            found = word(close[position], position)
            if found is not None:
                return found
    return None
