"""Diagnoses of shape: columns and rows that are there or not, whatever stands in them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pytest_agenteval.compare.diagnosis.context import DiagnosisContext, listed, number_of
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.compare.values.numbers import NO, Number, NumberRule
from pytest_agenteval.compare.values.sql_types import kind_of, kind_of_values
from pytest_agenteval.support.column_names import fold_name
from pytest_agenteval.support.text import counted

LIMITS = (5, 10, 20, 40, 50, 100, 500, 1000)
SUM_RULE = NumberRule(rtol=1e-6, atol=1e-9, decimals=None)


def extra_column(scene: DiagnosisContext) -> Diagnosis | None:
    """Columns that were not asked for, where that is forbidden."""
    if scene.options.extra_columns != "forbid" or not scene.columns.extra:
        return None
    names = [scene.actual.columns[a].name for a in scene.columns.extra]
    text = f"{counted(len(names), 'column')} too many: {listed(names)}; extra columns are forbidden"
    return Diagnosis("extra_column", text, (), {"extra": names})


def wrong_grain(scene: DiagnosisContext) -> Diagnosis | None:
    """Other row counts, the same sum, and a grouping column more or less."""
    if scene.expected_rows == scene.actual_rows:
        return None
    missing = [e for e in scene.columns.missing if not scene.engine.kind(e).tolerant]
    added = [a for a in scene.columns.extra if _groups(scene, a)]
    if not missing and not added:
        return None
    for position, (e, _) in enumerate(scene.pairs):
        if not scene.kind(position).numeric or scene.columns.how[e] == "likeness":
            continue
        total, other = scene.total(position, True), scene.total(position, False)
        if total and other and SUM_RULE.grade(total, other) != NO:
            names = [scene.expected.columns[i].name for i in missing]
            more = [scene.actual.columns[i].name for i in added]
            parts = [f"no {listed(names)}"] if names else []
            parts += [f"grouped by {listed(more)} as well"] if more else []
            text = (
                f"{counted(scene.actual_rows, 'row')} where {scene.expected_rows:,} are expected, but "
                f"`{scene.name(position)}` sums to {_shown(total)} in both: other grain ({'; '.join(parts)})"
            )
            proof = {"sum": _shown(total), "missing": names, "added": more}
            return Diagnosis("wrong_grain", text, (scene.name(position),), proof)
    return None


def _groups(scene: DiagnosisContext, index: int) -> bool:
    column = scene.actual.columns[index]
    kind = kind_of(column.type) or kind_of_values(scene.actual.head(1000).column(index))
    return not kind.tolerant


def _shown(number: Number) -> str:
    if isinstance(number, float):
        return f"{number:.12g}"
    text = f"{number:f}" if abs(Decimal(number).adjusted()) < 40 else f"{number:e}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def pivoted(scene: DiagnosisContext) -> Diagnosis | None:
    """The labels of one expected column stand as headers of the answer."""
    es, as_ = scene.loose()
    headers = {fold_name(scene.actual.columns[a].name) for a in as_}
    for e in es:
        values = {fold_name(text) for text in scene.labels(True, e)}
        if values and values <= headers and (len(values) > 1 or len(es) > 1):
            name = scene.expected.columns[e].name
            text = f"the values of `{name}` are columns in the answer: pivoted"
            return Diagnosis("pivoted", text, (name,), {"headers": sorted(values)[:10]})
    return None


def transposed(scene: DiagnosisContext) -> Diagnosis | None:
    """The expected headers stand as values in one column of the answer."""
    es, as_ = scene.loose()
    names = {fold_name(scene.expected.columns[e].name) for e in es}
    if len(names) < 2 and not (names and len(es) == len(scene.expected.columns)):
        return None
    for a in as_:
        values = {fold_name(text) for text in scene.labels(False, a)}
        if names <= values:
            name = scene.actual.columns[a].name
            text = f"the expected columns are values of the answer's `{name}`: transposed"
            shown = tuple(scene.expected.columns[e].name for e in es)
            return Diagnosis("transposed", text, shown, {"column": name})
    return None


def missing_column(scene: DiagnosisContext) -> Diagnosis | None:
    """Expected columns without a partner."""
    if not scene.columns.missing:
        return None
    names = tuple(scene.expected.columns[e].name for e in scene.columns.missing)
    left = [scene.actual.columns[a].name for a in scene.columns.extra]
    text = f"{counted(len(names), 'expected column')} not in the answer: {listed(names)}"
    if left and scene.options.columns == "auto":
        text += f"; no value fits in what is left over: {listed(left)}"
    elif left:
        text += f"; left over: {listed(left)}"
    return Diagnosis("missing_column", text, names, {"missing": list(names), "left_over": left})


def total_row(scene: DiagnosisContext) -> Diagnosis | None:
    """One row more, holding the sums."""
    if (
        scene.expected_rows < 2
        or scene.actual_rows != scene.expected_rows + 1
        or len(scene.lost)
        or len(scene.spare) != 1
    ):
        return None
    row = int(scene.spare[0])
    if not scene.unknown([row], False):
        return None
    sums = {}
    for position in range(len(scene.pairs)):
        value = number_of(scene.cell(position, row, False)) if scene.kind(position).numeric else None
        total = None if value is None else scene.total(position, True)
        if value is not None and total is not None and SUM_RULE.grade(total, value) != NO:
            sums[scene.name(position)] = _shown(total)
    if not sums:
        return None
    shown = ", ".join(f"{name} = {value}" for name, value in list(sums.items())[:4])
    text = f"one row too many, holding the sums of the others: {shown}"
    return Diagnosis("total_row", text, tuple(sums), {"row": row + 1, "sums": sums})


def truncated_by_limit(scene: DiagnosisContext) -> Diagnosis | None:
    """The answer is a part of the expected rows, cut at a usual LIMIT."""
    if len(scene.spare) or scene.actual_rows >= scene.expected_rows or scene.actual_rows not in LIMITS:
        return None
    text = (
        f"{scene.actual_rows:,} of {counted(scene.expected_rows, 'row')}, the rest missing: "
        f"looks like LIMIT {scene.actual_rows}"
    )
    return Diagnosis(
        "truncated_by_limit", text, (), {"limit": scene.actual_rows, "expected": scene.expected_rows}
    )


def rows_missing(scene: DiagnosisContext) -> Diagnosis | None:
    """All answered rows are right, but distinct rows are gone."""
    if len(scene.spare) or not len(scene.lost) or scene.exhausted:
        return None
    if not scene.unknown(scene.lost, True):
        return None
    text = f"{counted(len(scene.lost), 'row')} of {scene.expected_rows:,} missing, the others are right"
    return Diagnosis("rows_missing", text, (), {"missing": len(scene.lost), "expected": scene.expected_rows})


def rows_extra(scene: DiagnosisContext) -> Diagnosis | None:
    """All expected rows are there, and distinct rows besides."""
    if len(scene.lost) or not len(scene.spare) or scene.exhausted:
        return None
    if scene.expected_rows and not scene.unknown(scene.spare, False):
        return None
    text = f"{counted(len(scene.spare), 'row')} too many; all {scene.expected_rows:,} expected rows are there"
    if not scene.expected_rows:
        text = f"{counted(scene.actual_rows, 'row')} where none is expected"
    return Diagnosis("rows_extra", text, (), {"extra": len(scene.spare), "expected": scene.expected_rows})


def fan_out(scene: DiagnosisContext) -> Diagnosis | None:
    """Every row counted the same number of times: a join multiplied them."""
    size = scene.expected_rows
    times, rest = divmod(scene.actual_rows, size) if size else (0, 1)
    if rest or times < 2 or scene.options.duplicates == "set":
        return None
    if scene.distinct(True) < 2 or not scene.multiplied(times):
        return None
    text = f"each of the {size:,} rows is there {times} times: join fan-out"
    return Diagnosis("fan_out", text, (), {"times": times, "expected": size, "actual": scene.actual_rows})


def duplicates(scene: DiagnosisContext) -> Diagnosis | None:
    """The same distinct rows, more or fewer of them."""
    if scene.options.duplicates == "set" or scene.expected_rows == scene.actual_rows or not scene.actual_rows:
        return None
    size = scene.expected_rows
    if not scene.same_sets():
        return None
    distinct = scene.distinct(True)
    fewer = scene.actual_rows < size
    word = "duplicates_missing" if fewer else "duplicates_extra"
    text = (
        f"the same {counted(distinct, 'distinct row')}, but {scene.actual_rows:,} of them where "
        f"{size:,} are expected: {'DISTINCT too much' if fewer else 'rows repeated'}"
    )
    return Diagnosis(word, text, (), {"distinct": distinct, "expected": size, "actual": scene.actual_rows})


def rows_differ(scene: DiagnosisContext) -> Diagnosis | None:
    """Other row counts, and rows on both sides only."""
    if scene.expected_rows == scene.actual_rows or not (len(scene.lost) and len(scene.spare)):
        return None
    return rows_differ_text(scene, len(scene.lost), len(scene.spare))


def rows_differ_text(scene: DiagnosisContext, lost: int, spare: int) -> Diagnosis:
    """The words for rows that stand on one side only, on both sides."""
    text = (
        f"{lost:,} of {counted(scene.expected_rows, 'expected row')} not in the answer, "
        f"{spare:,} of {counted(scene.actual_rows, 'answered row')} not expected"
    )
    proof: dict[str, Any] = {"missing": lost, "extra": spare}
    return Diagnosis("rows_differ", text, (), proof)
