"""The lints of single cases and of a suite; none of them opens a database."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from pytest_agenteval.authoring.lints import reference_rules as rules
from pytest_agenteval.cases.model import Case
from pytest_agenteval.cases.review import review_state

Severity = Literal["error", "warning", "note"]

CODES: dict[str, str] = {
    "moving-date": "the reference gives other rows tomorrow",
    "relative-time": "the question means another period tomorrow",
    "limit-no-order": "the reference is cut without an order",
    "tie-at-limit": "the last row of the reference ties with the next (--references)",
    "order-asked": "the question asks for an order that is not checked",
    "duplicate": "the same question twice",
    "contradiction": "the same question with other references (--references)",
    "near-duplicate": "nearly the same question or reference",
    "names-in-question": "the question names tables or columns",
    "star": "the reference takes whatever columns there are",
    "unnamed": "a column of the reference has no name",
    "unit": "a share without a unit",
    "known": "the agent is shown the question or its answer",
    "unknown-table": "the database has no such table or column (--references)",
    "stale-review": "an approval that no longer holds, or a missing owner",
    "empty-reference": "the reference has no rows (--references)",
}
"""Every code and what it says; ``agenteval check --ignore`` and ``metadata.ignore`` take them."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One lint that hit: the case, the code, what triggered it and what to write instead."""

    case: Case
    code: str
    severity: Severity
    text: str
    fix: str
    at_sql: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LintContext:
    """What the lints know beside the cases. ``context`` is the text that the agent is shown."""

    dialect: Callable[[Case], str | None] = lambda case: None
    context: str = ""
    require: Sequence[str] = ()
    today: date = field(default_factory=date.today)


