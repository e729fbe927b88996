"""Calling Python agents: deadlines, threads, event loop, errors with their place."""

import asyncio
import contextvars
import os
import re
import signal
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pytest_agenteval.agents.runtime.runtime import AgentRuntime
from pytest_agenteval.agents.targets import adapt
from pytest_agenteval.errors import AgentFailed, AgentTimeout, BudgetSpent
from pytest_agenteval.types import Answer, Task, ToolCall, Usage


@pytest.fixture
def runtime():
    made = AgentRuntime()
    yield made
    assert made.shutdown() == ()


def ask(runtime, obj, *turns, timeout=5.0, **more):
    task = Task(turns=turns or ("how many?",), **more)
    return runtime.call(adapt(obj, "fixture 'agent'"), task, timeout=timeout)


def here():
    return sys._getframe(1).f_lineno


def test_sync_agent_runs_in_the_main_thread_and_is_timed(runtime):
    seen = []

    def agent(prompt):
        seen.append(threading.current_thread())
        time.sleep(0.02)
        return f"asked: {prompt}"

    answer = ask(runtime, agent)
    assert answer.text == "asked: how many?"
    assert seen == [threading.main_thread()]
    assert 15 < answer.duration_ms < 2000


def test_task_is_given_whole_with_a_deadline(runtime):
    def agent(task):
        left = task.limits.deadline - time.monotonic()
        return f"{task.model} {task.caller} {task.limits.timeout} {0 < left <= 7}"

    assert ask(runtime, agent, model="a:b", caller="maya", timeout=7).text == "a:b maya 7 True"


@pytest.mark.parametrize(("kind", "own"), [("nao", True), ("pda", True), ("http", False), ("python", False)])
def test_a_duration_is_that_of_the_server_where_it_is_nao_s(runtime, kind, own):
    def agent(prompt):
        time.sleep(0.02)
        return Answer(text="done", duration_ms=5.0)

    told = replace(adapt(agent, "fixture 'agent'"), kind=kind)
    answer = runtime.call(told, Task(turns=("how many?",)), timeout=5)
    assert (answer.duration_ms == 5.0) == own
    silent = replace(adapt(lambda prompt: "done", "fixture 'agent'"), kind=kind)
    assert runtime.call(silent, Task(turns=("x",)), timeout=5).duration_ms < 2000


def test_sync_agent_is_interrupted_at_its_deadline_and_the_place_is_named(runtime):
    def agent(prompt):
        line.append(here() + 1)
        time.sleep(30)

    line: list[int] = []
    started = time.monotonic()
    with pytest.raises(AgentTimeout) as caught:
        ask(runtime, agent, timeout=0.1)
    assert time.monotonic() - started < 2
    assert (
        str(caught.value) == f"no answer within 0.1 s (was at tests/agents/test_agent_calling.py:{line[0]})"
    )
    assert caught.value.stage == "timeout"


def test_an_agent_that_catches_exceptions_cannot_swallow_the_deadline(runtime):
    def agent(prompt):
        for _ in range(3):
            try:
                time.sleep(30)
            except Exception:
                continue
        return "late"

    with pytest.raises(AgentTimeout):
        ask(runtime, agent, timeout=0.1)


def test_an_answer_after_the_deadline_counts_as_none_even_if_the_alarm_was_swallowed(runtime):
    def agent(prompt):
        try:
            time.sleep(30)
        except BaseException:
            time.sleep(0.1)
        return "late"

    with pytest.raises(AgentTimeout, match=r"no answer within 0\.1 s"):
        ask(runtime, agent, timeout=0.1)


