"""``Row``: the scalars of one attempt in a results document; ``CaseRow``: a case over its attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from pytest_agenteval.results.document.verdicts import Decision, decide, parse_rule
from pytest_agenteval.types import Verdict

SHORT = 500
"""Characters kept of a message in memory; the document holds it whole."""

CaseKey = tuple[str, str, str]
"""(path, name, model): the identity of a case's result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One attempt, without its tables and texts. Cost in USD, duration in ms; ``None`` is unknown."""

    name: str
    model: str
    path: str = ""
    attempt: int = 1
    nodeid: str = ""
    verdict: Verdict
    message: str = ""
    error: str | None = None
    tokens: int | None = None
    cost: float | None = None
    duration_ms: float = 0
    tool_call_count: int = 0
    stage: str | None = None
    reason: str | None = None
    why_text: str = ""
    cause: tuple[str, str, str] | None = None
    lucky: bool = False
    score: float | None = None
    k: int = 1
    pass_rule: str = "all"
    xfail: str | None = None
    owner: str | None = None
    reviewed: bool | None = None
    known: bool = False
    quarantined: bool = False
    case_hash: str = ""
    ask_hash: str = ""
    reference_hash: str | None = None
    reference_hashes: tuple[str, ...] = ()
    answered_at: str | None = None
    tags: tuple[str, ...] = ()
    usage: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> CaseKey:
        """(path, name, model)."""
        return self.path, self.name, self.model

    @property
    def why(self) -> str:
        """The message with what the comparison found, where it is known."""
        return self.why_text or self.message


def row_of(entry: Mapping[str, Any]) -> Row:
    """Return the row of a results entry of this plugin, or of nao's, dazense's or pda's."""
    passed = bool(entry.get("passed"))
    error = entry.get("error")
    verdict: Any = entry.get("verdict") or ("passed" if passed else "error" if error else "failed")
    return Row(
        name=str(entry.get("name") or ""),
        model=str(entry.get("model") or ""),
        path=entry.get("path") or "",
        attempt=entry.get("attempt") or 1,
        nodeid=entry.get("nodeid") or "",
        verdict=verdict,
        message=str(entry.get("message") or "")[:SHORT],
        error=str(error)[:SHORT] if error else None,
        tokens=entry.get("tokens"),
        cost=entry.get("cost"),
        duration_ms=entry.get("duration_ms") or 0,
        tool_call_count=entry.get("tool_call_count") or 0,
        stage=entry.get("stage"),
        reason=entry.get("reason"),
        why_text=str(entry.get("why") or "")[:SHORT],
        cause=_cause(entry),
        lucky=bool((entry.get("luck") or {}).get("found")),
        score=entry.get("score"),
        k=entry.get("k") or 1,
        pass_rule=str(entry.get("pass") or "all"),
        xfail=entry.get("xfail"),
        owner=entry.get("owner"),
        reviewed=entry.get("reviewed"),
        known=bool(entry.get("known")),
        quarantined=bool(entry.get("quarantined")),
        case_hash=entry.get("case_hash") or "",
        ask_hash=entry.get("ask_hash") or "",
        reference_hash=entry.get("reference_hash"),
        reference_hashes=tuple(entry.get("reference_hashes") or ()),
        answered_at=entry.get("answered_at"),
        tags=tuple(entry.get("tags") or ()),
        usage=usage_of(entry),
    )


def _cause(entry: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """(kind, table, column) of what is proved of a wrong answer: its cause, else a line of its SQL."""
    proved = [entry.get("cause"), *(entry.get("sql_difference") or ())]
    for found in proved:
        if isinstance(found, Mapping) and (found.get("proved") or found.get("verified")):
            return str(found.get("kind")), str(found.get("table") or ""), str(found.get("column") or "")
    return None


def usage_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage of an entry by part; other programs give the agent's tokens and cost alone."""
    if entry.get("usage"):
        return dict(entry["usage"])
    total, cost = entry.get("tokens"), entry.get("cost")
    agent = None if total is None and cost is None else {"total": total, "cost": cost}
    return {"agent": agent, "extraction": None, "judge": None}


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case with one model: its attempts and what they decide."""

    rows: Sequence[Row]
    decision: Decision
    k: int

    @property
    def key(self) -> CaseKey:
        """(path, name, model)."""
        return self.rows[0].key

    @property
    def verdict(self) -> Verdict:
        """The verdict over the attempts."""
        return self.decision.verdict

    @property
    def xfailed(self) -> bool:
        """Failed, as the case itself says it would."""
        return self.verdict == "failed" and self.rows[0].xfail is not None

    @property
    def quarantined(self) -> bool:
        """Whether the verdict counts nowhere: no one has approved the case."""
        return self.rows[0].quarantined and self.verdict in ("passed", "failed", "error")

    @property
    def counts_in_rates(self) -> bool:
        """Whether the case belongs to pass rates and gates."""
        return not self.xfailed and not self.quarantined

    @property
    def status(self) -> str:
        """What counts and tables call the case: its verdict, ``xfailed`` or ``quarantined``."""
        return "quarantined" if self.quarantined else "xfailed" if self.xfailed else self.verdict

    @property
    def flaky(self) -> bool:
        """Some attempts passed and some failed."""
        return 0 < self.decision.passed < self.decision.judged

    @property
    def counts(self) -> tuple[int, int]:
        """(passed, judged) attempts."""
        return self.decision.passed, self.decision.judged

    @property
    def deciding(self) -> Row:
        """The first attempt that shows why the verdict is what it is."""
        return next((row for row in self.rows if row.verdict == self.verdict), self.rows[0])

    @property
    def message(self) -> str:
        """What a table shows: the attempt's message; for k > 1 the count before it, if any was made."""
        return self._counted(self.deciding.message)

    @property
    def why(self) -> str:
        """The same with what the comparison found: what a person reads who has one line only."""
        return self._counted(self.deciding.why)

    def _counted(self, text: str) -> str:
        if len(self.rows) == 1 or all(row.verdict in ("not_run", "running") for row in self.rows):
            return text
        label = self.decision.label
        return f"{label}: {text}" if text and self.verdict in ("failed", "error") else label

    @property
    def score(self) -> float | None:
        """Mean of the attempts' scores; ``None`` where none has one."""
        known = [row.score for row in self.rows if row.score is not None]
        return fmean(known) if known else None


def cases_of(rows: Iterable[Row]) -> list[CaseRow]:
    """Return the cases of the rows, in the order of their first rows."""
    groups: dict[CaseKey, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.key, []).append(row)
    return [_case(group) for group in groups.values()]


def _case(rows: list[Row]) -> CaseRow:
    k = rows[0].k
    return CaseRow(rows, decide([row.verdict for row in rows], parse_rule(rows[0].pass_rule), k), k)


def with_counted_k(rows: Sequence[Row]) -> list[Row]:
    """Return rows of a file that does not say k: as many as a case has attempts."""
    count = Counter(row.key for row in rows)
    return [replace(row, k=count[row.key]) for row in rows]
