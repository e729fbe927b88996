"""Numbers: reading them from text, and the rule that says when two of them are equal."""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation, localcontext

from pytest_agenteval.compare.options import ColumnOptions

Number = int | float | Decimal

EXACT, CLOSE, ROUNDED, NO = 0, 1, 2, 3

# Wide enough that no sum, difference or rounding of what the grammar admits loses a digit.
WIDE = Context(prec=12000, Emax=999999, Emin=-999999)
LONGEST = 5000

_CODE_LIST = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD "
    "CAD CDF CHF CLF CLP CNH CNY COP CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL "
    "GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW "
    "KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD "
    "NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RMB RON RSD RUB RWF SAR SBD SCR SDG SEK SGD "
    "SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED "
    "VES VND VUV WST XAF XAG XAU XCD XDR XOF XPD XPF XPT YER ZAR ZMW ZWL BTC ETH USDT USDC"
)
_CODES = frozenset(_CODE_LIST.split())
_BLANKS = " \u00a0\u202f\u2009"
_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_BODY = re.compile(
    rf"""
    (?P<plain>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<grouped>[1-9][0-9]{{0,2}}(?:(?P<sep>[,'{_BLANKS}])[0-9]{{3}})(?:(?P=sep)[0-9]{{3}})*(?:\.[0-9]+)?)
    | (?P<indian>[1-9][0-9]?(?:,[0-9]{{2}})+,[0-9]{{3}}(?:\.[0-9]+)?)
    | (?P<comma>[1-9][0-9]{{0,2}}(?:(?P<dot>[.{_BLANKS}])[0-9]{{3}})(?:(?P=dot)[0-9]{{3}})*,[0-9]+)
    | (?P<bare>[0-9]+,(?:[0-9]{{1,2}}|[0-9]{{4,}}))
    """,
    re.VERBOSE,
)
_SPECIAL = re.compile(r"(?P<sign>[+-]?)(?P<word>nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReadNumber:
    """A number read from text; ``percent`` when it was written with ``%`` (the value is not scaled)."""

    value: Decimal | float
    percent: bool = False


def read_number(text: str) -> ReadNumber | None:
    """Return the one number that ``text`` is as a whole, or ``None``. NaN comes back as a float NaN."""
    text = text.strip()
    if len(text) > LONGEST:
        return None
    if _PLAIN.fullmatch(text):
        return ReadNumber(Decimal(text))
    text = text.replace("\u2212", "-")
    special = _SPECIAL.fullmatch(text)
    if special:
        return ReadNumber(float(special["sign"] + special["word"]))
    return _dressed(text)


def _dressed(text: str) -> ReadNumber | None:
    """Take off percent sign, parentheses, sign and currency, each at most once; read what is left."""
    percent = negative = signed = money = enclosed = False
    while text:
        head, tail = text[0], text[-1]
        if tail == "%" and not percent:
            percent, text = True, text[:-1]
        elif head == "(" and tail == ")" and not enclosed and not signed:
            negative = enclosed = signed = True
            text = text[1:-1]
        elif head in "+-" and not signed:
            signed, negative, text = True, head == "-", text[1:]
        elif tail == "-" and not signed:
            signed = negative = True
            text = text[:-1]
        elif not money and (cut := _currency(text)) is not None:
            money, text = True, cut
        else:
            break
        text = text.strip()
    value = None if money and percent else _body(text)
    return None if value is None else ReadNumber(-value if negative else value, percent)


def _currency(text: str) -> str | None:
    """Return ``text`` without the currency sign or code at its start or end; ``None`` where there is none."""
    start = re.match(r"[A-Z]{1,3}\$|[A-Z]{3,4}(?![A-Z])", text)
    if start and (start[0].endswith("$") or start[0] in _CODES):
        return text[start.end() :]
    end = re.search(r"(?<![A-Z])[A-Z]{3,4}$|[A-Z]{1,3}\$$", text)
    if end and (end[0].endswith("$") or end[0] in _CODES):
        return text[: end.start()]
    if unicodedata.category(text[0]) == "Sc":
        return text[1:]
    return text[:-1] if unicodedata.category(text[-1]) == "Sc" else None


def _body(text: str) -> Decimal | None:
    found = _BODY.fullmatch(text)
    if not found:
        return None
    digits = text
    if found["grouped"] or found["indian"]:
        digits = re.sub(rf"[,'{_BLANKS}]", "", text)
    elif found["comma"] or found["bare"]:
        digits = re.sub(rf"[.{_BLANKS}]", "", text).replace(",", ".")
    try:
        value = Decimal(digits)
    except InvalidOperation:  # an exponent of twenty digits
        return None
    return value if abs(value.adjusted()) <= LONGEST else None


class Float32(float):
    """A 32-bit float; it shows the shortest form that reads back as the same 32 bits."""

    __slots__ = ()


def shortest(value: Number) -> Decimal:
    """Return the shortest decimal form of a finite number, exactly."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, Float32):
        return Decimal(_shortest_single(value))
    return Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(int(value))


def fits_single(value: float) -> bool:
    """Return whether a float is exactly one of 32 bits."""
    return bool(struct.unpack("f", struct.pack("f", value))[0] == value)


def _shortest_single(value: float) -> str:
    """Return the shortest text that reads back as the same 32 bits; nine digits always do."""
    bits = struct.pack("f", value)
    texts = (f"{float(value):.{digits}g}" for digits in range(1, 10))
    return next(text for text in texts if struct.pack("f", float(text)) == bits)


def shown_decimals(value: Number) -> int:
    """Return how many decimals a number shows, trailing zeros left out (1.50 shows one, 120 none)."""
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return 0
    _, digits, exponent = shortest(value).as_tuple()
    zeros = 0
    for digit in reversed(digits):
        if digit:
            break
        zeros += 1
    return max(0, -int(exponent) - zeros) if any(digits) else 0


def as_float(value: Number) -> float:
    """Return the nearest float (infinite where it is beyond the range)."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class Whole(int):
    """A number that was written as an integer among others with decimals: compared without tolerance."""


@dataclass(frozen=True, slots=True)
class NumberRule:
    """When an answered number equals an expected one, for one column.

    ``shown`` holds the decimals at which rule 2 may compare (those that the answered and those
    that the expected column shows); it is empty where rule 2 is off. ``exact`` switches rules 2
    and 3 off (integers that were given a tolerance).
    """

    rtol: float
    atol: float
    decimals: int | None = 2
    guard: float | None = 0.01
    significant: int | None = None
    shown: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        options: ColumnOptions,
        expected: Iterable[Number],
        actual: Iterable[Number],
        integer: bool = False,
    ) -> NumberRule:
        """Return the rule of a column from its options and the finite numbers on both sides."""
        decimals = None if integer else options.decimals
        significant = None if integer else options.significant
        if decimals is None and significant is None:
            return cls(options.rtol, options.atol, None, options.rounding_guard)
        xs = list(expected)
        most = tuple(max(map(shown_decimals, side), default=0) for side in (actual, xs))
        if significant is not None:
            return cls(options.rtol, options.atol, decimals, None, significant, most)
        least = decimals or 0
        shown = tuple(k for k in dict.fromkeys(max(least, k) for k in most) if not all_vanish(xs, k))
        return cls(options.rtol, options.atol, decimals, options.rounding_guard, None, shown)

    def grade(self, x: Number, y: Number) -> int:
        """Return ``EXACT``, ``CLOSE`` (rule 1), ``ROUNDED`` (rule 2 or 3) or ``NO`` for finite ``x`` and
        ``y``.
        """
        if x == y:
            return EXACT
        if isinstance(x, Whole):
            return NO
        fx, fy = as_float(x), as_float(y)
        if abs(fx - fy) > self.reach(x):
            return NO
        if isinstance(x, float) or isinstance(y, float):
            if math.isinf(fx) or math.isinf(fy):
                close = False
            else:
                close = abs(fx - fy) <= self.atol + self.rtol * abs(fx)
            if fx == fy and not math.isinf(fx):
                return EXACT
        else:
            close = _close_decimals(x, y, self.atol, self.rtol)
        if close:
            return CLOSE
        if self.decimals is None and self.significant is None:
            return NO
        return ROUNDED if self._rounded(x, y) else NO

    def reach(self, x: Number) -> float:
        """Return a bound: a number further from ``x`` than this is not equal to it."""
        size = abs(as_float(x))
        near = self.atol + self.rtol * size
        if self.significant is not None:
            near = max(near, 20 * size * 10.0 ** (1 - self.significant))
        elif self.decimals is not None:
            unit = 10.0**-self.decimals
            near = max(near, unit + self.atol + self.rtol * (size + unit))
        return near * (1 + 1e-9) + 8 * math.ulp(size) if math.isfinite(size) else math.inf

    def _step(self, fx: float, fy: float) -> float:
        """Return, under ``significant``, a bound on how far apart two numbers may be, from the larger one."""
        largest = max(abs(fx), abs(fy))
        if self.significant is None or not 0 < largest < math.inf:
            return math.inf
        unit = 10.0 ** (math.floor(math.log10(largest) + 1e-9) - self.significant + 1)
        return (unit + self.atol + self.rtol * (largest + unit)) * (1 + 1e-9) + 8 * math.ulp(largest)

    def _rounded(self, x: Number, y: Number) -> bool:
        fx, fy = as_float(x), as_float(y)
        if abs(fx - fy) > self._step(fx, fy):
            return False
        with localcontext(WIDE):
            dx, dy = shortest(x), shortest(y)
            if self.significant is not None:
                largest = max(abs(dx), abs(dy))
                d = self.significant - 1 - largest.adjusted()
                usable: tuple[int, ...] = (d,) if any(most <= d for most in self.shown) else ()
            else:
                d, usable = self.decimals or 0, self.shown
            gap = abs(dx - dy)
            if any(gap <= Decimal((0, (5,), -k - 1)) for k in usable):
                return True
            if self.guard is not None and gap > Decimal(repr(self.guard)) * max(abs(dx), abs(dy)):
                return False
            slack = Decimal(4 * math.ulp(max(abs(fx), abs(fy)))) if math.isfinite(fx + fy) else Decimal(0)
            return gap <= Decimal((0, (5,), -d - 1)) + slack or self._rounds_alike(dx, dy, d)

    def _rounds_alike(self, dx: Decimal, dy: Decimal, d: int) -> bool:
        for mode in (ROUND_HALF_UP, ROUND_HALF_EVEN):
            rx, ry = (_quantized(value, d, mode) for value in (dx, dy))
            if _close_decimals(rx, ry, self.atol, self.rtol):
                return True
        bx, by = (numpy_round(as_float(value), d) for value in (dx, dy))
        return abs(bx - by) <= self.atol + self.rtol * abs(bx)


def _quantized(value: Decimal, d: int, mode: str) -> Decimal:
    return value.scaleb(d).to_integral_value(mode).scaleb(-d)


def numpy_round(value: float, decimals: int) -> float:
    """Return what ``numpy.round`` gives: scaled in binary, rounded half to even, scaled back."""
    power = 10.0 ** abs(decimals)
    scaled = value * power if decimals >= 0 else value / power
    if not math.isfinite(scaled):
        return value
    whole = float(round(scaled))
    return whole / power if decimals >= 0 else whole * power


def all_vanish(values: Iterable[Number], k: int) -> bool:
    """Return whether every non-zero number would be shown as 0 with ``k`` decimals."""
    half = 0.5 * 10.0**-k
    return all(abs(as_float(value)) < half * (1 - 1e-12) for value in values if value != 0)


def _close_decimals(x: Number, y: Number, atol: float, rtol: float) -> bool:
    """Return rule 1 on integers and Decimals, exactly."""
    with localcontext(WIDE):
        dx, dy = Decimal(x), Decimal(y)
        return abs(dx - dy) <= Decimal(repr(float(atol))) + Decimal(repr(float(rtol))) * abs(dx)
