"""Columns of any form (Arrow, NumPy, lists) read into arrays.

The array form of ``read_cell``: fast lanes for what Arrow holds natively, and for everything else
the same ``read_cell`` on each distinct value, so that both paths agree by construction.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pytest_agenteval.compare.array_engine.arrays import (
    CODE_CLASS,
    INFINITE_CLASS,
    NULL_CLASS,
    NUMBER_CLASS,
    VALUE_CLASS,
    ArraySide,
    ColumnKeys,
    Floats,
    Ints,
    KeyCoder,
    ToleranceNumbers,
)
from pytest_agenteval.compare.array_engine.text_hashes import hashed_texts, holds_texts, repeats, word_codes
from pytest_agenteval.compare.values.cells import NUMBER, Cell, ColumnReading, read_cell
from pytest_agenteval.compare.values.numbers import Float32, as_float
from pytest_agenteval.compare.values.temporal import DAY
from pytest_agenteval.table import arrow_values, standard_array

HEAD = 100
EPOCH = datetime.date(1970, 1, 1).toordinal() * DAY


def arrow_of(data: Any) -> pa.Array | None:
    """Return the column as one Arrow array; ``None`` where it holds what Arrow would change or refuse."""
    if isinstance(data, (pa.ChunkedArray, pa.Array)):
        data = standard_array(data)
    if isinstance(data, pa.ChunkedArray):
        several = data.num_chunks != 1
        data = pa.concat_arrays(data.chunks or [data.combine_chunks()]) if several else data.chunk(0)
    if isinstance(data, pa.Array):
        return data
    if isinstance(data, np.ndarray) and data.dtype.kind in "iufb":
        return pa.array(data)
    return _arrow_of_list(data if isinstance(data, list) else list(data))


_TYPES: dict[type, Callable[[], Any]] = {
    str: pa.string,
    int: pa.int64,
    float: pa.float64,
    bool: pa.bool_,
    datetime.date: pa.date32,
}


def _arrow_of_list(values: list[Any]) -> pa.Array | None:
    kinds = set(map(type, values)) - {type(None)}
    kind = float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        return None
    try:
        if kind in _TYPES:
            return pa.array(values, type=_TYPES[kind](), from_pandas=False)
        if kind is Decimal:
            return _decimals(values)
        if kind is datetime.datetime and all(v is None or v.tzinfo is None for v in values):
            return pa.array(values, type=pa.timestamp("us"))
    except (pa.ArrowException, UnicodeError, OverflowError, ValueError, TypeError):
        return None
    return None


def _decimals(values: list[Any]) -> pa.Array | None:
    """Decimals with as many decimals as the first ones have; else Arrow finds out, which takes longer."""
    head = [value for value in values[:HEAD] if value is not None and value.is_finite()]
    scale = max((-int(value.as_tuple().exponent) for value in head), default=0)
    try:
        return pa.array(values, type=pa.decimal128(38, min(max(scale, 0), 18)))
    except pa.ArrowException:
        found = pa.array(values)
        return found if pa.types.is_decimal128(found.type) else None


def nulls_of(array: pa.Array) -> NDArray[np.bool_] | None:
    """Return which rows are NULL, ``None`` where none is."""
    return np.asarray(array.is_null()) if array.null_count else None


def filled(array: pa.Array, zero: Any = 0) -> NDArray[Any]:
    """Return the values as NumPy, ``zero`` where NULL."""
    return np.asarray((array.fill_null(zero) if array.null_count else array).to_numpy(zero_copy_only=False))


def read_side(data: Any, reading: ColumnReading, coder: KeyCoder) -> ArraySide:
    """Return one column by its fast lane, or value by value."""
    # an infinite date may stand in a list as Python's last one, which no array can tell from it
    array = None if reading.infinite and isinstance(data, list) else arrow_of(data)
    if array is not None:
        lane = _LANES.get(reading.kind.name)
        side = lane(array, reading) if lane and reading.factor == 1 else None
        if side is not None:
            return side
        # what Arrow cannot encode (lists, durations in months) is read value by value
        if not (pa.types.is_nested(array.type) or pa.types.is_null(array.type) or _uncoded(array)):
            return _by_distinct(array, reading, coder)
        data = arrow_values(array)
    elif hasattr(data, "to_pylist"):
        data = arrow_values(data)
    values = data if isinstance(data, list) else list(data)
    return cells_side([read_cell(value, reading) for value in values], coder)


def _uncoded(array: pa.Array) -> bool:
    """Return whether Arrow has no dictionary of such values."""
    return bool(pa.types.is_interval(array.type))


def _beyond_doubles(values: Ints) -> bool:
    """Return whether an integer is too large to be a double of its own; -2**63 has no absolute value."""
    return bool(len(values)) and bool(values.max() > 2**53 or values.min() < -(2**53))


def _plain_keys(values: Ints, nulls: NDArray[np.bool_] | None) -> ColumnKeys:
    if nulls is None:
        return ColumnKeys(None, values)
    classes = np.where(nulls, NULL_CLASS, VALUE_CLASS).astype(np.uint8)
    return ColumnKeys(classes, np.where(nulls, 0, values))


def _integers(array: pa.Array, reading: ColumnReading) -> ArraySide | None:
    values = _int64(array)
    if values is None:
        return None
    nulls = nulls_of(array)
    if reading.null_as_zero:
        nulls = None
    if not reading.integer_rule:
        return ArraySide(_plain_keys(values, nulls), [])
    numbers = ToleranceNumbers(values.astype(np.float64), None if nulls is None else ~nulls, values)
    return ArraySide(_number_keys(nulls), [numbers])


def _int64(array: pa.Array) -> Ints | None:
    """Return integers of any Arrow type that holds them as such; ``None`` where one does not fit."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return filled(array, False).astype(np.int64)
    if pa.types.is_integer(kind):
        values = filled(array)
        big = pa.types.is_uint64(kind) and len(values) and values.max() > 2**63 - 1
        return None if big else values.astype(np.int64, copy=False)
    if pa.types.is_floating(kind):
        if array.null_count and array.null_count == len(array):
            return np.zeros(len(array), np.int64)
        values = filled(array.cast(pa.float64()), 0.0)
        good = np.abs(values) < 2.0**53
        return values.astype(np.int64) if good.all() and (values == np.rint(values)).all() else None
    if pa.types.is_decimal128(kind) and kind.scale == 0:
        return _unscaled(array)
    return None


