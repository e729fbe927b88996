"""``agenteval report FILE``: a stored run again, as terminal text, markdown, JUnit XML or one web page."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agenteval.cli.output import print_lines, refuse
from pytest_agenteval.errors import ResultsError

if TYPE_CHECKING:
    from pytest_agenteval.results.document.document import Document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: the run, the form, and where it goes."""
    parser.add_argument("file", metavar="FILE", type=Path, help="results file or folder of a run")
    parser.add_argument(
        "--format",
        choices=("terminal", "markdown", "junit", "json", "github"),
        help="terminal (default), markdown, junit (XML), json (the totals) or github (annotations at the "
        "lines of the cases); -o names it by its suffix",
    )
    parser.add_argument(
        "--against",
        metavar="BASELINE",
        type=Path,
        help="compare with this run: markdown sized for a pull-request comment, regressions first",
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT", type=Path, help="write to OUT (.md, .xml, .json, .txt, .html)"
    )
    parser.add_argument("--html", metavar="OUT", type=Path, help="write the one-file report to OUT")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every case of a large run")


_BY_SUFFIX = {".md": "markdown", ".xml": "junit", ".json": "json", ".txt": "terminal"}
_PAGES = (".html", ".htm")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: written; 2: a file cannot be read or written."""
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.results.document.masked import masked_document
    from pytest_agenteval.results.document.overrides import with_overrides

    suffix = arguments.output.suffix if arguments.output else ""
    if arguments.output and not arguments.format and suffix not in (*_BY_SUFFIX, *_PAGES):
        names = ", ".join([*_BY_SUFFIX, _PAGES[0]])
        return refuse(ResultsError(f"-o {arguments.output}: the name must end in {names}, or give --format"))
    form = arguments.format or _BY_SUFFIX.get(suffix) or ("markdown" if arguments.against else "terminal")
    try:
        document = masked_document(with_overrides(read_document(arguments.file)))
        against = arguments.against
        baseline = masked_document(with_overrides(read_document(against))) if against else None
        page = arguments.html or (arguments.output if suffix in _PAGES else None)
        if page is not None:
            _write_html(document, page)
            if page == arguments.output or (arguments.output or arguments.format or baseline) is None:
                return 0
        if form == "terminal" and arguments.output is None:
            _print_terminal(document, baseline, arguments)
            return 0
        text = _text(document, baseline, form)
        if arguments.output is None:
            sys.stdout.write(text)
        else:
            arguments.output.write_text(text, encoding="utf-8")
    except (ResultsError, OSError) as error:
        return refuse(error)
    return 0


def _write_html(document: Document, path: Path) -> None:
    from pytest_agenteval.reports.html import write_html

    print(f"report: {write_html(document, path)}")


def _print_terminal(document: Document, baseline: Document | None, arguments: argparse.Namespace) -> None:
    from pytest_agenteval.reports.terminal import terminal_lines
    from pytest_agenteval.reports.terminal_diff import diff_lines
    from pytest_agenteval.results.analysis.diff import diff_documents

    width = shutil.get_terminal_size((80, 24)).columns
    shown = str(arguments.file)
    print_lines(terminal_lines(document, width=width, verbosity=int(arguments.verbose), results=shown))
    if baseline is not None:
        print_lines(diff_lines(baseline, document, diff_documents(baseline, document), width=width))


def _text(document: Document, baseline: Document | None, form: str) -> str:
    from pytest_agenteval.reports.annotations import annotation_lines
    from pytest_agenteval.reports.junit import junit_xml
    from pytest_agenteval.reports.markdown import markdown_comment, markdown_summary
    from pytest_agenteval.reports.summary_files import summary_text
    from pytest_agenteval.reports.terminal import terminal_lines
    from pytest_agenteval.results.analysis.diff import diff_documents

    if form == "junit":
        return junit_xml(document)
    if form == "github":
        return "".join(f"{line}\n" for line in annotation_lines(document, Path.cwd()))
    if form == "json":
        return summary_text(document, "summary.json")
    if form == "terminal":
        return "".join(f"{line.text}\n" for line in terminal_lines(document))
    if baseline is not None:
        return markdown_comment(document, diff_documents(baseline, document))
    return markdown_summary(document)
