"""Regular expressions of users and models, with a limit: ``re`` itself has none and keeps the GIL."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pytest_agenteval.errors import CheckFailed

SECONDS = 2.0
"""What one search of a pattern may take that is not known to be quick."""

_SHORT = {1: 10_000, 2: 300}
"""Characters up to which a pattern with so many open repetitions is searched for at once."""

_CHILD = (
    "import json,re,sys;p,t,f=json.load(sys.stdin);print('found' if re.search(p,t,f) else 'none',flush=True)"
)


class PatternTooSlow(CheckFailed):
    """A pattern was still searching after ``SECONDS``; the text says what to do."""


def found(pattern: str, text: str, flags: int = 0, seconds: float = SECONDS) -> bool:
    """Return whether ``pattern`` occurs in ``text``.

    Patterns that may backtrack are searched for in a process of their own, which is ended after
    ``seconds``. Raises ``PatternTooSlow``; ``re.error`` for what is not a pattern.
    """
    if len(text) <= _quick_up_to(pattern, flags):
        return re.search(pattern, text, flags) is not None
    re.compile(pattern, flags)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input=json.dumps([pattern, text, flags]),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise PatternTooSlow(
            f"pattern {pattern!r} was still searching after {seconds:g} s in {len(text):,} characters; write "
            "it without repetitions inside repetitions"
        ) from None
    return done.stdout.strip() == "found"


@lru_cache(maxsize=512)
def _quick_up_to(pattern: str, flags: int) -> int:
    """Return characters in which the pattern is quick for sure."""
    parsed: Any = importlib.import_module("re._parser").parse(pattern, flags)
    opened = list(_open_repeats(parsed))
    if any(opened):
        return 0
    return _SHORT.get(len(opened), 100 if opened else sys.maxsize)


def _open_repeats(parsed: Any) -> Iterator[bool]:
    """Yield one entry for each repetition without a near end:
    whether more than one character repeats in it.
    """
    for operator, argument in parsed:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT") and argument[1] > 20:
            yield len(argument[2]) != 1 or str(argument[2][0][0]) not in _ONE_CHARACTER
        if name in ("GROUPREF", "GROUPREF_EXISTS"):
            yield True
        for inner in _inside(argument):
            yield from _open_repeats(inner)


_ONE_CHARACTER = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY")


def _inside(argument: Any) -> Iterator[Any]:
    if type(argument).__name__ == "SubPattern":
        yield argument
    elif isinstance(argument, tuple | list):
        for entry in argument:
            yield from _inside(entry)
