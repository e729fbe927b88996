"""Under a frozen clock durations, limits and stamps are of the real one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

FREEZERS = {
    "freezegun": "from freezegun import freeze_time\nFREEZE = freeze_time('2024-03-01')",
    "time_machine": "import time_machine\nFREEZE = time_machine.travel('2024-03-01', tick=False)",
}
CONFTEST = """
import datetime, time, pytest
{freezer}

@pytest.fixture(autouse=True)
def frozen():
    with FREEZE:
        yield

@pytest.fixture
def agent():
    def ask(task):
        time.sleep(0.3)
        return [{{"day": str(datetime.date.today())}}]
    return ask
"""


@pytest.fixture(params=FREEZERS)
def frozen(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest(CONFTEST.format(freezer=FREEZERS[request.param]))
    pytester.mkdir("tests")
    return pytester


def test_time_is_measured_and_stamped_as_it_is(frozen: pytest.Pytester) -> None:
    case = "prompt: today?\nexpected: [{day: '2024-03-01'}]\n"
    (frozen.path / "tests" / "one.yml").write_text(case)
    (frozen.path / "tests" / "two.yml").write_text(case + "budget: {duration_ms: 100}\n")
    result = frozen.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines([r".*budget: [34567]\d\d of 100 ms"])
    (file,) = (frozen.path / "tests" / "outputs").glob("results_*.json")
    document = json.loads(file.read_text())
    assert datetime.fromisoformat(document["timestamp"]).astimezone(UTC) > datetime.now(UTC) - timedelta(
        hours=1
    )
    for entry in document["results"]:
        assert 300 <= entry["duration_ms"] < 10_000
        answered = datetime.fromisoformat(entry["answered_at"])
        assert abs(answered - datetime.now(UTC)) < timedelta(hours=1)


def test_a_limit_of_time_holds(frozen: pytest.Pytester) -> None:
    (frozen.path / "tests" / "one.yml").write_text("prompt: today?\nexpected: [{day: x}]\ntimeout: 0.1\n")
    result = frozen.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no answer within 0.1 s*"])
