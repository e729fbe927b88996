"""Texts as arrays: hashes of plain short ones, codes of the others, and how two texts are distinguished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pytest_agenteval.compare.values.canonical import clean_text
from pytest_agenteval.compare.values.cells import ColumnReading

Ints = NDArray[np.int64]
BLOCK = 16_000
LONGEST_HASHED = 64
BLANKS = "".join(chr(i) for i in range(0x3001) if chr(i).isspace())
_BYTE_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)
_LAST_BLANK = 32


@dataclass(frozen=True, slots=True)
class TextBytes:
    """Plain short ASCII texts as bytes: ``words`` is a view of eight bytes from any place."""

    array: pa.Array
    words: NDArray[np.uint64]
    starts: NDArray[Any]
    lengths: NDArray[Any]

    def differ(self, rows: Ints, other: TextBytes, others: Ints) -> bool:
        """Return whether any text differs from the one at the same place of ``others``."""
        for start in range(0, len(rows), BLOCK):
            one, two = rows[start : start + BLOCK], others[start : start + BLOCK]
            lengths = self.lengths[one]
            if not np.array_equal(lengths, other.lengths[two]):
                return True
            mine, theirs = self.starts[one], other.starts[two]
            shortest, longest = int(lengths.min()), int(lengths.max())
            for at in range(0, longest, 8):
                left = self.words[mine + at] ^ other.words[theirs + at]
                if at + 8 > shortest:  # some texts end within these bytes
                    left &= _BYTE_MASKS[np.clip(lengths - at, 0, 8)]
                if bool(left.any()):
                    return True
        return False


def hashed_texts(array: pa.Array) -> tuple[Ints, TextBytes] | None:
    """Return plain short texts as 64-bit hashes of their bytes, eight at a time, and the texts by place.

    ``None`` for other texts: not ASCII, blanks around them, or long ones (those are encoded instead).
    """
    wide = pa.types.is_large_string(array.type)
    _, offsets_buffer, data_buffer = array.buffers()
    every = np.frombuffer(offsets_buffer, np.int64 if wide else np.int32)
    offsets = every[array.offset : array.offset + len(array) + 1]
    starts, lengths = offsets[:-1], np.diff(offsets)
    data = np.zeros(int(offsets[-1]) + LONGEST_HASHED + 8, np.uint8)  # eight bytes from any place on
    data[: offsets[-1]] = np.frombuffer(data_buffer, np.uint8, int(offsets[-1]))
    longest = int(lengths.max())
    if longest > LONGEST_HASHED or int(data.max()) > 127 or _has_outer_blanks(data, starts, lengths):
        return None
    words = np.ndarray((len(data) - 7,), "<u8", data.data, strides=(1,))
    out = np.empty(len(array), np.uint64)
    for start in range(0, len(out), BLOCK):
        block = slice(start, start + BLOCK)
        out[block] = _hash_block(words, starts[block], lengths[block])
    return out.view(np.int64), TextBytes(array, words, starts, lengths)


def _hash_block(words: NDArray[np.uint64], starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.uint64]:
    out = lengths.astype(np.uint64)
    shortest = int(lengths.min())
    for at in range(0, int(lengths.max()), 8):
        # a text that ends right here must not be mixed once more because of its neighbours
        live = slice(None) if at < shortest else np.flatnonzero(lengths > at)
        part = out[live]
        part ^= words[starts[live] + at] & _BYTE_MASKS[np.minimum(lengths[live] - at, 8)]
        part *= np.uint64(0x9FB21C651E98DF25)
        part ^= part >> np.uint64(32)
        out[live] = part
    return out


def _has_outer_blanks(data: NDArray[np.uint8], starts: NDArray[Any], lengths: NDArray[Any]) -> bool:
    """Return whether any text begins or ends with an ASCII blank (or a control character,
    as good as one here).
    """
    full = slice(None) if bool((lengths > 0).all()) else lengths > 0
    first = starts[full]
    last = first + lengths[full] - 1
    return any(int(data[at].min(initial=127)) <= _LAST_BLANK for at in (first, last))


def holds_texts(array: pa.Array | None) -> bool:
    """Return whether there are texts to encode (an array without any is encoded to no chunk at all)."""
    if array is None or not len(array):
        return False
    return bool(pa.types.is_string(array.type) or pa.types.is_large_string(array.type))


def repeats(array: pa.Array) -> bool:
    """Return whether a column holds few distinct texts, as far as its first rows tell."""
    head = array.slice(0, 2000)
    return len(head) > 200 and len(pc.unique(head)) * 10 < len(head)


def word_codes(words: pa.Array, reading: ColumnReading) -> Ints | None:
    """Return a code per distinct text after cleaning; -1 for an empty one that counts as NULL."""
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
