"""The keys of governance files: a misspelt one would switch a rule off without a word.

A key close to a known one is an error. Another is a warning in the policy and at the top of a bundle, where
rules stand; elsewhere people keep notes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_agenteval.governance.section import FileSection
from pytest_agenteval.support.text import closest

CLOSE = 0.75
"""How near (difflib's ratio) an unknown key must be to a known one to be a slip: as in case files."""

NOTES = ("description", "display_name", "label", "name", "notes", "owner", "owners", "title")
"""What people write beside the rules."""


@dataclass(frozen=True, slots=True)
class FileKeys:
    """The keys of a mapping: ``plain`` ones, and ``inner`` ones, which hold mappings with known keys.

    ``each``: it is a mapping, a list of such, or a mapping of names to such. ``reported``: a key that is
    not near a known one is warned of.
    """

    plain: str = ""
    inner: Mapping[str, FileKeys] = field(default_factory=dict)
    each: Literal["itself", "list", "names"] = "itself"
    reported: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.plain.split(), *self.inner)


POLICY = FileKeys(
    "version",
    {
        "defaults": FileKeys(
            "max_rows max_preview_rows require_limit_for_raw_rows require_time_filter_for_fact_tables "
            "time_filter_max_days_default",
            reported=True,
        ),
        "pii": FileKeys("mode tags columns", reported=True),
        "certification": FileKeys("prefer require_for_execute_sql require_for_query_metrics", reported=True),
        "joins": FileKeys("enforce_bundle_allowlist allow_cross_bundle", reported=True),
        "execution": FileKeys(
            "allow_execute_sql allow_query_metrics require_contract require_bundle",
            {"sql_validation": FileKeys("mode disallow_multi_statement enforce_limit", reported=True)},
            reported=True,
        ),
    },
    reported=True,
)
_SIDE = FileKeys("schema table column")
BUNDLE = FileKeys(
    "version bundle_id use_cases",
    {
        "warehouse": FileKeys("type database_id"),
        "tables": FileKeys("schema table", each="list"),
        "joins": FileKeys("type", {"left": _SIDE, "right": _SIDE}, "list"),
        "defaults": FileKeys(
            "time_column_by_table require_time_filter_for_tables max_rows data_start_date demo_current_date",
            reported=True,
        ),
        "certification": FileKeys("level"),
        "eval_test_cases": FileKeys("id prompt category expected", each="list"),
    },
    reported=True,
)
SEMANTICS = FileKeys(
    "version",
    {
        "models": FileKeys(
            "table schema primary_key time_dimension",
            {
                "dimensions": FileKeys("column", each="names"),
                "joins": FileKeys("to_model foreign_key related_key type", each="names"),
                "measures": FileKeys(
                    "type column", {"filters": FileKeys("column operator value", each="list")}, "names"
                ),
            },
            "names",
        )
    },
)
RULES = FileKeys(
    "version",
    {
        "rules": FileKeys("name category severity applies_to description guidance", each="list"),
        "classifications": FileKeys("name columns tags", each="list"),
    },
)


def check_keys(section: FileSection, keys: FileKeys) -> None:
    """Tell the section's reader of every unknown key in it and below."""
    for word in section.names():
        if word in keys.inner:
            for part in _parts(section, word, keys.inner[word].each):
                check_keys(part, keys.inner[word])
        elif word not in keys.words and not word.startswith("x-"):
            _unknown(section, word, keys)


def _parts(section: FileSection, word: str, each: str) -> list[FileSection]:
    if each == "list":
        return section.listed(word)
    inner = section.section(word)
    return [inner] if each == "itself" else [part for _, part in inner.sections()]


def _unknown(section: FileSection, word: str, keys: FileKeys) -> None:
    near = closest(word, keys.words, CLOSE)
    if near is not None:
        section.reader.error(section.at(word), f"unknown key {word!r}, did you mean {near!r}?")
    elif keys.reported and word not in NOTES:
        known = ", ".join(sorted(keys.words))
        section.reader.warn(section.at(word), f"unknown key {word!r}: nothing reads it; known: {known}")
