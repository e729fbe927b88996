"""``agenteval check``: every fault of every case file at once, and of every reference."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.cli.check_lints import lint_problems
from pytest_agenteval.cli.output import refuse
from pytest_agenteval.config.location import ProjectLocation, conftest_speaks, find_place
from pytest_agenteval.databases.sources import dialects_of
from pytest_agenteval.errors import AgentEvalError, DatabaseError, Problem, SettingsError, VariableMissing
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.support.text import counted
from pytest_agenteval.types import NAO_KINDS

if TYPE_CHECKING:
    from pytest_agenteval.cases.loader import LoadedFile
    from pytest_agenteval.cases.model import Case, Turn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: which files, and how far to go."""
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        type=Path,
        help="files and folders (default: testpaths, else rootdir)",
    )
    parser.add_argument(
        "--references", action="store_true", help="run every reference twice: error, empty, not deterministic"
    )
    parser.add_argument(
        "--select", metavar="CODES", help="only these lints, separated by commas (none: no lint)"
    )
    parser.add_argument("--ignore", metavar="CODES", help="without these lints")
    parser.add_argument("--fix-hint", action="store_true", help="say what to write instead, for each lint")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.add_argument(
        "--mutants", action="store_true", help="which mistakes in each reference the data cannot notice"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="with --mutants: all mistakes, their rows, and the rules"
    )
    parser.add_argument("--strict", action="store_true", help="warnings are errors, as under --agent-strict")


