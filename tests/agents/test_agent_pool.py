"""The pool behind --agent-concurrency, and how a process ends when calls do not."""

import contextvars
import gc
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from concurrent.futures import CancelledError

import pytest

from pytest_agenteval.agents.runtime.call_pool import CallPool, PoolReport


@pytest.fixture
def pool():
    made = CallPool(2)
    yield made
    made.shutdown(0)


def test_the_window_is_four_times_the_size_and_the_size_when_the_run_may_stop_early():
    assert CallPool(3).window == 12
    assert CallPool(3, stops_early=True).window == 3


def test_at_most_size_calls_run_at_once_in_the_order_they_came(pool):
    running, most, order, lock = [], [], [], threading.Lock()

    def call(number):
        with lock:
            running.append(number)
            order.append(number)
            most.append(len(running))
        time.sleep(0.02)
        with lock:
            running.remove(number)
        return number

    futures = [pool.submit(f"c{n}", lambda n=n: call(n)) for n in range(8)]
    assert [future.result(5) for future in futures] == list(range(8))
    assert max(most) == 2
    assert order == sorted(order)
    assert pool.shutdown() == PoolReport()


def test_threads_are_made_only_when_calls_wait(pool):
    before = threading.active_count()
    for _ in range(5):
        pool.submit("x", lambda: 1).result(5)
        time.sleep(0.01)
    assert threading.active_count() - before == 1


def test_results_that_were_taken_are_not_held(pool):
    class Large:
        pass

    future = pool.submit("x", Large)
    held = weakref.ref(future.result(5))
    del future
    pool.submit("y", lambda: 1).result(5)
    gc.collect()
    assert held() is None


def test_each_call_gets_a_copy_of_the_context_it_was_submitted_in(pool):
    variable = contextvars.ContextVar("v", default="none")
    variable.set("first")
    first = pool.submit("a", lambda: (variable.get(), variable.set("changed"))[0])
    assert first.result(5) == "first"
    variable.set("second")
    assert pool.submit("b", variable.get).result(5) == "second"
    assert variable.get() == "second"


def test_errors_come_out_of_the_future_interrupts_too(pool):
    def fails():
        raise KeyboardInterrupt

    with pytest.raises(ZeroDivisionError):
        pool.submit("a", lambda: 1 / 0).result(5)
    with pytest.raises(KeyboardInterrupt):
        pool.submit("b", fails).result(5)


def test_stop_cancels_what_waits_and_the_report_names_every_call():
    pool = CallPool(2)
    gate, begun = threading.Event(), threading.Semaphore(0)

    def waits():
        begun.release()
        gate.wait(10)

    done = pool.submit("used", lambda: 1)
    assert done.result(5) == 1
    unused = pool.submit("unused", lambda: 2)
    while not unused.done():
        time.sleep(0.001)
    pool.submit("slow", waits)
    pool.submit("slower", waits)
    begun.acquire()
    begun.acquire()
    waiting = pool.submit("waiting", lambda: 3)
    pool.stop()
    late = pool.submit("late", lambda: 4)
    with pytest.raises(CancelledError):
        waiting.result(5)
    assert late.cancelled()
    started = time.monotonic()
    report = pool.shutdown(0.1)
    assert time.monotonic() - started < 1
    assert report == PoolReport(("waiting", "late"), ("slow", "slower"), ("unused",))
    assert report.summary() == "agent calls: 2 cancelled, 2 abandoned (slow, slower), 1 finished unused"
    assert PoolReport().summary() == ""
    gate.set()


def test_a_call_cancelled_while_it_waits_is_not_run(pool):
    gate, ran = threading.Event(), []
    blockers = [pool.submit("x", lambda: gate.wait(10)) for _ in range(2)]
    third = pool.submit("y", lambda: ran.append(1))
    assert third.cancel()
    gate.set()
    assert [future.result(5) for future in blockers] == [True, True]
    pool.submit("z", lambda: None).result(5)
    assert ran == []


def run(code, timeout=60):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout
    )


def test_calls_that_go_on_do_not_keep_the_process_alive():
    started = time.monotonic()
    found = run(
        """
        import time
        from pytest_agenteval.agents.runtime.call_pool import CallPool
        pool = CallPool(4)
        for n in range(4):
            pool.submit(str(n), lambda: time.sleep(60))
        time.sleep(0.1)
        print(pool.shutdown(0.1).summary())
        """
    )
    assert found.stdout.startswith("agent calls: 4 abandoned")
    assert (found.returncode, found.stderr) == (0, "")
    assert time.monotonic() - started < 20


def test_a_c_extension_in_an_abandoned_thread_does_not_change_the_exit_code():
    """Without the last word the interpreter aborts (SIGABRT) or crashes while it shuts down."""
    found = run(
        """
        import duckdb, logging, sys, time
        from pytest_agenteval.agents.runtime.runtime import AgentRuntime
        from pytest_agenteval.agents.runtime.call_pool import leave_hard_at_exit
        from pytest_agenteval.agents.targets import adapt
        from pytest_agenteval.errors import AgentTimeout
        from pytest_agenteval.types import Task

        def agent(prompt):
            connection = duckdb.connect()
            while True:
                connection.execute("select sum(range) from range(20000)").fetchall()

        runtime = AgentRuntime(thread=True)
        try:
            runtime.call(adapt(agent, "x"), Task(("q",)), timeout=0.3, key="stuck")
        except AgentTimeout as error:
            print(error)
        left = runtime.shutdown(0.2)
        print(left)
        sys.stdout.write("not flushed yet")
        if left:
            leave_hard_at_exit(lambda: 1)
        """
    )
    assert found.returncode == 1, found.stderr
    assert "no answer within 0.3 s" in found.stdout
    assert "('stuck',)" in found.stdout
    assert found.stdout.endswith("not flushed yet")
