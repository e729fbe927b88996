"""Faults that attacks found, each one example of a kind: the right verdict and a true word."""

import importlib.util
import json
import re
import time
from pathlib import Path

import pytest
from corpus_reader import tables

from pytest_agenteval.compare import compare, parse_options
from pytest_agenteval.table import Table

HERE = Path(__file__).parent.parent
FAULTS = HERE / "data" / "comparison_faults.jsonl"
CASES = [json.loads(line) for line in FAULTS.read_text(encoding="utf-8").splitlines()]
SECONDS = 6.0


def read(case):
    spec = importlib.util.spec_from_file_location("corpus_adapter", HERE / "corpus_adapter.py")
    adapter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(adapter)
    expected, actual, options = tables(case)
    columns = expected["columns"]
    names, types = [column["name"] for column in columns], [column["type"] for column in columns]
    return Table.from_rows(names, expected["rows"], types), adapter.answered(actual), parse_options(options)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_verdict_word_and_time(case):
    expected, actual, options = read(case)
    start = time.process_time()
    found = compare(expected, actual, options)
    assert time.process_time() - start < SECONDS
    assert ("match" if found.matched else "differ") == case["verdict"], case["why"]
    if not found.matched and case["diagnosis"]:
        assert found.diagnosis.word in case["diagnosis"], found.diagnosis
        assert not re.search(r"\b0 of [1-9]", found.diagnosis.sentence), found.diagnosis.sentence


def sentence(name):
    found = compare(*read(next(case for case in CASES if case["id"] == name)))
    return found.diagnosis.sentence


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hcf-hash-short-text", "2 of 1,300 expected rows not in the answer, 2 of 1,300 answered"),
        ("hcf-ties-one-wrong-2", "`b` differs in 1 of 32,001 rows: expected 1.00, got 777.50"),
        ("hcf-word-sign-big", "`x` differs in 1 of 100,000 rows: expected 8.75, got 9.25"),
        ("hcf-word-inverted-big", "1 row of 3,000 should be another"),
        ("hcf-word-grain-null", "1 row of 3 missing, the others are right"),
        ("hcf-word-grain-extra", "1 row too many; all 2 expected rows are there"),
        (
            "hcf-word-limit-tie-decimal",
            "tie with the last one (sorted by `price`) differ: 1 row",
        ),
        ("hcf-word-limit-tie-rounded", "only rows that tie with the last one (sorted by `v`) differ: 1 row"),
        ("hcf-word-percent-whole", "all 3 values are 100 times the expected, rounded to whole numbers"),
        (
            "hcf-word-renamed-kpi",
            "`n` ~ `total_orders` (names differ): `n` differs in 1 of 1 row: expected 7304",
        ),
        (
            "hcf-word-rows-differ-count",
            "11 of 12 answered rows not expected; 10 of these share `m` with",
        ),
    ],
)
def test_the_sentence_is_true(name, says):
    assert says in sentence(name)
