"""One answer to whether a process runs, for leftovers, run folders and budgets."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_agenteval.llm.budget import LedgerTotals
from pytest_agenteval.llm.file_budget import FileBudget
from pytest_agenteval.support.processes import is_alive, pid_of
from pytest_agenteval.support.shared_state import SharedState

GONE = 4194304  # above the largest process number of Linux


@pytest.fixture
def zombie() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()  # ends when the process does; nothing waits for it
    for _ in range(1000):
        if not is_alive(process.pid):
            break
    yield process.pid
    process.wait()
    process.stdout.close()


def test_a_process_of_anyone_is_alive_until_it_ends() -> None:
    assert is_alive(os.getpid())
    assert is_alive(1)
    assert not is_alive(GONE)
    assert pid_of("17:3") == 17


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="zombies are known from /proc")
def test_what_a_dead_process_reserved_is_given_back(zombie: int, tmp_path) -> None:
    ledger = LedgerTotals(reserved={f"{zombie}:1": 0.4, f"{GONE}:1": 0.1, f"{os.getpid()}:1": 0.2})
    ledger.forget_the_dead()
    assert ledger.reserved == {f"{os.getpid()}:1": 0.2}

    store = SharedState(tmp_path / "budget.json")
    with store.open() as state:
        state.update(running=[f"{zombie}:1"], used={"tokens": 50.0}, largest={"tokens": 40.0})
    with FileBudget("f.yml", {"tokens": 100}, store).attempt():
        pass  # with the dead one's 40 it would not fit


XDIST = {
    "conftest.py": """
        import os, signal
        import pytest
        from pytest_agenteval import Answer

        def answer(prompt):
            if "crash" in prompt:
                os.kill(os.getpid(), signal.SIGKILL)
            return Answer(data=[{"n": 1}], cost=0.4 if "dear" in prompt else 0.05)

        @pytest.fixture(scope="session")
        def agent():
            return answer
    """,
}


def test_a_killed_worker_keeps_no_reservation(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(XDIST["conftest.py"])
    folder = pytester.mkdir("tests")
    for number, prompt in enumerate(["dear", "crash", "cheap one", "cheap two"], 1):
        (folder / f"c{number}.yml").write_text(f"prompt: {prompt}\nexpected: [{{n: 1}}]\n")
    result = pytester.runpytest_subprocess("-n", "1", "--agent-budget", "1.0", "-p", "no:randomly")
    result.stdout.fnmatch_lines(["*cases: 3 passed, 1 error*"])
    result.stdout.no_fnmatch_line("*reserved for*")