def _unscaled(array: pa.Array) -> Ints | None:
    """Return the unscaled integers of a decimal128 array, where all fit into 64 bits."""
    if not len(array):
        return np.zeros(0, np.int64)
    words = np.frombuffer(array.buffers()[1], dtype=np.int64).reshape(-1, 2)
    words = words[array.offset : array.offset + len(array)]
    low, high = words[:, 0].copy(), words[:, 1]
    nulls = nulls_of(array)
    fits = high == (low >> 63)
    if nulls is not None:
        fits |= nulls
        low[nulls] = 0
    return low if bool(fits.all()) else None


def _number_keys(nulls: NDArray[np.bool_] | None) -> ColumnKeys:
    if nulls is None:
        return ColumnKeys(None, None)
    return ColumnKeys(np.where(nulls, NULL_CLASS, NUMBER_CLASS).astype(np.uint8), None)


def _number_side(
    numbers: ToleranceNumbers, reading: ColumnReading, nulls: NDArray[np.bool_] | None
) -> ArraySide:
    """Return finite numbers under tolerance; NaN is NULL, infinities are keys."""
    floats = numbers.floats
    finite = np.isfinite(floats)
    if nulls is None and bool(finite.all()):
        return ArraySide(ColumnKeys(None, None), [numbers])
    empty = np.isnan(floats) if nulls is None else nulls | np.isnan(floats)
    infinite = ~finite & ~empty
    if reading.null_as_zero:
        floats = np.where(empty, 0.0, floats)
        empty = np.zeros(len(floats), bool)
    classes = np.where(empty, NULL_CLASS, np.where(infinite, INFINITE_CLASS, NUMBER_CLASS)).astype(np.uint8)
    values = np.where(infinite, np.sign(np.where(infinite, floats, 0.0)), 0).astype(np.int64)
    present = classes == NUMBER_CLASS
    numbers.floats = np.where(present, floats, 0.0)
    numbers.present = present
    return ArraySide(ColumnKeys(classes, values if bool(infinite.any()) else None), [numbers])


