"""What makes a YAML document a case: it asks something, and it checks something.

The rule stands in spec/cases.md, "Which files are cases". Only the first entry of a file is looked at:
its top level, the first entry of a list or of ``cases:``, the first of several documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_agenteval.cases.yaml_reader import ASKING, MappingEntry, Node, Reader

CHECKING = ("sql", "sql_file", "assertions", "expect", "expected_response", "outcome")
"""The keys that check, whatever they hold; ``expected`` checks where it holds a table."""

_OUTCOMES = ("answer", "refuse", "clarify", "no_data")
_EXPECT = (
    "text", "pattern", "value", "called", "not_called", "notCalled", "asked", "judge", "python", "outcome"
)  # fmt: skip
_FOREIGN = ("services", "interactions", "models", "sources", "seeds", "snapshots", "macros", "unit_tests")
"""Top-level keys of compose files, cassettes and dbt's property files."""


@dataclass(frozen=True, slots=True)
class CaseSigns:
    """The first key of a document that asks, and the first that checks (``None``: there is none)."""

    asks: str | None = None
    checks: str | None = None

    @property
    def shown(self) -> str:
        """``'prompt' and 'sql'``: why a file is taken for a case."""
        return " and ".join(repr(key) for key in (self.asks, self.checks) if key is not None)


def signs_of(roots: list[Node], *, form: bool = False) -> CaseSigns:
    """Return the signs of the first entry of a file's documents.

    ``form``: a key counts as a check only with a value that a case could have there, so that the
    files of other programs (``outcome: pass``, ``expect: 3``) do not look like cases.
    """
    root = roots[0] if roots else None
    if root is None or root.id == "scalar":
        return CaseSigns()
    defaults: Mapping[str, MappingEntry] = {}
    if root.id == "mapping":
        top = _entries(root)
        if "cases" in top and top["cases"].value.id == "sequence":
            if "defaults" in top:
                defaults = _entries(top["defaults"].value)
            root = top["cases"].value
    if root.id == "sequence":
        root = root.value[0] if root.value else None
    entries = _entries(root)
    asks = next((key for key in ASKING if key in entries), None)
    return CaseSigns(asks, _check_of(entries, form) or _check_of(defaults, form) or _of_turns(entries, form))


def is_foreign(roots: list[Node]) -> bool:
    """Return whether the file is another program's for sure: compose, a cassette, dbt's properties."""
    return any(key in _FOREIGN for key in _entries(roots[0])) if roots else False


def _entries(node: Node | None) -> dict[str, MappingEntry]:
    return Reader(Path()).entries(node) if node is not None and node.id == "mapping" else {}


def _of_turns(entries: Mapping[str, MappingEntry], form: bool) -> str | None:
    """Return a check of a turn: ``prompt: [{say: ..., sql: ...}]``."""
    for key in ASKING:
        turns = entries[key].value if key in entries else None
        for turn in turns.value if turns is not None and turns.id == "sequence" else ():
            said = _entries(turn)
            if "say" in said and (found := _check_of(said, form)) is not None:
                return found
    return None


def _check_of(entries: Mapping[str, MappingEntry], form: bool) -> str | None:
    for key in (*CHECKING, "expected"):
        if key in entries and (_fits(key, entries[key].value) if form or key == "expected" else True):
            return key
    return None


def _fits(key: str, node: Node) -> bool:
    """Return whether a value has the form that this key has in a case."""
    parts = node.value if node.id == "sequence" else [node]
    if key == "expected":
        if node.id == "mapping":
            return bool(_entries(node).keys() & {"rows", "file"})
        return node.id == "sequence" and all(row.id == "mapping" for row in parts)
    if key == "assertions":
        return node.id == "sequence" and all("type" in _entries(part) for part in parts)
    if key == "expect":
        return any(_entries(part).keys() & set(_EXPECT) for part in parts)
    if key == "outcome":
        return node.id == "scalar" and node.value in _OUTCOMES
    return all(part.id == "scalar" for part in parts)
