"""Diagnoses of shape: columns and rows that are there or not, whatever stands in them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pytest_agenteval.compare.diagnosis.context import DiagnosisContext, listed, number_of
from pytest_agenteval.compare.fitting import MOMENTS
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.compare.values.numbers import NO, Number, NumberRule
from pytest_agenteval.compare.values.sql_types import kind_of, kind_of_values
from pytest_agenteval.support.column_names import fold_name
from pytest_agenteval.support.text import counted

LIMITS = (5, 10, 20, 40, 50, 100, 500, 1000)
SUM_RULE = NumberRule(rtol=1e-6, atol=1e-9, decimals=None)


def extra_column(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose columns that were not asked for, where that is forbidden."""
    if context.options.extra_columns != "forbid" or not context.columns.extra:
        return None
    names = [context.actual.columns[a].name for a in context.columns.extra]
    text = f"{counted(len(names), 'column')} too many: {listed(names)}; extra columns are forbidden"
    return Diagnosis("extra_column", text, (), {"extra": names})


def wrong_grain(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose other row counts with the same sum, and a grouping column more or less."""
    if context.expected_rows == context.actual_rows:
        return None
    missing = [e for e in context.columns.missing if not context.engine.kind(e).tolerant]
    added = [a for a in context.columns.extra if _groups(context, a)]
    times = [i for i in range(len(context.pairs)) if context.kind(i).name in MOMENTS]
    if not missing and not added and not times:
        return None
    # where one side holds all rows of the other, rows are missing or extra, whatever their sum is
    if not missing and not (len(context.unmatched_expected) and len(context.unmatched_actual)):
        return None
    for position in range(len(context.pairs)):
        if not context.kind(position).numeric:
            continue
        total, other = context.total(position, True), context.total(position, False)
        if total and other and SUM_RULE.grade(total, other) != NO:
            names = [context.expected.columns[i].name for i in missing]
            more = [context.actual.columns[i].name for i in added]
            parts = [f"no {listed(names)}"] if names else []
            parts += [f"grouped by {listed(more)} as well"] if more else []
            parts = parts or [f"other steps of {listed(context.name(i) for i in times)}"]
            text = (
                f"{counted(context.actual_rows, 'row')} where {context.expected_rows:,} are expected, but "
                f"`{context.name(position)}` sums to {_shown(total)} in both: "
                f"other grain ({'; '.join(parts)})"
            )
            proof = {"sum": _shown(total), "missing": names, "added": more}
            return Diagnosis("wrong_grain", text, (context.name(position),), proof)
    return None


def _groups(context: DiagnosisContext[Any], index: int) -> bool:
    column = context.actual.columns[index]
    kind = kind_of(column.type) or kind_of_values(context.actual.head(1000).column(index))
    return not kind.tolerant


def _shown(number: Number) -> str:
    if isinstance(number, float):
        return f"{number:.12g}"
    text = f"{number:f}" if abs(Decimal(number).adjusted()) < 40 else f"{number:e}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def pivoted(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Return the labels of one expected column stand as headers of the answer."""
    expected_indexes, actual_indexes = context.loose()
    headers = {fold_name(context.actual.columns[a].name) for a in actual_indexes}
    for e in expected_indexes:
        values = {fold_name(text) for text in context.labels(True, e)}
        if values and values <= headers and (len(values) > 1 or len(expected_indexes) > 1):
            name = context.expected.columns[e].name
            text = f"the values of `{name}` are columns in the answer: pivoted"
            return Diagnosis("pivoted", text, (name,), {"headers": sorted(values)[:10]})
    return None


def transposed(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Return the expected headers stand as values in one column of the answer."""
    expected_indexes, actual_indexes = context.loose()
    names = {fold_name(context.expected.columns[e].name) for e in expected_indexes}
    if len(names) < 2 and not (names and len(expected_indexes) == len(context.expected.columns)):
        return None
    for a in actual_indexes:
        values = {fold_name(text) for text in context.labels(False, a)}
        if names <= values:
            name = context.actual.columns[a].name
            text = f"the expected columns are values of the answer's `{name}`: transposed"
            shown = tuple(context.expected.columns[e].name for e in expected_indexes)
            return Diagnosis("transposed", text, shown, {"column": name})
    return None


def missing_column(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose expected columns without a partner."""
    if not context.columns.missing:
        return None
    names = tuple(context.expected.columns[e].name for e in context.columns.missing)
    left = [context.actual.columns[a].name for a in context.columns.extra]
    text = f"{counted(len(names), 'expected column')} not in the answer: {listed(names)}"
    if left and context.options.columns == "auto":
        text += f"; no value fits in what is left over: {listed(left)}"
    elif left:
        text += f"; left over: {listed(left)}"
    return Diagnosis("missing_column", text, names, {"missing": list(names), "left_over": left})


def total_row(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose one row more that holds the sums."""
    if (
        context.expected_rows < 2
        or context.actual_rows != context.expected_rows + 1
        or len(context.unmatched_expected)
        or len(context.unmatched_actual) != 1
    ):
        return None
    row = int(context.unmatched_actual[0])
    if not context.unknown([row], False):
        return None
    sums = {}
    for position in range(len(context.pairs)):
        value = number_of(context.cell(position, row, False)) if context.kind(position).numeric else None
        total = None if value is None else context.total(position, True)
        if value is not None and total is not None and SUM_RULE.grade(total, value) != NO:
            sums[context.name(position)] = _shown(total)
    if not sums:
        return None
    shown = ", ".join(f"{name} = {value}" for name, value in list(sums.items())[:4])
    text = f"one row too many, holding the sums of the others: {shown}"
    return Diagnosis("total_row", text, tuple(sums), {"row": row + 1, "sums": sums})


def truncated_by_limit(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose an answer that is part of the expected rows, cut at a usual LIMIT."""
    if (
        len(context.unmatched_actual)
        or context.actual_rows >= context.expected_rows
        or context.actual_rows not in LIMITS
    ):
        return None
    text = (
        f"{context.actual_rows:,} of {counted(context.expected_rows, 'row')}, the rest missing: "
        f"looks like LIMIT {context.actual_rows}"
    )
    return Diagnosis(
        "truncated_by_limit", text, (), {"limit": context.actual_rows, "expected": context.expected_rows}
    )


def rows_missing(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose answered rows that are all right while distinct rows are gone."""
    if len(context.unmatched_actual) or not len(context.unmatched_expected) or context.exhausted:
        return None
    if not context.unknown(context.unmatched_expected, True):
        return None
    gone = counted(len(context.unmatched_expected), "row")
    text = f"{gone} of {context.expected_rows:,} missing, the others are right"
    return Diagnosis(
        "rows_missing",
        text,
        (),
        {"missing": len(context.unmatched_expected), "expected": context.expected_rows},
    )


def rows_extra(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose distinct rows beside all the expected ones."""
    if len(context.unmatched_expected) or not len(context.unmatched_actual) or context.exhausted:
        return None
    if context.expected_rows and not context.unknown(context.unmatched_actual, False):
        return None
    more = counted(len(context.unmatched_actual), "row")
    text = f"{more} too many; all {context.expected_rows:,} expected rows are there"
    if not context.expected_rows:
        text = f"{counted(context.actual_rows, 'row')} where none is expected"
    return Diagnosis(
        "rows_extra", text, (), {"extra": len(context.unmatched_actual), "expected": context.expected_rows}
    )


def fan_out(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose rows that all occur the same number of times: a join multiplied them."""
    size = context.expected_rows
    times, rest = divmod(context.actual_rows, size) if size else (0, 1)
    if rest or times < 2 or context.options.duplicates == "set":
        return None
    if context.distinct(True) < 2 or not context.multiplied(times):
        return None
    text = f"each of the {size:,} rows is there {times} times: join fan-out"
    return Diagnosis("fan_out", text, (), {"times": times, "expected": size, "actual": context.actual_rows})


def duplicates(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Return the same distinct rows, more or fewer of them."""
    if (
        context.options.duplicates == "set"
        or context.expected_rows == context.actual_rows
        or not context.actual_rows
    ):
        return None
    size = context.expected_rows
    if not context.same_sets():
        return None
    distinct = context.distinct(True)
    fewer = context.actual_rows < size
    word = "duplicates_missing" if fewer else "duplicates_extra"
    text = (
        f"the same {counted(distinct, 'distinct row')}, but {context.actual_rows:,} of them where "
        f"{size:,} are expected: {'DISTINCT too much' if fewer else 'rows repeated'}"
    )
    return Diagnosis(word, text, (), {"distinct": distinct, "expected": size, "actual": context.actual_rows})


def rows_differ(context: DiagnosisContext[Any]) -> Diagnosis | None:
    """Diagnose other row counts with rows that only one side has."""
    if context.expected_rows == context.actual_rows or not (
        len(context.unmatched_expected) and len(context.unmatched_actual)
    ):
        return None
    return rows_differ_text(context, len(context.unmatched_expected), len(context.unmatched_actual))


def rows_differ_text(
    context: DiagnosisContext[Any], unmatched_expected: int, unmatched_actual: int
) -> Diagnosis:
    """Return the words for rows that stand on one side only, on both sides."""
    text = (
        f"{unmatched_expected:,} of {counted(context.expected_rows, 'expected row')} not in the answer, "
        f"{unmatched_actual:,} of {counted(context.actual_rows, 'answered row')} not expected"
    )
    proof: dict[str, Any] = {"missing": unmatched_expected, "extra": unmatched_actual}
    return Diagnosis("rows_differ", text, (), proof)
