"""``agenteval test``: the short flags of ``nao test`` and ``pda test`` as a pytest command."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.errors import AgentEvalError


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
    parser.add_argument("--password", nargs="?", const="", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--dry-run", action="store_true", help="print the command, run nothing")
    parser.add_argument("rest", nargs="*", metavar="PYTEST", help="further arguments of pytest, after --")


def command_of(arguments: argparse.Namespace, here: Path) -> list[str]:
    """Return the pytest arguments that say the same in the folder ``here``.

    Cases alone are collected and run: ordinary tests, and the modules they cannot import, are not nao's.
    """
    words: list[str] = []
    options: Sequence[tuple[str, Sequence[str]]] = (
        ("--agent-model", arguments.model),
        ("--agent-concurrency", [arguments.threads] if arguments.threads else []),
        ("--agent-k", [arguments.k] if arguments.k else []),
        ("--agent-select", arguments.select),
    )
    for option, values in options:
        words += [word for value in values for word in (option, value)]
    rest = list(arguments.rest)
    paths = [word for word in rest if not word.startswith("-") and (here / word.partition("::")[0]).exists()]
    where = [] if paths else _where(here)
    # asked for by name, so cases run even where agenteval_run is explicit
    return ["pytest", "--agent-run=always", "-m", "agenteval", "-o", "python_files=", *words, *where, *rest]


def _where(here: Path) -> list[str]:
    """The folder ``tests``, unless the ini file says where cases lie."""
    from pytest_agenteval.config.location import find_root

    ini = find_root([here])[1]
    said = "agenteval_files" in ini or "testpaths" in ini
    return ["tests"] if not said and (here / "tests").is_dir() else []


def _refusal(arguments: argparse.Namespace, here: Path) -> str | None:
    """Say what nao's words are called here, where they are not arguments of this command."""
    word = next(iter(arguments.rest), "")
    if word == "server" and not (here / word).exists():
        return "nao's `test server` is `agenteval view` here"
    if word == "run" and not (here / word).exists():
        return "`agenteval test` runs the cases by itself; leave out `run`"
    if arguments.password is not None:
        return (
            "no password on the command line, where others can read it: set AGENTEVAL_PASSWORD "
            "(an empty one: AGENTEVAL_PASSWORD=), and give the user with -u"
        )
    return None


def run(arguments: argparse.Namespace) -> int:
    """Return pytest's exit code; 2 for nao's words that this command does not take."""
    here = Path.cwd()
    if (reason := _refusal(arguments, here)) is not None:
        return refuse(AgentEvalError(reason))
    try:
        command = command_of(arguments, here)
    except AgentEvalError as error:
        return refuse(error)
    environ = dict(os.environ)
    shown = shlex.join(command)
    if arguments.username:
        environ["AGENTEVAL_USERNAME"] = arguments.username
        shown = f"AGENTEVAL_USERNAME={shlex.quote(arguments.username)} {shown}"
    print(shown, flush=True)
    if arguments.dry_run:
        return 0
    return subprocess.run([sys.executable, "-m", *command], env=environ, check=False).returncode