def test_somebody_elses_alarm_is_restored_with_the_time_that_is_left(runtime):
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
    started = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    try:
        with pytest.raises(AgentTimeout):
            ask(runtime, lambda prompt: time.sleep(5), timeout=0.1)
        assert not rung
        time.sleep(0.5)
        assert len(rung) == 1
        assert 0.35 < rung[0] - started < 0.8
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_earlier_alarm_is_left_alone(runtime):
    class TheirsError(Exception):
        pass

    def ring(signum, frame):
        raise TheirsError("stop")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(AgentFailed, match=r"TheirsError: stop"):
            ask(runtime, lambda prompt: time.sleep(5), timeout=3)
        assert signal.getsignal(signal.SIGALRM) is ring
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_watchdog_speaks_while_the_main_thread_is_blocked(runtime, monkeypatch):
    monkeypatch.setattr("pytest_agenteval.agents.runtime.deadlines.WATCHDOG_GRACE", 0.1)
    spoken = []

    def agent(prompt):
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            try:
                time.sleep(0.05)
            except BaseException:
                continue

    with pytest.raises(AgentTimeout):
        runtime.call(
            adapt(agent, "x"), Task(("q",)), timeout=0.1, on_overdue=lambda: spoken.append(time.monotonic())
        )
    assert len(spoken) == 1


def test_no_watchdog_for_an_agent_in_time(runtime, monkeypatch):
    monkeypatch.setattr("pytest_agenteval.agents.runtime.deadlines.WATCHDOG_GRACE", 0.0)
    spoken = []
    runtime.call(
        adapt(lambda prompt: "x", "x"), Task(("q",)), timeout=0.1, on_overdue=lambda: spoken.append(1)
    )
    time.sleep(0.3)
    assert spoken == []


def test_with_thread_the_deadline_is_hard_and_the_call_is_named_when_left():
    runtime = AgentRuntime(thread=True)
    gate = threading.Event()
    where = []

    def agent(prompt):
        where.append(threading.current_thread())
        while not gate.is_set():
            pass

    started = time.monotonic()
    with pytest.raises(
        AgentTimeout, match=r"no answer within 0\.2 s \(was at tests/agents/test_agent_calling.py:"
    ):
        runtime.call(adapt(agent, "x"), Task(("q",)), timeout=0.2, key="total_revenue")
    assert time.monotonic() - started < 2
    assert where[0] is not threading.main_thread()
    assert runtime.shutdown(wait=0.1) == ("total_revenue",)
    gate.set()


def test_context_variables_reach_an_agent_in_a_thread():
    variable = contextvars.ContextVar("tenant", default="none")
    variable.set("acme")
    runtime = AgentRuntime(thread=True)
    assert ask(runtime, lambda prompt: variable.get()).text == "acme"
    assert runtime.shutdown() == ()


def test_async_agents_share_one_loop_and_are_cancelled_at_the_deadline(runtime):
    loops, cancelled = [], []

    async def agent(prompt):
        loops.append(asyncio.get_running_loop())
        if prompt == "hang":
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise
        return prompt

    assert ask(runtime, agent, "a").text == "a"
    started = time.monotonic()
    with pytest.raises(
        AgentTimeout, match=r"within 0\.1 s \(was at tests/agents/test_agent_calling.py:\d+\)"
    ):
        ask(runtime, agent, "hang", timeout=0.1)
    assert time.monotonic() - started < 1.5
    assert cancelled == [True]
    assert ask(runtime, agent, "b").text == "b"
    assert len({id(loop) for loop in loops}) == 1


def test_an_agents_own_timeout_error_is_its_error_not_the_deadline(runtime):
    async def agent(prompt):
        raise TimeoutError("upstream")

    with pytest.raises(AgentFailed, match=r"TimeoutError: upstream") as caught:
        ask(runtime, agent)
    assert not isinstance(caught.value, AgentTimeout)


