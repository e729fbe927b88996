"""The command line ``agenteval``: one module per command, loaded when it is called.

A command module has ``add_arguments(parser)`` and ``run(arguments) -> int`` (the exit code).
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from pytest_agenteval import __version__

COMMANDS: dict[str, str] = {
    "add": "a new case from an answer or from conversations; a person's verdict on an answer",
    "check": "every fault of every case file at once; with --references every reference run twice",
    "coverage": "which tables, columns and kinds of questions the suite asks about",
    "diff": "what got worse between two runs (exit 1 when something did)",
    "export": "attempts as CSV, Parquet, JSON lines or OpenTelemetry spans",
    "freeze": "keep the rows of references as files, so that CI needs no database; --check finds drift",
    "import": "questions of spreadsheets, semantic models and other tools as cases",
    "judge-check": "how far a judge agrees with human labels: agreement and Cohen's kappa",
    "merge": "several results files as one: shards, other machines, resumed runs",
    "report": "a stored run as terminal text, markdown, JUnit XML, JSON or one web page (--html)",
    "rescore": "comparison and checks again on saved answers, no agent call",
    "review": "which cases are not approved; approve and reject them, also by a spreadsheet",
    "schema": "the JSON Schema of case files; --write points files at it",
    "test": "the short flags of nao test and pda test, as a pytest command",
    "view": "results in a browser: runs, cases, attempts, differences",
    "validate": "is the governance configuration consistent, and does it fit the databases",
}
"""Command name -> its one-line help; the module is ``cli.<name with _>``, but for ``MODULES``."""

MODULES = {"import": "import_cases"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (2 for a wrong command line, as argparse does)."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="agenteval", description="Tools around pytest-agenteval.")
    parser.add_argument("--version", action="version", version=f"pytest-agenteval {__version__}")
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        from pytest_agenteval.support.text import did_you_mean

        parser.error(f"there is no command {words[0]!r}{did_you_mean(words[0], COMMANDS)}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        sub = subparsers.add_parser(name, help=text, description=text)
        if words[:1] == [name]:
            module = importlib.import_module(f"{__name__}.{MODULES.get(name, name.replace('-', '_'))}")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    arguments = parser.parse_args(words)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone: ``agenteval diff a b | head``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code
