"""Columns as arrays: exact parts as integer codes, numbers as floats (with scaled integers for Decimals).

The array form of ``cells``: fast lanes for what Arrow holds natively, and for everything else
the same ``read_cell`` on each distinct value, so that both paths agree by construction.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pytest_agenteval.compare.cells import NUMBER, Cell, Reading, clean_text, read_cell
from pytest_agenteval.compare.moments import DAY
from pytest_agenteval.compare.numbers import Number, Single, as_float, shown_decimals
from pytest_agenteval.table import arrow_values

NULL_CLASS, VALUE_CLASS, CODE_CLASS, NUMBER_CLASS, INFINITE_CLASS = 0, 1, 2, 3, 4
EPOCH = datetime.date(1970, 1, 1).toordinal() * DAY
BLANKS = "".join(chr(i) for i in range(0x3001) if chr(i).isspace())

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Classes = NDArray[np.uint8]


@dataclass(slots=True)
class Keys:
    """The exact part of a column: equal cells have equal class and value.

    ``classes`` is ``None`` where every cell is a plain value; ``values`` is ``None`` where no cell
    has one to compare (a column of numbers under tolerance). With ``texts`` the values are hashes of
    them, so equal values are only likely equal.
    """

    classes: Classes | None
    values: Ints | None
    texts: Texts | None = None


@dataclass(slots=True)
class Numbers:
    """Numbers of one side under tolerance: ``floats`` (rows long), and how to get one exactly.

    ``scaled`` are Decimals times 10^``scale``; ``given`` the Number objects where they were read
    one by one; ``single``: 32-bit floats. ``present`` marks the rows that hold a number.
    """

    floats: Floats
    present: NDArray[np.bool_] | None = None
    scaled: Ints | None = None
    scale: int = 0
    given: Sequence[Number | None] | None = None
    single: bool = False
    _shows: dict[int, bool] = field(default_factory=dict)

    def at(self, row: int) -> Number:
        """The exact number of a row."""
        if self.given is not None:
            return self.given[row] or 0
        if self.scaled is not None:
            return Decimal(int(self.scaled[row])).scaleb(-self.scale)
        value = float(self.floats[row])
        return Single(value) if self.single else value

    def shows_at_most(self, decimals: int) -> bool:
        """Whether no number of the column shows more than ``decimals`` decimals."""
        if decimals not in self._shows:
            self._shows[decimals] = self._measure(decimals)
        return self._shows[decimals]

    def _measure(self, decimals: int) -> bool:
        if self.given is not None:
            return all(n is None or shown_decimals(n) <= decimals for n in self.given)
        if self.scaled is not None:
            if decimals >= self.scale:
                return True
            return not bool(np.any(self._present(self.scaled) % 10 ** (self.scale - decimals)))
        return self._floats_show(self._present(self.floats), decimals)

    def _present(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.present is None else values[self.present]

    def _floats_show(self, values: Floats, decimals: int) -> bool:
        """A double is the nearest one to m / 10^k exactly when scaling and rounding give it back."""
        if decimals > 22:
            return all(shown_decimals(float(value)) <= decimals for value in values)
        for start in (0, 1000):
            part = values[start : 1000 if not start else None]
            with np.errstate(over="ignore", invalid="ignore"):
                whole = np.rint(part * 10.0**decimals)
                back = whole / 10.0**decimals
                if self.single:
                    odd = part[np.float32(back) != np.float32(part)]
                else:
                    odd = part[(back != part) | (np.abs(whole) >= 2.0**53)]
            odd = odd[np.isfinite(odd) & (odd != np.rint(odd))]
            # beyond 2**53 doubles lie further apart than such decimals: those show no more of them
            if len(odd) and (self.single or np.any(np.abs(odd) * 10.0**decimals < 2.0**53)):
                return False
        return True


@dataclass(slots=True)
class VectorSide:
    """One side of a column pair: its keys and the numbers of its cells, column by column."""

    keys: Keys
    numbers: list[Numbers]


@dataclass(slots=True)
class Coder:
    """Codes for keys that are no plain integers, shared by both sides of a column pair."""

    codes: dict[Hashable, int] = field(default_factory=dict)

    def code(self, key: Hashable) -> int:
        """The code of a key, the same for equal keys."""
        return self.codes.setdefault(key, len(self.codes))


def arrow_of(data: Any) -> pa.Array | None:
    """The column as one Arrow array; ``None`` where it holds what Arrow would change or refuse."""
    if isinstance(data, pa.ChunkedArray):
        several = data.num_chunks != 1
        data = pa.concat_arrays(data.chunks or [data.combine_chunks()]) if several else data.chunk(0)
    if isinstance(data, pa.Array):
        return data.dictionary_decode() if pa.types.is_dictionary(data.type) else data
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
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    try:
        if kind in _TYPES:
            return pa.array(values, type=_TYPES[kind](), from_pandas=False)
        if kind is Decimal:
            found = pa.array(values)
            return found if pa.types.is_decimal128(found.type) else None
        if kind is datetime.datetime and all(v is None or v.tzinfo is None for v in values):
            return pa.array(values, type=pa.timestamp("us"))
    except (pa.ArrowException, UnicodeError, OverflowError, ValueError, TypeError):
        return None
    return None


def nulls_of(array: pa.Array) -> NDArray[np.bool_] | None:
    """Which rows are NULL, ``None`` where none is."""
    return np.asarray(array.is_null()) if array.null_count else None


def filled(array: pa.Array, zero: Any = 0) -> NDArray[Any]:
    """The values as NumPy, ``zero`` where NULL."""
    return np.asarray((array.fill_null(zero) if array.null_count else array).to_numpy(zero_copy_only=False))


def read_side(data: Any, reading: Reading, coder: Coder) -> VectorSide:
    """One column by its fast lane, or value by value."""
    array = arrow_of(data)
    if array is not None:
        lane = _LANES.get(reading.kind.name)
        side = lane(array, reading) if lane and reading.factor == 1 else None
        if side is not None:
            return side
        if not pa.types.is_nested(array.type) and not pa.types.is_null(array.type):
            return _by_distinct(array, reading, coder)
        data = arrow_values(array)
    values = data if isinstance(data, list) else list(data)
    return cells_side([read_cell(value, reading) for value in values], coder)


def _plain_keys(values: Ints, nulls: NDArray[np.bool_] | None) -> Keys:
    if nulls is None:
        return Keys(None, values)
    classes = np.where(nulls, NULL_CLASS, VALUE_CLASS).astype(np.uint8)
    return Keys(classes, np.where(nulls, 0, values))


def _integers(array: pa.Array, reading: Reading) -> VectorSide | None:
    values = _int64(array)
    if values is None:
        return None
    nulls = nulls_of(array)
    if reading.null_as_zero:
        nulls = None
    if not reading.integer_rule:
        return VectorSide(_plain_keys(values, nulls), [])
    numbers = Numbers(values.astype(np.float64), None if nulls is None else ~nulls, values)
    return VectorSide(_number_keys(nulls), [numbers])


def _int64(array: pa.Array) -> Ints | None:
    """Integers of any Arrow type that holds them as such; ``None`` where one does not fit."""
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
    """The unscaled integers of a decimal128 array, where all fit into 64 bits."""
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


def _number_keys(nulls: NDArray[np.bool_] | None) -> Keys:
    if nulls is None:
        return Keys(None, None)
    return Keys(np.where(nulls, NULL_CLASS, NUMBER_CLASS).astype(np.uint8), None)


def _number_side(numbers: Numbers, reading: Reading, nulls: NDArray[np.bool_] | None) -> VectorSide:
    """Finite numbers under tolerance; NaN is NULL, infinities are keys."""
    floats = numbers.floats
    finite = np.isfinite(floats)
    if nulls is None and bool(finite.all()):
        return VectorSide(Keys(None, None), [numbers])
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
    return VectorSide(Keys(classes, values if bool(infinite.any()) else None), [numbers])


def _floats(array: pa.Array, reading: Reading) -> VectorSide | None:
    kind = array.type
    nulls = nulls_of(array)
    if pa.types.is_floating(kind):
        values = filled(array, 0.0).astype(np.float64, copy=False)
        single = reading.single and _all_single(values)
        if reading.single and not single:
            return None
        return _number_side(Numbers(values, single=single), reading, nulls)
    if pa.types.is_integer(kind):
        whole = _int64(array)
        if whole is None or (len(whole) and max(whole.max(), -whole.min()) > 2**53):
            return None
        return _number_side(Numbers(whole.astype(np.float64), scaled=whole), reading, nulls)
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= 18:
        unscaled = _unscaled(array)
        if unscaled is None or (len(unscaled) and max(unscaled.max(), -unscaled.min()) > 2**53):
            return None
        floats = unscaled / 10.0**kind.scale
        return _number_side(Numbers(floats, scaled=unscaled, scale=kind.scale), reading, nulls)
    return None


def _all_single(values: Floats) -> bool:
    """Whether all finite numbers are exactly of 32 bits."""
    with np.errstate(over="ignore"):
        return bool(np.all((values == values.astype(np.float32)) | ~np.isfinite(values)))


def _booleans(array: pa.Array, reading: Reading) -> VectorSide | None:
    if pa.types.is_boolean(array.type):
        return VectorSide(_plain_keys(filled(array, False).astype(np.int64), nulls_of(array)), [])
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return None
    values = filled(array)
    if not bool(((values == 0) | (values == 1)).all()):
        return None
    return VectorSide(_plain_keys(values.astype(np.int64), nulls_of(array)), [])


def _moments(array: pa.Array, reading: Reading) -> VectorSide | None:
    kind = array.type
    if pa.types.is_date(kind):
        days = filled(
            array.cast(pa.date32()).view(pa.int32()) if kind != pa.date32() else array.view(pa.int32())
        )
        micros = days.astype(np.int64)
        micros *= DAY
        micros += EPOCH
    elif pa.types.is_timestamp(kind):
        ticks = filled(array.view(pa.int64())).astype(np.int64)
        many = {"s": 1_000_000, "ms": 1000, "us": 1}.get(kind.unit)
        if many and len(ticks) and np.abs(ticks).max() > 2**62 // many:
            return None
        micros = (ticks * many if many else ticks // 1000) + EPOCH
    else:
        return None
    return VectorSide(_plain_keys(micros, nulls_of(array)), [])


def _times(array: pa.Array, reading: Reading) -> VectorSide | None:
    if not pa.types.is_time(array.type):
        return None
    ticks = filled(array.view(pa.int32() if pa.types.is_time32(array.type) else pa.int64())).astype(np.int64)
    many = {"s": 1_000_000, "ms": 1000, "us": 1}.get(array.type.unit)
    return VectorSide(_plain_keys(ticks * many if many else ticks // 1000, nulls_of(array)), [])


_LANES: dict[str, Callable[[pa.Array, Reading], VectorSide | None]] = {
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


def _by_distinct(array: pa.Array, reading: Reading, coder: Coder) -> VectorSide:
    """Read each distinct value once, as the plain path would, and spread it over the rows."""
    coded = array.dictionary_encode(null_encoding="encode")
    values = arrow_values(coded.dictionary)
    side = cells_side([read_cell(value, reading) for value in values], coder)
    at = coded.indices.to_numpy(zero_copy_only=False)
    keys = Keys(
        None if side.keys.classes is None else side.keys.classes[at],
        None if side.keys.values is None else side.keys.values[at],
    )
    return VectorSide(keys, [_spread(numbers, at) for numbers in side.numbers])


def _spread(numbers: Numbers, at: NDArray[Any]) -> Numbers:
    given = numbers.given
    spread = None if given is None else _Spread(given, at)
    present = None if numbers.present is None else numbers.present[at]
    return Numbers(numbers.floats[at], present, given=spread)


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


def cells_side(cells: Sequence[Cell], coder: Coder) -> VectorSide:
    """Cells that were read one by one, as arrays."""
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
    return VectorSide(Keys(classes, values), [_nth_numbers(cells, i) for i in range(widest)])


def _nth_numbers(cells: Sequence[Cell], nth: int) -> Numbers:
    given = [numbers[nth] if len(numbers) > nth else None for _, numbers in cells]
    present = np.array([number is not None for number in given], bool)
    with np.errstate(over="ignore"):
        floats = np.array([0.0 if number is None else as_float(number) for number in given], np.float64)
    return Numbers(floats, present, given=given)


def read_texts(expected: Any, actual: Any, reading: Reading) -> tuple[VectorSide, VectorSide] | None:
    """Two text columns, dictionary-encoded together; ``None`` where a side holds more than text."""
    arrays: list[Any] = [arrow_of(expected), arrow_of(actual)]
    if not all(map(_holds_texts, arrays)):
        return None
    if not reading.fold and not reading.null_as_empty and not any(map(_repeats, arrays)):
        hashed = [hashed_texts(a) for a in arrays]
        if hashed[0] is not None and hashed[1] is not None:
            return hashed[0], hashed[1]
    if arrays[0].type != arrays[1].type:
        arrays = [a.cast(pa.large_string()) for a in arrays]
    both = pa.chunked_array(arrays)
    coded = pc.dictionary_encode(both)
    words = coded.chunk(0).dictionary
    codes = _word_codes(words, reading)
    sides = []
    for chunk in coded.chunks:
        nulls = nulls_of(chunk.indices)
        at = filled(chunk.indices)
        values = at.astype(np.int64) if codes is None else codes[at] if len(codes) else at.astype(np.int64)
        empty = values < 0
        if codes is not None and bool(empty.any()):
            nulls = empty if nulls is None else nulls | empty
        sides.append(VectorSide(_plain_keys(values, nulls), []))
    return sides[0], sides[1]


def _holds_texts(array: pa.Array | None) -> bool:
    """Whether there are texts to encode (an array without any is encoded to no chunk at all)."""
    if array is None or not len(array):
        return False
    return bool(pa.types.is_string(array.type) or pa.types.is_large_string(array.type))


def _repeats(array: pa.Array) -> bool:
    """Whether a column holds few distinct texts, as far as its first rows tell."""
    head = array.slice(0, 2000)
    return len(head) > 200 and len(pc.unique(head)) * 10 < len(head)


@dataclass(frozen=True, slots=True)
class Texts:
    """Plain short ASCII texts as bytes: ``words`` is a view of eight bytes from any place."""

    array: pa.Array
    words: NDArray[np.uint64]
    starts: Ints
    lengths: Ints
    longest: int

    def differ(self, rows: Ints, other: Texts, others: Ints) -> bool:
        """Whether any text differs from the one at the same place of ``others``."""
        for start in range(0, len(rows), BLOCK):
            one, two = rows[start : start + BLOCK], others[start : start + BLOCK]
            lengths = self.lengths[one]
            if not np.array_equal(lengths, other.lengths[two]):
                return True
            mine, theirs = self.starts[one], other.starts[two]
            for at in range(0, self.longest, 8):
                left = self._word(mine, at) ^ other._word(theirs, at)
                if bool((left & _BYTE_MASKS[np.clip(lengths - at, 0, 8)]).any()):
                    return True
        return False

    def _word(self, starts: Ints, at: int) -> NDArray[np.uint64]:
        found: NDArray[np.uint64] = self.words[np.minimum(starts + at, len(self.words) - 1)]
        return found


def hashed_texts(array: pa.Array) -> VectorSide | None:
    """Plain short texts as 64-bit hashes of their bytes, eight at a time; ``None`` for other texts.

    Other texts: not ASCII, blanks around them, or long ones (those are encoded instead).
    """
    wide = pa.types.is_large_string(array.type)
    _, offsets_buffer, data_buffer = array.buffers()
    every = np.frombuffer(offsets_buffer, np.int64 if wide else np.int32)
    offsets: Ints = every[array.offset : array.offset + len(array) + 1].astype(np.int64, copy=False)
    starts = offsets[:-1]
    lengths: Ints = offsets[1:] - starts
    data = np.zeros(int(offsets[-1]) + 8, np.uint8)
    data[: offsets[-1]] = np.frombuffer(data_buffer, np.uint8, int(offsets[-1]))
    longest = int(lengths.max())
    if longest > LONGEST_HASHED or int(data.max()) > 127 or _has_outer_blanks(data, starts, lengths):
        return None
    words = np.ndarray((len(data) - 7,), "<u8", data.data, strides=(1,))
    out = np.empty(len(array), np.uint64)
    for start in range(0, len(out), BLOCK):
        block = slice(start, start + BLOCK)
        out[block] = _hash_block(words, starts[block], lengths[block])
    keys = _plain_keys(out.view(np.int64), nulls_of(array))
    keys.texts = Texts(array, words, starts, lengths, longest)
    return VectorSide(keys, [])


def _hash_block(words: NDArray[np.uint64], starts: Ints, lengths: Ints) -> NDArray[np.uint64]:
    out = lengths.astype(np.uint64)
    for at in range(0, int(lengths.max()), 8):
        live = slice(None) if at == 0 else np.flatnonzero(lengths > at)
        part = out[live]
        part ^= words[starts[live] + at] & _BYTE_MASKS[np.minimum(lengths[live] - at, 8)]
        part *= np.uint64(0x9FB21C651E98DF25)
        part ^= part >> np.uint64(32)
        out[live] = part
    return out


BLOCK = 32_768
LONGEST_HASHED = 64
_BYTE_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)
_BLANK_BYTES = np.array([chr(i).isspace() for i in range(256)])


def _has_outer_blanks(data: NDArray[np.uint8], starts: Ints, lengths: Ints) -> bool:
    """Whether any text begins or ends with a blank (of the ASCII ones)."""
    full = slice(None) if bool((lengths > 0).all()) else lengths > 0
    first = starts[full]
    last = first + lengths[full] - 1
    return bool(_BLANK_BYTES[data[first]].any() or _BLANK_BYTES[data[last]].any())


def _word_codes(words: pa.Array, reading: Reading) -> Ints | None:
    """A code per distinct text after cleaning; -1 for an empty one that counts as NULL."""
    ascii_only = bool(pc.all(pc.string_is_ascii(words)).as_py() in (True, None))
    if ascii_only and not reading.fold and not reading.null_as_empty:
        trimmed = pc.utf8_trim(words, characters=BLANKS)
        if bool(pc.all(pc.equal(trimmed, words)).as_py() in (True, None)):
            return None
    cleaned: dict[str, int] = {}
    out = np.empty(len(words), np.int64)
    for row, word in enumerate(words.to_pylist()):
        text = clean_text(word)
        if reading.fold:
            text = clean_text(text.casefold())
        out[row] = -1 if not text and reading.null_as_empty else cleaned.setdefault(text, len(cleaned))
    return out