def test_an_async_agent_that_blocks_the_loop_is_left_and_the_next_gets_a_new_loop(monkeypatch):
    monkeypatch.setattr("pytest_agenteval.agents.runtime.event_loop.CANCEL_GRACE", 0.2)
    runtime = AgentRuntime(thread=True)
    gate = threading.Event()

    async def blocks(prompt):
        gate.wait(30)

    async def fine(prompt):
        return "fine"

    with pytest.raises(
        AgentTimeout, match=r"within 0\.1 s \(was at tests/agents/test_agent_calling.py:\d+\)"
    ):
        ask(runtime, blocks, timeout=0.1)
    assert ask(runtime, fine).text == "fine"
    names = runtime.shutdown(wait=0.3)
    assert any("event loop" in name for name in names)
    gate.set()


def test_a_sync_callable_may_return_a_coroutine(runtime):
    async def inner(prompt):
        return f"inner {prompt}"

    assert ask(runtime, lambda prompt: inner(prompt), "q").text == "inner q"


class Entered:
    def __init__(self):
        self.events = []

    async def __aenter__(self):
        self.events.append("enter")
        self.loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *exc):
        self.events.append("exit")

    async def run(self, task):
        assert asyncio.get_running_loop() is self.loop
        return task.prompt


def test_an_async_context_manager_is_entered_once_on_the_loop_and_left_at_the_end():
    runtime = AgentRuntime()
    agent = Entered()
    assert ask(runtime, agent, "a").text == "a"
    assert ask(runtime, agent, "b").text == "b"
    assert agent.events == ["enter"]
    assert runtime.shutdown() == ()
    assert agent.events == ["enter", "exit"]


def test_release_leaves_an_agent_whose_fixture_is_torn_down(runtime):
    agent = Entered()
    made = adapt(agent, "fixture 'agent'")
    runtime.call(made, Task(("a",)), timeout=5)
    runtime.release(made)
    assert agent.events == ["enter", "exit"]


def test_new_attempt_gives_every_attempt_an_agent_of_its_own(runtime):
    made = []

    class Session:
        def __init__(self):
            self.said = []

        def __call__(self, prompt):
            self.said.append(prompt)
            return " | ".join(self.said)

    class Agent:
        def new_attempt(self):
            made.append(Session())
            return made[-1]

    agent = Agent()
    assert ask(runtime, agent, "a", "b").text == "a | b"
    assert ask(runtime, agent, "c").text == "c"
    assert len(made) == 2


def test_new_attempt_may_be_async_and_give_a_context_manager(runtime):
    made = []

    class Agent:
        async def new_attempt(self):
            made.append(Entered())
            return made[-1]

    assert ask(runtime, Agent(), "a").text == "a"
    assert made[0].events == ["enter", "exit"]


def test_what_the_agent_raises_is_named_with_its_place_and_kept_as_cause(runtime):
    def agent(prompt):
        line.append(here() + 1)
        raise ValueError("no such table: orders")

    line: list[int] = []
    with pytest.raises(AgentFailed) as caught:
        ask(runtime, agent)
    assert (
        str(caught.value)
        == f"ValueError: no such table: orders (tests/agents/test_agent_calling.py:{line[0]})"
    )
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("thread", [False, True])
def test_exit_in_an_agent_is_its_error_and_ctrl_c_passes(thread):
    runtime = AgentRuntime(thread=thread)

    def leaves(prompt):
        sys.exit(3)

    def interrupted(prompt):
        raise KeyboardInterrupt

    with pytest.raises(AgentFailed, match=r"the agent called exit \(SystemExit: 3\)"):
        ask(runtime, leaves)
    with pytest.raises(KeyboardInterrupt):
        ask(runtime, interrupted)
    with pytest.raises(AgentFailed, match=r"the agent called pytest\.skip: not today; skip"):
        ask(runtime, lambda prompt: pytest.skip("not today"))
    with pytest.raises(AgentFailed, match=r"the agent called pytest\.fail: no answer \(") as caught:
        ask(runtime, lambda prompt: pytest.fail("no answer"))
    assert "skip" not in str(caught.value)
    with pytest.raises(pytest.fail.Exception, match="from pytest-timeout"):
        ask(runtime, lambda prompt: pytest.fail("Timeout (>3.0s) from pytest-timeout."))
    assert runtime.shutdown() == ()


