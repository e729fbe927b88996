"""What comes back is bounded: output, packed answers, long words, patterns; credentials stay home."""

from __future__ import annotations

import contextlib
import gzip
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pytest_agenteval.agents.base import AgentContext
from pytest_agenteval.agents.kinds import command, http
from pytest_agenteval.checks.text import TextCheck
from pytest_agenteval.config.settings import Settings
from pytest_agenteval.errors import AgentFailed, CheckFailed
from pytest_agenteval.support.patterns import PatternTooSlow, found
from pytest_agenteval.support.text import shortened
from pytest_agenteval.types import AttemptLimits, Consumption, Evidence, Task


@contextlib.contextmanager
def program(folder: Path, text: str) -> Iterator[Any]:
    (folder / "agent.py").write_text(text, encoding="utf-8")
    context = AgentContext(root=folder, settings=Settings())
    agent: Any = command.build(f"command:{sys.executable} agent.py", context).agent
    try:
        yield agent
    finally:
        agent.close()


def test_a_program_that_prints_without_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MOST", 1024**2)
    text = "import sys\nwhile True: sys.stdout.write('yes ' * 1000)\n"
    began = time.monotonic()
    too_much = pytest.raises(AgentFailed, match="printed more than 1 MB on stdout; expected one JSON value")
    with program(tmp_path, text) as agent, too_much:
        agent.run(Task(turns=("go",), limits=AttemptLimits(timeout=20)))
    assert time.monotonic() - began < 10


def test_of_errors_without_end_the_last_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MOST_LOGGED", 100_000)
    text = "import sys\nsys.stderr.write('noise ' * 500_000 + 'the end')\nprint('[{\"n\": 1}]')\n"
    with program(tmp_path, text) as agent:
        answer = agent.run(Task(turns=("go",)))
    assert answer.data.records() == [{"n": 1}]
    assert answer.logs.endswith("the end")
    assert len(answer.logs) < 200_000


def test_what_a_program_left_in_the_background_ends_with_it(tmp_path: Path) -> None:
    text = (
        "import subprocess, sys\n"
        "left = subprocess.Popen(['sleep', '48'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "open('pid', 'w').write(str(left.pid))\nprint('[]')\n"
    )
    with program(tmp_path, text) as agent:
        agent.run(Task(turns=("go",)))
    from pytest_agenteval.support.processes import is_alive

    pid, deadline = int((tmp_path / "pid").read_text()), time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(pid)


def api(server: HTTPServer, folder: Path, **block: Any) -> Any:
    class Project:
        http = block

    context = AgentContext(root=folder, settings=Settings(retries=0), project=Project())  # type: ignore[arg-type]
    return http.build(f"http:{server.url_for('/ask')}", context).agent


def test_an_answer_packed_twice_is_refused(httpserver: HTTPServer, tmp_path: Path) -> None:
    packed = gzip.compress(gzip.compress(b"0" * 10_000_000))
    headers = {"Content-Encoding": "gzip, gzip", "Content-Type": "application/json"}
    httpserver.expect_request("/ask").respond_with_data(packed, headers=headers)
    with pytest.raises(AgentFailed, match=r"packed its answer more than once \(gzip, gzip\)"):
        api(httpserver, tmp_path).run(Task(turns=("go",)))


def test_credentials_go_to_no_other_origin(httpserver: HTTPServer, tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    def thief(request: Request) -> Response:
        seen.append(dict(request.headers))
        return Response('{"status": "done", "rows": [{"n": 1}]}', content_type="application/json")

    with HTTPServer(host="127.0.0.1") as other:
        other.expect_request("/steal").respond_with_handler(thief)
        httpserver.expect_request("/ask").respond_with_json(
            {"status": "busy", "url": other.url_for("/steal")}
        )
        agent = api(
            httpserver,
            tmp_path,
            headers={"Authorization": "Bearer zz-secret-token-99", "X-Api-Key": "k-99", "X-Trace": "t"},
            rows="$.rows",
            poll={"url": "{{ $.url }}", "status": "$.status", "done": ["done"], "every": 0.01},
        )
        assert agent.run(Task(turns=("go",))).data.records() == [{"n": 1}]
    assert "Authorization" not in seen[0]
    assert "X-Api-Key" not in seen[0]
    assert seen[0]["X-Trace"] == "t"


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\0b", "böb→"])
def test_headers_that_cannot_be_sent_are_named(httpserver: HTTPServer, tmp_path: Path, value: str) -> None:
    agent = api(httpserver, tmp_path, headers={"X-Caller": value})
    with pytest.raises(AgentFailed, match="header 'X-Caller' cannot be sent"):
        agent.run(Task(turns=("go",)))


def test_a_long_word_is_cut_before_it_is_wrapped() -> None:
    assert shortened("x" * 100) == "x" * 100
    assert " … (10,000 more characters) … x" in shortened("x" * 30_000)


def test_patterns_of_users_have_a_limit() -> None:
    began = time.monotonic()
    with pytest.raises(PatternTooSlow, match=r"was still searching after 0\.5 s in 41 characters"):
        found(r"(a+)+$", "a" * 40 + "!", seconds=0.5)
    assert time.monotonic() - began < 3
    assert found(r"(\d+,)+\d+", "1,2,3") is True
    assert found(r"total.*\d", "the total is 5") is True
    assert found(r"(\w+) \1", "is not not") is True
    assert found(r"x+y", "z" * 50_000) is False
    check = TextCheck(type="text", pattern=r"(a|a)+b")
    evidence = Evidence(prompt="p", text="a" * 60, used=Consumption())
    with pytest.raises(CheckFailed, match="write it without repetitions inside repetitions"):
        check.check(evidence)
