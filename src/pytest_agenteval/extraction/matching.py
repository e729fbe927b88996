"""Does a table cover expected columns by name?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def covers(
    names: Sequence[str], expected: Sequence[str], aliases: Mapping[str, Sequence[str]] | None = None
) -> bool:
    """Whether every expected column has a column of its own among ``names``.

    As the comparison matches names: exactly, then without case, then normalised, then by alias.
    """
    free = list(names)
    missing = list(expected)
    for same in (_exact, _caseless, normalised):
        still = []
        for name in missing:
            partner = next((other for other in free if same(other) == same(name)), None)
            if partner is None:
                still.append(name)
            else:
                free.remove(partner)
        missing = still
    for name in missing:
        accepted = {normalised(alias) for alias in (aliases or {}).get(name, ())}
        partner = next((other for other in free if normalised(other) in accepted), None)
        if partner is None:
            return False
        free.remove(partner)
    return True


def normalised(name: str) -> str:
    """Lower case, runs of other characters than letters and digits as ``_``, none at the ends."""
    return re.sub(r"[\W_]+", "_", name.lower()).strip("_")


def _exact(name: str) -> str:
    return name


def _caseless(name: str) -> str:
    return name.casefold()
