"""docs/checks.md names every check and every field, and is what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.governance.policy_checks import CHECKS

DOCS = Path(__file__).parents[2] / "docs"
REGISTRY = default_registry()


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_checks", DOCS / "generate_checks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page():
    return (DOCS / "checks.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_generator_writes(generator, page):
    assert page == generator.filled(page), "run python docs/generate_checks.py"


@pytest.mark.parametrize("kind", REGISTRY.types)
def test_every_check_has_a_section_with_all_of_its_fields(kind, page):
    assert f"### {kind}\n" in page
    section = page.split(f"### {kind}\n")[1].split("\n## ")[0].split("\n### ")[0]
    common = page.split("## Every check")[1].split("\n## ")[0]
    for name, field in REGISTRY.model(kind).model_fields.items():
        word = field.alias or name
        assert word == "type" or f"| `{word}` |" in section + common, f"{kind}.{word} is not documented"


def test_every_list_is_on_the_page(generator, page):
    for words in generator.LISTS.values():
        for word in words:
            assert f"*{word}*" in page


def test_every_check_of_a_policy_is_documented():
    page = (DOCS / "governance.md").read_text(encoding="utf-8")
    order = [
        line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and "fails" not in line
    ]
    assert [name for name, _ in CHECKS] == [name for name in order if name in dict(CHECKS)]
