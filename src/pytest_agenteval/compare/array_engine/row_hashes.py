"""Rows as ids: hashes over the exact parts of their cells, and exact ids for where hashes collide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import NUMBER_CLASS, VALUE_CLASS, ColumnKeys
from pytest_agenteval.compare.array_engine.number_rule import ArrayNumberRule
from pytest_agenteval.compare.array_engine.text_hashes import BLOCK


@dataclass(frozen=True, slots=True)
class ArrayColumn:
    """One column pair: exact parts, and the rules of the numbers in it."""

    expected: ColumnKeys
    actual: ColumnKeys
    rules: tuple[ArrayNumberRule, ...] = ()


_ODD = [np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)]


def hash_rows(keys: Sequence[ColumnKeys], rows: int) -> NDArray[np.uint64]:
    """Return 64 bits per row over the exact parts of its cells (in blocks that stay in the cache)."""
    out = np.full(rows, np.uint64(0x243F6A8885A308D3))
    buffer = np.empty(BLOCK, np.uint64)
    for start in range(0, rows, BLOCK):
        block = out[start : start + BLOCK]
        work = buffer[: len(block)]
        for key in keys:
            if key.values is not None:
                np.multiply(key.values[start : start + BLOCK].view(np.uint64), _ODD[0], out=work)
                block ^= work
            if key.classes is not None:
                np.multiply(key.classes[start : start + BLOCK], _ODD[1], out=work, dtype=np.uint64)
                work += _ODD[0]
                block ^= work
            if key.values is not None or key.classes is not None:
                block *= _ODD[2]
                np.right_shift(block, np.uint64(29), out=work)
                block ^= work
    return out


def exact_ids(
    left: Sequence[ColumnKeys], right: Sequence[ColumnKeys], rows: tuple[int, int]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return ids that are equal exactly where all exact parts are: the way out of a hash collision."""
    ids = np.zeros(rows[0] + rows[1], np.int64)
    for one, two in zip(left, right, strict=True):
        for mine, theirs in (_exact_values(one, two), (one.classes, two.classes)):
            if mine is None and theirs is None:
                continue
            a = np.zeros(rows[0], np.int64) if mine is None else mine.astype(np.int64)
            b = np.zeros(rows[1], np.int64) if theirs is None else theirs.astype(np.int64)
            codes = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
            ids = np.unique(ids * (codes.max() + 1) + codes, return_inverse=True)[1] if len(codes) else ids
    unsigned = ids.astype(np.uint64)
    return unsigned[: rows[0]], unsigned[rows[0] :]


def _exact_values(one: ColumnKeys, two: ColumnKeys) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Return values that are equal exactly where the cells are (texts are encoded, not hashed)."""
    if one.texts is None or two.texts is None:
        return one.values, two.values
    arrays = [texts.array.cast(pa.large_string()) for texts in (one.texts, two.texts)]
    both = pa.chunked_array(arrays)
    chunks = pc.dictionary_encode(both, null_encoding="encode").chunks
    codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in chunks]
    return codes[0], codes[1]


def leveled(
    columns: Sequence[ArrayColumn], rows: tuple[int, int]
) -> tuple[list[ColumnKeys], list[ColumnKeys]]:
    """Return both sides' keys in the same form, so that equal cells hash alike."""
    left, right = [], []
    for column in columns:
        one, two = column.expected, column.actual
        classes = one.classes is not None or two.classes is not None
        values = one.values is not None or two.values is not None
        left.append(level(one, classes or values, values, rows[0]))
        right.append(level(two, classes or values, values, rows[1]))
        if all(keys.values is not None and keys.classes is None for keys in (one, two)):
            left[-1], right[-1] = one, two
    return left, right


def level(keys: ColumnKeys, classes: bool, values: bool, rows: int) -> ColumnKeys:
    """Return keys with their classes or values written out where they went without saying."""
    own = keys.classes
    if classes and own is None:
        plain = NUMBER_CLASS if keys.values is None else VALUE_CLASS
        own = np.full(rows, plain, np.uint8)
    full = keys.values
    if values and full is None:
        full = np.zeros(rows, np.int64)
    return ColumnKeys(own, full, keys.texts)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values, sorted (sorting beats NumPy's hash table by far on 64 bits)."""
    ordered = np.sort(values)
    keep = np.ones(len(ordered), bool)
    keep[1:] = ordered[1:] != ordered[:-1]
    return ordered[keep]


def among(values: NDArray[Any], ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are in a sorted array."""
    if not len(ordered):
        return np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[at] == values)
