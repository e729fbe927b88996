"""From the verdicts of k attempts to the verdict of the case (shared by a run, merge, rescore, resume)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_agenteval.cases.model import PassRule
from pytest_agenteval.types import Verdict

VERDICT_CONTRACT = "2"
"""The version of the rules that verdicts follow; files that do not say it were judged by "1"."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict of a case and its count in words: ``4/5``, ``3/3 (+2 errors)``, ``1/1 (+1 not run)``.

    ``passed`` of ``judged`` attempts passed; ``judged`` leaves errors, reviews and missing attempts out.
    """

    verdict: Verdict
    label: str
    passed: int
    judged: int


def decide(verdicts: Sequence[Verdict], rule: PassRule, k: int) -> Decision:
    """Return the case's verdict over its attempts.

    Attempts of ``k`` that are not in ``verdicts`` count as not run; a merged case may have more than
    ``k``, then all of them count. An attempt without a verdict on the answer (error, not_run, review)
    counts neither way: when the others decide ``rule`` whatever it would have been, that is the
    verdict; else the case is running, before error, before not_run, before review.
    """
    total = max(k, len(verdicts))
    count = Counter(verdicts)
    count["not_run"] += total - len(verdicts)
    passed, failed = count["passed"], count["failed"]
    needed = rule.needed(total)
    verdict: Verdict
    if passed >= needed:
        verdict = "passed"
    elif total - failed < needed:
        verdict = "failed"
    else:
        order: tuple[Verdict, ...] = ("running", "error", "not_run", "review")
        verdict = next(word for word in order if count[word])
    return Decision(verdict, _label(count), passed, passed + failed)


def _label(count: Counter[Verdict]) -> str:
    aside = [
        (count["error"], "error" if count["error"] == 1 else "errors"),
        (count["running"], "running"),
        (count["not_run"], "not run"),
        (count["review"], "to review"),
    ]
    words = ", ".join(f"{number} {word}" for number, word in aside if number)
    return f"{count['passed']}/{count['passed'] + count['failed']}" + (f" (+{words})" if words else "")


def parse_rule(text: str | None) -> PassRule:
    """Return the rule as a results file spells it: ``all``, ``any``, ``majority``, ``0.67``, ``2/3``.

    ``None`` or a spelling that is not understood is ``all``, the strictest.
    """
    if not text or text == "all":
        return PassRule()
    if text in ("any", "majority"):
        return PassRule(text=text)
    upper, slash, lower = text.partition("/")
    try:
        share = float(upper) / float(lower) if slash else float(text)
    except (ValueError, ZeroDivisionError):
        return PassRule()
    return PassRule(text=text, share=share)
