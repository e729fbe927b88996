"""How right the verdicts are, counted: every triple judged, the page written from the counts."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from corpus_triples import corpus
from found_triples import found
from shared_triples import missing, model_answers, pairs
from triples import Judged, Triple, judge_all

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-right.md"
BEGIN, END = "<!-- counted -->\n", "<!-- end -->\n"
KINDS = ("right", "false pass", "false failure", "no verdict", "not expressible")

KNOWN: dict[str, str] = {}
"""False failures that stand: the triple's id, and why the verdict is as it is."""

OWN: tuple[Callable[[], Iterator[Triple]], ...] = (corpus, lambda: corpus("comparison_faults.jsonl"), found)
SHARED: tuple[Callable[[], Iterator[Triple]], ...] = (model_answers, pairs)


def judged(sources: Sequence[Callable[[], Iterator[Triple]]]) -> list[Judged]:
    """What is said of every triple of the sources."""
    with TemporaryDirectory() as folder:
        return [one for source in sources for one in judge_all(source(), Path(folder))]


def rows(found: Sequence[Judged]) -> list[str]:
    """One line of the table for each group and form."""
    lines = []
    ordered = sorted(found, key=lambda one: (one.triple.group, one.triple.form))
    for (group, form), members in groupby(ordered, key=lambda one: (one.triple.group, one.triple.form)):
        count = Counter(one.kind for one in members)
        cells = [group, form, str(sum(count.values())), *(str(count[kind]) for kind in KINDS)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def totals(found: Sequence[Judged]) -> str:
    """``2,000 triples: 0 false passes, 0 false failures, ...``."""
    count = Counter(one.kind for one in found)
    parts = [f"{count['false pass']} false passes", f"{count['false failure']} false failures"]
    parts += [f"{count[kind]} {kind}" for kind in KINDS[3:] if count[kind]]
    return f"{len(found):,} triples: {', '.join(parts)}"


def counted_part(found: Sequence[Judged]) -> str:
    """The part of the page that is made of counts."""
    head = "| triples | form | number | " + " | ".join(KINDS) + " |"
    rule = "|---|---|--:|" + "--:|" * len(KINDS)
    lines = [f"**{totals(found)}.**", "", head, rule, *rows(found), ""]
    wrong = [one for one in found if one.kind in ("false pass", "false failure", "no verdict")]
    for one in wrong:
        reason = KNOWN.get(one.triple.id, "not looked at yet")
        lines.append(f"- {one.kind}: {one.triple.id}: {reason} (`{one.message[:100]}`)")
    lines += [""] if wrong else ["No triple is judged wrong.", ""]
    return "\n".join(lines)


def filled(text: str, part: str) -> str:
    """The page with the counted part as it is now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{part}{END}{rest.partition(END)[2]}"


def main() -> int:
    """Print the counts and, where everything is at hand, write the page; 1 when a verdict is wrong."""
    reason = missing()
    found = judged(OWN if reason else (*OWN, *SHARED))
    print(f"verdicts: {totals(found)}" + (f" ({reason})" if reason else ""))
    wrong = [one for one in found if one.kind in ("false pass", "no verdict") or one.kind == "false failure"]
    for one in wrong:
        print(f"  {one.kind}: {one.triple.id}: {one.message}")
    if reason is None and "--write" in sys.argv:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), counted_part(found)), encoding="utf-8")
    return 1 if any(one.triple.id not in KNOWN for one in wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
