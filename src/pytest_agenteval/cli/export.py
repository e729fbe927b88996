"""``agenteval export FILE... --to csv|parquet|jsonl|otlp``: attempts for other programs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.errors import AgentEvalError, ResultsError

if TYPE_CHECKING:
    import pandas

SECONDS = 30.0
"""How long a collector may take to accept the spans of one run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files, the format, and where it goes."""
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="results files or folders of runs"
    )
    parser.add_argument(
        "--to",
        required=True,
        choices=("csv", "parquet", "jsonl", "otlp"),
        help="one row (csv, parquet, jsonl) or one span (otlp: JSON) per attempt",
    )
    parser.add_argument("-o", "--output", metavar="OUT", type=Path, help="write to OUT (default: stdout)")
    parser.add_argument(
        "--endpoint",
        metavar="URL",
        help="send the spans to this OpenTelemetry collector (OTLP over HTTP, such as http://localhost:4318)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: written; 2:
    a file cannot be read or written, or the words do not fit together.
    """
    try:
        if arguments.endpoint and arguments.to != "otlp":
            raise ResultsError(f"--endpoint goes with --to otlp, not with --to {arguments.to}")
        if arguments.to == "parquet" and arguments.output is None:
            raise ResultsError("--to parquet needs -o OUT: it is not text")
        if arguments.to == "otlp":
            _export_spans(arguments)
        else:
            _export_rows(arguments)
    except (AgentEvalError, OSError) as error:
        return refuse(error)
    return 0


def _export_rows(arguments: argparse.Namespace) -> None:
    from pytest_agenteval.results import read_results

    frame = read_results(*arguments.files)
    if arguments.to == "parquet":
        frame.assign(tags=frame["tags"].map(list)).to_parquet(arguments.output, index=False)
    else:
        _write(arguments, _text(frame, arguments.to))
    _say(arguments, f"{len(frame)} attempts")


def _text(frame: pandas.DataFrame, form: str) -> str:
    if form == "csv":
        text: str = frame.assign(tags=frame["tags"].map(",".join)).to_csv(index=False)
        return text
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False, default=list) + "\n" for row in rows)


def _export_spans(arguments: argparse.Namespace) -> None:
    from pytest_agenteval.reports.otlp import otlp_document
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.results.document.overrides import with_overrides

    spans = 0
    requests = []
    for path in arguments.files:
        document = with_overrides(read_document(path))
        spans += len(document.rows)
        requests.append(otlp_document(document, path.name.removesuffix(".json")))
    if arguments.endpoint:
        for request in requests:
            _send(arguments.endpoint, request)
    if arguments.output or not arguments.endpoint:
        resources = [resource for request in requests for resource in request["resourceSpans"]]
        _write(arguments, json.dumps({"resourceSpans": resources}, ensure_ascii=False) + "\n")
    _say(arguments, f"{spans} spans" + (f" sent to {arguments.endpoint}" if arguments.endpoint else ""))


def _send(endpoint: str, request: dict[str, object]) -> None:
    """Send one request. Raises ``ResultsError`` with the collector's words where it refuses."""
    import httpx

    url = endpoint.rstrip("/")
    url = url if url.endswith("/v1/traces") else f"{url}/v1/traces"
    try:
        response = httpx.post(url, json=request, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ResultsError(f"{url}: {error}") from error
    if response.status_code >= 300:
        raise ResultsError(f"{url}: HTTP {response.status_code}: {response.text[:200]}")


def _write(arguments: argparse.Namespace, text: str) -> None:
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        arguments.output.write_text(text, encoding="utf-8")


def _say(arguments: argparse.Namespace, what: str) -> None:
    """Say on stderr what was done: stdout may be the data itself."""
    place = f": {arguments.output}" if arguments.output else ""
    print(f"agenteval: {what}{place}", file=sys.stderr)
