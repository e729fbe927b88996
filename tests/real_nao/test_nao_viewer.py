"""Our results in the viewer of nao itself: ``nao test server`` of nao-core, its page in a browser.

The page loads React and Babel from a CDN; here they come from npm, as the files that the CDN serves.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.nao, pytest.mark.chromium, pytest.mark.timeout(900)]

VARIABLE = "AGENTEVAL_TEST_NAO_DIR"
SCRIPTS = {
    "react@18": "umd/react.production.min.js",
    "react-dom@18": "umd/react-dom.production.min.js",
    "@babel/standalone@7": "babel.min.js",
}
AGENT = """\
import pytest
from pytest_agenteval.types import Answer, ToolCall, Usage


@pytest.fixture(scope="session")
def agent():
    def run(task):
        if "down" in task.prompt:
            raise ConnectionError("the server is down")
        rows = [{"n": 1 if "right" in task.prompt else 2}]
        call = ToolCall("execute_sql", {"sql_query": "SELECT 1 AS n"}, {"data": rows, "columns": ["n"]})
        usage = Usage(input=20, output=10) if "tokens" in task.prompt else None
        return Answer(text="here it is", data=rows, tool_calls=(call,), usage=usage)

    return run
"""
RUNS = {
    "unpriced": ("right with tokens", "wrong with tokens"),
    "silent": ("right", "wrong"),
    "down": ("down", "down as well"),
}


@dataclass(frozen=True)
class NaoPage:
    """A project with our results, nao's viewer of it, and a browser."""

    project: Path
    url: str
    scripts: dict[str, bytes]
    browser: Any

    def show(self) -> tuple[Any, list[str]]:
        """The page, and what went wrong in it."""
        page = self.browser.new_page()
        troubles: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))

        def serve(route: Any) -> None:
            body = next((text for name, text in self.scripts.items() if name in route.request.url), None)
            if body is None:
                route.continue_() if route.request.url.startswith(self.url) else route.abort()
            else:
                headers = {"Access-Control-Allow-Origin": "*"}
                route.fulfill(body=body, content_type="text/javascript", headers=headers)

        page.route("**/*", serve)
        page.goto(self.url)
        return page, troubles


def script_of(package: str, member: str, folder: Path) -> bytes:
    done = subprocess.run(
        ["npm", "pack", "--silent", package], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    raw = (folder / done.stdout.split()[-1]).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(raw)) as packed:
        found = packed.extractfile(f"package/{member}")
        assert found is not None
        return found.read()


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NaoPage]:
    if not os.environ.get(VARIABLE):
        pytest.skip(f"needs nao-core: set {VARIABLE} to a folder to install it in")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None or shutil.which("npm") is None:
        pytest.skip("needs Chromium (apt-get install chromium) and npm")
    venv = Path(os.environ[VARIABLE]).resolve() / "venv"
    if not (venv / "bin" / "nao").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=300)
        pip = [str(venv / "bin" / "pip"), "install", "-q", "nao-core==0.3.29"]
        subprocess.run(pip, check=True, timeout=900)
    from playwright.sync_api import sync_playwright

    folder = tmp_path_factory.mktemp("nao_viewer")
    project = folder / "project"
    (project / "tests").mkdir(parents=True)
    (project / "nao_config.yaml").write_text("project_name: shop\ndatabases: []\n")
    (project / "pytest.ini").write_text("[pytest]\nfilterwarnings = ignore\n")
    (project / "conftest.py").write_text(AGENT)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        loaded = {
            member.rpartition("/")[2]: script_of(package, member, folder)
            for package, member in SCRIPTS.items()
        }
        (project / "tests" / "outputs").mkdir()
        (project / "tests" / "outputs" / "results_20000101_000000.json").write_text('{"results": []}')
        environ = {**os.environ, "HOME": str(folder), "POSTHOG_DISABLED": "true"}
        environ.pop("PYTHONPATH", None)
        command = [str(venv / "bin" / "nao"), "test", "server", "--no-open", "-p", str(port)]
        with open(folder / "server.log", "w") as log:
            server = subprocess.Popen(command, cwd=project, env=environ, stdout=log, stderr=log)
        try:
            _wait(f"http://127.0.0.1:{port}/api/files", server, folder / "server.log")
            yield NaoPage(project, f"http://127.0.0.1:{port}/", loaded, browser)
        finally:
            server.terminate()
            server.wait(20)
            browser.close()


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{url} did not answer: {log.read_text()}")


@pytest.mark.parametrize("kind", RUNS)
def test_the_viewer_of_nao_shows_our_file(viewer: NaoPage, kind: str) -> None:
    tests = viewer.project / "tests"
    shutil.rmtree(tests / "outputs", ignore_errors=True)
    for old in tests.glob("*.yml"):
        old.unlink()
    for number, prompt in enumerate(RUNS[kind]):
        text = f"name: case{number}\nprompt: {prompt}\nexpected: [{{n: 1}}]\n"
        (tests / f"case{number}.yml").write_text(text)
    models = "openai:no-such-thing,openai:nor-this"
    command = [sys.executable, "-m", "pytest", "tests", "-q", "-p", "no:asyncio", "--agent-model", models]
    done = subprocess.run(command, cwd=viewer.project, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    (results,) = (tests / "outputs").glob("results_*.json")
    summary = json.loads(results.read_text())["summary"]
    assert (summary["total"], summary["total_cost"]) == (4, 0.0)
    page, troubles = viewer.show()
    page.locator(".summary-cards").wait_for(timeout=60_000)
    shown = page.locator("body").inner_text()
    assert results.name in page.locator("select").inner_text()
    assert "$0.0000" in shown
    assert f"{summary['total_tokens']:,}" in shown
    rows = page.locator("tr.clickable").filter(has_text="case")
    assert rows.count() == 4
    for number in range(4):
        rows.nth(number).click()
        assert f"case{number % 2}" in page.locator(".modal h2").inner_text()
        page.keyboard.press("Escape")
    assert troubles == []
    page.close()


def test_a_sum_that_is_null_would_blank_the_page(viewer: NaoPage) -> None:
    """What the tests above look for does show: nao's page computes with its sums."""
    (results,) = (viewer.project / "tests" / "outputs").glob("results_*.json")
    document = json.loads(results.read_text())
    document["summary"]["total_cost"] = None
    results.write_text(json.dumps(document))
    page, troubles = viewer.show()
    page.wait_for_function("document.getElementById('root').childElementCount === 0", timeout=60_000)
    assert any("toFixed" in trouble for trouble in troubles)
    page.close()
