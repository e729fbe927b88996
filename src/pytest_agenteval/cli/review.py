"""``agenteval review``: which cases are not approved; approve and reject them, also by a spreadsheet."""

from __future__ import annotations

import argparse
import csv
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.errors import AgentEvalError, DatabaseError

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.config.location import ProjectLocation
    from pytest_agenteval.databases import Databases

COLUMNS = ("case", "question", "sql", "first rows", "approve", "comment", "new question", "new sql")
"""The columns of the spreadsheet: people fill in the last four."""

FIRST_ROWS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which cases are meant, and what becomes of them."""
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files and folders")
    parser.add_argument("--owner", metavar="NAME", help="only cases of this owner")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--unreviewed", action="store_true", help="only cases that nobody has approved")
    which.add_argument("--stale", action="store_true", help="only approvals that no longer hold")
    which.add_argument("--failing", metavar="RESULTS", type=Path, help="only cases that failed in this run")
    do = parser.add_mutually_exclusive_group()
    do.add_argument("--approve", metavar="CASE", nargs="+", help="approve cases; all: those listed")
    do.add_argument("--reject", metavar="CASE", nargs="+", help="skip cases from now on; say --why")
    do.add_argument("--export", metavar="CSV", type=Path, help="write the cases as a spreadsheet to fill in")
    do.add_argument("--apply", metavar="CSV", type=Path, help="take over what a spreadsheet says")
    parser.add_argument("--by", metavar="NAME", help="who decides (default: git config user.email)")
    parser.add_argument("--why", metavar="TEXT", default="", help="the reason of --reject")
    parser.add_argument("--expires", metavar="DAY", help="the approval ends on this day (2027-01-31)")
    parser.add_argument("--no-verify", action="store_true", help="approve without running the reference")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: done; 1: something was refused;
    2: a case or a file is not there.
    """
    from pytest_agenteval.cli.check import examine
    from pytest_agenteval.config.location import find_place

    try:
        place = find_place(arguments.paths)
        cases = [case for case in examine(place, arguments.paths).cases if case.variant_of is None]
        listed = [case for case in cases if _is_meant(case, arguments, place)]
        if arguments.apply is not None:
            return _apply(arguments, place, cases)
        if arguments.export is not None:
            return _export(arguments, place, listed)
        if arguments.approve or arguments.reject:
            named = _named(cases, listed, arguments.approve or arguments.reject, place)
            return _decide(arguments, place, named)
    except (AgentEvalError, OSError, UnicodeDecodeError) as error:
        return refuse(error)
    _list(listed, place)
    return 0


def _is_meant(case: Case, arguments: argparse.Namespace, place: ProjectLocation) -> bool:
    from pytest_agenteval.cases.review import review_state

    state = review_state(case)
    if arguments.owner is not None and case.owner != arguments.owner:
        return False
    if arguments.failing is not None:
        return (_path(case, place), case.name) in _failed(arguments.failing)
    if arguments.unreviewed:
        return state in ("unreviewed", "unknown")
    return state == "stale" if arguments.stale else True


def _failed(path: Path) -> set[tuple[str, str]]:
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.results.document.overrides import with_overrides

    rows = with_overrides(read_document(path)).cases
    return {row.key[:2] for row in rows if row.verdict == "failed"}


def _path(case: Case, place: ProjectLocation) -> str:
    from pytest_agenteval.support.files import shown_path

    return shown_path(case.path, place.root)


def _list(cases: Sequence[Case], place: ProjectLocation) -> None:
    from pytest_agenteval.cases.review import review_state
    from pytest_agenteval.support.text import counted, cut_line

    words = {"unreviewed": "not approved", "stale": "approval no longer holds", "unknown": "says nothing"}
    for case in cases:
        state = review_state(case)
        held = case.metadata.get("reviewed")
        by = held.get("by") or held.get("where") if isinstance(held, dict) else None
        shown = words.get(state, f"approved{f' by {by}' if by else ''}")
        source = case.metadata.get("source")
        origin = f"  from {source.get('file') or source.get('format')}" if isinstance(source, dict) else ""
        owner = f"  {case.owner}" if case.owner else ""
        name = cut_line(case.name, 60, "…")
        print(f"{_path(case, place)}:{case.line}: {name}  {shown}{owner}{origin}")
    waiting = sum(review_state(case) in ("unreviewed", "stale") for case in cases)
    print(f"{counted(len(cases), 'case')}, {waiting} to look at")


