"""command: a real program is started, spoken to and ended."""

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from pytest_agenteval.agents.base import AgentContext
from pytest_agenteval.agents.runtime.runtime import AgentRuntime
from pytest_agenteval.agents.targets import make_agent
from pytest_agenteval.errors import AgentFailed, AgentTimeout, SettingsError
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.types import AttemptLimits, Task


@pytest.fixture
def runtime():
    made = AgentRuntime()
    yield made
    assert made.shutdown() == ()


@pytest.fixture
def program(tmp_path, runtime):
    def make(code, *turns, timeout=20.0, environ=None, secrets=(), **more):
        (tmp_path / "agent.py").write_text("import json, sys\n" + textwrap.dedent(code))
        context = AgentContext(
            root=tmp_path, environ={**os.environ, **(environ or {})}, redactor=Redactor(secrets)
        )
        agent = make_agent(f"command:{sys.executable} agent.py", context)
        return runtime.call(agent, Task(turns or ("how many?",), **more), timeout=timeout)

    return make


def test_the_task_is_json_on_stdin_and_the_answer_json_on_stdout(program):
    answer = program(
        """
        task = json.load(sys.stdin)
        print("thinking", file=sys.stderr)
        json.dump({"text": json.dumps(task), "data": [{"n": 1}], "cost": 0.5,
                   "tool_calls": [{"name": "execute_sql", "args": {"sql": "select 1"}}]}, sys.stdout)
        """,
        model="a:b",
        databases={"shop": "duckdb:///copy.duckdb"},
        caller={"role": "support"},
        approve=("refund",),
        limits=AttemptLimits(tokens=100),
        attempt=2,
    )
    task = json.loads(answer.text)
    assert 15 < task["limits"].pop("timeout") <= 20
    assert task == {
        "prompt": "how many?",
        "turns": ["how many?"],
        "model": "a:b",
        "database": None,
        "databases": {"shop": "duckdb:///copy.duckdb"},
        "caller": {"role": "support"},
        "vars": {},
        "context": None,
        "approve": ["refund"],
        "clarification": False,
        "input": None,
        "conversation": None,
        "attempt": 2,
        "limits": {"tokens": 100, "cost": None, "tool_calls": None},
    }
    assert answer.data.records() == [{"n": 1}]
    assert answer.tool_calls[0].name == "execute_sql"
    assert (answer.cost, answer.logs) == (0.5, "thinking\n")
    assert answer.duration_ms > 1


def test_the_program_does_not_learn_which_test_runs(program):
    answer = program(
        "import os\nprint(json.dumps(','.join(sorted(os.environ))))",
        environ={"PYTEST_CURRENT_TEST": "tests/total_revenue.yml::total_revenue (call)", "SHOP": "1"},
    )
    assert "PYTEST_CURRENT_TEST" not in answer.text.split(",")
    assert "SHOP" in answer.text.split(",")


@pytest.mark.parametrize(
    ("printed", "text", "records"),
    [('"42 orders"', "42 orders", None), ('[{"n": 1}]', "", [{"n": 1}]), ("7", "7", None)],
)
def test_text_rows_and_a_number_are_answers_too(program, printed, text, records):
    answer = program(f"sys.stdin.read(); print({printed!r})")
    assert answer.text == text
    assert (answer.data and answer.data.records()) == records


def test_typed_values_come_back_typed(program):
    answer = program(
        """print('[{"n": {"$type": "decimal", "value": "1.10"}, "big": 1180591620717411303424}]')"""
    )
    assert str(answer.data.column(0)[0]) == "1.10"
    assert answer.data.column(1) == [2**70]


def test_a_conversation_is_one_call_per_turn(program):
    answer = program(
        """
        task = json.load(sys.stdin)
        said = [m["content"] for m in task["conversation"] or [] if m["role"] == "user"]
        print(json.dumps(" > ".join([*said, task["prompt"]])))
        """,
        "one",
        "two",
        "three",
    )
    assert answer.text == "one > two > three"
    assert [turn.text for turn in answer.turns] == ["one", "one > two", "one > two > three"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("print('oops', file=sys.stderr); sys.exit(3)", "ended with exit code 3; its stderr ends:\noops"),
        ("raise ValueError('no table')", "ended with exit code 1; its stderr ends:\nTraceback"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("sys.stdin.read()", "printed nothing; expected one JSON value on stdout"),
        (
            "print('Hello!')",
            "printed no JSON (Expecting value: line 1 column 1 (char 0)): 'Hello!'; expected one",
        ),
        ("print('{\"txt\": 1}')", "answered with an unknown key 'txt', did you mean 'text'?"),
        ("print('null')", "the agent returned None (did it forget to return its answer?): command "),
        ("print('[' * 100000)", "printed no JSON"),
        ('print(\'{"data": {"$type": "x", "value": 1}}\')', "printed no JSON (unknown $type 'x'"),
    ],
)
def test_what_goes_wrong_is_said_with_the_programs_own_words(program, code, text):
    with pytest.raises(AgentFailed) as caught:
        program(code)
    assert f"command {sys.executable} agent.py" in str(caught.value)
    assert text in str(caught.value)


