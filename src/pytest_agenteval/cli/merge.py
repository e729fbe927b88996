"""``agenteval merge FILE... -o OUT``: shards, other machines, resumed runs as one results file."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from pytest_agenteval.cli.output import print_lines, refuse
from pytest_agenteval.errors import ResultsError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: the files, and where the merged one goes."""
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="results files or folders of runs"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=Path,
        help="the merged file (default: a new results_*.json beside the first)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: written; 2:
    a file cannot be read, or OUT is one of them.
    """
    from pytest_agenteval.reports.terminal import StyledLine, last_line
    from pytest_agenteval.results.document.document import write_document
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.results.document.merge import merge_documents, merged_overrides
    from pytest_agenteval.results.document.overrides import keep_overrides
    from pytest_agenteval.results.journal.run_folder import RunFolder

    output = arguments.output or new_name(arguments.files[0])
    try:
        if any(path.resolve() == output.resolve() for path in arguments.files):
            raise ResultsError(f"{output}: is one of the files to merge; name another with -o")
        going_on = [path for path in arguments.files if path.is_dir() and RunFolder.open(path).running]
        if going_on:
            raise ResultsError(f"{going_on[0]}: this run goes on; merge it when it has ended")
        documents = [read_document(path, ended=True) for path in arguments.files]
        merged = merge_documents(documents)
        write_document(merged, output)
        kept = keep_overrides(output, merged_overrides(documents))
    except (ResultsError, OSError) as error:
        return refuse(error)
    print_lines([last_line(merged)])
    print_lines(StyledLine(line, "yellow") for line in kept_lines(kept))
    print_lines([StyledLine(f"results: {output}")])
    return 0


def kept_lines(kept: int) -> list[str]:
    """Return that a person's verdicts stand beside the new file, too ([]: there are none)."""
    from pytest_agenteval.support.text import counted

    return [f"{counted(kept, 'verdict')} of a person taken over"] if kept else []


def new_name(first: Path) -> Path:
    """Return a name for new results beside ``first`` that no run has."""
    number = 1
    stamp = f"results_{datetime.now():%Y%m%d_%H%M%S}"
    while True:
        place = first.parent / (f"{stamp}.json" if number == 1 else f"{stamp}_{number}.json")
        if not place.exists() and not place.with_suffix("").exists():
            return place
        number += 1
