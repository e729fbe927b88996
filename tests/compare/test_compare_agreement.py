"""Both engines say the same of random pairs of tables, and the verdict is a literal reading of the page."""

import itertools
import random
from dataclasses import replace

import pytest
from random_tables import pair

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.compare.ordering import order_indexes, tie_runs
from pytest_agenteval.compare.python_engine.engine import PythonEngine
from pytest_agenteval.compare.python_engine.matching import hopcroft_karp
from pytest_agenteval.compare.values.numbers import NO
from pytest_agenteval.support.column_names import NAME_RULES

BATCHES = range(8)
EACH = 60


def on(cells, expected, actual, options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "PLAIN_CELLS", cells)
        return compare(expected, actual, options)


@pytest.mark.parametrize("batch", BATCHES)
def test_both_engines_say_the_same(batch):
    """All but which of several rows near each other is shown as the one without a partner."""
    for seed in range(batch * EACH, (batch + 1) * EACH):
        expected, actual, written = pair(random.Random(seed))
        options = parse_options(written)
        plain, arrays = (on(cells, expected, actual, options) for cells in (10**9, -1))
        assert len(plain.sample) == len(arrays.sample), seed
        assert replace(plain, sample=()) == replace(arrays, sample=()), seed


def rows_match(engine, pairs, runs):
    """A perfect pairing of the rows, every pair of them tried."""
    columns = [engine.column(e, a) for e, a in pairs]
    size, other = engine.rows

    def equal(e, a):
        return all(column.grade(e, a) != NO for column in columns)

    if engine.options.duplicates == "set":
        every = all(any(equal(e, a) for a in range(other)) for e in range(size))
        return every and all(any(equal(e, a) for e in range(size)) for a in range(other))
    run_of = [number for number, run in enumerate(runs or [range(size)]) for _ in run]
    if size != other:
        return False
    edges = [[a for a in range(other) if run_of[e] == run_of[a] and equal(e, a)] for e in range(size)]
    return len(hopcroft_karp(edges, other)) == size


def by_name(expected, actual):
    """Every map of columns that steps 1 to 3 allow, where a name stands several times."""
    maps = [{}]
    for rule in NAME_RULES:
        maps = [more for found in maps for more in _step(found, expected, actual, rule)]
    return maps


def _step(found, expected, actual, rule):
    groups = {}
    for e in range(len(expected)):
        if e not in found:
            groups.setdefault(rule(expected[e]), ([], []))[0].append(e)
    for a in range(len(actual)):
        if a not in found.values() and rule(actual[a]) in groups:
            groups[rule(actual[a])][1].append(a)
    maps = [found]
    for own, others in groups.values():
        count = min(len(own), len(others))
        ways = itertools.product(itertools.combinations(own, count), itertools.permutations(others, count))
        maps = (
            [{**old, **dict(zip(one, two, strict=True))} for one, two in ways for old in maps]
            if count
            else maps
        )
    return maps


def literal(expected, actual, options):
    """The verdict of the page: names first, then every injective assignment of what is left."""
    if not actual.row_count or not expected.row_count:
        return not actual.row_count and not expected.row_count
    engine = PythonEngine(expected, actual, options)
    runs = tie_runs(engine, order_indexes(expected, options)) if options.ordered else None
    width, other = len(expected.columns), len(actual.columns)
    if other < width or (options.extra_columns == "forbid" and other > width):
        return False
    if options.columns == "position":
        return rows_match(engine, [(i, i) for i in range(width)], runs)
    for found in by_name(expected.names, actual.names):
        rest = [e for e in range(width) if e not in found]
        left = [a for a in range(other) if a not in found.values()]
        if rest and options.columns == "name":
            continue
        for chosen in itertools.permutations(left, len(rest)):
            if rows_match(engine, sorted({**found, **dict(zip(rest, chosen, strict=True))}.items()), runs):
                return True
    return False


@pytest.mark.parametrize("batch", BATCHES)
def test_the_verdict_is_that_of_a_literal_reading(batch):
    seen = set()
    for seed in range(10_000 + batch * EACH, 10_000 + (batch + 1) * EACH):
        expected, actual, written = pair(random.Random(seed), most_rows=7)
        options = parse_options(written)
        if options.ordered and options.duplicates == "set":
            continue  # the first of equal rows stays: another reading
        found = compare(expected, actual, options)
        assert found.matched == literal(expected, actual, options), seed
        seen.add(found.matched)
    assert seen == {True, False}