def _floats(array: pa.Array, reading: ColumnReading) -> ArraySide | None:
    kind = array.type
    nulls = nulls_of(array)
    if pa.types.is_floating(kind):
        values = filled(array, 0.0).astype(np.float64, copy=False)
        single = reading.single and _all_single(values)
        if reading.single and not single:
            return None
        return _number_side(ToleranceNumbers(values, single=single), reading, nulls)
    if pa.types.is_integer(kind):
        whole = _int64(array)
        if whole is None or _beyond_doubles(whole):
            return None
        return _number_side(ToleranceNumbers(whole.astype(np.float64), scaled=whole), reading, nulls)
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= 18:
        unscaled = _unscaled(array)
        if unscaled is None or _beyond_doubles(unscaled):
            return None
        floats = unscaled / 10.0**kind.scale
        return _number_side(ToleranceNumbers(floats, scaled=unscaled, scale=kind.scale), reading, nulls)
    return None


def _all_single(values: Floats) -> bool:
    """Return whether all finite numbers are exactly of 32 bits."""
    with np.errstate(over="ignore"):
        return bool(np.all((values == values.astype(np.float32)) | ~np.isfinite(values)))


def _booleans(array: pa.Array, reading: ColumnReading) -> ArraySide | None:
    if pa.types.is_boolean(array.type):
        return ArraySide(_plain_keys(filled(array, False).astype(np.int64), nulls_of(array)), [])
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return None
    values = filled(array)
    if not bool(((values == 0) | (values == 1)).all()):
        return None
    return ArraySide(_plain_keys(values.astype(np.int64), nulls_of(array)), [])


