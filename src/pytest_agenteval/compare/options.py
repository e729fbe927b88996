"""The options of a comparison: per suite, per case, per column; unknown names are faults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from pytest_agenteval.support.column_names import find_name, fold_name
from pytest_agenteval.support.faults import Fault
from pytest_agenteval.support.text import cut, did_you_mean

ORDER_KEY = re.compile(
    r"(?P<name>.*?)(?:(?<!\s)\s++(?P<way>asc|desc))?(?:(?<!\s)\s++nulls\s++(?P<nulls>first|last))?(?<!\s)\s*+",
    re.IGNORECASE | re.DOTALL,
)


class OptionsError(ValueError):
    """Comparison options are wrong; ``faults`` holds every fault with the path to it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.text for fault in faults))


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One sort key: an output name, or a position from 1. Directions are allowed and not needed."""

    name: str

    @classmethod
    def parse(cls, text: str) -> OrderKey:
        """Read ``name [asc|desc] [nulls first|last]``; a name in double quotes is taken as it stands."""
        match = ORDER_KEY.fullmatch(text.strip())
        name = match["name"].strip() if match else text.strip()
        if len(name) > 1 and name[0] == name[-1] == '"':
            name = name[1:-1].replace('""', '"')
        return cls(name)


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """What holds for one expected column.

    ``explicit`` is true where a tolerance was written for this column itself: only then integers
    are compared with one.
    """

    rtol: float = 1e-5
    atol: float = 1e-8
    decimals: int | None = 2
    rounding_guard: float | None = 0.01
    significant: int | None = None
    string_case: Literal["sensitive", "insensitive"] = "sensitive"
    null_as_zero: bool = False
    null_as_empty: bool = False
    percent: Literal["strict", "either"] = "strict"
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """How two tables are compared; the defaults are those of a case that says nothing.

    ``per_column`` maps expected column names (any spelling) to options that override these there.
    Build one from a mapping with :func:`parse_options`.
    """

    rtol: float = 1e-5
    atol: float = 1e-8
    decimals: int | None = 2
    rounding_guard: float | None = 0.01
    significant: int | None = None
    ordered: bool = False
    order_by: tuple[str, ...] = ()
    duplicates: Literal["bag", "set"] = "bag"
    columns: Literal["auto", "name", "position"] = "auto"
    column_aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra_columns: Literal["allow", "forbid"] = "allow"
    string_case: Literal["sensitive", "insensitive"] = "sensitive"
    null_as_zero: bool = False
    null_as_empty: bool = False
    percent: Literal["strict", "either"] = "strict"
    ignore_columns: tuple[str, ...] = ()
    per_column: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def for_column(self, name: str) -> ColumnOptions:
        """Return the options of the expected column ``name``."""
        base = {key: getattr(self, key) for key in COLUMN_OPTIONS}
        place = find_name(list(self.per_column), name)
        if place is None:
            return ColumnOptions(**base)
        own = list(self.per_column.values())[place]
        return ColumnOptions(**{**base, **own}, explicit="rtol" in own or "atol" in own)

    def with_order(self, order_by: Sequence[str]) -> ComparisonOptions:
        """Return the same options with the reference's sort keys, unless keys are already given."""
        return self if self.order_by else replace(self, order_by=tuple(order_by))


COLUMN_OPTIONS = tuple(f.name for f in fields(ColumnOptions) if f.name != "explicit")

_Check = Callable[[Any], str | None]


def _amount(value: Any) -> str | None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if good and math.isfinite(value) and value >= 0 else "a number, 0 or more"


def _whole(low: int) -> _Check:
    def check(value: Any) -> str | None:
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= 300
        return None if good else f"a whole number from {low} to 300"

    return check


def _or_null(check: _Check) -> _Check:
    def inner(value: Any) -> str | None:
        said = None if value is None else check(value)
        return said and f"{said}, or null"

    return inner


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _one_of(*words: str) -> _Check:
    def check(value: Any) -> str | None:
        if isinstance(value, str) and value in words:
            return None
        hint = did_you_mean(value, words) if isinstance(value, str) else ""
        return f"one of {', '.join(words)}" + (hint if "mean" in hint else "")

    return check


