"""How a column name that a person wrote finds its column.

Comparison, extraction, options and checks all go by these rules, so that a name which one of them
accepts is never unknown to another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence


def fold_name(name: str) -> str:
    """Return a name without case, runs of characters other than letters and digits as ``_``.

    ``Total Revenue``, ``total_revenue`` and ``TOTAL-REVENUE`` fold to one name. A name without any
    letter or digit (``%``) stays as it is: it would fold to nothing.
    """
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_") or name


NAME_RULES: tuple[Callable[[str], str], ...] = (str, str.casefold, fold_name)
"""Names are equal by the first of these that finds a partner: as written, without case, folded."""


def find_name(names: Sequence[str], wanted: str) -> int | None:
    """Return the index of the name that ``wanted`` means, by the first rule that finds one, else None."""
    for rule in NAME_RULES:
        key = rule(wanted)
        index = next((index for index, name in enumerate(names) if rule(name) == key), None)
        if index is not None:
            return index
    return None


def expected_by_alias(aliases: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return folded accepted name -> folded expected name (from ``comparison.column_aliases``)."""
    return {fold_name(alias): fold_name(name) for name, accepted in aliases.items() for alias in accepted}


def covers(
    names: Sequence[str], expected: Sequence[str], aliases: Mapping[str, Sequence[str]] | None = None
) -> bool:
    """Return whether every expected column has a column of its own among ``names``.

    As the comparison maps columns by name: rule by rule, then by alias.
    """
    free, missing = list(names), list(expected)
    for rule in NAME_RULES:
        missing = _unpaired(free, missing, rule, rule)
    by_alias = expected_by_alias(aliases or {})
    return not _unpaired(free, missing, lambda name: by_alias.get(fold_name(name)), fold_name)


def _unpaired(
    free: list[str], missing: list[str], key: Callable[[str], str | None], wanted: Callable[[str], str]
) -> list[str]:
    """Take the partner of each missing name out of ``free``; return the names without one."""
    left = []
    for name in missing:
        partner = next((other for other in free if key(other) == wanted(name)), None)
        if partner is None:
            left.append(name)
        else:
            free.remove(partner)
    return left
