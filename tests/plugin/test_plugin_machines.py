"""Several machines: shards that are merged, and workers that cannot see the controller's files."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., None]

INI = """
[pytest]
testpaths = tests
agenteval_databases = shop = duckdb:///shop.duckdb
"""

ELSEWHERE = """
import json
def pytest_configure_node(node):
    facts = json.loads(node.workerinput["agenteval"])
    facts["token"] = "/no/such/file"
    node.workerinput["agenteval"] = json.dumps(facts)
"""


def document(path: Path) -> dict[str, Any]:
    (file,) = (path / "tests" / "outputs").glob("results_*.json")
    loaded: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return loaded


@pytest.fixture
def six(shop: pytest.Pytester, write_case: Write) -> pytest.Pytester:
    """Six cases: four right, one wrong, one that is skipped."""
    (shop.path / "pytest.ini").write_text(INI, "utf-8")
    for number in range(4):
        write_case(f"right{number}")
    write_case("wrong", answer="SELECT 1 AS total")
    write_case("left_out", more="skip: not now")
    return shop


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["verdict"] for entry in found["results"]}


EXPECTED = {**{f"right{n}": "passed" for n in range(4)}, "wrong": "failed"}


def test_a_worker_that_cannot_see_the_folder_sends_its_lines(six: pytest.Pytester) -> None:
    (six.path / "elsewhere.py").write_text(ELSEWHERE, "utf-8")
    result = six.runpytest_subprocess("-p", "elsewhere", "-n", "2")
    result.assert_outcomes(passed=4, failed=1, skipped=1)
    found = document(six.path)
    assert verdicts(found) == EXPECTED
    assert found["cases"]["skipped"] == 1
    assert all(entry["details"]["tool_calls"] for entry in found["results"])


@pytest.fixture
def socket_server(tmp_path: Path) -> Iterator[int]:
    """execnet's own socket server on loopback."""
    import execnet

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    # under its own name its folder would hide the standard library's socketserver
    script = tmp_path / "execnet_server.py"
    shutil.copy(Path(execnet.__file__).parent / "script" / "socketserver.py", script)
    process = subprocess.Popen(
        [sys.executable, str(script), f"127.0.0.1:{port}"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(1.0)  # it takes connections one after the other, so nobody may knock first
    yield port
    process.kill()
    process.wait()


def test_workers_by_tx(six: pytest.Pytester) -> None:
    result = six.runpytest_subprocess("-d", "--tx", "2*popen")
    result.assert_outcomes(passed=4, failed=1, skipped=1)
    assert verdicts(document(six.path)) == EXPECTED


def test_a_worker_behind_a_socket(six: pytest.Pytester, socket_server: int) -> None:
    with open(six.path / "conftest.py", "a", encoding="utf-8") as conftest:
        conftest.write(ELSEWHERE)
    worker = f"socket=127.0.0.1:{socket_server}//chdir={six.path}"
    result = six.runpytest_subprocess("-d", "--tx", worker, "--tx", "popen")
    result.assert_outcomes(passed=4, failed=1, skipped=1)
    assert verdicts(document(six.path)) == EXPECTED


def test_shards_merge_to_the_document_of_one_run(six: pytest.Pytester) -> None:
    whole = six.runpytest_subprocess()
    whole.assert_outcomes(passed=4, failed=1, skipped=1)
    outputs = six.path / "tests" / "outputs"
    (one,) = outputs.glob("results_*.json")
    one.rename(six.path / "whole.json")
    for group in ("1", "2"):
        six.runpytest_subprocess("-p", "pytest_split", "--splits", "2", "--group", group)
    parts = sorted(str(path) for path in outputs.glob("results_*.json"))
    assert len(parts) == 2
    command = [sys.executable, "-m", "pytest_agenteval", "merge", *parts, "-o", "merged.json"]
    done = subprocess.run(command, cwd=six.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    merged = json.loads((six.path / "merged.json").read_text("utf-8"))
    single = json.loads((six.path / "whole.json").read_text("utf-8"))
    assert verdicts(merged) == verdicts(single)
    assert {k: merged["cases"][k] for k in ("total", "passed", "failed", "errors")} == {
        k: single["cases"][k] for k in ("total", "passed", "failed", "errors")
    }
