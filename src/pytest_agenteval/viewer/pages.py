"""Over several runs: the list with its trends, two runs side by side, one case through time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.reports.html.attempt_view import AttemptView, attempt_view
from pytest_agenteval.reports.html.charts import trend
from pytest_agenteval.reports.html.environment import moment_text
from pytest_agenteval.reports.html.filters import CaseLine, case_lines
from pytest_agenteval.reports.html.links import ServerLinks
from pytest_agenteval.reports.markdown import chance_sentence, diff_sentence
from pytest_agenteval.reports.text import cost_text, rate_text
from pytest_agenteval.results.analysis.diff import CaseChange, RunDiff, diff_documents
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.totals import known_cost
from pytest_agenteval.viewer.library import Library, ListedRun, ReadFile, unreadable

TREND = 60
"""Runs in a trend line, the newest."""

FULL = 0.9
"""Share of the largest run's cases from which a run counts as one of the whole suite."""

PAGE = 50
"""Runs on a page of the list."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the list: its totals, or why there are none (``problem``), or how far it is read."""

    listed: ListedRun
    header: Mapping[str, Any] | None = None
    problem: str = ""
    share: float | None = None

    @property
    def run(self) -> Mapping[str, Any]:
        """What is known of the run."""
        return (self.header or {}).get("run") or {}

    @property
    def models(self) -> list[str]:
        """The models, best first."""
        return [str(entry["model"]) for entry in (self.header or {}).get("by_model") or []]

    @property
    def rate(self) -> float | None:
        """The pass rate, 0..100."""
        found = (self.header or {}).get("cases") or {}
        rate = found.get("pass_rate")
        return float(rate) if rate is not None else None

    @property
    def cost(self) -> float | None:
        """USD of the agent's answers."""
        summary = (self.header or {}).get("summary")
        return known_cost(summary) if summary else None

    @property
    def size(self) -> float:
        """Its cases for each model."""
        total = ((self.header or {}).get("cases") or {}).get("total") or 0
        return float(total) / max(len(self.models), 1)

    @property
    def text(self) -> str:
        """What a search looks through."""
        return " ".join([self.listed.id, str(self.run.get("label") or ""), *self.models]).casefold()


def run_lines(library: Library, wait: float = 0.5) -> list[RunLine]:
    """Return every run in the folder, newest first; one that cannot be read says why."""
    lines = []
    for listed in library.listing().values():
        try:
            header = library.header(listed, wait)
        except (ResultsError, OSError) as error:
            lines.append(RunLine(listed, problem=unreadable(error).replace(f"{listed.path}: ", "")))
            continue
        if isinstance(header, ReadFile):
            wait = 0.0  # the others are not to wait once more
            lines.append(RunLine(listed, share=header.share))
        else:
            lines.append(RunLine(listed, header))
    return lines


def full_runs(lines: Sequence[RunLine]) -> list[RunLine]:
    """Return the runs that can stand on one line, oldest first: whole runs of the same models.

    Parts of a suite (``-k``, ``--lf``, one folder) and other models have rates of their own. A run is full
    with nine tenths of the cases for each model that the largest one has; the models are those of the
    newest full run.
    """
    done = [line for line in lines if line.header is not None and not line.listed.unfinished]
    most = max((line.size for line in done), default=0.0)
    full = [line for line in done if 0 < FULL * most <= line.size]
    same = [line for line in full if set(line.models) == set(full[0].models)]
    return same[:TREND][::-1]


def trends(lines: Sequence[RunLine]) -> list[tuple[str, str, Markup]]:
    """Return (what, newest value, line) of pass rate and cost over the full runs, oldest first."""
    done = full_runs(lines)
    dates = [moment_text((line.header or {}).get("timestamp"))[:10] for line in done]
    found = []
    for name, values, kind, top, shown in (
        ("Pass rate", [line.rate for line in done], "rate", 100.0, rate_text),
        ("Cost", [line.cost for line in done], "cost", None, cost_text),
    ):
        labels = [f"{_named(line)}: {shown(value)}" for line, value in zip(done, values, strict=True)]
        known = [value for value in values if value is not None]
        if len(known) < 2:
            continue
        words = f"{name} over {len(done)} full runs: {shown(known[0])} first, {shown(known[-1])} last"
        scale = ("100 %" if top else shown(max(known)), "0")
        ends = dates[0], dates[-1]
        line = trend(values, labels, words, top=top, kind=kind, scale=scale, dates=ends)
        found.append((name, shown(known[-1]), line))
    return found


def _named(line: RunLine) -> str:
    return str(line.run.get("label") or moment_text((line.header or {}).get("timestamp")) or line.listed.id)


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A case in both runs, with the links to what it did there."""

    change: CaseChange
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs side by side: the changes by kind, regressions first."""

    old: Document
    new: Document
    diff: RunDiff
    sections: Sequence[tuple[str, str, Sequence[ChangeLine]]]

    @property
    def sentence(self) -> str:
        """``1 regression, 2 fixed ...``."""
        return diff_sentence(self.diff)

    @property
    def chance(self) -> str:
        """What the paired test says."""
        return chance_sentence(self.diff)


KINDS = (
    ("regression", "Regressions"),
    ("other", "Verdict changed otherwise"),
    ("fix", "Fixes"),
    ("xfailed", "Expected failures"),
    ("added", "Added"),
    ("removed", "Removed"),
    ("unchanged", "Unchanged"),
)


