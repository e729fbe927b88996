"""What a person reads: ten kinds of failure at 80 columns, kept as text in ``rendered/``.

To see new text after a change: AGENTEVAL_WRITE_SNAPSHOTS=1 pytest tests/compare/test_compare_render.py
"""

import importlib.util
import json
import os
from pathlib import Path

import pytest

from pytest_agenteval.compare import compare, parse_options, render
from pytest_agenteval.support.text import text_width
from pytest_agenteval.table import Table

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("rendered_cases", HERE / "rendered_cases.py")
examples = importlib.util.module_from_spec(spec)
spec.loader.exec_module(examples)


def compared(case):
    expected, actual, options = case()
    return compare(expected, actual, parse_options(options))


@pytest.mark.parametrize("case", examples.CASES, ids=lambda case: case.__name__)
def test_the_cause_is_plain_at_80_columns(case):
    text = "\n".join(render(compared(case))) + "\n"
    kept = HERE / "rendered" / f"{case.__name__}.txt"
    if os.environ.get("AGENTEVAL_WRITE_SNAPSHOTS"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 60, 80, 132])
@pytest.mark.parametrize("case", examples.CASES, ids=lambda case: case.__name__)
def test_no_line_is_wider_than_the_terminal(case, width):
    for line in render(compared(case), width):
        assert text_width(line) <= width
        assert line.isprintable() or not line


@pytest.mark.parametrize("case", examples.CASES, ids=lambda case: case.__name__)
def test_the_same_structure_is_strict_json(case):
    found = compared(case)
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert data["matched"] is False
    assert data["message"] == found.message
    assert data["diagnosis"]["word"] == found.diagnosis.word
    assert len(data["sample"]) == len(found.sample) <= 50
    assert [column["expected"] for column in data["mapping"]] == [c.expected for c in found.mapping]


def test_ten_rows_of_a_kind_are_drawn_and_the_rest_counted():
    found = compared(examples.missing)
    assert len(found.sample) == 50
    assert found.counts.missing == 67
    lines = render(found)
    assert sum(line.startswith("missing ") for line in lines) == 10
    assert lines[-1] == "  57 more missing; 3 of 70 expected rows equal, 4 answered"


def test_a_match_is_one_line_and_says_what_it_allowed():
    expected = Table.from_rows(["k", "rate"], [("a", 0.123456)], ["VARCHAR", "DOUBLE"])
    found = compare(expected, Table.from_records([{"k": "a", "Rate": 0.12, "id": 7}]))
    assert render(found) == [
        "match (rounded; extra columns ignored: id)",
        "allowed: `rate`: rounded to 2 decimals (1 cell)",
        "warning: `rate`: 1 value below 1 matched only after rounding; set `decimals` or",
        "  `significant` if small values matter",
    ]


def test_mapping_by_value_is_visible():
    expected = Table.from_rows(["k", "total_revenue"], [("a", 1.5), ("b", 2.5)], ["VARCHAR", "DOUBLE"])
    found = compare(expected, Table.from_records([{"k": "a", "revenue": 1.5}, {"k": "b", "revenue": 2.5}]))
    assert found.mapping[1].text == "total_revenue <- revenue (by value)"
    assert found.leniencies == ("`total_revenue` <- `revenue` by value",)


def test_ordered_reference_is_noted():
    expected = Table.from_rows(["n"], [(1,), (2,)], ["INTEGER"])
    found = compare(expected, Table.from_records([{"n": 2}, {"n": 1}]), parse_options({"order_by": ["n"]}))
    assert found.matched
    assert found.notes == ("the reference is ordered; add `ordered: true` if order matters",)


def test_hostile_values_cannot_act_in_json_or_text():
    values = [
        "\x1b]0;owned\x07",
        "\udcff",
        float("nan"),
        2**80,
        b"\x00\xff",
        {"a": [1, float("inf")]},
        "x" * 5000,
    ]
    expected = Table.from_rows(["k", "v"], [(i, "same") for i in range(len(values))], ["INTEGER", "VARCHAR"])
    actual = Table.from_rows(["k", "v"], list(enumerate(values)))
    found = compare(expected, actual)
    text = json.dumps(found.to_json(), allow_nan=False)
    assert len(text) < 20_000
    text.encode("ascii")
    json.loads(text)["sample"][0]["cells"][1]["actual"].encode("utf-8")
    for line in render(found):
        assert "\x1b" not in line
        assert text_width(line) <= 80
        line.encode("utf-8")
