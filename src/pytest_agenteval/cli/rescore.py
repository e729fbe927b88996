"""``agenteval rescore FILE``: comparison and checks again, on saved answers; no agent is called."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agenteval.cli.merge import kept_lines, new_name
from pytest_agenteval.cli.output import print_lines, refuse
from pytest_agenteval.errors import AgentEvalError

if TYPE_CHECKING:
    from pytest_agenteval.engine.rescore import Rescored


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: the results, the project whose cases judge them, and where the new results go."""
    parser.add_argument("file", metavar="FILE", type=Path, help="results file or folder of a run")
    parser.add_argument(
        "--root",
        metavar="DIR",
        type=Path,
        help="the project with the case files (default: the one that FILE lies in)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=Path,
        help="the new file (default: a new results_*.json beside FILE)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: written, whatever the verdicts are;
    2: something cannot be read or written.
    """
    from pytest_agenteval.engine.rescore import rescored_document
    from pytest_agenteval.reports.terminal import StyledLine
    from pytest_agenteval.reports.terminal_diff import diff_lines
    from pytest_agenteval.results.analysis.diff import diff_documents
    from pytest_agenteval.results.document.document import write_document
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.results.document.overrides import keep_overrides, overrides_of

    width = shutil.get_terminal_size((80, 24)).columns
    try:
        old = read_document(arguments.file, ended=True)
        output = arguments.output or new_name(arguments.file)
        with rescored_document(old, arguments.root or arguments.file.parent) as (document, done):
            write_document(document, output)
        new = read_document(output)
        held = keep_overrides(output, overrides_of(arguments.file, new.rows))
    except (AgentEvalError, OSError) as error:
        return refuse(error)
    print_lines(diff_lines(old, new, diff_documents(old, new), width=width))
    print_lines(StyledLine(line, "yellow") for line in _flip_lines(done))
    print_lines(
        StyledLine(f"not rescorable: {reason}, {number} of {len(old.rows)}", "yellow")
        for reason, number in done.kept.most_common()
    )
    print_lines(StyledLine(line, "yellow") for line in kept_lines(held))
    print_lines([StyledLine(f"results: {output}")])
    return 0


def _flip_lines(done: Rescored) -> Iterator[str]:
    """Yield every verdict that is another one now, with the rule that changed it."""
    from pytest_agenteval.support.text import counted, one_line

    before, now = done.contracts
    rules = f"rules {now}" if before == now else f"rules {before} -> {now}"
    yield f"{rules}: {counted(len(done.flips), 'verdict')} changed"
    for flip in done.flips:
        name = f"{flip.row.name} [{flip.row.model}]" if flip.row.model else flip.row.name
        yield f"  {one_line(f'{name} attempt {flip.row.attempt}: {flip.text}')}"