def test_a_group_of_exceptions_says_what_is_in_it(runtime):
    async def agent(prompt):
        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(fails(number))

    async def fails(number):
        if number == 4:
            raise ExceptionGroup("inner", [KeyError("price")])
        raise ValueError(f"no rate {number}")

    with pytest.raises(AgentFailed) as caught:
        ask(runtime, agent)
    text = re.sub(r" \([^()]*test_agent_calling\.py:\d+\)", "", str(caught.value))
    assert text == (
        "ExceptionGroup: unhandled errors in a TaskGroup (5 sub-exceptions): ValueError: no rate 0; "
        "ValueError: no rate 1; ValueError: no rate 2; and 2 more"
    )
    with pytest.raises(AgentFailed, match=r"sub-exception\): KeyError: 'price' \("):
        ask(runtime, lambda prompt: asyncio.run(fails(4)))


def test_sqlite_in_another_thread_gets_a_hint():
    runtime = AgentRuntime(thread=True)
    connection = sqlite3.connect(":memory:")
    with pytest.raises(AgentFailed, match=r"open it inside the agent, or with check_same_thread=False"):
        ask(runtime, lambda prompt: connection.execute("select 1").fetchall())
    connection.close()


def test_a_client_of_another_loop_gets_a_hint(runtime):
    elsewhere = asyncio.new_event_loop()
    waiting = elsewhere.create_future()

    async def agent(prompt):
        await waiting

    with pytest.raises(AgentFailed, match=r"make the client inside the agent or in its __aenter__"):
        ask(runtime, agent)
    elsewhere.close()


def test_a_conversation_is_asked_turn_by_turn_and_merged(runtime):
    seen = []

    def agent(task):
        seen.append((task.turns, task.conversation))
        return Answer(
            text=f"answer {len(task.turns)}",
            tool_calls=(ToolCall(f"tool{len(task.turns)}"),),
            usage=Usage(input=10, output=1),
            cost=0.5,
            steps=1,
        )

    answer = ask(runtime, agent, "one", "two", "three")
    assert [turns for turns, _ in seen] == [("one",), ("one", "two"), ("one", "two", "three")]
    assert seen[0][1] is None
    assert seen[2][1] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "answer 1"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "answer 2"},
    ]
    assert answer.text == "answer 3"
    assert [(call.name, call.turn) for call in answer.tool_calls] == [
        ("tool1", 0),
        ("tool2", 1),
        ("tool3", 2),
    ]
    assert [turn.text for turn in answer.turns] == ["answer 1", "answer 2", "answer 3"]
    assert (answer.usage.tokens, answer.cost, answer.steps) == (33, 1.5, 3)


def test_the_agents_own_conversation_is_handed_back_to_it(runtime):
    def agent(task):
        return Answer(text="x", conversation={"thread": (task.conversation or {"thread": 0})["thread"] + 1})

    assert ask(runtime, agent, "a", "b", "c").conversation == {"thread": 3}


def test_one_deadline_covers_all_turns_and_the_turn_is_named(runtime):
    def agent(task):
        time.sleep(0.06)
        if len(task.turns) == 2:
            raise RuntimeError("lost")
        return "x"

    with pytest.raises(AgentFailed, match=r"turn 2 of 2: RuntimeError: lost"):
        ask(runtime, agent, "a", "b")
    with pytest.raises(AgentTimeout):
        ask(runtime, lambda task: time.sleep(0.06) or "x", *"abcdef", timeout=0.15)


def test_cost_of_a_conversation_is_unknown_when_one_turns_is(runtime):
    def agent(task):
        return Answer(text="x", cost=None if len(task.turns) == 2 else 0.1)

    assert ask(runtime, agent, "a", "b", "c").cost is None


