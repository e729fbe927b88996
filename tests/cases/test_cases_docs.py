"""docs/cases.md names every key, every check with its fields, every limit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_agenteval.cases import yaml_reader as document
from pytest_agenteval.cases.dataset_cases import EXPECTED
from pytest_agenteval.cases.fields import EXPECT_PART, KEYS
from pytest_agenteval.checks.expect_shorthand import EXPECT_KEYS
from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.config.connections import BUILDERS

PAGE = (Path(__file__).parents[2] / "docs" / "cases.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_has_a_row(key: object) -> None:
    name, aliases = key.name, key.aliases  # type: ignore[attr-defined]
    row = re.search(rf"^\| `{name}`.*$", PAGE, re.MULTILINE)

    assert row
    assert all(f"`{alias}`" in row[0] for alias in aliases)


@pytest.mark.parametrize("word", default_registry().types)
def test_every_check_and_field_is_there(word: str) -> None:
    table = PAGE[PAGE.index("| type | fields") :]
    row = re.search(rf"^\| `{word}` \|.*$", table, re.MULTILINE)
    model = default_registry().model(word)
    fields = {field.alias or name for name, field in model.model_fields.items()}
    fields -= {"type", "name", "severity", "turn"}

    assert row
    assert {field for field in fields if f"`{field}`" not in row[0]} == set()


def test_expect_says_the_same_in_the_schema_the_checks_and_the_page() -> None:
    assert set(EXPECT_PART["properties"]) == set(EXPECT_KEYS)
    section = PAGE[PAGE.index("### expect") : PAGE.index("## Errors")]
    assert all(f"`{key}" in section for key in EXPECT_KEYS)


def test_limits_databases_and_governance_words_are_right() -> None:
    assert f"{document.MAX_DEPTH} levels" in PAGE
    assert f"{document.MAX_ALIASES:,} aliases" in PAGE
    assert f"{document.MAX_VALUES:,} values" in PAGE
    assert f"{document.MAX_BYTES // 1024 // 1024} MiB" in PAGE
    assert all(kind in PAGE for kind in BUILDERS)
    assert all(f"`{word}" in PAGE for word in EXPECTED)
