"""``agenteval schema``: the JSON Schema of case files, for editors and other programs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.errors import AgentEvalError

FILE = "agenteval.schema.json"
_LINE = "# yaml-language-server: $schema="


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: the files that are to name the schema."""
    parser.add_argument(
        "--write",
        metavar="FILE",
        nargs="+",
        type=Path,
        help=f"write the schema to {FILE} in rootdir, and the line '{_LINE}...' on top of each FILE",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: printed or written;
    2: a file cannot be read or written.
    """
    from pytest_agenteval.cases.json_schema import case_schema
    from pytest_agenteval.config.location import find_place, find_root

    try:
        registry = find_place(arguments.write or []).registry()
        text = json.dumps(case_schema(registry.json_schema()), indent=2) + "\n"
        for reason in registry.failures:
            print(f"agenteval: warning: checks left out: {reason}", file=sys.stderr)
        if arguments.write is None:
            sys.stdout.write(text)
            return 0
        missing = [str(path) for path in arguments.write if not path.is_file()]
        if missing:
            raise AgentEvalError(f"no such file: {', '.join(missing)}")
        target = find_root(arguments.write)[0] / FILE
        target.write_text(text, encoding="utf-8")
        print(f"wrote {_shown(target)}")
        for path in arguments.write:
            if point_at(path, target):
                print(f"wrote the schema's line into {_shown(path)}")
    except (AgentEvalError, OSError, UnicodeDecodeError) as error:
        return refuse(error)
    return 0


def point_at(path: Path, schema: Path) -> bool:
    """Put the line that names ``schema`` on top of a case file; False: it stood there already."""
    text = path.read_bytes().decode("utf-8-sig")
    line = _LINE + Path(os.path.relpath(schema, path.resolve().parent)).as_posix()
    first, _, rest = text.partition("\n")
    if first.rstrip("\r") == line:
        return False
    end = "\r\n" if first.endswith("\r") else "\n"
    body = rest if first.startswith(_LINE) else text
    path.write_bytes(f"{line}{end}{body}".encode())
    return True


def _shown(path: Path) -> str:
    return os.path.relpath(path)
