"""Columns under other names: the pairing of what no name ties together under which the fault is explained.

Agents seldom use the reference's names. Where a column was not found by name and its values differ,
the tables are explained as if the answered column that fits best stood for it. The verdict stays what
it is: such a column is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

from pytest_agenteval.compare.alignment import Alignment
from pytest_agenteval.compare.columns import ColumnMap, affinity, best_pairs
from pytest_agenteval.compare.diagnosis.context import DiagnosisContext, listed
from pytest_agenteval.compare.diagnosis.diagnose import diagnose, diagnose_form
from pytest_agenteval.compare.engine import ComparisonEngine
from pytest_agenteval.compare.fitting import Fitting
from pytest_agenteval.compare.ordering import tie_runs
from pytest_agenteval.compare.result import Diagnosis
from pytest_agenteval.support.text import counted

MOST_TRIED, FEW_TRIED = 12, 2
MANY_ROWS = 100_000
MOST_SCORED = 400
VAGUE = ("values_differ", "rows_differ", "rows_scrambled", "duplicate_counts", "type", "date_format")
FORM = ("extra_column", "pivoted", "transposed", "missing_column", "ambiguous_columns")
"""Words about which columns there are: no pairing of columns is needed to say them."""

Explained = tuple[DiagnosisContext[Any], Diagnosis, Alignment]


def explain(
    engine: ComparisonEngine[Any, Any],
    columns: ColumnMap,
    runs: Sequence[range] | None,
    order: Sequence[int] | None,
) -> Explained:
    """Say why two tables differ, under the best pairing of columns that no name ties together."""
    context = _context(engine, columns, runs, order)
    form = diagnose_form(context)
    if form is not None:
        return context, *_said(context, *form)
    if not columns.missing or not columns.extra or engine.options.columns == "position":
        return context, *_said(context, *diagnose(context))
    first: Explained | None = None
    tried = MOST_TRIED if max(engine.rows) <= MANY_ROWS else FEW_TRIED
    for pairs in islice(_pairings(engine, columns), tried):
        trial = _context(engine, columns.with_partial(pairs), runs, order)
        if trial.matched and trial.runs is None:
            return context, *_named_only(context, trial)
        found, alignment = diagnose_form(trial) or diagnose(trial)
        this = (trial, *_said(trial, found, alignment))
        if found.word not in VAGUE:
            return this
        first = first or this
    return first or (context, *_said(context, *diagnose(context)))


def _context(
    engine: ComparisonEngine[Any, Any],
    columns: ColumnMap,
    runs: Sequence[range] | None,
    order: Sequence[int] | None,
) -> DiagnosisContext[Any]:
    """Return the tables under a column map; a sort key that is not in the answer leaves a strict list."""
    if order is not None and not all(e in columns.how for e in order):
        order, runs = None, None if runs is None else tie_runs(engine, None)
    return engine.diagnosis_context(columns, runs, order)


def _named_only(context: DiagnosisContext[Any], trial: DiagnosisContext[Any]) -> tuple[Diagnosis, Alignment]:
    """Return the values are all there, but the column has another name, and names alone are taken."""
    found, alignment = diagnose(context)
    tied = ", ".join(
        f"`{trial.actual.columns[a].name}` holds the values of `{trial.expected.columns[e].name}`"
        for e, a in trial.columns.partial
    )
    option = ", and `columns: name` takes names alone" if context.options.columns == "name" else ""
    names = listed(context.expected.columns[e].name for e in context.columns.missing)
    count = counted(len(context.columns.missing), "expected column")
    return replace(found, sentence=f"{count} not in the answer: {names}; {tied}{option}"), alignment


def _said(
    context: DiagnosisContext[Any], found: Diagnosis, alignment: Alignment
) -> tuple[Diagnosis, Alignment]:
    """Return the diagnosis with the pairing that it was made under in front."""
    partial = context.columns.partial
    if not partial or found.word in FORM:
        return found, alignment
    names = [(context.expected.columns[e].name, context.actual.columns[a].name) for e, a in partial]
    tied = ", ".join(f"`{mine}` ~ `{theirs}`" for mine, theirs in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    sentence = found.sentence
    if len(names) == 1:
        sentence = sentence.removeprefix(f"`{names[0][0]}`: ")
    proof = {**found.proof, "names": dict(names)}
    return replace(found, sentence=f"{tied}{more} (names differ): {sentence}", proof=proof), alignment


def _pairings(engine: ComparisonEngine[Any, Any], columns: ColumnMap) -> Iterator[list[tuple[int, int]]]:
    """Yield injective pairings of missing columns with left-over ones that fit, the likeliest first."""
    fits = Fitting(engine)
    fitting = {e: [a for a in columns.extra if fits.fits(e, a)] for e in columns.missing}
    fitting = {e: found for e, found in fitting.items() if found}
    if not fitting:
        return
    scores = _scores(engine, columns, fitting)
    agree = {pair: share for pair, share in scores.items() if share > 0}
    most = best_pairs(list(fitting), list(columns.extra), agree)
    if most and not _better_by_name(engine, most, scores):
        tied, taken = {e for e, _ in most}, {a for _, a in most}
        rest = {e: [a for a in found if a not in taken] for e, found in fitting.items() if e not in tied}
        yield from ([*most, *pairs] for pairs in _injective(fits, rest))
    else:
        yield from _injective(fits, fitting)


def _scores(
    engine: ComparisonEngine[Any, Any], columns: ColumnMap, fitting: dict[int, list[int]]
) -> dict[tuple[int, int], float]:
    """Return the share of whole rows that agree with a pair; of the two columns alone where none does."""
    pairs = [(e, a) for e, found in fitting.items() for a in found]
    if len(pairs) > MOST_SCORED:
        return {}
    fixed = [pair for pair in columns.pairs if pair not in columns.partial]
    joint = {pair: engine.agreement(*pair, fixed) for pair in pairs}
    if any(joint.values()) or not fixed:
        return joint
    return {pair: engine.agreement(*pair) for pair in pairs}


def _better_by_name(
    engine: ComparisonEngine[Any, Any],
    most: list[tuple[int, int]],
    scores: dict[tuple[int, int], float],
) -> bool:
    """Return whether few rows agree by chance while other names say the same in so many words."""
    names = engine.expected.names, engine.actual.names
    return any(
        scores[e, a] < 0.5
        and affinity(names[0][e], names[1][a])
        < max(affinity(names[0][e], names[1][b]) for f, b in scores if f == e)
        for e, a in most
    )


def _injective(fits: Fitting, fitting: dict[int, list[int]]) -> Iterator[list[tuple[int, int]]]:
    """Yield pairings in the order of their likeness by name, kind and place;
    as many columns as there can be.
    """
    engine = fits.engine
    expected, actual = engine.expected, engine.actual

    def likelihood(e: int, a: int) -> tuple[float, bool, int]:
        same = engine.kind(e) == fits.head(a)[0]
        return -affinity(expected.columns[e].name, actual.columns[a].name), not same, a

    ordered = {e: sorted(found, key=lambda a, e=e: likelihood(e, a)) for e, found in fitting.items()}  # type: ignore[misc]
    weights = {
        (e, a): 1 / (1 + place) + affinity(expected.columns[e].name, actual.columns[a].name)
        for e, found in ordered.items()
        for place, a in enumerate(found)
    }
    best = best_pairs(list(ordered), list(range(len(actual.columns))), weights)
    yield best
    if len(ordered) <= 3:
        for choice in product(*ordered.values()):
            pairs = list(zip(ordered, choice, strict=True))
            if len(set(choice)) == len(choice) and pairs != best:
                yield pairs
