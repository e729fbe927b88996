"""Two runs side by side: what got worse, what got better, and whether it could be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_agenteval.results.analysis import statistics
from pytest_agenteval.results.document.document import Document
from pytest_agenteval.results.document.rows import CaseKey, CaseRow

Change = Literal["regression", "fix", "added", "removed", "unchanged", "xfailed", "other"]


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One case in both runs. ``notes`` say what else changed: ``case changed``, ``data changed``.

    ``xfailed``: the new run's failure is one that its case expects. ``other``: the verdict changed, but
    one of the two is not a verdict on the answer (error, review, not run).
    """

    change: Change
    old: CaseRow | None
    new: CaseRow | None
    notes: tuple[str, ...] = ()

    @property
    def case(self) -> CaseRow:
        """The newer one there is."""
        found = self.new or self.old
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class RunDiff:
    """All changes, in the order of the new run, removed cases last.

    ``p_value``: of the paired test over the ``paired`` cases judged in both runs, of which ``differing``
    changed; ``more_cases``: about
    how many more would settle it (``None``: the changes are balanced, or too many). ``across`` names
    the two models when one-model runs of different models were paired.
    """

    changes: Sequence[CaseChange]
    paired: int
    differing: int
    p_value: float | None
    more_cases: int | None
    context_changed: bool = False
    across: tuple[str, str] | None = None

    def of(self, change: Change) -> list[CaseChange]:
        """Return the changes of one kind."""
        return [entry for entry in self.changes if entry.change == change]

    @property
    def common(self) -> bool:
        """Some case is in both runs; without one nothing was compared."""
        return any(entry.old and entry.new for entry in self.changes)

    @property
    def worse(self) -> bool:
        """More cases (or, for k > 1, attempts) failed than before."""
        return sum(_differences(self.changes)) < 0


def diff_documents(old: Document, new: Document, *, across_models: bool = False) -> RunDiff:
    """Compare two runs case by case; the key is (path, name, model).

    A file that knows no paths (nao's) is matched by name and model where that is unambiguous. With
    ``across_models`` two runs of one model each are paired by (path, name) when the models differ.
    """
    old_cases, new_cases = old.cases, new.cases
    across = _across(old_cases, new_cases) if across_models else None
    known = _Matcher(old_cases, ignore_model=across is not None)
    changes = [_change(known.take(case), case) for case in new_cases]
    changes += [CaseChange("removed", case, None) for case in known.left()]
    differences = _differences(changes)
    contexts = old.run.get("context_hash"), new.run.get("context_hash")
    p_value, more = _test(changes, differences)
    return RunDiff(
        changes,
        paired=len(differences),
        differing=sum(d != 0 for d in differences),
        p_value=p_value,
        more_cases=more,
        context_changed=None not in contexts and contexts[0] != contexts[1],
        across=across,
    )


def _across(old: Sequence[CaseRow], new: Sequence[CaseRow]) -> tuple[str, str] | None:
    models = [{case.key[2] for case in cases} for cases in (old, new)]
    if len(models[0]) == len(models[1]) == 1 and models[0] != models[1]:
        return models[0].pop(), models[1].pop()
    return None


class _Matcher:
    """Finds the old case of a new one, each once."""

    def __init__(self, cases: Sequence[CaseRow], ignore_model: bool) -> None:
        self._ignore_model = ignore_model
        self._cases = {self._key(case.key): case for case in cases}
        self._pathless = not all(case.key[0] for case in cases)

    def _key(self, key: CaseKey) -> CaseKey:
        return (key[0], key[1], "") if self._ignore_model else key

    def take(self, case: CaseRow) -> CaseRow | None:
        key = self._key(case.key)
        found = self._cases.pop(key, None)
        if found is None and (self._pathless or not key[0]):
            found = self._cases.pop(self._by_name(key), None)
        return found

    def _by_name(self, key: CaseKey) -> CaseKey:
        near = [known for known in self._cases if known[1:] == key[1:]]
        return near[0] if len(near) == 1 else ("\0", "", "")

    def left(self) -> list[CaseRow]:
        return list(self._cases.values())


def _change(old: CaseRow | None, new: CaseRow) -> CaseChange:
    if new.quarantined:
        return CaseChange("other", old, new, ("quarantined",))
    if old is None:
        return CaseChange("xfailed" if new.xfailed else "added", None, new)
    notes = []
    if old.rows[0].case_hash and new.rows[0].case_hash and old.rows[0].case_hash != new.rows[0].case_hash:
        notes.append("case changed")
    if _data_changed(old, new):
        notes.append("data changed")
    return CaseChange(_kind(old, new), old, new, tuple(notes))


def _data_changed(old: CaseRow, new: CaseRow) -> bool:
    """Return whether a reference of the case, or of one of its turns, gives other rows than before.

    All of them are looked at: which one an attempt was compared with depends on its answer. Files that
    know only that one are compared by it.
    """
    every = [{row.reference_hashes for row in case.rows if row.reference_hashes} for case in (old, new)]
    if not all(every):
        every = [{(row.reference_hash,) for row in case.rows if row.reference_hash} for case in (old, new)]
    return all(every) and every[0] != every[1]


def _kind(old: CaseRow, new: CaseRow) -> Change:
    if new.xfailed:
        return "xfailed"
    if old.verdict == new.verdict:
        return "unchanged"
    if old.quarantined:
        return "other"
    if (old.verdict, new.verdict) == ("passed", "failed"):
        return "regression"
    return "fix" if (old.verdict, new.verdict) == ("failed", "passed") else "other"


def _pairs(changes: Sequence[CaseChange]) -> list[tuple[CaseRow, CaseRow]]:
    judged = ("passed", "failed")
    return [
        (entry.old, entry.new)
        for entry in changes
        if entry.old and entry.new and entry.old.verdict in judged and entry.new.verdict in judged
        if entry.change != "xfailed" and entry.old.counts_in_rates and entry.new.counts_in_rates
    ]


def _differences(changes: Sequence[CaseChange]) -> list[float]:
    """Return, per case judged in both runs, the new success rate less the old one."""
    return [
        new.decision.passed / max(new.decision.judged, 1) - old.decision.passed / max(old.decision.judged, 1)
        for old, new in _pairs(changes)
    ]


def _test(changes: Sequence[CaseChange], differences: Sequence[float]) -> tuple[float | None, int | None]:
    """Return McNemar's exact test at k = 1, else the sign-flip permutation test;
    and the cases still wanted.
    """
    if not differences:
        return None, None
    single = all(max(len(old.rows), len(new.rows)) == 1 for old, new in _pairs(changes))
    if not single:
        return statistics.sign_flip(differences), statistics.more_cases_by_rates(differences)
    worse, better = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
    return statistics.mcnemar(worse, better), statistics.more_cases(len(differences), worse, better)
