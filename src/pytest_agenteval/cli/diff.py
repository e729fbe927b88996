"""``agenteval diff OLD NEW``: what got worse between two runs; exit 1 when something did."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from pytest_agenteval.cli.output import print_lines, refuse
from pytest_agenteval.errors import ResultsError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: OLD and NEW, and the form of the report."""
    parser.add_argument("old", metavar="OLD", type=Path, help="results file or folder of a run")
    parser.add_argument("new", metavar="NEW", type=Path, help="results file or folder of a run")
    parser.add_argument("--json", action="store_true", help="print the differences as JSON")
    parser.add_argument(
        "--across-models",
        action="store_true",
        help="pair the cases of two runs of one model each, although the models differ",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: no regression;
    1: a case that passed fails now, or no case is in both; 2: a file cannot be read.
    """
    from pytest_agenteval.reports.terminal_diff import diff_lines, diff_record
    from pytest_agenteval.results.analysis.diff import diff_documents
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.results.document.overrides import with_overrides

    try:
        old, new = (with_overrides(read_document(path)) for path in (arguments.old, arguments.new))
    except ResultsError as error:
        return refuse(error)
    diff = diff_documents(old, new, across_models=arguments.across_models)
    if not diff.paired:  # nothing in common: two runs of one model each are compared all the same
        diff = diff_documents(old, new, across_models=True)
    if arguments.json:
        json.dump(diff_record(old, new, diff), sys.stdout, ensure_ascii=True, indent=2)
        print()
    else:
        print_lines(diff_lines(old, new, diff, width=shutil.get_terminal_size((80, 24)).columns))
    return 1 if diff.of("regression") or not diff.common else 0
