"""Gates over a run, and the exit status: pure functions of the document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.analysis.diff import CaseChange, RunDiff, diff_documents
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.load import past_documents, read_document
from pytest_agenteval.results.document.overrides import with_overrides
from pytest_agenteval.results.document.rows import CaseKey, CaseRow
from pytest_agenteval.results.document.totals import pass_rate
from pytest_agenteval.support.text import cut_line

SIGNIFICANT = 0.05
CRITICAL = "critical"
WHY = 120
"""Characters of why a case fails, in the text of a gate."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate and whether it holds; ``text`` says what was found and what was asked for.

    ``blamed`` are the cases that it fails for.
    """

    gate: str
    holds: bool
    text: str
    blamed: tuple[CaseKey, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the gate as the document's ``run.gates`` keeps it."""
        return {"gate": self.gate, "holds": self.holds, "text": self.text}


def fail_under(cases: Sequence[CaseRow], gates: Sequence[tuple[str, float]]) -> list[Gate]:
    """Evaluate ``--agent-fail-under``: pass rates over cases, of all, of a model or of a tag (``tag:x``)."""
    return [_fail_under(cases, scope, rate) for scope, rate in gates]


def _fail_under(cases: Sequence[CaseRow], scope: str, rate: float) -> Gate:
    name = f"--agent-fail-under {scope}={rate:g}" if scope else f"--agent-fail-under {rate:g}"
    own = [case for case in cases if _in_scope(case, scope)]
    judged = [case for case in own if case.status in ("passed", "failed", "error")]
    if not judged:
        why = "no case was judged" if own or not scope else f"no case of {scope}"
        return Gate(name, False, f"{name}: {why}")
    # the exact share decides; the rounded rate is for reading
    passed = sum(case.verdict == "passed" for case in judged)
    holds = 100 * passed >= rate * len(judged) - 1e-9
    shown = pass_rate(own)
    text = f"{name}: {passed} of {len(judged)} passed, {shown} %"
    return Gate(name, holds, text, () if holds else _keys(c for c in judged if c.verdict == "failed"))


def _keys(cases: Iterable[CaseRow]) -> tuple[CaseKey, ...]:
    return tuple(case.key for case in cases)


def _in_scope(case: CaseRow, scope: str) -> bool:
    if scope.startswith("tag:"):
        return scope.removeprefix("tag:") in case.rows[0].tags
    return not scope or case.key[2] == scope


def find_baseline(setting: str, output_dir: Path, root: Path, own: Path | None = None) -> Document | None:
    """Return the baseline of ``--agent-baseline FILE|last``, overrides applied.

    ``last`` is the newest results file but the run's ``own`` (``None``: there is none yet), without
    those whose own gates did not hold: a regression is not forgiven by running it again; a file that
    cannot be read is none. Raises ``ResultsError`` where FILE (relative to ``root``) is missing or broken.
    """
    if setting == "last":
        for document in past_documents(output_dir):
            gates = document.run.get("gates") or ()
            if document.path != own and all(gate.get("holds") for gate in gates):
                return with_overrides(document)
        return None
    place = root / setting
    if not place.exists():
        raise ResultsError(f"--agent-baseline {setting}: no such file")
    return with_overrides(read_document(place))


def against_baseline(baseline: Document | None, document: Document, *, significant: bool = False) -> Gate:
    """Evaluate ``--agent-baseline``: regressions, and new cases that fail.

    ``significant``: a case that passed there and fails here counts only when the paired test says the
    run is worse (p < 0.05), or when the case is tagged ``critical``.
    """
    name = "--agent-baseline"
    if baseline is None:
        failed = [case for case in document.cases if case.status == "failed"]
        text = f"{name} last: no earlier results; {_named('fail', failed) or 'none fails'}"
        return Gate(name, not failed, text, _keys(failed))
    diff = diff_documents(baseline, document)
    lost, new = regressions(diff), new_failures(diff)
    counted = lost
    test = ""
    if significant:
        worse = diff.p_value is not None and diff.p_value < SIGNIFICANT and diff.worse
        counted = lost if worse else [case for case in lost if CRITICAL in case.rows[0].tags]
        shown = (
            "no case in both" if diff.p_value is None else f"p = {diff.p_value:.3f} over {diff.paired} cases"
        )
        test = f" ({shown}, {'worse' if worse else 'could be chance'})"
    parts = [_named("regressed", lost), _named("new and failed", new)]
    text = "; ".join(part for part in parts if part) or "no regression"
    if not diff.common:
        text += " (no case in common with the baseline: nothing was compared)"
    blamed = _keys([*counted, *new])
    return Gate(name, not blamed, f"{name}: {text}{test if lost else ''}", blamed)


def regressions(diff: RunDiff) -> list[CaseRow]:
    """Return cases that passed in the baseline and fail here."""
    return [entry.case for entry in diff.of("regression")]


def new_failures(diff: RunDiff) -> list[CaseRow]:
    """Return cases that fail here and have no verdict on an answer in the baseline."""
    return [entry.case for entry in diff.changes if _fails_anew(entry)]


def _fails_anew(entry: CaseChange) -> bool:
    case = entry.new
    if case is None or case.status != "failed":
        return False
    return entry.old is None or entry.old.verdict not in ("passed", "failed")


def _named(word: str, cases: Sequence[CaseRow]) -> str:
    names = [_named_with_why(case) for case in cases]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{len(names)} {word}: {', '.join(names[:5])}{more}" if names else ""


def _named_with_why(case: CaseRow) -> str:
    name = f"{case.key[1]} [{case.key[2]}]" if case.key[2] else case.key[1]
    return f"{name} ({cut_line(case.why, WHY, '…')})"


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """The exit status and why it is not 0; ``warning`` is a yellow line."""

    status: int
    reasons: tuple[str, ...] = ()
    warning: str = ""


def exit_status(
    cases: Mapping[str, Any],
    *,
    gates: Sequence[Gate] = (),
    pytest_status: int = 0,
    strict: bool = False,
    all_reviewed: bool = False,
) -> ExitStatus:
    """Return the exit status of a run from its ``cases`` (document header),
    its gates and pytest's own status.

    pytest's status knows usage errors (4), broken files and interrupts (2), internal errors (3) and
    failing ordinary tests (1). ``all_reviewed`` is ``agenteval_unreviewed = fail``. Under gates a failed
    case is reported as xfailed, so it is 0 or 5 for them. Rule: results.md, Exit codes and gates.
    """
    if pytest_status in (2, 3, 4):
        return ExitStatus(pytest_status)
    words = [("errors", "ended in an error"), ("not_run", "did not run")]
    if not gates:
        words.insert(0, ("failed", "failed"))
    reasons = [f"{cases[key]} of {cases['total']} cases {word}" for key, word in words if cases[key]]
    reasons += [gate.text for gate in gates if not gate.holds]
    if all_reviewed and cases.get("unreviewed"):
        reasons.append(f"nobody has approved {cases['unreviewed']} of {cases['total']} cases")
    judged = cases["passed"] + cases["failed"] + cases["xfailed"]
    waiting = cases["review"] + cases.get("quarantined", 0)
    ran = judged + cases["errors"] + waiting
    warning = ""
    if ran and not judged:
        only_review = waiting == ran
        if strict or not only_review:
            reasons.append("nothing could be judged")
        else:
            warning = f"nothing was judged: {waiting} to review"
    if strict and cases["review"] and judged:
        reasons.append(f"{cases['review']} of {cases['total']} cases check nothing (--agent-strict)")
    if reasons:
        return ExitStatus(1, tuple(reasons), warning)
    return ExitStatus(pytest_status, (), warning)
