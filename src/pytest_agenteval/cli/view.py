"""``agenteval view [DIR]``: results in a browser, from this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.errors import AgentEvalError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: the folder, the port, who may connect."""
    parser.add_argument(
        "dir",
        metavar="DIR",
        nargs="?",
        type=Path,
        help="folder of results, or one file (default: the project's)",
    )
    parser.add_argument("-p", "--port", type=_port, default=8765, help="port (default 8765; 0: a free one)")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--host",
        metavar="HOST",
        help="listen here, not on this machine alone: asks for a token, read-only unless --no-read-only",
    )
    parser.add_argument(
        "--read-only",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="no action changes anything: no saved tests, no verdicts (default with --host)",
    )


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port (0 to 65535)")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: served until interrupted;
    2: no such folder, or nothing can be served.
    """
    from pytest_agenteval.viewer.server import bind, serve

    try:
        folder, root, page = _where(arguments.dir)
        binding = bind(arguments.port, arguments.host, arguments.read_only)
        base, _, token = binding.url.partition("?")
        url = base + page + (f"?{token}" if token else "")
        more = ", read-only" if binding.access.read_only else ""

        def started() -> None:
            print(f"results of {folder}: {url}{more}  (Ctrl-C ends it)", flush=True)
            if not arguments.no_open:
                import webbrowser

                webbrowser.open(url)

        serve(folder, root, binding, started)
    except (AgentEvalError, OSError) as error:
        return refuse(error)
    except KeyboardInterrupt:
        pass
    return 0


def _where(given: Path | None) -> tuple[Path, Path, str]:
    """Return the folder of results, the project's root, and the page to open."""
    from pytest_agenteval.config.location import find_place
    from pytest_agenteval.results.journal.run_folder import output_folder

    if given is None:
        place = find_place([])
        return output_folder(place.root, place.settings.output, place.home), place.root, ""
    if not given.exists():
        raise AgentEvalError(f"no such file or folder: {given}")
    page = ""
    folder = given.resolve()
    if folder.is_file():
        if folder.suffix != ".json":
            raise AgentEvalError(f"{given} is not a results file (results_*.json), nor a folder of them")
        from urllib.parse import quote

        page = f"runs/{quote(folder.name.removesuffix('.json'), safe='')}"
        folder = folder.parent
    return folder, project_of(folder), page


def project_of(folder: Path) -> Path:
    """Return the project that a folder of results belongs to: pytest's rootdir above it."""
    from pytest_agenteval.config.location import find_root

    root = find_root([folder])[0]
    if root != folder and folder.is_relative_to(root):
        return root
    above = folder.parent
    return above.parent if above.name == "tests" else above
