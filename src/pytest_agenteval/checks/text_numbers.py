"""Reading the numbers of a text: what is a quantity, and what is only a date, a rank or a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from pytest_agenteval.checks.written_numbers import in_digits

Hedge = Literal["", "about", "over", "under"]

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d"
_TO = r"\s*(?:-|\u2013|\u2014|to|and|through|until)\s*"
_UNIT = r"(?:days?|weeks?|months?|quarters?|years?|hours?|minutes?|seconds?)"

_NOT_QUANTITIES = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        # code, links, addresses
        r"```.*?(?:```|\Z)",
        r"`[^`\n]*`",
        r"\bhttps?://\S+",
        # dates and times
        rf"\b{_YEAR}[-/.]\d{{1,2}}(?:[-/.]\d{{1,2}})?(?:[T ]\d{{1,2}}:\d\d(?::\d\d(?:\.\d+)?)?Z?)?\b",
        rf"\b\d{{1,2}}[-/.]\d{{1,2}}[-/.](?:{_YEAR}|\d\d)\b",
        r"\b\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\b\.?)?",
        r"\b\d{1,2}\s?[ap]\.?m\b\.?",
        rf"\b{_MONTH}\s+{_DAY}(?:{_TO}(?:{_MONTH}\s+)?{_DAY})?(?:,?\s+{_YEAR})?\b",
        rf"\b{_DAY}(?:{_TO}{_DAY})?\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?\b",
        rf"\b{_MONTH},?\s+(?:of\s+)?(?:{_YEAR}|'\d\d)\b",
        rf"\b(?:FY|CY)\s?'?(?:{_YEAR}|\d\d)(?:/\d\d)?\b",
        rf"\b{_YEAR}\s?/\s?\d\d\b",
        rf"(?:\b{_YEAR}[-\s]?)?\b[QHW][1-4]\b(?:[-\s/']*(?:{_YEAR}|\d\d\b))?",
        rf"\b{_YEAR}-?[QHW]\d{{1,2}}\b",
        rf"\b{_YEAR}s\b",
        rf"\b{_YEAR}\s*[-\u2013\u2014]\s*{_YEAR}\b",
        r"(?<!\w)'\d\d\b(?!\s*%)",
        r"\b(?:week|quarter|month|day|half)\s+(?:no\.?\s*)?\d{1,2}\b",
        # list numbers, ranks, places
        r"^[ \t>*\-]*\(?\d{1,3}[.)]\)?(?=\s)",
        r"(?:^|[;:,]\s*|\band\s+)\(\d{1,2}\)(?=\s)",
        r"(?<![\w.])#\s?\d{1,3}\b",
        r"\b\d+(?:st|nd|rd|th)\b",
        r"\b(?:no|nr)\.\s?\d+\b",
        r"\b(?:rank(?:ed|s)?|step|section|part|option|figure|table|page|chapter|note|point)\s+(?:no\.?\s*)?#?\d+\b",
        # windows and idioms
        rf"\b(?:top|bottom|first|last|past|previous|prior|next|latest|trailing)[\s-]+\d+\b(?:\s+{_UNIT})?",
        rf"\b\d+-{_UNIT}\b",
        r"\b24\s?/\s?7\b",
    )
)
_FLAGGED_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_INLINE_LIST = re.compile(r"(?<![\w.,])\d{1,2}\)(?=\s)")

_NUMBER = re.compile(
    r"""(?<![\w.])(?P<lead>[-+\u2212\u2013]?\s?)(?P<cur>[$€£¥₹₩₽₺₴₫฿₦₱₪]|(?:USD|EUR|GBP|INR|CHF|JPY)\s)?\s?(?P<sign>[-\u2212]?)
    (?P<digits>\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d+
      |\d{1,3}(?:['\u2019\u202f\u00a0\u2009]\d{3})+(?:[.,]\d+)?|\d{1,3}(?:\ \d{3})+(?![\d])(?:[.,]\d+)?
      |\d+\.\d+(?:[eE][-+]?\d+)?|\d+,\d{1,2}(?!\d)|\.\d+|\d+(?:[eE][-+]?\d+)?)
    (?P<unit>\s?(?:%|percent\b|per\ cent\b|percentage\ points?\b|pp\b)
      |\s?(?:thousand|million|billion|trillion|mn|mio|bn|tn)\b
      |\s?(?i:(?:mrd|mio|tsd)\b\.?|(?:lakhs?|lacs?|crores?|milliarden?|millionen|milliards?|millions?|tausend)\b)
      |(?:k|K|m|M|b|B|t|T)\b|\s(?:K|M|B)\b)?(?P<tail>[A-Za-z_]?)""",
    re.VERBOSE,
)
_SCALES = {
    "tsd": 3, "tausend": 3, "lakh": 5, "lakhs": 5, "lac": 5, "lacs": 5, "millions": 6, "millionen": 6,
    "crore": 7, "crores": 7, "mrd": 9, "milliard": 9, "milliards": 9, "milliarde": 9, "milliarden": 9,
    "k": 3, "thousand": 3, "m": 6, "mn": 6, "mio": 6, "million": 6,
    "b": 9, "bn": 9, "billion": 9, "t": 12, "tn": 12, "trillion": 12,
}  # fmt: skip
_HEDGES: tuple[tuple[Hedge, str], ...] = (
    ("about", r"(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|close to|near|some|~|≈)"),
    ("over", r"(?:over|more than|at least|above|exceed(?:s|ed|ing)?|north of|>|upwards? of)"),
    ("under", r"(?:under|less than|fewer than|almost|nearly|below|up to|just shy of|<)"),
)
_HEDGE_BEFORE = tuple((name, re.compile(rf"(?:^|\W){words}\s*$", re.IGNORECASE)) for name, words in _HEDGES)
_COUNTING = re.compile(
    r"\b(?:was|were|is|are|has|had|have|total(?:s|led|ed)?(?: of)?|exactly|only|just|found|counted|contains?|"
    r"reached|recorded|about|around|approximately|roughly|over|under|than|least|equals?|made|sold|=|:)\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a text. ``value`` has its scale in it; ``step`` is the unit of its last digit shown.

    ``zeros`` is the unit of its last digit that is not 0 (1,600 -> 100).
    """

    text: str
    value: Decimal
    step: Decimal
    zeros: Decimal
    percent: bool = False
    hedge: Hedge = ""


def quantities(text: str) -> list[Quantity]:
    """Return the quantities a prose text states, in order; dates, ranks, list numbers and names are none."""
    masked = _masked(in_digits(text))
    found = []
    for match in _NUMBER.finditer(masked):
        if match["tail"] or _part_of_a_name(masked, match) or _is_year(masked, match):
            continue
        found.append(_quantity(masked, match))
    return found


def all_numbers(text: str) -> set[Decimal]:
    """Return every number written in ``text``, however it is meant, with its scale."""
    text = in_digits(text)
    numbers = {Decimal(part) for part in re.findall(r"\d+(?:\.\d+)?", text)}
    return numbers | {_quantity(text, match).value for match in _NUMBER.finditer(text)}


def _masked(text: str) -> str:
    """Return ``text`` with all that is not a quantity blanked, every place kept."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"\S", " ", match.group())

    text = _FLAGGED_BLOCK.sub(blank, text)
    for pattern in _NOT_QUANTITIES:
        text = pattern.sub(blank, text)
    return _INLINE_LIST.sub(
        lambda match: match.group() if _in_parentheses(text, match) else blank(match), text
    )


def _in_parentheses(text: str, match: re.Match[str]) -> bool:
    line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    return line.count("(") > line.count(")")


def _part_of_a_name(text: str, match: re.Match[str]) -> bool:
    """Return whether digits are glued to a word: ``SKU-1042``, ``covid-19``, ``1.2.3``, ``2x4``."""
    before, after = text[: match.start("digits")], text[match.end() :]
    return bool(re.search(r"[A-Za-z_]-$", before) or re.match(r"\.\d|_", after))


def _is_year(text: str, match: re.Match[str]) -> bool:
    digits = match["digits"]
    if not re.fullmatch(r"(?:19|20)\d\d", digits) or match["cur"] or match["unit"]:
        return False
    return not _COUNTING.search(text[: match.start()].rstrip() or "")


def _quantity(text: str, match: re.Match[str]) -> Quantity:
    plain = _plain(match["digits"])
    unit = (match["unit"] or "").strip().lower().rstrip(".")
    percent = unit.startswith(("%", "per", "pp"))
    scale = Decimal(10) ** (0 if percent else _SCALES.get(unit, 0))
    number = Decimal(plain)
    exponent = number.as_tuple().exponent
    step = Decimal(10) ** int(exponent)
    mantissa = plain.rstrip("0") if "." not in plain and number else plain
    zeros = Decimal(10) ** (len(plain) - len(mantissa)) if "." not in plain else step
    before = text[: match.start()]
    hedge: Hedge = next((name for name, pattern in _HEDGE_BEFORE if pattern.search(before)), "")
    shown = match.group().strip()
    return Quantity(shown, number * scale, step * scale, zeros * scale, percent, hedge)


def _plain(digits: str) -> str:
    """Return ``1,234.5``, ``1.234,5``, ``1 234,5`` and ``1'234.5`` as ``1234.5``."""
    text = re.sub(r"['\u2019\u202f\u00a0\u2009 ]", "", digits)
    if re.fullmatch(r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?", text):  # lakh and crore: 12,34,567
        return text.replace(",", "")
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        return text.replace(",", "")
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)|\d{1,3}(?:\.\d{3}){2,}", text):
        return text.replace(".", "").replace(",", ".")
    return text.replace(",", ".")