def _moments(array: pa.Array, reading: ColumnReading) -> ArraySide | None:
    kind = array.type
    if pa.types.is_date(kind):
        days = filled(
            array.cast(pa.date32()).view(pa.int32()) if kind != pa.date32() else array.view(pa.int32())
        )
        micros = days.astype(np.int64)
        if len(micros) and np.abs(micros).max() > 2**62 // DAY:
            return None  # infinity, or a year that is too far away for 64 bits
        micros *= DAY
        micros += EPOCH
    elif pa.types.is_timestamp(kind):
        ticks = filled(array.view(pa.int64())).astype(np.int64)
        many = {"s": 1_000_000, "ms": 1000, "us": 1}.get(kind.unit)
        if len(ticks) and np.abs(ticks).max() > (2**62 // many if many else 2**63 - 2):
            return None
        micros = (ticks * many if many else ticks // 1000) + EPOCH
    else:
        return None
    return ArraySide(_plain_keys(micros, nulls_of(array)), [])


def _times(array: pa.Array, reading: ColumnReading) -> ArraySide | None:
    if not pa.types.is_time(array.type):
        return None
    ticks = filled(array.view(pa.int32() if pa.types.is_time32(array.type) else pa.int64())).astype(np.int64)
    many = {"s": 1_000_000, "ms": 1000, "us": 1}.get(array.type.unit)
    return ArraySide(_plain_keys(ticks * many if many else ticks // 1000, nulls_of(array)), [])


_LANES: dict[str, Callable[[pa.Array, ColumnReading], ArraySide | None]] = {
    "integer": _integers,
    "float": _floats,
    "single": _floats,
    "decimal": _floats,
    "boolean": _booleans,
    "date": _moments,
    "timestamp": _moments,
    "instant": _moments,
    "time": _times,
}


def _by_distinct(array: pa.Array, reading: ColumnReading, coder: KeyCoder) -> ArraySide:
    """Read each distinct value once, as the plain path would, and spread it over the rows."""
    coded = array.dictionary_encode(null_encoding="encode")
    values = arrow_values(coded.dictionary)
    side = cells_side([read_cell(value, reading) for value in values], coder)
    at = coded.indices.to_numpy(zero_copy_only=False)
    keys = ColumnKeys(
        None if side.keys.classes is None else side.keys.classes[at],
        None if side.keys.values is None else side.keys.values[at],
    )
    return ArraySide(keys, [_spread(numbers, at) for numbers in side.numbers])


def _spread(numbers: ToleranceNumbers, at: NDArray[Any]) -> ToleranceNumbers:
    given = numbers.given
    spread = None if given is None else _Spread(given, at)
    present = None if numbers.present is None else numbers.present[at]
    return ToleranceNumbers(numbers.floats[at], present, given=spread, single=numbers.single)


class _Spread(Sequence[Any]):
    """Distinct values seen through the rows that hold them; iterating gives each value once."""

    def __init__(self, values: Sequence[Any], at: NDArray[Any]) -> None:
        self.values, self.at = values, at

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, row: Any) -> Any:
        return self.values[self.at[row]]

    def __iter__(self) -> Any:
        return iter(self.values)


def cells_side(cells: Sequence[Cell], coder: KeyCoder) -> ArraySide:
    """Return cells that were read one by one, as arrays."""
    classes = np.empty(len(cells), np.uint8)
    values = np.zeros(len(cells), np.int64)
    widest = 0
    for row, (key, numbers) in enumerate(cells):
        widest = max(widest, len(numbers))
        if key is None:
            classes[row] = NULL_CLASS
        elif key == NUMBER and numbers:
            classes[row] = NUMBER_CLASS
        elif isinstance(key, int) and -(2**63) <= key < 2**63:
            classes[row], values[row] = VALUE_CLASS, int(key)
        elif isinstance(key, float) and key in (float("inf"), float("-inf")):
            classes[row], values[row] = INFINITE_CLASS, 1 if key > 0 else -1
        else:
            classes[row], values[row] = CODE_CLASS, coder.code(key)
    return ArraySide(ColumnKeys(classes, values), [_nth_numbers(cells, i) for i in range(widest)])


def _nth_numbers(cells: Sequence[Cell], nth: int) -> ToleranceNumbers:
    given = [numbers[nth] if len(numbers) > nth else None for _, numbers in cells]
    present = np.array([number is not None for number in given], bool)
    with np.errstate(over="ignore"):
        floats = np.array([0.0 if number is None else as_float(number) for number in given], np.float64)
    single = any(isinstance(number, Float32) for number in given)
    return ToleranceNumbers(floats, present, given=given, single=single)


def read_texts(expected: Any, actual: Any, reading: ColumnReading) -> tuple[ArraySide, ArraySide] | None:
    """Return two text columns, dictionary-encoded together; ``None`` where a side holds more than text."""
    arrays: list[Any] = [arrow_of(expected), arrow_of(actual)]
    if not all(map(holds_texts, arrays)):
        return None
    if not reading.fold and not reading.null_as_empty and not any(map(repeats, arrays)):
        one, two = (_hashed_side(a) for a in arrays)
        if one is not None and two is not None:
            return one, two
    if arrays[0].type != arrays[1].type:
        arrays = [a.cast(pa.large_string()) for a in arrays]
    both = pa.chunked_array(arrays)
    coded = pc.dictionary_encode(both)
    words = coded.chunk(0).dictionary
    codes = word_codes(words, reading)
    sides = []
    for chunk in coded.chunks:
        nulls = nulls_of(chunk.indices)
        at = filled(chunk.indices)
        values = at.astype(np.int64) if codes is None else codes[at] if len(codes) else at.astype(np.int64)
        empty = values < 0
        if codes is not None and bool(empty.any()):
            nulls = empty if nulls is None else nulls | empty
        sides.append(ArraySide(_plain_keys(values, nulls), []))
    return sides[0], sides[1]


def _hashed_side(array: pa.Array) -> ArraySide | None:
    found = hashed_texts(array)
    if found is None:
        return None
    keys = _plain_keys(found[0], nulls_of(array))
    keys.texts = found[1]
    return ArraySide(keys, [])
