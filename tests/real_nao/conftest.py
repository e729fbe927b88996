"""A real nao chat server with a scripted model on loopback, and its project folder.

Only where ``AGENTEVAL_TEST_NAO_DIR`` names a folder to set it up in (tox -e nao): it comes from PyPI and
npm, by the script that lies beside this repository in shared/tools/nao.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

VARIABLE = "AGENTEVAL_TEST_NAO_DIR"


@dataclass(frozen=True)
class NaoServer:
    """Its folder, its URL and that of its scripted model."""

    folder: Path
    url: str
    model: str

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def environ(self) -> dict[str, str]:
        login = {"NAO_USERNAME": "admin@example.com", "NAO_PASSWORD": "password123"}
        return {**os.environ, **login, "BACKEND_URL": self.url, "POSTHOG_DISABLED": "true"}

    def latency(self, milliseconds: int) -> None:
        data = json.dumps({"latency_ms": milliseconds}).encode()
        with urllib.request.urlopen(f"{self.model}/__config", data, timeout=10) as answer:
            answer.read()

    def write(self, cases: dict[str, str]) -> None:
        """Exactly these cases in its tests folder."""
        tests = self.project / "tests"
        shutil.rmtree(tests, ignore_errors=True)
        tests.mkdir()
        for name, text in cases.items():
            (tests / f"{name}.yml").write_text(text)

    def nao_test(self, *options: str) -> dict[str, dict]:
        """What ``nao test`` says of each case, by its results file."""
        environ = {**self.environ, "HOME": str(self.folder / "home")}
        command = [str(self.folder / "venv" / "bin" / "nao"), "test", *options]
        subprocess.run(command, cwd=self.project, env=environ, capture_output=True, timeout=300)
        return self._results()

    def pytest(self, *options: str) -> dict[str, dict]:
        """What we say of each, by ours."""
        import sys

        command = [sys.executable, "-m", "pytest", "tests/", "-q", "-p", "no:asyncio", *options]
        done = subprocess.run(
            command, cwd=self.project, env=self.environ, capture_output=True, text=True, timeout=300
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return self._results()

    def _results(self) -> dict[str, dict]:
        outputs = self.project / "tests" / "outputs"
        (found,) = outputs.glob("results_*.json")
        results = json.loads(found.read_text())["results"]
        shutil.rmtree(outputs)
        return {result["name"]: result for result in results}


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listening.getsockname()[1] for listening in sockets]
    for listening in sockets:
        listening.close()
    return ports


@pytest.fixture(scope="session")
def nao() -> Iterator[NaoServer]:
    if not os.environ.get(VARIABLE):
        pytest.skip(f"needs a nao server: set {VARIABLE} to a folder to set it up in")
    places = (parent / "shared" / "tools" / "nao" / "start.sh" for parent in Path(__file__).parents)
    script = next((place for place in places if place.is_file()), None)
    if script is None or shutil.which("npm") is None:
        pytest.skip("needs the nao tool (shared/tools/nao/start.sh beside the repository) and npm")
    folder = Path(os.environ[VARIABLE]).resolve()
    server, model, sidecar = _free_ports(3)
    environ = {key: value for key, value in os.environ.items() if not re.match(r"PYTHON|VIRTUAL_ENV", key)}
    command = ["bash", str(script), str(folder), str(server), str(model), str(sidecar)]
    started = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=900)
    assert started.returncode == 0, started.stdout + started.stderr
    yield NaoServer(folder, f"http://127.0.0.1:{server}", f"http://127.0.0.1:{model}")
    subprocess.run(["bash", str(folder / "stop.sh")], check=True, timeout=30)
