"""A document as JUnit XML, in the form pytest gives it, one testcase per case and model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from pytest_agenteval.reports.failure import GATED
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.rows import CaseRow
from pytest_agenteval.support.text import one_line

_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Return ``text`` without characters that XML 1.0 forbids, each shown as ``#x1B`` (pytest's way)."""
    return _ILLEGAL.sub(lambda hit: f"#x{ord(hit[0]):02X}", text)


def junit_xml(document: Document) -> str:
    """Return ``<testsuites>`` with a testcase per case: failures, errors, skips and our properties.

    When a gate decides the run, a failed case is skipped with the reason ``counted by the gate: ...``.
    """
    cases = document.cases
    gated = bool(document.run.get("gates"))
    counts = document.header["cases"]
    failed = 0 if gated else counts["failed"]
    aside = ("review", "not_run", "running", "skipped", "xfailed")
    skipped = sum(counts.get(key, 0) for key in aside) + counts["failed"] - failed
    seconds = document.header["summary"]["total_duration_ms"] / 1000
    moment = _attribute(document.header["timestamp"])
    head = (
        f'<testsuite name="agenteval" errors="{counts["errors"]}" failures="{failed}" skipped="{skipped}" '
        f'tests="{counts["total"]}" time="{seconds:.3f}" timestamp={moment}>'
    )
    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<testsuites name="agenteval">', head]
    places = {id(row): number for number, row in enumerate(document.rows)}
    for case in cases:
        difference = ""
        if case.verdict == "failed" and case.deciding.verdict == "failed" and not case.xfailed:
            details = document.entry(places[id(case.deciding)]).get("details") or {}
            difference = str(details.get("comparison") or "")
        lines += _testcase(case, gated, difference)
    for skip in document.run.get("skipped") or ():
        path, _, name = skip["nodeid"].partition("::")
        lines.append(
            f'<testcase classname={_attribute(classname(path))} name={_attribute(name)} time="0.000">'
            f"<skipped message={_attribute(skip['reason'])}/></testcase>"
        )
    return "\n".join([*lines, "</testsuite>", "</testsuites>"]) + "\n"


def classname(path: str) -> str:
    """Return ``tests/total_revenue.yml`` as pytest writes it: ``tests.total_revenue.yml``."""
    return path.replace("/", ".")


def _testcase(case: CaseRow, gated: bool, difference: str) -> Iterator[str]:
    row = case.rows[0]
    name = row.nodeid.partition("::")[2] or (f"{row.name}[{row.model}]" if row.model else row.name)
    seconds = sum(r.duration_ms for r in case.rows) / 1000
    yield (
        f'<testcase classname={_attribute(classname(row.path))} name={_attribute(name)} time="{seconds:.3f}">'
    )
    yield "<properties>"
    for key, value in properties(case).items():
        yield f"<property name={_attribute(key)} value={_attribute(value)}/>"
    yield "</properties>"
    yield from _verdict(case, gated, difference)
    yield "</testcase>"


def properties(case: CaseRow) -> dict[str, str]:
    """Return the scalars that JUnit and pytest-json-report carry."""
    tokens = [row.tokens for row in case.rows if row.tokens is not None]
    costs = [row.cost for row in case.rows if row.cost is not None]
    found = {
        "agenteval_model": case.key[2],
        "agenteval_tokens": str(sum(tokens)) if tokens else "",
        "agenteval_cost": f"{sum(costs):.6f}" if costs else "",
        "agenteval_message": case.message,
        "agenteval_verdict": case.verdict,
        "agenteval_reason": case.deciding.reason or "",
    }
    return {key: value for key, value in found.items() if value}


def _verdict(case: CaseRow, gated: bool, difference: str) -> Iterator[str]:
    """Yield the message is one line; the text is the ``difference`` where there is one."""
    message = _attribute(one_line(case.why))
    body = escape(xml_text(difference or case.why))
    if case.verdict == "error":
        yield f"<error message={message}>{body}</error>"
    elif case.xfailed:
        yield f'<skipped type="pytest.xfail" message={_attribute(case.rows[0].xfail or "")}/>'
    elif case.verdict == "failed" and gated:
        reason = _attribute(GATED + one_line(case.why))
        yield f'<skipped type="pytest.xfail" message={reason}>{body}</skipped>'
    elif case.verdict == "failed":
        yield f"<failure message={message}>{body}</failure>"
    elif case.verdict in ("review", "not_run", "running"):
        yield f"<skipped message={message}/>"


def _attribute(value: object) -> str:
    return quoteattr(xml_text(str(value)))
