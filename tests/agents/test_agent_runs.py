"""Whole runs of pytest: agents that hang, print, overlap, are interrupted, and know secrets."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

CASE = "prompt: {prompt}\nexpected:\n  - {{n: 3}}\n"
# plugins of this environment that these runs do not need: they double the time to start
ADDOPTS = (
    "-p no:hypothesispytest -p no:asyncio -p no:random_order -p no:rerunfailures -p no:pytest_httpserver"
)
ENVIRON = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTEVAL_", "PYTEST_", "GITHUB_"))}


class Project:
    """A folder with a conftest and cases, in which pytest is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "tests").mkdir()

    def conftest(self, text: str) -> None:
        (self.folder / "conftest.py").write_text(textwrap.dedent(text))

    def case(self, name: str, prompt: str | None = None) -> None:
        (self.folder / "tests" / f"{name}.yml").write_text(CASE.format(prompt=prompt or name))

    def start(self, *words: str, **environ: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
            cwd=self.folder,
            env={**ENVIRON, "COLUMNS": "120", "PYTEST_ADDOPTS": ADDOPTS, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str, **environ: str) -> tuple[int, str]:
        process = self.start(*words, **environ)
        out, _ = process.communicate(timeout=90)
        return process.returncode, out

    def rows(self) -> dict[str, dict]:
        (path,) = (self.folder / "tests" / "outputs").glob("results_*.json")
        return {row["name"]: row for row in json.loads(path.read_text())["results"]}

    def journals(self) -> str:
        return "".join(path.read_text() for path in (self.folder / "tests" / "outputs").rglob("*.jsonl"))


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


STUCK = """
    import duckdb, pytest

    @pytest.fixture(scope="session")
    def agent():
        def ask(prompt):
            connection = duckdb.connect()
            while prompt == "stuck":
                connection.execute("select sum(range) from range(20000)").fetchall()
            return [{"n": 3}]
        return ask
    """


@pytest.mark.parametrize("how", ["thread", "overlap"])
def test_an_agent_stuck_in_c_code_costs_its_own_case_and_nothing_else(project, how):
    project.conftest(STUCK)
    for name in ("first", "stuck", "third"):
        project.case(name)
    more = ["-o", "agenteval_thread=true"] if how == "thread" else ["--agent-concurrency", "2"]
    status, out = project.run("--agent-timeout", "1", *more)
    assert status == 1, out
    rows = project.rows()
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "first": "passed", "stuck": "error", "third": "passed",
    }  # fmt: skip
    assert (rows["stuck"]["stage"], rows["stuck"]["reason"]) == ("timeout", "timeout")
    assert rows["stuck"]["error"].startswith("no answer within 1 s (was at conftest.py:9)")


def test_in_the_main_thread_the_timeout_is_journalled_five_seconds_past_the_deadline(project):
    project.conftest(
        """
        import hashlib, pytest

        @pytest.fixture
        def agent():
            def ask(prompt):
                hashlib.pbkdf2_hmac("sha512", b"x", b"y", 60_000_000)  # C code that no signal ends
                return [{"n": 3}]
            return ask
        """
    )
    project.case("stuck")
    process = project.start("--agent-timeout", "0.5")
    started = time.monotonic()
    try:
        while '"timeout"' not in project.journals():
            assert time.monotonic() - started < 20, project.journals()
            assert process.poll() is None, "it ended before the watchdog spoke"
            time.sleep(0.1)
        assert time.monotonic() - started > 5.5
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    assert "still blocks the main thread" in project.journals()


def test_prints_and_logs_of_overlapping_agents_land_in_their_own_case(project):
    project.conftest(
        """
        import logging, sys, threading, pytest

        both = threading.Barrier(2)

        @pytest.fixture(scope="session")
        def agent():
            def ask(prompt):
                print("asked", prompt)
                both.wait(10)
                logging.getLogger("shop").error("logged %s", prompt)
                print("done", prompt, file=sys.stderr)
                return [{"n": 4}]
            return ask
        """
    )
    project.case("one")
    project.case("two")
    status, out = project.run("--agent-concurrency", "2")
    assert status == 1
    for name, other in (("one", "two"), ("two", "one")):
        section = re.search(rf"_+ {name} _+\n(.*?)(?=\n_+ \w+ _+\n|\n=+ )", out, re.DOTALL)
        assert section, out
        assert f"asked {name}\nERROR shop: logged {name}\ndone {name}" in section[1], out
        assert f"asked {other}" not in section[1]


def test_ctrl_c_stops_new_calls_and_names_those_under_way(project):
    project.conftest(
        """
        import time, pytest

        @pytest.fixture(scope="session")
        def agent():
            def ask(prompt):
                with open("asked.txt", "a") as log:
                    print(prompt, file=log)
                time.sleep(60)
            return ask
        """
    )
    for number in range(6):
        project.case(f"c{number}")
    process = project.start("--agent-concurrency", "2")
    asked = project.folder / "asked.txt"
    try:
        for _ in range(300):
            if asked.exists() and len(asked.read_text().split()) == 2:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert time.monotonic() - started < 10
    assert process.returncode == 2
    assert len(asked.read_text().split()) == 2
    assert re.search(r"agent calls: 4 cancelled, 2 abandoned \(.*c0.*, .*c1.*\)", out), out


