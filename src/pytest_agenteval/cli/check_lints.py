"""The lints of ``agenteval check``: which are wanted, where they hit, and how loud they are."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agenteval.config.location import ProjectLocation
from pytest_agenteval.errors import AgentEvalError, DatabaseError, Problem, SettingsError

if TYPE_CHECKING:
    from pytest_agenteval.authoring.lints.rules import LintFinding
    from pytest_agenteval.cases.model import Case


def lint_problems(
    place: ProjectLocation, cases: Sequence[Case], arguments: argparse.Namespace
) -> list[Problem]:
    """Return what the lints that need no database find. Raises ``AgentEvalError`` for an unknown code."""
    from pytest_agenteval.agents.kinds.context_files import read_context
    from pytest_agenteval.authoring.lints.rules import LintContext, lint

    wanted = wanted_codes(place, arguments)
    if not wanted:
        return []
    dialects = _dialects(place)
    only = next(iter(dialects.values())) if len(dialects) == 1 else None
    context = LintContext(
        dialect=lambda case: dialects.get(case.database, only) if case.database else only,
        context=read_context(place.home, place.project.context_files),
        require=place.settings.require,
    )
    return as_problems(lint(cases, context), wanted, hints=arguments.fix_hint)


def wanted_codes(place: ProjectLocation, arguments: argparse.Namespace) -> frozenset[str]:
    """Return the codes of ``--select``, without those of ``--ignore`` and ``agenteval_lint_ignore``."""
    from pytest_agenteval.authoring.lints.rules import CODES

    chosen = _codes("--select", arguments.select) if arguments.select is not None else frozenset(CODES)
    ignored = _codes("--ignore", arguments.ignore or "")
    return chosen - ignored - _codes("agenteval_lint_ignore", ",".join(place.settings.lint_ignore))


def _codes(option: str, text: str) -> frozenset[str]:
    from pytest_agenteval.authoring.lints.rules import CODES
    from pytest_agenteval.support.text import did_you_mean

    words = [word.strip() for word in text.replace(",", " ").split()]
    for word in words:
        if word not in CODES and word != "none":
            raise AgentEvalError(f"{option}: there is no lint {word!r}{did_you_mean(word, CODES)}")
    return frozenset(words) & frozenset(CODES)


def as_problems(findings: Iterator[LintFinding], wanted: frozenset[str], *, hints: bool) -> list[Problem]:
    """Return findings as problems at the line of the case or of its SQL; a case may silence its own."""
    from pytest_agenteval.authoring.lints.rules import ignored

    problems = []
    for found in findings:
        case = found.case
        if found.code not in wanted or found.code in ignored(case):
            continue
        line, column = (case.sql_place if found.at_sql else None) or (case.line, case.column)
        hint = f"; {found.fix}" if hints or found.severity != "note" else ""
        text = f"[{found.code}] {case.name}: {found.text}{hint}"
        problems.append(Problem(case.path, line, column, text, found.severity))
    return problems


def wanted_only(problems: Iterable[Problem], case: Case, wanted: frozenset[str]) -> list[Problem]:
    """Return problems of references without the warnings, and the codes of errors, that are not wanted."""
    from pytest_agenteval.authoring.lints.rules import ignored

    kept = []
    for problem in problems:
        code = re.match(r"\[([\w-]+)\] ", problem.text)
        if code is None or (code[1] in wanted and code[1] not in ignored(case)):
            kept.append(problem)
        elif problem.severity == "error":
            kept.append(replace(problem, text=problem.text[code.end() :]))
    return kept


def _dialects(place: ProjectLocation) -> dict[str, str | None]:
    """Return the dialect of each configured database, read from its URL alone."""
    from pytest_agenteval.databases.sources import source_of

    try:
        urls, _ = place.project.usable_urls(dict(place.settings.databases))
    except SettingsError:
        return {}
    found: dict[str, str | None] = {}
    for name, url in urls.items():
        try:
            found[name] = source_of(name, url, place.home).dialect or None
        except DatabaseError:
            found[name] = None
    return found