def _names(value: Any) -> str | None:
    good = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    return None if good or isinstance(value, str) else "a list of names"


def _aliases(value: Any) -> str | None:
    good = isinstance(value, Mapping) and all(
        isinstance(key, str) and _names(names) is None for key, names in value.items()
    )
    return None if good else "expected names, each with the names accepted for it"


_CHECKS: dict[str, _Check] = {
    "rtol": _amount,
    "atol": _amount,
    "decimals": _or_null(_whole(0)),
    "rounding_guard": _or_null(_amount),
    "significant": _or_null(_whole(1)),
    "ordered": _flag,
    "order_by": _or_null(_names),
    "duplicates": _one_of("bag", "set"),
    "columns": _one_of("auto", "name", "position"),
    "column_aliases": _aliases,
    "extra_columns": _one_of("allow", "forbid"),
    "string_case": _one_of("sensitive", "insensitive"),
    "null_as_zero": _flag,
    "null_as_empty": _flag,
    "percent": _one_of("strict", "either"),
    "ignore_columns": _names,
}


def option_faults(mapping: Any) -> list[Fault]:
    """Return every fault of comparison options as written in YAML; paths start below ``comparison``."""
    if not isinstance(mapping, Mapping):
        return [Fault((), f"comparison: a mapping of options is expected, found {_shown(mapping)}")]
    known = [*_CHECKS, "per_column"]
    faults = _faults_of(mapping, {name: _CHECKS.get(name) for name in known}, ())
    columns = mapping.get("per_column")
    if columns is None:
        return faults
    if not isinstance(columns, Mapping):
        text = f"per_column: columns with their options are expected, found {_shown(columns)}"
        return [*faults, Fault(("per_column",), text)]
    for name, own in columns.items():
        path = ("per_column", name)
        if isinstance(own, Mapping):
            faults += _faults_of(own, {key: _CHECKS[key] for key in COLUMN_OPTIONS}, path)
        else:
            faults.append(Fault(path, f"{name}: a mapping of options is expected, found {_shown(own)}"))
    return faults


def _faults_of(
    mapping: Mapping[Any, Any], checks: Mapping[str, _Check | None], path: tuple[str | int, ...]
) -> list[Fault]:
    faults = []
    for key, value in mapping.items():
        place = (*path, key)
        if key not in checks:
            faults.append(Fault(place, f"unknown option {str(key)!r}{did_you_mean(str(key), checks)}"))
            continue
        check = checks[key]
        wanted = check(value) if check else None
        if wanted:
            faults.append(Fault(place, f"{key}: {wanted} is expected, found {_shown(value)}"))
    return faults


def _shown(value: Any) -> str:
    return cut(repr(value), 60)


def parse_options(
    mapping: Mapping[str, Any] | None, suite: Mapping[str, Any] | None = None
) -> ComparisonOptions:
    """Return options as written for a case, over those of the suite; ``per_column`` is merged by column.

    Raises ``OptionsError`` with every fault (unknown names come with a suggestion).
    """
    merged: dict[str, Any] = {}
    columns: dict[str, dict[str, Any]] = {}
    for layer in (suite or {}, mapping or {}):
        faults = option_faults(layer)
        if faults:
            raise OptionsError(faults)
        merged.update({key: value for key, value in layer.items() if key != "per_column"})
        for name, own in (layer.get("per_column") or {}).items():
            columns.setdefault(fold_name(str(name)), {}).update(own)
    for key in ("order_by", "ignore_columns"):
        if key in merged:
            merged[key] = _tuple(merged[key])
    if "column_aliases" in merged:
        merged["column_aliases"] = {key: _tuple(names) for key, names in merged["column_aliases"].items()}
    return ComparisonOptions(**merged, per_column=columns)


def _tuple(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
