"""``agenteval import SOURCE...``: questions of spreadsheets, semantic models and other tools as cases."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.errors import AgentEvalError

if TYPE_CHECKING:
    from pytest_agenteval.authoring.importing.formats import SourceFormat
    from pytest_agenteval.authoring.importing.run import ImportOptions, ImportReport
    from pytest_agenteval.config.location import ProjectLocation
    from pytest_agenteval.databases import Databases

GROUP = "agenteval_importers"
"""The entry-point group in which another package offers a ``SourceFormat``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sources, how to read them, and where the cases go."""
    parser.add_argument("sources", metavar="SOURCE", nargs="*", help="file, folder, or - for standard input")
    parser.add_argument("--formats", action="store_true", help="list the formats and how to export each")
    parser.add_argument("--format", metavar="NAME", help="the format, where several fit")
    parser.add_argument("--into", type=Path, metavar="DIR", help="folder for the cases (tests/imported)")
    parser.add_argument("--database", metavar="NAME", help="the connection that the references are for")
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="KEY=COLUMN",
        help="a column: --map prompt=Text",
    )
    parser.add_argument("--sheet", metavar="NAME", help="the sheet of an XLSX file")
    parser.add_argument("--dialect", metavar="SRC", help="translate the SQL from this dialect")
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="rename a qualifier: shop.main=main",
    )
    parser.add_argument("--only", choices=("verified", "with-sql"), help="leave other items out")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N items of each source")
    parser.add_argument("--one-file-each", action="store_true", help="a file for each case")
    parser.add_argument("--update", action="store_true", help="take over what changed in the source since")
    parser.add_argument("--no-verify", action="store_true", help="do not run the references")
    parser.add_argument("--redact", action="store_true", help="mask personal data in questions")
    parser.add_argument("--dry-run", action="store_true", help="write nothing, say what would be done")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: done; 1: something needs a person;
    2: a source cannot be read, or an option is wrong.
    """
    from pytest_agenteval.authoring.importing.formats import FORMATS

    extra = _offered()
    if arguments.formats:
        for entry in (*FORMATS, *extra):
            print(f"{entry.name:14} {entry.recognised_by}\n{'':14}   {entry.export}")
        return 0
    try:
        if not arguments.sources:
            raise AgentEvalError("which source? a file, a folder, or - for standard input")
        report = _imported(arguments, extra)
    except (AgentEvalError, OSError, RecursionError) as error:
        return refuse(error)
    if arguments.json:
        print(json.dumps(_facts(report), ensure_ascii=False, indent=2))
    else:
        _print(report, arguments.dry_run)
    return 1 if report.needs_a_person else 0


def _offered() -> list[SourceFormat]:
    from importlib.metadata import entry_points

    return [point.load() for point in entry_points(group=GROUP)]


def _imported(arguments: argparse.Namespace, extra: list[SourceFormat]) -> ImportReport:
    from pytest_agenteval.authoring.importing.run import Importer, expand
    from pytest_agenteval.authoring.importing.sources import parse_source
    from pytest_agenteval.config.location import find_place

    place = find_place([])
    options = _options(arguments, place, extra)
    paths = [Path(source) for source in arguments.sources if source != "-"]
    if missing := [str(path) for path in paths if not path.exists()]:
        raise AgentEvalError(f"no such file or folder: {', '.join(missing)}")
    with _databases(place, verify=not arguments.no_verify) as (databases, why_not):
        names = (*place.project.databases, *dict(place.settings.databases))
        names = tuple(dict.fromkeys(names))
        if options.database and options.database not in names:
            raise AgentEvalError(
                f"--database {options.database}: there are {', '.join(names) or 'none configured'}"
            )
        importer = Importer(options, databases, names, _dialect(databases, options.database))
        for path, named in expand(paths, options.into):
            importer.add_path(path, named)
        if "-" in arguments.sources:
            importer.add(parse_source(sys.stdin.buffer.read(), "stdin", None, arguments.sheet))
        importer.report.not_verified = why_not
    return importer.report


