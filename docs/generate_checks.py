"""Fill the field tables and lists of docs/checks.md from the checks: ``python docs/generate_checks.py``.

A test compares. What stands between ``<!-- fields: type -->`` (or ``<!-- list: name -->``) and
``<!-- end -->`` is written; the rest of the page is prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_agenteval.checks.base import Check
from pytest_agenteval.checks.outcome import CLARIFYING_TOOLS
from pytest_agenteval.checks.refusal_phrases import NEGATIONS, PHRASES, VERBS
from pytest_agenteval.checks.registry import default_registry

PAGE = Path(__file__).with_name("checks.md")
LISTS: dict[str, Sequence[str]] = {
    "clarifying": CLARIFYING_TOOLS,
    "negations": NEGATIONS,
    "verbs": VERBS,
    "phrases": PHRASES,
}
_MARK = re.compile(r"<!-- (fields|list): (\w+) -->(.*?)<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """The page with every table and list as the code has it."""

    def fill(match: re.Match[str]) -> str:
        kind, name, _ = match.groups()
        if kind == "list":
            return f"<!-- list: {name} -->{', '.join(f'*{word}*' for word in LISTS[name])}<!-- end -->"
        return f"<!-- fields: {name} -->\n{_table(name)}\n<!-- end -->"

    return _MARK.sub(fill, text)


def _table(name: str) -> str:
    model = Check if name == "common" else default_registry().model(name)
    common = Check.model_fields
    rows = [
        f"| `{field.alias or key}` | {field.description} | {_default(field)} |"
        for key, field in model.model_fields.items()
        if key != "type" and (name == "common" or key not in common)
    ]
    return "\n".join(["", "| field | meaning | default |", "|---|---|---|", *rows, ""])


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None:
        return ""
    if isinstance(value, tuple):
        return f"`[{', '.join(value)}]`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