def _named(
    cases: Sequence[Case], listed: Sequence[Case], words: Sequence[str], place: ProjectLocation
) -> list[Case]:
    """Return the cases that words name. Raises ``AgentEvalError`` for one that names none, or several."""
    from pytest_agenteval.support.text import did_you_mean

    if list(words) == ["all"]:
        return list(listed)
    found = []
    for word in words:
        hits = [case for case in cases if word in (case.name, case.id, f"{_path(case, place)}::{case.id}")]
        if len(hits) != 1:
            near = did_you_mean(word, [case.name for case in cases])
            places = ", ".join(f"{_path(case, place)}::{case.id}" for case in hits)
            text = f"{word!r} is the name of {places}" if hits else f"there is no case {word!r}{near}"
            raise AgentEvalError(text)
        found.append(hits[0])
    return found


def _by(arguments: argparse.Namespace, place: ProjectLocation) -> str:
    if arguments.by:
        return str(arguments.by)
    done = subprocess.run(
        ["git", "config", "user.email"], cwd=place.root, capture_output=True, text=True, check=False
    )
    if done.returncode or not done.stdout.strip():
        raise AgentEvalError("who? give --by NAME (git config user.email says nothing)")
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class ReviewDecision:
    """What a person decided of a case; ``approve`` is ``None`` where only its texts change."""

    case: Case
    approve: bool | None
    comment: str = ""
    prompt: str = ""
    sql: str = ""


def _decide(arguments: argparse.Namespace, place: ProjectLocation, cases: Sequence[Case]) -> int:
    if arguments.reject and not arguments.why:
        raise AgentEvalError("--reject needs --why TEXT: whoever reads the suite wants to know")
    approve = arguments.approve is not None
    decisions = [ReviewDecision(case, approve, arguments.why) for case in cases]
    return _carry_out(arguments, place, decisions)


def _carry_out(
    arguments: argparse.Namespace, place: ProjectLocation, decisions: Sequence[ReviewDecision]
) -> int:
    by = _by(arguments, place)
    expires = date.fromisoformat(arguments.expires) if arguments.expires else None
    refused = 0
    with ExitStack() as stack:
        why_not = _verifier(arguments, place, stack)
        # from the end of each file to its beginning: an edit moves only the lines after it
        for decision in sorted(decisions, key=lambda one: (str(one.case.path), -one.case.line)):
            where = f"{_path(decision.case, place)}::{decision.case.id}"
            reason = why_not(decision) if decision.approve else ""
            if reason:
                print(f"not approved: {where}: {reason}")
                refused += 1
                continue
            _write(decision, by, expires)
            word = {True: f"approved by {by}", False: f"rejected by {by}", None: "changed"}[decision.approve]
            print(f"{word}: {where}")
    return 1 if refused else 0


def _write(decision: ReviewDecision, by: str, expires: date | None) -> None:
    from pytest_agenteval.authoring.case_edit import edited, read_keys, with_key, with_metadata

    case = decision.case
    with edited(case.path) as held:
        now = read_keys(held[0], case.line)
        if now.get("name", case.name) != case.name:
            raise AgentEvalError(f"{case.path.name}:{case.line}: the file has changed; run the command again")
        if decision.prompt:
            held[0] = with_key(held[0], case.line, _key(now, "prompt", "question", "say"), decision.prompt)
        if decision.sql:
            held[0] = with_key(held[0], case.line, "sql", decision.sql)
        if decision.approve:
            value: dict[str, Any] = {"by": by, "at": date.today(), "sha": _sha(decision)}
            if expires is not None:
                value["expires"] = expires
            held[0] = with_metadata(held[0], case.line, "reviewed", value)
        elif decision.approve is False:
            why = f": {decision.comment}" if decision.comment else ""
            held[0] = with_key(held[0], case.line, "skip", f"rejected by {by}{why}")


def _key(keys: Any, *names: str) -> str:
    return next((name for name in names if name in keys), names[0])