@dataclass(slots=True)
class CheckFindings:
    """What was looked at and what was found."""

    root: Path
    strict: bool
    files: int = 0
    cases: list[Case] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    references: int = 0
    notes: list[str] = field(default_factory=list)
    mutants: list[dict[str, Any]] = field(default_factory=list)

    def add(self, problems: Sequence[Problem]) -> None:
        """Keep problems; under ``--strict`` each is an error."""
        self.problems += [
            replace(entry, severity="error") if self.strict and entry.severity == "warning" else entry
            for entry in problems
        ]

    @property
    def counts(self) -> Counter[str]:
        """How many problems of each severity."""
        return Counter(problem.severity for problem in self.problems)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: no error; 1: errors;
    2: a path or the configuration is wrong.
    """
    from pytest_agenteval.config.known_secrets import redactor_of

    try:
        missing = [str(path) for path in arguments.paths if not path.exists()]
        if missing:
            raise AgentEvalError(f"no such file or folder: {', '.join(missing)}")
        place = find_place(arguments.paths, arguments.strict)
        findings = examine(place, arguments.paths, strict=arguments.strict)
        # the references of a database that cannot be used fail, and say so themselves
        findings.add(list(_unusable(place, findings.cases, skip_needed=arguments.references)))
        findings.add(list(_target(place)))
        findings.add(lint_problems(place, findings.cases, arguments))
        if not arguments.references:  # else the statements are run, and the databases say it
            findings.add(list(_refused(place, findings.cases)))
        else:
            from pytest_agenteval.cli.check_references import run_references

            run_references(place, findings, arguments)
        if arguments.mutants:
            from pytest_agenteval.cli.check_mutants import run_mutants

            run_mutants(place, findings, arguments)
    except (AgentEvalError, OSError) as error:
        return refuse(error)
    if not findings.files and not findings.problems:
        # a check of nothing must not look like a good one
        print("no case file here: agenteval_files names them, else they lie below a folder named tests")
        return 1
    _print_findings(findings, redactor_of(place.project, place.settings), as_json=arguments.json)
    return 1 if findings.counts["error"] else 0


def examine(place: ProjectLocation, paths: Sequence[Path], strict: bool = False) -> CheckFindings:
    """Load every case file among and below ``paths``. Raises ``OSError`` for an unreadable one."""
    from pytest_agenteval.cases.discovery import find, overlooked

    findings = CheckFindings(place.root, strict)
    checks = place.registry()
    own = conftest_speaks(place.root, r"\bagenteval_databases\b")
    databases = None if own else (*place.project.databases, *dict(place.settings.databases))
    dialects = {} if own else dialects_of(place.project.usable_urls(dict(place.settings.databases))[0])
    where = [path.resolve() for path in paths] or list(place.testpaths)
    for path, claim in find(where, place.claims):
        from pytest_agenteval.cases.loader import load_cases

        loaded = load_cases(
            path,
            checks=checks,
            claim=claim,
            strict=strict,
            databases=databases,
            root=place.home,
            dialects=dialects,
        )
        if loaded.ours:
            findings.files += 1
            findings.cases += loaded.cases
            problems = list(_doubtful(loaded.problems, checks.failures))
            findings.add([*problems, *(_unchecked(loaded) if problems == list(loaded.problems) else ())])
    for path, key in overlooked(where, place.claims):
        text = f"not taken for a case: it has {key!r}, but no prompt, question, say or input at its top"
        findings.add([Problem(path, 1, 1, text, "warning")])
    findings.add(_exposed(place, findings.cases))
    return findings


def _refused(place: ProjectLocation, cases: Sequence[Case]) -> Iterator[Problem]:
    """Yield references that are not one reading SELECT, which no database would be asked to run."""
    from pytest_agenteval.databases.select_only import require_one_select, require_one_select_duckdb

    if conftest_speaks(place.root, r"\bagenteval_databases\b"):
        return
    dialects = dialects_of(place.project.usable_urls(dict(place.settings.databases))[0])
    only = next(iter(dialects)) if len(dialects) == 1 else None
    for case in cases:
        dialect = dialects.get(case.database or only or "")
        for sql in case.statements if dialect is not None and not case.skip else ():
            try:
                if dialect == "duckdb":
                    require_one_select_duckdb(sql, "sql")
                else:
                    require_one_select(sql, dialect or "", "sql")
            except DatabaseError as wrong:
                line, column = case.sql_place or (case.line, case.column)
                yield Problem(case.path, line, column, str(wrong).partition("\n")[0])


def _doubtful(problems: Sequence[Problem], failures: Sequence[str]) -> Iterator[Problem]:
    """Make unknown check types warnings where checks could not be loaded here: pytest may know them."""
    for problem in problems:
        if failures and problem.text.startswith("unknown check type"):
            yield replace(problem, severity="warning")
        else:
            yield problem


def _unchecked(loaded: LoadedFile) -> Iterator[Problem]:
    """Yield a warning for each case that can never pass, because nothing in it decides."""
    for case in loaded.cases:
        if not decides(case):
            text = f"{case.name!r} checks nothing: it is run and ends in review, never in passed"
            yield Problem(case.path, case.line, case.column, text, "warning")


def decides(case: Case) -> bool:
    """Return whether anything in the case can make it pass or fail."""
    places: tuple[Case | Turn, ...] = (case, *case.turns)
    return (
        case.outcome != "answer"
        or any(place.sql or place.expected is not None or place.expected_response for place in places)
        or any(check.severity == "fail" for place in places for check in place.assertions)
    )


def _unusable(place: ProjectLocation, cases: Sequence[Case], skip_needed: bool) -> Iterator[Problem]:
    """Yield databases of the project file that cannot be used.

    ``skip_needed`` leaves out those that a case needs: its own check reports them.

    An error where a case needs it; what only the environment of a run has to set is a warning.
    """
    given = dict(place.settings.databases)
    only = next(iter({**place.project.databases, **given}), None)
    needed = {case.database or only for case in cases if case.statements or case.isolate}
    for name, connection in place.project.databases.items():
        if name in given or (skip_needed and name in needed):
            continue
        try:
            _ = connection.url
        except SettingsError as wrong:
            file, line, text = str(wrong).split(":", 2)
            lasting = name in needed and not isinstance(wrong, VariableMissing)
            yield Problem(place.root / file, int(line), 1, text.strip(), "error" if lasting else "warning")


def _target(place: ProjectLocation) -> Iterator[Problem]:
    """Yield what is wrong with the agent's target and the ``http`` block of the project file."""
    from pytest_agenteval.agents.target_check import ANY_URL, http_fault, missing_variable, target_fault

    project, target = place.project, place.settings.target
    faults = []
    if target is not None:
        faults.append(target_fault(target, project, root=place.home, present=False))
    if "http" in project.places and (target or "").partition(":")[0] not in ("http", "https"):
        faults.append(http_fault(project, ANY_URL))
    for fault in filter(None, faults):
        yield project.fault("http" if fault.startswith("http") else "target", fault)
    if (missing := missing_variable(target, project)) is not None:
        # only what the environment of a run has to set: as for databases no more than a warning
        file, line, text = missing.split(":", 2)
        yield Problem(place.root / file, int(line), 1, f"target: {text.strip()}", "warning")