_UNITS = {
    "en": r"days?|weeks?|months?|quarters?|years?|hours?|minutes?|weekends?|fortnight",
    "de": r"tage?n?|wochen?|monate?n?|quartale?n?|jahre?n?|stunden?",
    "fr": r"jours?|semaines?|mois|trimestres?|ann[ée]es?|ans?|heures?",
    "es": r"d[íi]as?|semanas?|mes(?:es)?|trimestres?|a[ñn]os?|horas?",
}
_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|ten|twelve|couple of|few|zwei|drei|deux|trois|dos|tres)"
_RELATIVE = re.compile(
    "|".join(
        (
            rf"\b(?:last|past|previous|prior|this|current|next|coming|trailing)\s+(?:{_NUMBER}\s+)?"
            rf"(?:full\s+|calendar\s+|fiscal\s+|business\s+)?(?:{_UNITS['en']})\b",
            rf"\b{_NUMBER}\s+(?:{_UNITS['en']})\s+ago\b",
            r"\b(?:today|yesterday|tomorrow|tonight|right now|so far(?: this)?|year[ -]to[ -]date|"
            r"month[ -]to[ -]date|ytd|mtd|qtd)\b",
            rf"\b(?:letzte[nrsm]?|vergangene[nrsm]?|vorige[nrsm]?|diese[nrsm]?|aktuelle[nrsm]?|"
            rf"n[äa]chste[nrsm]?)\s+(?:{_NUMBER}\s+)?(?:{_UNITS['de']})\b",
            r"\b(?:heute|gestern|morgen|bisher|vorgestern)\b",
            rf"\b(?:cette|ce|cet|ces)\s+(?:{_UNITS['fr']})\b",
            rf"\b(?:{_UNITS['fr']})\s+(?:derni[eè]re?s?|pass[ée]e?s?|prochaine?s?|en cours|courante?)\b",
            rf"\bderni[eè]re?s?\s+(?:{_NUMBER}\s+)?(?:{_UNITS['fr']})\b",
            r"\b(?:aujourd'hui|hier|demain)\b",
            rf"\b(?:{_UNITS['es']})\s+(?:pasad[oa]s?|anterior(?:es)?|pr[óo]xim[oa]s?|actual)\b",
            rf"\b(?:[úu]ltim[oa]s?|est[ea]s?|pr[óo]xim[oa]s?)\s+(?:{_NUMBER}\s+)?(?:{_UNITS['es']})\b",
            r"\b(?:hoy|ayer)\b",
        )
    ),
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_ORDER = re.compile(
    r"\b(?:rank(?:ed|ing)?|sort(?:ed)?|order(?:ed)? by|"
    r"in (?:descending|ascending|alphabetical|chronological) order|"
    r"from (?:highest|lowest|largest|smallest|most|least|oldest|newest|best|worst) to|"
    r"(?:highest|largest|lowest|smallest|newest|oldest) first|alphabetically|"
    r"sortiert|absteigend|aufsteigend|tri[ée]e?s? par|class[ée]e?s? par|ordenad[oa]s? por)\b",
    re.IGNORECASE,
)
_SQL_WORDS = re.compile(
    r"\b(?:left|right|inner|outer|full|cross)\s+join\b|\bselect\s+\w+\s+from\b",
    re.IGNORECASE,
)


def question_of(case: Case) -> str:
    """Return all that the user says in a case."""
    return "\n".join(turn.say for turn in case.turns)


def normalised(text: str) -> str:
    """Return a question without case, punctuation and spaces that differ."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"\w+", folded))


def lint(cases: Sequence[Case], context: LintContext) -> Iterator[LintFinding]:
    """Yield every finding that needs no database, those of a case together, in the order of ``CODES``."""
    suite = _suite_findings(cases)
    for case in cases:
        found = [*_case_findings(case, context), *suite.get(id(case), ())]
        order = list(CODES)
        yield from sorted(found, key=lambda finding: order.index(finding.code))


def ignored(case: Case) -> frozenset[str]:
    """Return the codes that a case silences: ``metadata.ignore``, a list, a text, or a map with reasons."""
    held = case.metadata.get("ignore") or ()
    return frozenset([held] if isinstance(held, str) else map(str, held))


def _case_findings(case: Case, context: LintContext) -> Iterator[LintFinding]:
    question = question_of(case)
    yield from _question_findings(case, question)
    for sql in case.statements:
        tree = rules.parsed(sql, context.dialect(case))
        if tree is not None:
            yield from _reference_findings(case, question, sql, tree, context)
    yield from _review_findings(case, context)
    text = normalised(context.context)
    shown = case.metadata.get("known") is True
    if shown or (text and len(question.split()) > 2 and normalised(question) in text):
        yield LintFinding(case, "known", "note", "the agent is shown this question", "count it apart")


def _question_findings(case: Case, question: str) -> Iterator[LintFinding]:
    hit = _RELATIVE.search(question)
    said = " ".join([str(value) for value in (case.vars or {}).values()] + [case.context or ""])
    if hit and not _YEAR.search(question) and not _YEAR.search(said):
        yield LintFinding(
            case, "relative-time", "warning", f"the question says {hit[0]!r} and no year",
            "name the period: in March 2025",
        )  # fmt: skip


def _reference_findings(
    case: Case, question: str, sql: str, tree: Any, context: LintContext
) -> Iterator[LintFinding]:
    def found(code: str, severity: Severity, text: str, fix: str) -> LintFinding:
        return LintFinding(case, code, severity, text, fix, at_sql=True)

    if moving := rules.moves_with_time(sql, context.dialect(case)):
        yield found("moving-date", "warning", f"the reference uses {moving}", "write the date that is meant")
    if rules.limit_without_order(tree):
        yield found(
            "limit-no-order", "warning", "the reference has a LIMIT and no ORDER BY",
            "order it by what decides, to the last row",
        )  # fmt: skip
    ordered = case.comparison.get("ordered") is True
    if (asked := _ORDER.search(question)) and not (ordered and tree.args.get("order")):
        fix = "set comparison.ordered: true" if tree.args.get("order") else "give the reference an ORDER BY"
        yield found(
            "order-asked", "warning", f"the question says {asked[0]!r}, and the order is not checked", fix
        )
    names = sorted(name for name in rules.identifiers(tree) if _says(question, name))
    words = [hit[0] for hit in _SQL_WORDS.finditer(question)]
    if names or words:
        yield found(
            "names-in-question", "note", f"the question says {', '.join(map(repr, [*names, *words][:3]))}",
            "ask as a person would who has not seen the tables",
        )  # fmt: skip
    if rules.selects_star(tree):
        yield found("star", "note", "the reference selects *", "name the columns that the answer needs")
    if expression := rules.unnamed(tree):
        yield found("unnamed", "note", f"the column {expression[:60]} has no name", "give it one with AS")
    if len(case.sql) < 2 and (share := rules.share_without_unit(tree)):
        yield found(
            "unit", "note", f"{share[:60]!r} is a share of 1 or of 100, and its name does not say which",
            "name it share or percent, or accept both: a list of references, or comparison.percent: either",
        )  # fmt: skip


def _says(question: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", question, re.IGNORECASE) is not None


def _review_findings(case: Case, context: LintContext) -> Iterator[LintFinding]:
    def found(text: str, fix: str) -> LintFinding:
        return LintFinding(case, "stale-review", "warning", text, fix)

    expires = case.metadata.get("expires")
    state = review_state(case, context.today)
    if expires is not None and _is_past(expires, context.today):
        yield found(f"it expired on {expires}", "look at it again and move `expires`")
    elif state == "stale":
        yield found(
            "its prompt or reference is not what was approved, or the approval has expired",
            "look at it, then agenteval review --approve",
        )
    if "owner" in context.require and not case.owner:
        yield found("it has no owner", "write owner: NAME")
    if "reviewed" in context.require and state in ("unreviewed", "unknown"):
        yield found("nobody has approved it", "agenteval review --approve")


def _is_past(day: object, today: date) -> bool:
    try:
        return date.fromisoformat(str(day)[:10]) < today
    except ValueError:
        return True


def _suite_findings(cases: Sequence[Case]) -> dict[int, list[LintFinding]]:
    """Return duplicates and near duplicates by the case that comes second."""
    out: dict[int, list[LintFinding]] = defaultdict(list)
    first: dict[Any, Case] = {}
    singles = []
    for case in cases:
        if case.variant_of is not None:
            continue
        key = duplicate_key(case)
        if not key[0]:
            continue
        if key in first:
            other = first[key]
            out[id(case)].append(
                LintFinding(
                    case,
                    "duplicate",
                    "warning",
                    f"asks the same as {other.name!r} ({_place(other)})",
                    "keep one of them",
                )
            )
        else:
            first[key] = case
            singles.append(case)
    for case, other, why in _near(singles):
        out[id(case)].append(
            LintFinding(
                case,
                "near-duplicate",
                "note",
                f"{why} {other.name!r} ({_place(other)})",
                "make it a variant of the other (`variants`), or say what differs",
            )
        )
    return out


def duplicate_key(case: Case) -> tuple[Any, ...]:
    """Return what two cases share that ask the same: question, database, caller, context, vars."""
    return (
        normalised(question_of(case)), case.database, repr(case.caller), case.context or "",
        repr(case.vars or {}), repr(case.input),
    )  # fmt: skip


def _place(case: Case) -> str:
    return f"{case.path.name}:{case.line}"


NEAR = 0.8
"""Share of words that two near questions have in common (Jaccard)."""


def _near(cases: Sequence[Case]) -> Iterator[tuple[Case, Case, str]]:
    """Yield (case, an earlier one, what they share), one for each case at most.

    Only pairs that share one of their rarest words can be near: the rest is not compared.
    """
    words = [frozenset(normalised(question_of(case)).split()) for case in cases]
    count: dict[str, int] = defaultdict(int)
    for held in words:
        for word in held:
            count[word] += 1
    index: dict[str, list[int]] = defaultdict(list)
    shapes: dict[str, Case] = {}
    for at, (case, held) in enumerate(zip(cases, words, strict=True)):
        rare = sorted(held, key=lambda word: (count[word], word))
        prefix = rare[: len(held) - int(NEAR * len(held) + 0.999) + 1]
        earlier = dict.fromkeys(number for word in prefix for number in index[word])
        near = next((n for n in earlier if len(held) > 3 and _jaccard(held, words[n]) >= NEAR), None)
        shape = _shape(case)
        if near is not None:
            yield case, cases[near], "asks nearly the same as"
        elif shape and shape in shapes:
            yield case, shapes[shape], "has a reference that differs only in its values from that of"
        shapes.setdefault(shape, case)
        for word in prefix:
            index[word].append(at)


def _jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / len(left | right)


def _shape(case: Case) -> str:
    """Return the reference without its literals ('': none, several, or one without literals)."""
    if len(case.statements) != 1:
        return ""
    tree = rules.parsed(case.statements[0], None)
    if tree is None or not re.search(r"'|\d", case.statements[0]):
        return ""
    return f"{case.database}|{rules.shape_of(case.statements[0], tree)}"
