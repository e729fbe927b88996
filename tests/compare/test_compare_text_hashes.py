"""The hash of a text is its own: neighbours, blocks and places do not change it."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pytest_agenteval.compare import compare
from pytest_agenteval.compare.array_engine.text_hashes import BLOCK, hashed_texts
from pytest_agenteval.table import Table

TEXTS = ["x" * size for size in range(65)] + [f"order_{10**n}" for n in range(12)]
NEIGHBOURS = ["", "a", "sevens7", "eight__8", "nine____9", "sixteen_letters_", "s" * 24, "l" * 64]


def table(ids: list[str]) -> Table:
    return Table.from_rows(["id"], [(text,) for text in ids], ["VARCHAR"])


def hashes(texts: list[str], wide: bool = False) -> list[int]:
    found = hashed_texts(pa.array(texts, pa.large_string() if wide else pa.string()))
    assert found is not None
    codes: list[int] = found[0].tolist()
    return codes


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_a_text_alone_hashes_as_it_does_beside_any_other(neighbour: str) -> None:
    alone = [hashes([text])[0] for text in TEXTS]
    assert [hashes([text, neighbour])[0] for text in TEXTS] == alone
    assert [hashes([neighbour, text], wide=True)[1] for text in TEXTS] == alone


@pytest.mark.parametrize("seed", range(3))
def test_a_text_hashes_alike_in_every_block_and_place(seed: int) -> None:
    """Blocks whose shortest text is of any length, the texts looked for at their ends and between."""
    chance = random.Random(seed)
    alone = dict(zip(TEXTS, (hashes([text])[0] for text in TEXTS), strict=True))
    rows: list[str] = []
    for block in range(5):
        least = chance.choice([0, 7, 8, 9, 16, 24, 40])
        own = [text for text in TEXTS if len(text) >= least]
        rows += chance.choices(own, k=BLOCK if block < 4 else BLOCK // 3)
    assert hashes(rows) == [alone[text] for text in rows]
    sliced = pa.array(["pad", *rows])[1:]
    found = hashed_texts(sliced)
    assert found is not None
    assert np.array_equal(found[0], np.array([alone[text] for text in rows]))


@pytest.mark.parametrize("count", [17_000, 40_000])
@pytest.mark.parametrize("word", ["order_", "ticket", "u", "device-"])
def test_ids_of_growing_length_match_in_any_order(word: str, count: int) -> None:
    ids = [f"{word}{i}" for i in range(count)]
    for seed in range(3):
        other = random.Random(seed).sample(ids, count)
        found = compare(table(ids), table(other))
        assert (found.matched, found.message) == (True, "match")


def test_counts_of_texts_that_differ_are_right() -> None:
    ids = [f"u{i}@x.com" for i in range(1300)]
    other = ["U3@x.com" if i == 3 else "zzz" if i == 1299 else text for i, text in enumerate(ids)]
    found = compare(table(ids), table(other))
    assert found.diagnosis is not None
    assert "2 of 1,300" in found.diagnosis.sentence
    assert found.counts.equal == 1298
