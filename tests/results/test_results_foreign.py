"""Large files of other programs, indexed: the same as ``json.load`` says, byte by byte."""

from __future__ import annotations

import codecs
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document import streaming as foreign
from pytest_agenteval.results.document.load import header_of_file
from pytest_agenteval.results.document.streaming import index_foreign

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
ENTRIES = st.lists(st.dictionaries(st.text(max_size=8), VALUES, max_size=4), max_size=6)
HEADERS = st.dictionaries(st.text(max_size=8).filter(lambda key: key != "results"), VALUES, max_size=4)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("foreign") / "results.json"


@given(
    ENTRIES, HEADERS, HEADERS, st.sampled_from([None, 1]), st.booleans(), st.booleans(), st.integers(1, 60)
)
def test_it_says_what_json_load_says(place, entries, before, after, indent, is_ascii, mark, chunk):
    document = {**before, "results": entries, **{k: v for k, v in after.items() if k not in before}}
    text = json.dumps(document, indent=indent, ensure_ascii=is_ascii)
    raw = text.encode("utf-8", "surrogatepass" if is_ascii else "replace")
    document = json.loads(raw)
    place.write_bytes((codecs.BOM_UTF8 if mark else b"") + raw)
    seen: list[Any] = []
    shares: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foreign, "CHUNK", chunk)  # values and characters lie on the edge of what is read
        index = index_foreign(place, seen.append, shares.append)
    assert seen == document["results"] == list(index.entries())
    assert [index.entry(number) for number in range(len(seen))] == seen
    assert index.header == {key: value for key, value in document.items() if key != "results"}
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)


def test_a_byte_order_mark_is_skipped_and_progress_is_told(place, monkeypatch):
    monkeypatch.setattr(foreign, "CHUNK", 4)
    place.write_bytes(codecs.BOM_UTF8 + b'{"results": [{"a": 1}]}')
    shares: list[float] = []
    index = index_foreign(place, lambda entry: None, shares.append)
    assert index.entry(0) == {"a": 1}
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "there is no 'results' in it"),
        ('{"a": 1}', "there is no 'results' in it"),
        ("", "the file ends in the middle"),
        ('{"results": [{"a": 1}', "the file ends in the middle"),
        ('{"results": [{"a": ', "Expecting value"),
        ('{"results": {"a": 1}}', "'results' is not a list"),
        ("[1]", "{ expected at byte 0, not '['"),
        ('{1: "a"}', "a key is a text, not 1"),
        ('{"é" 1}', ": expected at byte 6, not '1'"),
        ('{"results": [{} {}]}', ", or ] expected at byte 16, not '{'"),
        ('{"results": []; "a": 1}', ", or } expected at byte 14, not ';'"),
    ],
)
def test_what_is_no_results_file_is_refused_where_it_ceases_to_be_one(place, text, said):
    place.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(said)):
        index_foreign(place, lambda entry: None)


def test_the_header_of_ours_is_read_without_its_results(stored, place):
    from result_runs import item

    document = stored({item("a"): ["passed"]})
    header = header_of_file(document.path)
    assert header == document.header
    place.write_text('{"results": []}')
    assert header_of_file(place) is None
    place.write_text('{\n"schema_version": 1,\n"other": [\n1\n]\n}\n')
    with pytest.raises(ResultsError, match=r"not a results file \(JSONDecodeError: "):
        header_of_file(place)
    cut = document.path.read_bytes()[:-3]
    document.path.write_bytes(cut)
    with pytest.raises(ResultsError, match=r"not a results file \(ValueError: the file ends in the middle\)"):
        header_of_file(document.path)
    with pytest.raises(ResultsError, match=r"not a results file \(FileNotFoundError: "):
        header_of_file(document.path.with_name("results_gone.json"))