def test_secrets_in_a_programs_words_are_masked(program):
    with pytest.raises(AgentFailed) as caught:
        program("print('key is canary-12345', file=sys.stderr); sys.exit(1)", secrets=["canary-12345"])
    assert str(caught.value).endswith("its stderr ends:\nkey is ***")


def test_the_deadline_ends_the_program_and_everything_it_started(program, tmp_path):
    started = time.monotonic()
    with pytest.raises(AgentTimeout) as caught:
        program(
            """
            import subprocess, time, signal
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
            open("pid", "w").write(str(child.pid))
            print("waiting for the warehouse", file=sys.stderr, flush=True)
            time.sleep(60)
            """,
            timeout=1.5,
        )
    assert time.monotonic() - started < 3.5
    assert str(caught.value).startswith(f"no answer within 1.5 s from command {sys.executable} agent.py; ")
    assert str(caught.value).endswith("its stderr ends:\nwaiting for the warehouse")
    child = int((tmp_path / "pid").read_text())
    for _ in range(50):
        if not alive(child):
            break
        time.sleep(0.02)
    assert not alive(child)


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_daemon_that_keeps_the_pipe_open_does_not_hold_us_up(program):
    started = time.monotonic()
    with pytest.raises(AgentTimeout):
        program(
            """
            import subprocess
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(8)"], start_new_session=True)
            print('"done"', flush=True)
            """,
            timeout=0.7,
        )
    assert time.monotonic() - started < 4


def test_a_program_that_is_not_there_is_named(tmp_path, runtime):
    agent = make_agent("command:no-such-program --fast", AgentContext(root=tmp_path))
    with pytest.raises(AgentFailed, match=r"cannot start command no-such-program --fast in .*: No such file"):
        runtime.call(agent, Task(("x",)), timeout=5)


def test_a_bad_command_is_a_usage_error():
    with pytest.raises(
        SettingsError, match=r"command: names no program; for example command:python agent.py"
    ):
        make_agent("command:")
    with pytest.raises(SettingsError, match=r"No closing quotation"):
        make_agent("command:python 'x")


def test_a_large_task_and_a_large_answer_pass(program):
    answer = program("task = json.load(sys.stdin); print(json.dumps(task['prompt'] * 2))", "x" * 1_000_000)
    assert len(answer.text) == 2_000_000


def test_ctrl_c_ends_the_program(tmp_path, runtime):
    import signal
    import threading

    (tmp_path / "agent.py").write_text(
        "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    )
    agent = make_agent(f"command:{sys.executable} agent.py", AgentContext(root=tmp_path))

    def interrupt():
        for _ in range(500):
            if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
                break
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        runtime.call(agent, Task(("x",)), timeout=20)
    assert not alive(int((tmp_path / "pid").read_text()))


def test_nothing_is_left_running():
    found = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True)
    assert "agent.py" not in found.stdout


def test_programs_of_overlapping_calls_are_ended_when_the_run_ends(tmp_path):
    from pytest_agenteval.agents.runtime.call_pool import CallPool

    (tmp_path / "agent.py").write_text(
        "import os, time\nopen(f'pid-{os.getpid()}', 'w').close()\ntime.sleep(60)\n"
    )
    agent = make_agent(f"command:{sys.executable} agent.py", AgentContext(root=tmp_path))
    runtime, pool = AgentRuntime(overlapping=True), CallPool(3)
    for number in range(3):
        pool.submit(str(number), lambda: runtime.call(agent, Task(("x",)), timeout=50))
    for _ in range(500):
        if len(list(tmp_path.glob("pid-*"))) == 3:
            break
        time.sleep(0.02)
    assert pool.shutdown(0).abandoned == ("0", "1", "2")
    assert runtime.shutdown() == ()
    assert not any(alive(int(path.name.partition("-")[2])) for path in tmp_path.glob("pid-*"))
