"""``agenteval test``: the short flags of ``nao test`` and ``pda test`` as a pytest command."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nao's flags; whatever follows ``--`` goes to pytest as it is."""
    parser.add_argument(
        "-m", "--model", action="append", default=[], metavar="MODEL", help="provider:model; repeatable"
    )
    parser.add_argument("-t", "--threads", metavar="N", help="agent calls that overlap")
    parser.add_argument("-k", "--k", metavar="N", help="attempts per case and model")
    parser.add_argument(
        "-s",
        "--select",
        action="append",
        default=[],
        metavar="NAMES",
        help="folders, names, globs, prefixes; comma lists",
    )
    parser.add_argument(
        "-u",
        "--username",
        metavar="NAME",
        help="the user to log in as (the password comes from AGENTEVAL_PASSWORD)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the command, run nothing")
    parser.add_argument("rest", nargs="*", metavar="PYTEST", help="further arguments of pytest, after --")


def command_of(arguments: argparse.Namespace) -> list[str]:
    """Return the pytest arguments that say the same."""
    words: list[str] = []
    options: Sequence[tuple[str, Sequence[str]]] = (
        ("--agent-model", arguments.model),
        ("--agent-concurrency", [arguments.threads] if arguments.threads else []),
        ("--agent-k", [arguments.k] if arguments.k else []),
        ("--agent-select", arguments.select),
    )
    for option, values in options:
        words += [word for value in values for word in (option, value)]
    # asked for by name, so cases run even where agenteval_run is explicit
    return ["pytest", "--agent-run=always", *words, *arguments.rest]


def run(arguments: argparse.Namespace) -> int:
    """Return Pytest's exit code."""
    command = command_of(arguments)
    environ = dict(os.environ)
    shown = shlex.join(command)
    if arguments.username:
        environ["AGENTEVAL_USERNAME"] = arguments.username
        shown = f"AGENTEVAL_USERNAME={shlex.quote(arguments.username)} {shown}"
    print(shown, flush=True)
    if arguments.dry_run:
        return 0
    return subprocess.run([sys.executable, "-m", *command], env=environ, check=False).returncode