def test_overlapping_calls_keep_their_prints_and_logs_apart(capsys, caplog):
    import logging

    runtime = AgentRuntime(overlapping=True)
    both = threading.Barrier(2)

    def agent(prompt):
        print("begin", prompt)
        both.wait(5)
        logging.getLogger("shop").warning("asked %s", prompt)
        print("end", prompt, file=sys.stderr)
        if prompt == "b":
            raise ValueError("broken")
        return prompt

    async def loop_agent(prompt):
        print("async", prompt)
        return prompt

    made = adapt(agent, "x")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(runtime.call, made, Task(("a",)), timeout=5)
        second = pool.submit(runtime.call, made, Task(("b",)), timeout=5)
        third = pool.submit(runtime.call, adapt(loop_agent, "x"), Task(("c",)), timeout=5)
        assert first.result().logs == "begin a\nWARNING shop: asked a\nend a\n"
        with pytest.raises(AgentFailed, match=r"ValueError: broken") as caught:
            second.result()
        assert caught.value.logs == "begin b\nWARNING shop: asked b\nend b\n"
        assert third.result().logs == "async c\n"
    print("ours")
    runtime.shutdown()
    assert capsys.readouterr().out == "ours\n"
    assert caplog.records == []


def test_exit_and_cancellation_in_an_async_agent_do_not_end_the_loop(runtime):
    async def agent(prompt):
        if prompt == "exit":
            sys.exit(3)
        if prompt == "cancel":
            raise asyncio.CancelledError
        if prompt == "interrupt":
            raise KeyboardInterrupt
        return prompt

    with pytest.raises(AgentFailed, match=r"the agent called exit \(SystemExit: 3\)"):
        ask(runtime, agent, "exit")
    with pytest.raises(AgentFailed, match="CancelledError: the agent was cancelled"):
        ask(runtime, agent, "cancel")
    with pytest.raises(KeyboardInterrupt):
        ask(runtime, agent, "interrupt")
    assert ask(runtime, agent, "fine").text == "fine"


def test_an_async_agent_that_swallows_its_cancellation_is_late_all_the_same(runtime):
    async def agent(prompt):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "late"

    with pytest.raises(AgentTimeout):
        ask(runtime, agent, timeout=0.1)


def test_a_sync_agent_with_a_loop_of_its_own_is_interrupted_too(runtime):
    started = time.monotonic()
    with pytest.raises(AgentTimeout):
        ask(runtime, lambda prompt: asyncio.run(asyncio.sleep(30)), timeout=0.2)
    assert time.monotonic() - started < 2


def test_overlapping_calls_enter_an_agent_once_and_wait_for_it():
    class Slow(Entered):
        async def __aenter__(self):
            await asyncio.sleep(0.05)
            return await super().__aenter__()

    runtime, agent = AgentRuntime(overlapping=True), Slow()
    made = adapt(agent, "x")
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(runtime.call, made, Task((str(n),)), timeout=5) for n in range(4)]
        assert [future.result().text for future in futures] == list("0123")
    assert runtime.shutdown() == ()
    assert agent.events == ["enter", "exit"]


def test_an_agent_that_cannot_be_entered_is_tried_again_and_one_that_cannot_be_left_warns():
    class Fails(Entered):
        async def __aenter__(self):
            if not self.events:
                self.events.append("failed")
                raise ConnectionError("no pool")
            return await super().__aenter__()

        async def __aexit__(self, *exc):
            raise RuntimeError("will not leave canary-123")

    runtime, agent = AgentRuntime(redact=lambda text: text.replace("canary-123", "***")), Fails()
    with pytest.raises(AgentFailed, match="ConnectionError: no pool"):
        ask(runtime, agent)
    assert ask(runtime, agent, "b").text == "b"
    with pytest.warns(UserWarning, match=r"leaving the agent Fails failed: .*will not leave \*\*\*"):
        assert runtime.shutdown() == ()