def comparing(old_id: str, old: Document, new_id: str, new: Document) -> RunComparison:
    """Compare two runs; runs of one model each are paired across models."""
    diff = diff_documents(old, new, across_models=True)
    links = [_links_of(old_id, old), _links_of(new_id, new)]
    sections = []
    for kind, words in KINDS:
        lines = [
            ChangeLine(
                change,
                links[0].get(change.old.key) if change.old else None,
                links[1].get(change.new.key) if change.new else None,
            )
            for change in diff.of(kind)  # type: ignore[arg-type]
        ]
        if kind == "unchanged":
            order = ("error", "failed", "review", "running", "not_run", "passed")
            lines.sort(key=lambda line: order.index(line.change.case.verdict))
        sections.append((kind, words, lines))
    return RunComparison(old, new, diff, sections)


def _links_of(run_id: str, document: Document) -> dict[Any, str]:
    links = ServerLinks(run_id)
    lines = case_lines(document.rows, document.cases)
    return {line.case.key: links.attempt(line.deciding) for line in lines}


def equal_attempts(document: Document, number: int) -> list[int]:
    """Return the other attempts (from 1) of the case and model of ``number`` that gave the same answer."""
    row = document.rows[number - 1]
    others = [n for n, other in enumerate(document.rows, 1) if other.key == row.key and n != number]
    same = _answered(document, number) if others else None
    return [other for other in others if same is not None and _answered(document, other) == same]


def _answered(document: Document, number: int) -> tuple[Any, ...] | None:
    """Return what an attempt said and handed over; ``None``: nothing."""
    details = document.entry(number - 1).get("details") or {}
    table = details.get("actual_table") or {}
    said = details.get("response_text"), table.get("sha256"), details.get("actual_data")
    return None if said == (None, None, None) else said


def side_by_side(document: Document, number: int, rows: int) -> list[tuple[CaseLine, AttemptView]]:
    """Return each model's answer to the case of ``number``: its line, and the attempt that decides it."""
    key = document.rows[number - 1].key[:2]
    lines = [line for line in case_lines(document.rows, document.cases) if line.case.key[:2] == key]
    found = []
    for line in lines:
        entry = document.entry(line.deciding - 1)
        row = document.rows[line.deciding - 1]
        view = attempt_view(line.deciding, row, entry, rows=rows, sql_tools=document.sql_tools)
        found.append((line, view))
    return found


@dataclass(frozen=True, slots=True)
class Moment:
    """A case in one run: a line for each model."""

    listed: ListedRun
    header: Mapping[str, Any]
    lines: Mapping[str, CaseLine]
    changed: bool


@dataclass(frozen=True, slots=True)
class History:
    """A case over runs, newest first, and how steady each model is with it."""

    path: str
    name: str
    models: Sequence[str]
    moments: Sequence[Moment]
    waiting: int

    def steadiness(self, model: str) -> tuple[int, int, int, int]:
        """Return (passed, judged attempts, flaky runs, flips of the verdict between runs) with a model."""
        lines = [moment.lines[model] for moment in self.moments if model in moment.lines]
        passed = sum(line.case.counts[0] for line in lines)
        judged = sum(line.case.counts[1] for line in lines)
        verdicts = [line.case.verdict for line in lines if line.case.verdict in ("passed", "failed")]
        flips = sum(a != b for a, b in pairwise(verdicts))
        return passed, judged, sum(line.case.flaky for line in lines), flips

    def trend(self, model: str) -> Markup:
        """Return the success rate of a model over the runs, oldest first."""
        rates: list[float | None] = []
        labels = []
        for moment in reversed(self.moments):
            line = moment.lines.get(model)
            passed, judged = line.case.counts if line else (0, 0)
            rates.append(100 * passed / judged if judged else None)
            labels.append(f"{moment_text(moment.header.get('timestamp'))}: {passed} of {judged}")
        return trend(rates, labels, f"{model}: passed attempts over runs", top=100.0)


def history_of(library: Library, path: str, name: str) -> History:
    """Return a case through all runs of the folder; a file without paths is matched by name."""
    moments: list[Moment] = []
    waiting = 0
    for listed in library.listing().values():
        try:
            document = library.open(listed, 0.5 if not waiting else 0.0)
        except (ResultsError, OSError):
            continue
        if isinstance(document, ReadFile):
            waiting += 1
            continue
        lines = {
            line.case.key[2]: line
            for line in case_lines(document.rows, document.cases)
            if line.case.key[1] == name and (line.case.key[0] == path or not line.case.key[0] or not path)
        }
        if lines:
            moments.append(Moment(listed, document.header, lines, False))
    models = dict.fromkeys(model for moment in moments for model in moment.lines)
    return History(path, name, list(models), _with_changes(moments), waiting)


def _with_changes(moments: Sequence[Moment]) -> list[Moment]:
    """Mark the runs whose case is another than in the run before."""
    found = []
    for at, moment in enumerate(moments):
        before = moments[at + 1] if at + 1 < len(moments) else None
        hashes = [
            {line.case.rows[0].case_hash for line in m.lines.values() if line.case.rows[0].case_hash}
            for m in (moment, before)
            if m is not None
        ]
        changed = len(hashes) == 2 and bool(hashes[0] and hashes[1]) and not hashes[0] & hashes[1]
        found.append(Moment(moment.listed, moment.header, moment.lines, changed))
    return found
