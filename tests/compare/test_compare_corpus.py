"""The judged examples: every verdict right, every diagnosis word accepted."""

import importlib.util
import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent
CORPUS = HERE / "data" / "comparison.jsonl"


def _load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


adapter = _load("corpus_adapter", HERE / "corpus_adapter.py")
reader = _load("corpus_reader", HERE / "compare" / "corpus_reader.py")
CASES = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_verdict_and_diagnosis(case):
    expected, actual, options = reader.tables(case)
    verdict, word = adapter.compare(expected, actual, options)
    assert verdict == case["verdict"], case["why"]
    if verdict == "differ" and not case["contested"]:
        assert word in case["diagnosis"], case["why"]
