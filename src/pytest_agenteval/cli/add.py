"""``agenteval add``: answers and conversations as new test cases; a person's verdict on an answer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.errors import AgentEvalError
from pytest_agenteval.support.files import shown_path

if TYPE_CHECKING:
    from pytest_agenteval.results.document.document import Document
    from pytest_agenteval.results.document.rows import Row

TRIAGE = {"case": "the case is wrong", "context": "the context is wrong", "agent": "the agent is wrong"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: the source, what of it, and what becomes of it."""
    parser.add_argument(
        "source",
        metavar="FILE",
        type=Path,
        help="a results file or run folder, or conversations (.jsonl: question or messages, sql, rating)",
    )
    parser.add_argument("case", metavar="CASE", nargs="?", help="of results: the case whose answer is meant")
    parser.add_argument("-m", "--model", metavar="MODEL", help="the model that answered, where several did")
    parser.add_argument("--attempt", type=int, metavar="N", help="the attempt, where there are several")
    parser.add_argument(
        "--into",
        type=Path,
        metavar="DIR",
        help="folder for the new files (default: beside the case, else tests)",
    )
    parser.add_argument("--name", help="name of the new case (default: the old one)")
    parser.add_argument(
        "--database", metavar="NAME", help="of conversations: the connection their SQL is for"
    )
    parser.add_argument(
        "--limit", type=int, metavar="N", help="of conversations: at most N, the disliked first"
    )
    parser.add_argument(
        "--only-down", action="store_true", help="of conversations: only those that people disliked"
    )
    parser.add_argument(
        "--verdict",
        choices=("passed", "failed", "none"),
        help="no new case: keep this verdict on the answer instead (none: take it back)",
    )
    parser.add_argument("--note", default="", help="why, for --verdict")
    parser.add_argument("--label", choices=tuple(TRIAGE), help="what is wrong, for --verdict")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: done; 2: there is nothing to add,
    or it cannot be written.
    """
    try:
        if arguments.source.suffix == ".jsonl":
            return _add_conversations(arguments)
        return _add_answer(arguments)
    except (AgentEvalError, OSError, UnicodeDecodeError) as error:
        return refuse(error)


def _folder(arguments: argparse.Namespace, beside: str | None = None) -> Path:
    """Return ``--into``, else where the case ``beside`` lies, else ``tests`` below rootdir."""
    if arguments.into is not None:
        return Path(arguments.into)
    from pytest_agenteval.authoring.save_case import case_folder
    from pytest_agenteval.config.location import find_root

    return case_folder(find_root([])[0], beside)


def _shown(place: Path) -> str:
    return shown_path(place, Path.cwd())


def _add_conversations(arguments: argparse.Namespace) -> int:
    from pytest_agenteval.authoring.conversations import read_conversations
    from pytest_agenteval.authoring.save_case import save_case
    from pytest_agenteval.support.text import one_line

    if arguments.case or arguments.verdict:
        raise AgentEvalError("CASE and --verdict are about results; conversations are added as cases")
    conversations, problems = read_conversations(arguments.source, arguments.database)
    wanted = [one for one in conversations if one.rating == "down" or not arguments.only_down]
    folder = _folder(arguments)
    added = 0
    for one in wanted[: arguments.limit]:
        place, new = save_case(folder, one.draft)
        added += new
        marks = {"down": "thumbs down", "up": "thumbs up", "none": "not rated"}
        missing = "" if one.draft.sql else ", no SQL: ends in review until it has a reference"
        state = "" if new else "already there: "
        print(f"{state}{_shown(place)}  {marks[one.rating]}{missing}: {one_line(one.draft.turns[0])[:80]}")
    for problem in problems:
        print(f"left out: {problem}")
    print(f"{added} added, marked reviewed: false; check their references")
    return 0


def _add_answer(arguments: argparse.Namespace) -> int:
    from pytest_agenteval.authoring.save_case import caution_of, draft_of, save_case
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.results.document.overrides import with_overrides

    document = with_overrides(read_document(arguments.source))
    rows = _rows(document, arguments)
    if arguments.verdict is not None:
        return _override(arguments, [document.rows[number] for number in rows])
    order = ("passed", "review", "failed", "error", "running", "not_run")
    number = min(rows, key=lambda at: order.index(document.rows[at].verdict))
    row = document.rows[number]
    caution = caution_of(row)
    source = {"results": arguments.source.name}
    draft = draft_of(
        document.entry(number), source, arguments.name, caution=caution, sql_tools=document.sql_tools
    )
    place, new = save_case(_folder(arguments, row.path), draft)
    what = "the agent's last SQL" if draft.sql else "the agent's rows" if draft.expected else "nothing yet"
    print(f"{'added' if new else 'already there'}: {_shown(place)}  (reference: {what}; reviewed: false)")
    if caution:
        print(f"CAREFUL: {caution}\n  the case takes this answer for the right one: correct its reference")
    return 0


def _rows(document: Document, arguments: argparse.Namespace) -> list[int]:
    """Return the rows that are meant (numbers from 0). Raises ``AgentEvalError``, naming what there is."""
    names = list(dict.fromkeys(row.name for row in document.rows))
    if not arguments.case:
        raise AgentEvalError(f"which case? {_listed(names)}")
    found = [at for at, row in enumerate(document.rows) if arguments.case in _names(row)]
    if not found:
        from pytest_agenteval.support.text import close_ones

        near = close_ones(arguments.case, names)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {_listed(names)}"
        raise AgentEvalError(f"{arguments.source.name} has no case {arguments.case!r}; {hint}")
    models = list(dict.fromkeys(document.rows[at].model for at in found))
    if arguments.model is not None:
        found = [at for at in found if document.rows[at].model == arguments.model]
        if not found:
            raise AgentEvalError(
                f"{arguments.case!r} was not asked of {arguments.model!r}, but {_listed(models)}"
            )
    elif len(models) > 1:
        raise AgentEvalError(
            f"{arguments.case!r} was asked of several models; choose with -m: {_listed(models)}"
        )
    if arguments.attempt is not None:
        numbers = [document.rows[at].attempt for at in found]
        found = [at for at in found if document.rows[at].attempt == arguments.attempt]
        if not found:
            raise AgentEvalError(f"there is no attempt {arguments.attempt}; there are {_listed(numbers)}")
    return found


def _names(row: Row) -> tuple[str, ...]:
    return row.name, row.nodeid, row.path, f"{row.name}[{row.model}]"


def _listed(values: Sequence[object]) -> str:
    more = f" and {len(values) - 20} more" if len(values) > 20 else ""
    return ", ".join(map(str, values[:20])) + more


def _override(arguments: argparse.Namespace, rows: Sequence[Row]) -> int:
    from pytest_agenteval.results.document.overrides import Override, overrides_path, write_override

    now = datetime.now(UTC).isoformat(timespec="seconds")
    kept = None
    if arguments.verdict != "none":
        kept = Override(arguments.verdict, arguments.note, TRIAGE.get(arguments.label or ""), now)
    for row in rows:
        write_override(arguments.source, row, kept)
    done = "taken back" if kept is None else f"{arguments.verdict}, by a person"
    attempts = f"{len(rows)} attempts" if len(rows) > 1 else f"attempt {rows[0].attempt}"
    print(f"{rows[0].name} [{rows[0].model}], {attempts}: {done} ({overrides_path(arguments.source)})")
    return 0