def _exposed(place: ProjectLocation, cases: Sequence[Case]) -> list[Problem]:
    """Return a warning for each folder of cases that an agent of the project may read."""
    kind = place.project.kind
    if kind not in NAO_KINDS:
        return []
    path = place.home / f".{kind}ignore"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    inside = [case.path.relative_to(place.home) for case in cases if case.path.is_relative_to(place.home)]
    folders = sorted({parts[0] for parts in (entry.parts for entry in inside) if len(parts) > 1})
    listed = "is not listed" if path.is_file() else f"is not kept from it by a {path.name}"
    # a file that is not there has no place; the project file says whose agent it is
    shown = path if path.is_file() else place.project.path or path
    return [
        Problem(
            shown,
            1,
            1,
            f"{folder}/ {listed}, so the agent can read the answer key; add the line {folder}/",
            "warning",
        )
        for folder in folders
        if not any(_covers(line, folder) for line in lines)
    ]


def _covers(line: str, folder: str) -> bool:
    """Return whether a line of an ignore file names the whole folder."""
    word = line.strip().removeprefix("**/").removeprefix("/")
    for tail in ("/**", "/*", "/"):
        word = word.removesuffix(tail)
    return word in (folder, "*", "**")


def _print_findings(findings: CheckFindings, redact: Callable[[str], str], *, as_json: bool) -> None:
    if as_json:
        print(redact(json.dumps(_facts(findings), ensure_ascii=False, indent=2)))
        return
    order = {path: number for number, path in enumerate(dict.fromkeys(p.path for p in findings.problems))}
    for problem in sorted(findings.problems, key=lambda p: (order[p.path], p.line, p.column)):
        text = f"{problem.severity}: {problem.text}"
        shown = problem if problem.severity == "error" else replace(problem, text=text)
        print(redact(shown.render(findings.root)))
    for note in (*findings.notes, *_unreviewed(findings.cases)):
        print(redact(note))
    counts, cases = findings.counts, len(findings.cases)
    parts = [counted(findings.files, "file"), counted(cases, "case")]
    if findings.references:
        parts.append(counted(findings.references, "reference"))
    found = f"{counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}"
    print(f"{', '.join(parts)}: {found}", file=sys.stdout)


def _facts(findings: CheckFindings) -> dict[str, Any]:
    root = findings.root
    return {
        "files": findings.files,
        "cases": len(findings.cases),
        "references": findings.references,
        "problems": [
            {
                "path": shown_path(problem.path, root),
                "line": problem.line,
                "column": problem.column,
                "severity": problem.severity,
                "code": code[1] if (code := re.match(r"\[([\w-]+)\] ", problem.text)) else None,
                "text": problem.text[code.end() if code else 0 :],
            }
            for problem in findings.problems
        ],
        **({"mutants": findings.mutants} if findings.mutants else {}),
        "notes": [*findings.notes, *_unreviewed(findings.cases)],
    }


def _unreviewed(cases: Sequence[Case]) -> Iterator[str]:
    """Yield a note on cases made of answers that no one has checked."""
    names = [case.name for case in cases if case.metadata.get("reviewed") is False]
    if names:
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        are = "case is" if len(names) == 1 else "cases are"
        listed = ", ".join(names[:5]) + more
        yield f"note: {len(names):,} {are} not reviewed (metadata.reviewed: false): {listed}"
