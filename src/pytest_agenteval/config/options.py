"""The one table of options: help texts, the docs page, the ini keys and the tests are made from it.

It is loaded in every pytest run, so it imports next to nothing. One rule for names:
``--agent-x-y`` <-> ini ``agenteval_x_y`` <-> environment ``AGENTEVAL_X_Y``. Precedence: command
line, environment, ini, project file, default. A secret is never an option: it comes from the
environment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pytest_agenteval.types import (
    DEFAULT_RETRIES,
    DEFAULT_SNAPSHOT_LIMIT,
    DEFAULT_SQL_MAX_ROWS,
    DEFAULT_SQL_TIMEOUT,
    DEFAULT_SQL_TOOLS,
    DEFAULT_TIMEOUT,
    LONGEST_TIMEOUT,
    MODEL,
    MOST_ATTEMPTS,
    NAO_KINDS,
)

TARGETS: Mapping[str, str] = {
    "python": "python:pkg.mod:name",
    "command": "command:PROGRAM",
    "http": "http:URL",
    "https": "",
    **{kind: f"{kind}:URL" for kind in NAO_KINDS},
    "llm": "llm:",
    "replay": "replay:FILE",
}
"""Scheme of a target -> its form, as messages show it."""


class Option(NamedTuple):
    """One option. ``read`` turns text into its value or raises ``ValueError`` saying what is allowed.

    ``many`` options may be repeated and take comma lists where ``commas``; ``bare`` is the value of
    an option given without one. ``places``: c command line, e environment, i ini. ``toml`` is the ini
    type, which decides what pytest's native TOML table takes (``agenteval_k = 3``).
    """

    name: str
    default: Any
    help: str
    read: Callable[[str], Any] = str
    metavar: str = "VALUE"
    many: bool = False
    commas: bool = False
    flag: bool = False
    bare: str | None = None
    places: str = "cei"
    project_key: str | None = None
    toml: str = "string"

    @property
    def attribute(self) -> str:
        """Its field in ``Settings``: ``fail_under``."""
        return self.name.replace("-", "_")

    @property
    def cli(self) -> str:
        """``--agent-fail-under``."""
        return f"--agent-{self.name}"

    @property
    def ini(self) -> str:
        """``agenteval_fail_under``."""
        return f"agenteval_{self.attribute}"

    @property
    def env(self) -> str:
        """``AGENTEVAL_FAIL_UNDER``."""
        return f"AGENTEVAL_{self.attribute.upper()}"


def _whole(low: int, high: int | None = None) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", text.strip()) or int(text) < low:
            raise ValueError(f"a whole number, {low} or more")
        if high is not None and int(text) > high:
            raise ValueError(f"a whole number, at most {high:,}")
        return int(text)

    return read


def _amount(low: float, high: float = math.inf) -> Callable[[str], float]:
    def read(text: str) -> float:
        span = f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"a number, {span}") from None
        if not low <= value <= high:
            raise ValueError(f"a number, {span}")
        return value

    return read


def _seconds(text: str) -> float:
    value = _amount(0.001)(text)
    if value > LONGEST_TIMEOUT:
        raise ValueError(f"a number, at most {LONGEST_TIMEOUT:,.0f}")
    return value


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return read


def _target(text: str) -> str:
    scheme, colon, _ = text.partition(":")
    if colon and scheme in TARGETS:
        return text
    from pytest_agenteval.support.text import closest

    near = closest(scheme, TARGETS) if colon else None
    hint = f" (did you mean {near}:?)" if near else ""
    raise ValueError(f"a target{hint}: {', '.join(filter(None, TARGETS.values()))}")


def _model(text: str) -> str:
    if not MODEL.fullmatch(text):
        raise ValueError("provider:model, for example openai:gpt-4.1")
    return text


def _yes_no(text: str) -> bool:
    word = text.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("true or false")


def _gate(text: str) -> tuple[str, float]:
    """Read ``90`` as ('', 90.0) and ``tag:critical=100`` as ('tag:critical', 100.0)."""
    scope, _, rate = text.rpartition("=")
    return scope, _amount(0, 100)(rate)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise ValueError("name = url, for example shop = duckdb:///shop.duckdb")
    return name, value


def _path(text: str) -> str:
    if not text:
        raise ValueError("a path")
    return text


OPTIONS: tuple[Option, ...] = (
    Option(
        "target",
        None,
        "how to reach the agent: python:pkg.mod:name, command:PROGRAM, http:URL, "
        "nao:URL, dazense:URL, pda:URL, llm:, replay:FILE; beats a fixture named agent",
        _target,
        metavar="TARGET",
        project_key="target",
    ),
    Option(
        "model",
        (),
        "run every case with this model, provider:model; repeatable, comma lists",
        _model,
        "MODEL",
        many=True,
        commas=True,
        project_key="test.models",
        toml="linelist",
    ),
    Option(
        "select",
        (),
        "only these cases: folder, name, file stem, glob or prefix; comma lists",
        metavar="NAMES",
        many=True,
        commas=True,
        places="ce",
    ),
    Option(
        "raises-fail",
        False,
        "an exception that the agent itself raises counts as a failure, not as an error",
        _yes_no,
        flag=True,
        toml="bool",
    ),
    Option(
        "strict",
        False,
        "unknown keys and cases that check nothing are failures",
        _yes_no,
        flag=True,
        toml="bool",
    ),
    Option(
        "run",
        "always",
        "always: cases run like any test; explicit: only when asked for "
        "(this option, a case file or id on the command line, or -m agenteval)",
        _one_of("always", "explicit"),
        "WHEN",
        bare="always",
    ),
    Option(
        "k",
        None,
        "attempts per case and model",
        _whole(1, MOST_ATTEMPTS),
        "N",
        project_key="test.k",
        toml="int",
    ),
    Option("timeout", DEFAULT_TIMEOUT, "seconds an attempt may take", _seconds, "SECONDS", toml="float"),
    Option(
        "concurrency",
        1,
        "agent calls that overlap inside one process",
        _whole(1),
        "K",
        project_key="test.threads",
        toml="int",
    ),
    Option(
        "retries",
        DEFAULT_RETRIES,
        "how often a request is repeated after 429, 5xx or a lost connection",
        _whole(0),
        "N",
        toml="int",
    ),
    Option(
        "budget",
        None,
        "USD the run may spend; what it stops is not run",
        _amount(0),
        "USD",
        project_key="budget",
        toml="float",
    ),
    Option(
        "extract",
        "auto",
        "how an answer becomes a table",
        _one_of("auto", "given", "matched", "rerun", "query", "json"),
        "HOW",
    ),
    Option("extract-model", None, "the model that writes extraction queries", _model, "MODEL"),
    Option("judge-model", None, "the model that judges texts", _model, "MODEL", project_key="judge"),
    Option(
        "record",
        None,
        "write every answer to FILE, for --agent-target replay:FILE",
        _path,
        "FILE",
        places="c",
    ),
    Option(
        "replay-wrap",
        False,
        "replay: attempts beyond those recorded start over",
        _yes_no,
        flag=True,
        toml="bool",
    ),
    Option("label", None, "a name for this run, kept in the results", metavar="TEXT"),
    Option("output", None, "folder for results (default: tests/outputs)", _path, "DIR"),
    Option(
        "file-mode",
        "private",
        "who may read results and reports: private (mode 0600) or shared (0644, where a CI publishes them)",
        _one_of("private", "shared"),
        "WHO",
    ),
    Option(
        "resume",
        False,
        "go on with the last run: ask only what has no finished answer",
        _yes_no,
        flag=True,
        places="c",
        toml="bool",
    ),
    Option(
        "resume-from",
        None,
        "go on with this run: its results file or folder",
        _path,
        "PATH",
        places="c",
    ),
    Option(
        "dry-run",
        False,
        "show what would be asked and what it would cost; ask nothing",
        _yes_no,
        flag=True,
        places="c",
        toml="bool",
    ),
    Option(
        "changed",
        False,
        "only cases that changed since the last results",
        _yes_no,
        flag=True,
        places="c",
        toml="bool",
    ),
    Option(
        "fail-under",
        (),
        "the run passes when this share of cases passes, in percent: 90, "
        "openai:gpt-4.1=95, tag:critical=100; repeatable",
        _gate,
        "RATE",
        many=True,
        toml="linelist",
    ),
    Option("baseline", None, "results file, or last: only regressions against it fail", _path, "FILE"),
    Option(
        "baseline-test",
        "any",
        "any: each regression counts; significant: the paired test",
        _one_of("any", "significant"),
        "TEST",
    ),
    Option(
        "references",
        "live",
        "live: references are run; frozen: read from the files of agenteval freeze, no database is opened "
        "for them; auto: frozen where the file is of this SQL",
        _one_of("live", "auto", "frozen"),
        "WORD",
    ),
    Option(
        "unreviewed",
        None,
        "cases that nobody has approved: count, quarantine (run them, count them nowhere), skip, or fail "
        "the run (default: quarantine for those that import, add or draft wrote, else count)",
        _one_of("count", "quarantine", "skip", "fail"),
        "WORD",
    ),
    Option(
        "summary",
        (),
        "also write the summary to FILE (.md or .json); repeatable",
        _path,
        "FILE",
        many=True,
        toml="linelist",
    ),
    Option("html", None, "also write a one-file report to FILE", _path, "FILE"),
    Option(
        "validate", False, "governance files: findings become test items", _yes_no, flag=True, toml="bool"
    ),
    Option(
        "luck",
        "warn",
        "whether a right answer's SQL is right by luck, tried on made-up rows: off, warn (as far as it takes "
        "no more than a tenth of the run, unless it is given), fail",
        _one_of("off", "warn", "fail"),
        "WORD",
    ),
    Option(
        "cause",
        False,
        "try on the data which mistake in the reference gives a wrong answer, also where the agent's SQL is "
        "not known",
        _yes_no,
        flag=True,
        toml="bool",
    ),
    Option(
        "files",
        (),
        "globs of files that must be cases, relative to rootdir",
        metavar="GLOBS",
        many=True,
        places="i",
        toml="linelist",
    ),
    Option(
        "lint-ignore",
        (),
        "lints of agenteval check that are not wanted",
        metavar="CODES",
        many=True,
        commas=True,
        places="i",
        toml="linelist",
    ),
    Option(
        "require",
        (),
        "what agenteval check wants of every case: owner, reviewed",
        _one_of("owner", "reviewed"),
        "WORDS",
        many=True,
        commas=True,
        places="i",
        toml="linelist",
    ),
    Option(
        "fixture",
        "agent",
        "the name of the fixture that gives the agent",
        metavar="NAME",
        places="i",
    ),
    Option(
        "databases",
        (),
        "databases, one per line: name = url",
        _pair,
        "LINES",
        many=True,
        places="i",
        toml="linelist",
    ),
    Option(
        "sql-tools",
        DEFAULT_SQL_TOOLS,
        "tools whose calls are queries; * stands for anything (mcp__*__query)",
        metavar="NAMES",
        many=True,
        places="i",
        toml="linelist",
    ),
    Option(
        "trusted-modules",
        (),
        "modules outside of the project whose objects case files may name as agents and checks",
        metavar="NAMES",
        many=True,
        places="i",
        toml="linelist",
    ),
    Option(
        "rerun",
        True,
        "run the agent's last reading statement again where its rows cannot be read",
        _yes_no,
        places="i",
        toml="bool",
    ),
    Option(
        "sql-timeout",
        DEFAULT_SQL_TIMEOUT,
        "seconds a reference query may take",
        _amount(0.001),
        "SECONDS",
        places="i",
        toml="float",
    ),
    Option(
        "sql-max-rows",
        DEFAULT_SQL_MAX_ROWS,
        "rows a reference query may return",
        _whole(1),
        "ROWS",
        places="i",
        toml="int",
    ),
    Option(
        "snapshot-limit",
        DEFAULT_SNAPSHOT_LIMIT,
        "bytes up to which a database file is copied before use",
        _whole(0),
        "BYTES",
        places="i",
        toml="int",
    ),
    Option(
        "thread",
        False,
        "run a Python agent in a thread, for a hard deadline",
        _yes_no,
        places="i",
        toml="bool",
    ),
    Option(
        "constraints",
        (),
        "rules of the data that rows made up to try SQL must obey, one per line: orders(id) key; "
        "orders.customer_id -> customers.id; customers.name unique",
        metavar="RULES",
        many=True,
        places="i",
        toml="linelist",
    ),
)
