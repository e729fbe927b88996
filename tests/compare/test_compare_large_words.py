"""Words of large tables are tried on all rows; wide tables; long columns that are left over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_agenteval.compare import columns as column_steps
from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.compare import tables as comparing
from pytest_agenteval.compare.array_engine import context as array_context
from pytest_agenteval.table import Column, Table

ROWS = 2000


def table(**columns: tuple[str | None, Any]) -> Table:
    rows = len(next(iter(columns.values()))[1])
    return Table(
        tuple(Column(name, kind) for name, (kind, _) in columns.items()),
        tuple(data for _, data in columns.values()),
        rows,
    )


IDS = list(range(ROWS))
X = [1.25 + (i % 97) * 3.5 for i in IDS]
ORDERED = parse_options({"ordered": True, "order_by": ["id"]})


def expected() -> Table:
    return table(id=("BIGINT", IDS), x=("DOUBLE", X))


@pytest.mark.parametrize("options", [None, ORDERED])
@pytest.mark.parametrize(
    ("word", "change"),
    [
        ("scaled", lambda i, x: x * 100),
        ("sign", lambda i, x: -x),
        ("column_offset", lambda i, x: x + 7),
        ("null_instead_of_value", lambda i, x: None if i % 50 == 0 else x),
        ("values_differ", lambda i, x: x * 100 if i else x * 99),
        ("values_differ", lambda i, x: None if i % 2 == 0 else -1.0 if i == 1001 else x),
        ("values_differ", lambda i, x: None if i % 2 == 0 else -1.0 if i == 77 else x),
        ("values_differ", lambda i, x: None if i % 2 == 0 else -1.0 if i == 1557 else x),
        ("values_differ", lambda i, x: None if i % 50 == 0 else -1.0 if i == 3 else x),
    ],
)
def test_a_word_holds_for_all_rows_or_is_not_said(word: str, change: Any, options: Any) -> None:
    given = [change(i, x) for i, x in zip(IDS, X, strict=True)]
    found = compare(expected(), table(id=(None, IDS), x=(None, given)), options)
    assert found.diagnosis is not None
    assert found.diagnosis.word == word
    wrong = sum(a != b for a, b in zip(given, X, strict=True))
    assert f"{wrong:,} of 2,000 rows" in found.diagnosis.sentence


def test_running_sums_of_a_large_table() -> None:
    sums = np.cumsum(X).tolist()
    found = compare(expected(), table(id=(None, IDS), x=(None, sums)))
    assert found.diagnosis is not None
    assert (found.diagnosis.word, found.diagnosis.proof["differing"]) == ("cumulative", ROWS - 1)


def test_beyond_the_bound_no_word_of_one_column_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_context, "MOST_WHOLE", 1500)
    found = compare(expected(), table(id=(None, IDS), x=(None, [x * 100 for x in X])))
    assert found.diagnosis is not None
    assert found.diagnosis.word == "values_differ"


def test_objects_that_stand_for_texts_in_a_large_table() -> None:
    texts = [f'{{"n": {i}, "name": "Row"}}' for i in IDS]
    objects: list[Any] = [{"name": "Row", "n": i} for i in IDS]
    assert compare(table(j=("VARCHAR", texts)), table(j=(None, objects))).matched
    upper = [{"name": "ROW", "n": i} for i in IDS]
    found = compare(table(j=("VARCHAR", texts)), table(j=(None, upper)))
    assert not found.matched


def test_a_text_beside_objects_of_its_structure_stays_a_text() -> None:
    spelled = ['{"a": 1}', '{"a":1}', '{"a": 1}']
    same = compare(table(j=("VARCHAR", spelled)), table(j=(None, ['{"a":1}', {"a": 1}, {"a": 1}])))
    assert same.matched
    other = compare(table(j=("VARCHAR", spelled)), table(j=(None, ['{ "a":1}', {"a": 1}, {"a": 1}])))
    assert not other.matched
    more = compare(table(j=("VARCHAR", spelled)), table(j=(None, ['{"a":1}', {"a": 1}, {"b": 1}])))
    assert not more.matched


@pytest.mark.parametrize("cells", [10**9, -1])
def test_numbers_in_json_by_how_they_were_written(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "PLAIN_CELLS", cells)

    def matched(written: str, given: Any) -> bool:
        return compare(table(j=("JSON", [written])), table(j=(None, [given]))).matched

    assert matched('{"x": 3.0, "y": [1, 2.5]}', {"x": 3.0000000001, "y": [1, 2.5]})
    assert matched('{"x": 3.0, "y": [1, 2.5]}', {"x": 3, "y": [1, 2.5]})
    assert not matched('{"x": 3, "y": 2.5}', {"x": 3.0000000001, "y": 2.5})
    assert not matched('{"x": 100000, "y": 2.5}', {"x": 100001, "y": 2.5})
    assert matched('{"x": 100000.0, "y": 2.5}', {"x": 100001, "y": 2.5})
    assert not matched("[1.0]", [2])


@pytest.mark.parametrize(
    ("wrong", "word"),
    [((), None), ((3,), "scaled"), ((3, 9), "values_differ"), ((3, 9, 20), "values_differ")],
)
def test_a_wide_table_has_one_column_to_blame_or_none(wrong: tuple[int, ...], word: str | None) -> None:
    columns = {f"c{n}": [n + 0.25 + i for i in range(60)] for n in range(30)}
    given = {
        name: [value * 100 if n in wrong else value for value in values]
        for n, (name, values) in enumerate(columns.items())
    }
    found = compare(
        table(**{name: ("DOUBLE", values) for name, values in columns.items()}),
        table(**{name: (None, values) for name, values in given.items()}),
    )
    assert (found.diagnosis.word if found.diagnosis else None) == word


def test_scrambled_rows_of_a_wide_table_have_no_column_to_blame() -> None:
    columns = {f"c{n}": [(n * 7 + i * 13) % 60 for i in range(60)] for n in range(30)}
    given = {name: values[n:] + values[:n] for n, (name, values) in enumerate(columns.items())}
    found = compare(
        table(**{name: ("INTEGER", values) for name, values in columns.items()}),
        table(**{name: (None, values) for name, values in given.items()}),
    )
    assert found.diagnosis is not None
    assert found.diagnosis.word == "rows_scrambled"


def test_long_columns_of_another_kind_are_not_likened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_steps, "MANY_ROWS", 100)
    codes = [f"order {i}" for i in IDS]
    wanted = table(id=("BIGINT", IDS), note=("VARCHAR", codes), amount=("DOUBLE", X))
    found = compare(wanted, table(total=(None, [x + (i > 3) for i, x in enumerate(X)]), text=(None, codes)))
    assert [(c.expected, c.actual) for c in found.mapping] == [("note", "text"), ("amount", "total")]
    assert found.missing_columns == ("id", "amount")


def test_many_unnamed_columns_are_paired_by_their_names() -> None:
    size = 25
    wanted = {f"value {n}": [n * 10.5, n * 11.25] for n in range(size)}
    given = {f"v_{n}_value": [n * 10.5 + 5000, n * 11.25 + 7000] for n in reversed(range(size))}
    found = compare(
        table(k=("INTEGER", [1, 2]), **{name: ("DOUBLE", values) for name, values in wanted.items()}),
        table(k=(None, [1, 2]), **{name: (None, values) for name, values in given.items()}),
    )
    pairs = {c.expected: c.actual for c in found.mapping if c.how == "partial_match"}
    assert pairs == {f"value {n}": f"v_{n}_value" for n in range(size)}