CANARIES = {
    "SHOP_TOKEN": "canary-token-41x",
    "SHOP_HEADER": "canaryheader",
    "SHOP_DB": "postgresql://maya:canary-pw-42y@127.0.0.1:9/shop",
    "SHOP_TICKET": "canary in words",
    "ANOTHER_API_KEY": "canary0another",
}
PLANTED = ("canary-token-41x", "canaryheader", "canary-pw-42y", "canary in words", "canary0another")


def test_no_secret_reaches_anything_that_is_written(project, httpserver):
    from werkzeug import Request, Response

    def echo(request: Request) -> Response:
        """An agent that tells all it knows."""
        known = f"{dict(request.headers)} {request.data.decode()} {CANARIES}"
        if b"fail" in request.data:
            return Response(json.dumps({"error": known}), status=400)
        rows = [{"n": 4, "leak": known}]
        call = {"name": "execute_sql", "args": {"sql": f"select '{known}'"}, "result": rows}
        return Response(json.dumps({"text": known, "data": rows, "tool_calls": [call]}))

    httpserver.expect_request("/ask").respond_with_handler(echo)
    (project.folder / "agenteval.yaml").write_text(
        textwrap.dedent(
            f"""
            target: "http:{httpserver.url_for("/ask")}"
            databases:
              - {{name: shop, type: postgres, url: "{{{{ env('SHOP_DB') }}}}"}}
            http:
              headers:
                Authorization: "Bearer {{{{ env('SHOP_TOKEN') }}}}"
                X-Api: "{{{{ env('SHOP_HEADER') }}}}"
              body: {{question: "{{{{ prompt }}}}", ticket: "{{{{ env('SHOP_TICKET') }}}}"}}
            """
        )
    )
    # the journals are gone once the document is complete: keep a copy
    project.conftest(
        """
        import os, shutil, pytest

        def pytest_agenteval_document(config, document):
            for folder, _, names in os.walk(config.rootpath / "tests" / "outputs"):
                for name in names:
                    shutil.copy(os.path.join(folder, name), config.rootpath / f"copy-{name}")

        @pytest.fixture
        def raises():
            key = os.environ["ANOTHER_API_KEY"]
            print("opening a pool with", key)
            raise ValueError(f"pool of {key}")
        """
    )
    project.case("tells")
    project.case("fails", "fail")
    (project.folder / "tests" / "reference.yml").write_text("prompt: q\nsql: select 1\ndatabase: shop\n")
    (project.folder / "tests" / "fixture.yml").write_text(
        "prompt: q\nsetup: raises\nexpect: {outcome: answer, text: x}\n"
    )
    status, out = project.run(
        "-l", "-v", "-rA", "-n", "2", "--agent-concurrency", "2", "--junitxml=junit.xml", "--json-report",
        "--json-report-file=report.json", "--agent-record", "recorded.jsonl", "--agent-summary", "summary.md",
        "--agent-html", "report.html", **CANARIES,
    )  # fmt: skip
    assert status == 1, out
    verdicts = {name: row["verdict"] for name, row in project.rows().items()}
    assert verdicts == {"tells": "failed", "fails": "error", "reference": "error", "fixture": "error"}
    files = [path for path in project.folder.rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert names >= {"junit.xml", "report.json", "recorded.jsonl", "summary.md"}
    assert any(name.startswith("copy-") and name.endswith(".jsonl") for name in names), names
    texts = {"terminal": out, **{path.name: path.read_text(errors="replace") for path in files}}
    found = [
        (name, text[max(text.find(word) - 80, 0) : text.find(word) + 40])
        for name, text in texts.items()
        for word in PLANTED
        if word in text
    ]
    assert found == []


@pytest.mark.parametrize(
    ("scope", "events"), [("function", "enter ask exit " * 2), ("session", "enter ask ask exit")]
)
def test_an_async_agent_is_left_when_its_fixture_is_torn_down(pytester, scope, events):
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(
        f"""
        import pytest

        def note(word):
            with open("events.txt", "a") as log:
                print(word, file=log)

        class Agent:
            async def __aenter__(self):
                note("enter")

            async def __aexit__(self, *error):
                note("exit")

            async def run(self, task):
                note("ask")
                return [{{"n": 3}}]

        @pytest.fixture(scope="{scope}")
        def agent():
            return Agent()
        """
    )
    (pytester.path / "tests").mkdir()
    for name in ("one", "two"):
        (pytester.path / "tests" / f"{name}.yml").write_text(CASE.format(prompt=name))
    pytester.runpytest_inprocess("-p", "no:asyncio").assert_outcomes(passed=2)
    assert (pytester.path / "events.txt").read_text().split() == events.split()


def test_a_misspelt_path_into_an_http_answer_is_said_where_no_data_came(project, httpserver):
    httpserver.expect_request("/ask").respond_with_json({"answer": "3 orders", "rows": [{"n": 3}]})
    (project.folder / "agenteval.yaml").write_text(
        f'target: "http:{httpserver.url_for("/ask")}"\nhttp: {{text: $.answer, rows: $.rowz}}\n'
    )
    project.case("one")
    status, out = project.run()
    assert status == 1, out
    said = "http.rows: $.rowz found nothing; the answer has the keys answer, rows"
    words = " ".join(out.split())
    assert f"the agent returned no table; 1 row expected; {said}" in words
    assert "Captured agent call" in out
    # in the diagnosis and in the log (in the short summary, too, where nothing is cut)
    assert words.count(said) >= 2
    assert project.rows()["one"]["message"] == "no data returned"
