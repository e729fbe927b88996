"""A case file becomes items; items pass, fail and end in error as they should."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

SUM = "SELECT sum(amount) AS total FROM orders"
WRONG = "SELECT sum(amount) AS total FROM orders WHERE region = 'north'"
Write = Callable[..., None]


def document(path: Path) -> dict[str, object]:
    (file,) = sorted((path / "tests" / "outputs").glob("results_*.json"))
    loaded: dict[str, object] = json.loads(file.read_text("utf-8"))
    return loaded


def test_right_wrong_and_broken_cases(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("right", SUM)
    write_case("wrong", SUM, WRONG)
    write_case("broken_reference", "SELECT nothing FROM nowhere", SUM)
    (shop.path / "tests" / "broken_agent.yml").write_text(
        f"prompt: 'raise: the model is down'\nsql: {SUM}\n", encoding="utf-8"
    )
    result = shop.runpytest("-v")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*broken_agent.yml::broken_agent ERROR*the model is down*",
            "*broken_reference.yml::broken_reference ERROR*nowhere*",
            "*right.yml::right PASSED match*",
            "*wrong.yml::wrong FAILED values differ*",
        ]
    )


def test_the_document_has_one_entry_per_attempt(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("right", SUM)
    write_case("wrong", SUM, WRONG)
    assert shop.runpytest().ret == 1
    found = document(shop.path)
    results = found["results"]
    assert isinstance(results, list)
    assert [(r["name"], r["passed"], r["verdict"], r["attempt"]) for r in results] == [
        ("right", True, "passed", 1),
        ("wrong", False, "failed", 1),
    ]
    assert not [p for p in (shop.path / "tests" / "outputs").iterdir() if p.is_dir()]


def test_the_item_sits_in_the_yaml_file(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("right", SUM)
    result = shop.runpytest("--collect-only", "-q")
    result.stdout.fnmatch_lines(["tests/right.yml::right"])
    (item,) = shop.getitems_from if False else shop.inline_genitems()[0]
    path, line, name = item.location
    assert (path, line, name) == ("tests/right.yml", 0, "right")
    assert isinstance(item, pytest.Function)


def test_a_case_that_checks_nothing_is_for_review(shop: pytest.Pytester) -> None:
    (shop.path / "tests" / "look.yml").write_text("prompt: How are you?\n", encoding="utf-8")
    result = shop.runpytest("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*tests/look.yml:1: to review: *"])
    assert result.ret == 0
    strict = shop.runpytest("--agent-strict")
    strict.assert_outcomes(failed=1)
    assert strict.ret == 1


def test_no_agent_at_all_is_one_clear_error(shop: pytest.Pytester, write_case: Write) -> None:
    write_case("right", SUM)
    (shop.path / "conftest.py").unlink()
    result = shop.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no agent*fixture named agent*", "*--agent-target*"])
