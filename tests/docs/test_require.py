"""The rule of tests/conftest.py: what TEST_REQUIRE names may not be skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

TESTS = """
import pytest

pytestmark = [pytest.mark.filterwarnings("ignore")]

@pytest.mark.postgres
def test_by_mark():
    pytest.skip("no server here")

@pytest.mark.postgres
def test_of_two_needs():
    pytest.skip("needs ../shared/data, which is not here")

def test_by_reason():
    pytest.skip("needs Chromium, which is not installed")

def test_of_another_kind():
    pytest.skip("needs a camera")

@pytest.mark.xfail(reason="postgres is slow")
def test_xfail():
    assert False
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("TEST_REQUIRE", raising=False)
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makeini("[pytest]\nmarkers =\n  postgres: a server\n")
    pytester.makepyfile(TESTS)
    return pytester


def test_a_bare_machine_skips_by_name(project: pytest.Pytester) -> None:
    project.runpytest_inprocess("-p", "no:asyncio", "-rs").assert_outcomes(skipped=4, xfailed=1)


def test_a_required_server_or_browser_is_no_reason_to_skip(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_REQUIRE", "postgres, chromium")
    result = project.runpytest_inprocess("-p", "no:asyncio")
    result.assert_outcomes(failed=2, skipped=2, xfailed=1)
    result.stdout.fnmatch_lines_random(
        [
            "*TEST_REQUIRE=postgres, yet this was skipped:*no server here*",
            "*TEST_REQUIRE=chromium, yet this was skipped:*needs Chromium*",
        ]
    )


def test_a_skipped_module_counts_too(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    project.makepyfile(test_module="import pytest\npytest.importorskip('postgres_driver_that_is_not_here')\n")
    project.runpytest_inprocess("-p", "no:asyncio", "test_module.py").assert_outcomes(skipped=1)
    monkeypatch.setenv("TEST_REQUIRE", "postgres")
    result = project.runpytest_inprocess("-p", "no:asyncio", "test_module.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TEST_REQUIRE=postgres, yet this was skipped:*"])
