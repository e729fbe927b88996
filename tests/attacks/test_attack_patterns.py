"""No pattern of the package backtracks: texts of a model, 8,000 characters of one token, end at once."""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pytest_agenteval

SIZE = 8_000
SECONDS = 0.25
"""A linear pattern takes a few milliseconds, a quadratic one more than a second."""

TOKENS = (
    "-", "a", "a-", "a.", "a_", "a ", "A", "0", "1,", "1.", "1 ", " ", "\n", "\t", " \n", "/**/", "/*",
    "--\n", "-- ", "(", ")", "[", "]", "{", "{{", "{{ a", "}", "|-", "-|", "|", ":", "::", "'", '"',
    "''", '""', "`", "```", "```sql\n", "<think>", "<title>", "<h1", "_", "sk-", "sk-a-", "token=",
    "password=", "Bearer ", "Bearer a1", "a://", "a://b:", "://", "key ", "no-", "\\", "\\n", "\\u",
    "%", "@", "a@", "select ", "with a as (", "update ", "copy ", "order ", "order /**/", "cannot ",
    "can not a ", "\n- a", "\n1. ", "?", "a?", ".", ",", ";", "-----BEGIN PRIVATE KEY-----", "eyJa.",
    "Cookie: ", "--password ", "?sig=", "é", "\u00a0", "0a", "e+", "00:", "2020-01-01", "a=", "=a",
    "a,b", "$", "EUR", "x1", "insert into ", "grant ", "create or replace ", "create temp ", "and ",
    "https://a:b/",
)  # fmt: skip

LOCAL = {
    # patterns made of a word that is looked for, escaped; what is around it is judged by hand here
    "checks/leak.py", "governance/judge.py", "compare/values/numbers.py", "checks/judge/ask.py",
    "databases/column_types.py", "config/location.py", "checks/text_numbers.py", "support/redaction.py",
    "trust/bounds.py",
}  # fmt: skip
"""Files with patterns of local names, which cannot be evaluated from outside."""

USERS = {"checks/text.py", "checks/tool_arguments.py", "checks/sql/name_resolution.py", "support/patterns.py"}
"""Files that run patterns of the user's: those have a limit of their own (test_attack_limits)."""

HOME = Path(pytest_agenteval.__file__).parent
FLAG = re.compile(r"re\.[A-Z]+")
CALLS = ("compile", "search", "match", "fullmatch", "sub", "findall", "split", "finditer")


def modules() -> Iterator[tuple[str, ModuleType]]:
    for found in pkgutil.walk_packages([str(HOME)], "pytest_agenteval."):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            yield Path(str(module.__file__)).relative_to(HOME).as_posix(), module


def patterns() -> dict[str, list[tuple[re.Pattern[Any], str]]]:
    """Every pattern in the source, compiled, with how it is used; by ``file:line`` or its name."""
    found: dict[str, list[tuple[re.Pattern[Any], str]]] = {}
    used = uses_by_name()
    for name, module in modules():
        for own, value in vars(module).items():
            for pattern in _held(value):
                for use in used.get(own, {"search"}) if isinstance(value, re.Pattern) else {"search"}:
                    found.setdefault(f"{name} {own} {pattern.pattern[:40]!r}", []).append((pattern, use))
        for call in ast.walk(ast.parse((HOME / name).read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and _is_re(call.func) and call.args and call.func.attr != "compile":  # type: ignore[attr-defined]
                for pattern in _evaluated(call, name, module):
                    found.setdefault(f"{name}:{call.lineno}", []).append((pattern, call.func.attr))  # type: ignore[attr-defined]
    return found


def uses_by_name() -> dict[str, set[str]]:
    """How named patterns are used: ``{"_SQL": {"match"}}``."""
    used: dict[str, set[str]] = {}
    for path in HOME.rglob("*.py"):
        for hit in re.finditer(
            r"\b(\w+)\.(search|match|fullmatch|sub|findall|finditer|split)\b", path.read_text("utf-8")
        ):
            used.setdefault(hit[1], set()).add(hit[2])
    return used


def _held(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 3 and isinstance(value, tuple | list | frozenset):
        for entry in value:
            yield from _held(entry, depth + 1)
    elif depth < 3 and isinstance(value, dict):
        yield from _held(list(value.values()), depth + 1)


def _is_re(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in CALLS
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
    )


def _evaluated(call: ast.Call, name: str, module: ModuleType) -> Iterator[re.Pattern[Any]]:
    flags: list[ast.expr] = [word.value for word in call.keywords if word.arg == "flags"]
    flags += [entry for entry in call.args[1:] if FLAG.search(ast.unparse(entry))]
    try:
        pattern = eval(ast.unparse(call.args[0]), dict(vars(module)))
        value = sum((eval(ast.unparse(flag), dict(vars(module))) for flag in flags), start=0)
    except NameError:
        assert name in LOCAL | USERS or "escape(" in ast.unparse(call.args[0]), (
            f"{name}:{call.lineno}: a pattern of local names; make it a constant, or list the file in LOCAL"
        )
        return
    if isinstance(pattern, str | bytes):
        yield re.compile(pattern, value)


class Slow(Exception):
    pass


def attacks() -> list[str]:
    pairs = itertools.permutations(("-", "a", " ", "\n", "1", "|", ":", "/**/", "'", ".", "_"), 2)
    repeated = [token * (SIZE // len(token)) for token in (*TOKENS, *map("".join, pairs))]
    fenced = [f"```sql\n{'-' * SIZE}\n", f"```\n{'--' * SIZE}\n", "```sql\n" + "-- a\n" * (SIZE // 5)]
    return [text + "\n!" for text in (*repeated, *fenced)]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="ends a pattern by a signal")
def test_no_pattern_takes_long_on_repeated_tokens() -> None:
    def late(*_: object) -> None:
        raise Slow

    texts = attacks()
    slow: list[str] = []
    before = signal.signal(signal.SIGVTALRM, late)
    try:
        for place, uses in sorted(patterns().items()):
            for pattern, use in uses:
                for text in texts:
                    subject: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
                    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
                    try:
                        _run(pattern, use, subject)
                    except Slow:
                        slow.append(f"{place}: {pattern.pattern!r} on {text[:24]!r}...")
                        break
                    finally:
                        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert not slow, "\n".join(slow)


def _run(pattern: re.Pattern[Any], use: str, subject: Any) -> None:
    if use in ("match", "fullmatch"):
        getattr(pattern, use)(subject)
    else:
        for _ in pattern.finditer(subject):  # as sub and findall do
            pass