def _sha(decision: ReviewDecision) -> str:
    from pytest_agenteval.cases.review import reference_digest, review_sha

    if not decision.prompt and not decision.sql:
        return review_sha(decision.case)
    prompt = decision.prompt or "\n".join(turn.say for turn in decision.case.turns)
    return reference_digest(prompt, [decision.sql] if decision.sql else decision.case.statements)[:12]


def _verifier(
    arguments: argparse.Namespace, place: ProjectLocation, stack: ExitStack
) -> Callable[[ReviewDecision], str]:
    """Return what says why a case may not be approved ('': it may): its reference must run."""
    from pytest_agenteval.config.location import open_databases

    if arguments.no_verify:
        return lambda decision: ""
    databases = stack.enter_context(open_databases(place))

    def why_not(decision: ReviewDecision) -> str:
        statements = [decision.sql] if decision.sql else list(decision.case.statements)
        for sql in statements:
            try:
                databases.get(decision.case.database).query(sql)
            except DatabaseError as wrong:
                return f"its reference does not run: {' '.join(str(wrong).split())[:200]}"
        return ""

    return why_not


def _export(arguments: argparse.Namespace, place: ProjectLocation, cases: Sequence[Case]) -> int:
    from pytest_agenteval.config.location import open_databases
    from pytest_agenteval.support.text import counted

    with ExitStack() as stack:
        databases = None if arguments.no_verify else stack.enter_context(open_databases(place))
        with open(arguments.export, "w", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for case in cases:
                question = "\n".join(turn.say for turn in case.turns)
                sql = "\n;\n".join(case.statements)
                where = f"{_path(case, place)}::{case.id}"
                rows = _first_rows(databases, case)
                writer.writerow([where, *map(_harmless, (question, sql, rows)), "", "", "", ""])
    done = f"{arguments.export}: {counted(len(cases), 'case')}"
    print(f"{done}; fill in approve (yes or no) and give it to --apply")

    return 0


def _harmless(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text


def _first_rows(databases: Databases | None, case: Case) -> str:
    if databases is None or not case.sql:
        return ""
    try:
        table = databases.get(case.database).query(case.sql[0])
    except DatabaseError as wrong:
        return f"fails: {' '.join(str(wrong).split())[:200]}"
    rows = [row for row, _ in zip(table.rows(), range(FIRST_ROWS), strict=False)]
    lines = [" | ".join(table.names), *(" | ".join(str(value) for value in row) for row in rows)]
    more = table.row_count - len(rows)
    return "\n".join([*lines, f"and {more} more"] if more > 0 else lines)


def _apply(arguments: argparse.Namespace, place: ProjectLocation, cases: Sequence[Case]) -> int:
    by_id = {f"{_path(case, place)}::{case.id}": case for case in cases}
    decisions = []
    for line, row in _rows(arguments.apply):
        case = by_id.get((row.get("case") or "").strip())
        if case is None:
            raise AgentEvalError(f"{arguments.apply.name}: row {line}: there is no case {row.get('case')!r}")
        word = (row.get("approve") or "").strip().casefold()
        answers = {"yes": True, "y": True, "x": True, "ja": True, "oui": True, "si": True, "sí": True}
        answers |= {"no": False, "n": False, "nein": False, "non": False}
        if word and word not in answers:
            raise AgentEvalError(f"{arguments.apply.name}: row {line}: approve is yes or no, found {word!r}")
        prompt, sql = (row.get("new question") or "").strip(), (row.get("new sql") or "").strip()
        if word or prompt or sql:
            comment = (row.get("comment") or "").strip()
            decisions.append(ReviewDecision(case, answers.get(word), comment, prompt, sql))
    return _carry_out(arguments, place, decisions)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    from pytest_agenteval.authoring.importing.sources import read_source

    source = read_source(path)
    grid = [list(map(str, row)) for row in source.grid] if source.kind == "table" else []
    header = [cell.strip().lower() for cell in grid[0]] if grid else []
    if "case" not in header or "approve" not in header:
        raise AgentEvalError(f"{path}: is not a spreadsheet of agenteval review --export")
    for number, row in enumerate(grid[1:], 2):
        if any(row):
            yield number, dict(zip(header, row, strict=False))
