"""What agents print where calls overlap: it neither crashes the process nor fills its memory."""

from __future__ import annotations

import io
import sys
import threading
import tracemalloc

import pytest

from pytest_agenteval.agents.runtime.output_capture import LARGEST, Output, OutputRouter, Routed


def test_a_stream_has_one_router_for_the_life_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    router, first, second = OutputRouter(), io.StringIO(), io.StringIO()
    seen = []
    for target in (first, second, first, second):  # as pytest switches its capturing
        monkeypatch.setattr(sys, "stdout", target)
        router.install()
        seen.append(sys.stdout)
    router.remove()
    assert seen[0] is seen[2] is not seen[1] is seen[3]
    assert all(isinstance(stream, Routed) for stream in seen)
    assert sys.stdout is second


def test_the_middle_of_a_long_output_is_left_out() -> None:
    output = Output()
    for number in range(100_000):
        output.write(f"step {number:05}\n")
    text = output.text()
    assert text.startswith("step 00000\nstep 00001\n")
    assert text.endswith("step 99998\nstep 99999\n")
    left_out = 100_000 * 11 - LARGEST
    assert f"\n... {left_out} characters ...\n" in text
    assert len(text) == LARGEST + len(f"\n... {left_out} characters ...\n")
    short = Output()
    short.write("a" * (LARGEST // 2))
    short.write("b" * (LARGEST // 2))
    assert short.text() == "a" * (LARGEST // 2) + "b" * (LARGEST // 2)
    short.write("c")
    assert "... 1 characters ..." in short.text()


def test_output_takes_no_more_memory_than_it_shows() -> None:
    output, block = Output(), "x" * 1_000_000
    tracemalloc.start()
    for _ in range(50):
        output.write(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000
    assert f"... {50_000_000 - LARGEST} characters ..." in output.text()


def test_threads_write_whole_texts() -> None:
    output = Output()

    def write(letter: str) -> None:
        for _ in range(500):
            output.write(letter * 50 + "\n")

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = output.text().splitlines()
    assert (len(lines), {len(set(line)) for line in lines}) == (1500, {1})


AGENT = """
import pytest
@pytest.fixture(scope="session")
def agent():
    def ask(prompt):
        for number in range(4000):
            print(f"step {number}: {prompt}")
        return [{"n": int(prompt)}]
    return ask
"""


def test_agents_that_print_all_the_time_do_not_end_the_process(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest(AGENT)
    for number in range(24):
        text = f"prompt: '{number}'\nexpected: [{{n: {number}}}]\n"
        pytester.path.joinpath(f"c{number:02}.yml").write_text(text, "utf-8")
    files = sorted(path.name for path in pytester.path.glob("*.yml"))
    result = pytester.runpytest_subprocess("-q", "--agent-concurrency", "8", *files)
    assert result.ret == 0
    result.assert_outcomes(passed=24)