def _options(
    arguments: argparse.Namespace, place: ProjectLocation, extra: list[SourceFormat]
) -> ImportOptions:
    from pytest_agenteval.authoring.importing.formats import ALIASES, BY_FORMAT
    from pytest_agenteval.authoring.importing.headers import FIELDS
    from pytest_agenteval.authoring.importing.run import ImportOptions
    from pytest_agenteval.support.text import did_you_mean

    into = (arguments.into or place.root / "tests" / "imported").resolve()
    if not into.is_relative_to(place.root.resolve()):
        raise AgentEvalError(f"--into {arguments.into}: lies outside the project ({place.root})")
    form = ALIASES.get(arguments.format or "", arguments.format)
    known = [*BY_FORMAT, *(entry.name for entry in extra)]
    if form is not None and form not in known:
        raise AgentEvalError(f"--format {form}: there is no such format{did_you_mean(form, known)}")
    mapping = _pairs("--map", arguments.map)
    for key in mapping:
        if key not in FIELDS:
            raise AgentEvalError(f"--map {key}: no key of a case is called so{did_you_mean(key, FIELDS)}")
    if arguments.limit is not None and arguments.limit < 1:
        raise AgentEvalError(f"--limit {arguments.limit}: a whole number, 1 or more")
    return ImportOptions(
        into=into, form=form, database=arguments.database, mapping=mapping, sheet=arguments.sheet,
        dialect=_known_dialect(arguments.dialect), renames=_pairs("--rename", arguments.rename),
        only=arguments.only, limit=arguments.limit, each=arguments.one_file_each, update=arguments.update,
        redact=arguments.redact, dry_run=arguments.dry_run, extra=extra,
    )  # fmt: skip


def _pairs(option: str, texts: list[str]) -> Mapping[str, str]:
    found = {}
    for text in texts:
        left, sign, right = text.partition("=")
        if not sign or not left:
            raise AgentEvalError(f"{option} {text}: write KEY=VALUE")
        found[left.strip()] = right.strip()
    return found


def _known_dialect(name: str | None) -> str | None:
    if name is None:
        return None
    from sqlglot.dialects.dialect import Dialect

    from pytest_agenteval.support.text import did_you_mean

    if name not in Dialect.classes:
        known = sorted(filter(None, Dialect.classes))
        raise AgentEvalError(f"--dialect {name}: there is no such dialect{did_you_mean(name, known)}")
    return name


@contextmanager
def _databases(place: ProjectLocation, verify: bool) -> Iterator[tuple[Databases | None, str]]:
    """Give the project's databases, or ``None`` and why references are not run."""
    from pytest_agenteval.config.location import open_databases

    sources, unusable = place.project.usable_urls(dict(place.settings.databases))
    if not verify or not sources:
        yield (
            None,
            "--no-verify" if not verify else next(iter(unusable.values()), "no database is configured"),
        )
        return
    with open_databases(place) as databases:
        yield databases, ""


def _dialect(databases: Databases | None, name: str | None) -> str | None:
    if databases is None or (name is None and len(databases.names) != 1):
        return None
    return databases.get(name).dialect or None


def _facts(report: ImportReport) -> dict[str, Any]:
    return {
        "cases": report.cases,
        "references": report.references,
        "files": [{"file": file, "what": what, "cases": cases} for file, what, cases in report.files],
        "verified": dict(report.verified),
        "not_verified": report.not_verified,
        "left_out": [
            {"file": file, "place": left.place, "reason": left.reason} for file, left in report.left_out
        ],
        "skipped": [{"file": file, "case": case, "reason": why} for file, case, why in report.skipped],
        "conflicts": report.conflicts,
        "changed_upstream": report.changed_upstream,
        "gone": report.gone,
        "warnings": report.warnings,
    }


def _print(report: ImportReport, dry_run: bool) -> None:
    from pytest_agenteval.support.text import counted, one_line

    for file, what, cases in report.files:
        unit = "query" if what == "worksheet" else "case"
        count = f", {counted(cases, unit, 'queries' if unit == 'query' else None)}" if cases else ""
        print(f"{file}: {what}{count}")
    for warning in report.warnings:
        print(f"warning: {one_line(warning)}")
    for file, left in report.left_out:
        print(f"left out: {one_line(f'{file}: {left.place}: {left.reason}')}")
    for file, case, why in report.skipped:
        print(f"skip: {one_line(f'{file}: {case}: {why}')}")
    for name in report.changed_upstream:
        print(f"changed in the source: {one_line(name)} (--update takes it over)")
    for conflict in report.conflicts:
        print(f"conflict: {one_line(conflict['file'])}: {one_line(conflict['case'])} changed here and there")
        for side in ("here", "source"):
            texts = [conflict[side]["prompt"], *conflict[side]["sql"]]
            print("".join(f"    {side:7} {one_line(text)}\n" for text in texts), end="")
    for name in report.gone:
        print(f"gone from the source: {one_line(name)}")
    print(_last_line(report, dry_run))


def _last_line(report: ImportReport, dry_run: bool) -> str:
    from pytest_agenteval.support.text import counted

    found = report.verified
    words = [(found["ran"], "ran"), (found["empty"], "empty"), (found["fails"], "fail"),
             (found["moves"], "move with the date")]  # fmt: skip
    ran = ", ".join(f"{number} {word}" for number, word in words if number) or "none to run"
    if report.not_verified:
        ran = f"not run: {report.not_verified}"
    head = "would import " if dry_run else ""
    return (
        f"{head}{counted(report.cases, 'case')}, {counted(report.references, 'reference')} ({ran}); "
        f"{len(report.left_out)} left out, {len(report.skipped)} with skip"
    )