def test_entering_counts_against_the_deadline():
    class Hangs(Entered):
        async def __aenter__(self):
            await asyncio.sleep(30)

    runtime, agent = AgentRuntime(overlapping=True), Hangs()
    made = adapt(agent, "x")
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(runtime.call, made, Task(("x",)), timeout=0.2) for _ in range(2)]
        for future in futures:
            with pytest.raises(AgentTimeout):
                future.result()
    assert runtime.shutdown() == ()


def test_secrets_are_taken_out_of_errors_and_of_what_is_printed():
    runtime = AgentRuntime(overlapping=True, redact=lambda text: text.replace("canary-123", "***"))

    def agent(prompt):
        print("connecting with canary-123")
        if prompt == "fail":
            raise ValueError("bad password canary-123")
        return prompt

    made = adapt(agent, "x")
    with ThreadPoolExecutor(1) as pool:
        assert (
            pool.submit(runtime.call, made, Task(("a",)), timeout=5).result().logs == "connecting with ***\n"
        )
        with pytest.raises(AgentFailed, match=r"bad password \*\*\*") as caught:
            pool.submit(runtime.call, made, Task(("fail",)), timeout=5).result()
    assert caught.value.logs == "connecting with ***\n"
    runtime.shutdown()


def test_a_spent_budget_is_not_the_agents_error(runtime):
    def agent(task):
        if len(task.turns) == 2:
            raise BudgetSpent("run budget: $5.00 spent")
        return "x"

    with pytest.raises(BudgetSpent):
        ask(runtime, agent, "a", "b")


def test_what_earlier_turns_gave_stays_known_when_a_later_one_fails(runtime):
    def agent(task):
        if len(task.turns) == 3:
            raise AgentFailed("HTTP 500", answer=Answer(cost=0.5, tool_calls=(ToolCall("c"),)))
        return Answer(text="x", cost=0.25, tool_calls=(ToolCall("a"),))

    with pytest.raises(AgentFailed, match=r"^turn 3 of 3: HTTP 500$") as caught:
        ask(runtime, agent, "a", "b", "c")
    known = caught.value.answer
    assert (known.cost, [call.turn for call in known.tool_calls]) == (1.0, [0, 1, 2])


def test_long_output_is_cut_in_the_middle():
    from pytest_agenteval.agents.runtime.output_capture import LARGEST, Output

    output = Output()
    output.write("a" * LARGEST)
    output.write("b" * LARGEST)
    text = output.text()
    assert len(text) < LARGEST + 100
    assert f"\n... {LARGEST} characters ...\n" in text


def test_routed_streams_stay_streams(capsys):
    runtime = AgentRuntime(overlapping=True)
    plain = sys.stdout
    runtime.watch_output()
    runtime.watch_output()
    assert sys.stdout is not plain
    assert sys.stdout.encoding == plain.encoding
    assert sys.stdout.errors == plain.errors
    assert sys.stdout.isatty() is plain.isatty()
    assert sys.stdout.writable()
    assert not sys.stdout.closed
    assert sys.stdout.buffer is plain.buffer
    sys.stdout.close()
    print("still here")
    sys.stdout.flush()
    runtime.shutdown()
    assert sys.stdout is plain
    assert capsys.readouterr().out == "still here\n"


def test_ctrl_c_cancels_an_async_agent(runtime):
    ended = threading.Event()

    async def agent(prompt):
        os.kill(os.getpid(), signal.SIGINT)  # the waiting thread may not yet have begun to wait
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        ask(runtime, agent, timeout=60)
    assert ended.wait(20)


def test_async_agents_under_way_are_cancelled_at_the_end_of_the_run():
    runtime, begun, ended = AgentRuntime(overlapping=True), threading.Event(), threading.Event()

    async def agent(prompt):
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(runtime.call, adapt(agent, "x"), Task(("q",)), timeout=20)
        assert begun.wait(5)
        assert runtime.shutdown() == ()
        assert ended.is_set()
        with pytest.raises(AgentFailed, match="CancelledError: the agent was cancelled"):
            future.result(5)
