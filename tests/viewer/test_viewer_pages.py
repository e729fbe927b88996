"""The viewer over HTTP: what its folder holds, in whatever state; large files; the command."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from viewer_site import site_of

from pytest_agenteval.cli import main
from pytest_agenteval.errors import ResultsError
from pytest_agenteval.results.document.document import Document, write_document
from pytest_agenteval.results.document.load import header_of_file, read_document
from pytest_agenteval.results.document.streaming import CHUNK, index_foreign
from pytest_agenteval.results.journal.journal import Journal
from pytest_agenteval.results.journal.run_folder import RunFolder
from pytest_agenteval.viewer.library import Library, ReadFile
from pytest_agenteval.viewer.server import bind

NAO = Path(__file__).resolve().parents[1] / "data" / "nao"
SRC = Path(__file__).resolve().parents[2] / "src"


def words(html: str) -> str:
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_an_empty_folder_and_none(tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    for folder in (tmp_path / "outputs", tmp_path / "missing"):
        with site_of(folder, tmp_path, bind(0)) as site:
            status, _, text = site.ask("/")
            assert status == 200
            assert "There are no results here yet." in text


def test_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / "results_1.json").write_text('{\n"schema_version": 1,\n"results": [\n')
    (tmp_path / "results_2.json").write_text('{"results": 5}')
    (tmp_path / "results_3.json").write_text('{\n"schema_version": 99,\n"results": [\n]\n}\n')
    with site_of(tmp_path, tmp_path, bind(0)) as site:
        listed = site.ask("/")[2]
        assert listed.count("cannot be read") == 3
        assert "ends in the middle" in words(site.ask("/runs/results_1")[2])
        assert "results&#39; is not a list" in site.ask("/runs/results_2")[2]
        assert "newer than" in site.ask("/runs/results_3")[2]


def test_old_files_without_totals(tmp_path: Path) -> None:
    """nao's first files have neither by_model nor attempts."""
    for name in ("results_3cases_2models", "results_1case_pass"):
        held = json.loads((NAO / f"{name}.json").read_text())
        for entry in held["results"]:
            entry.pop("attempt", None)
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": held["results"]}))
    with site_of(tmp_path, tmp_path, bind(0)) as site:
        assert "66.7 %" in site.ask("/")[2]
        text = words(site.ask("/runs/results_3cases_2models")[2])
        assert "openai:fake-1 66.7 %" in text
        assert site.ask("/runs/results_3cases_2models/attempts/6")[0] == 200


def test_a_run_folder_with_a_link_in_it_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("{}")
    folder = tmp_path / "outputs" / "results_1"
    folder.mkdir(parents=True)
    (folder / "main.jsonl").write_text("")
    assert list(Library(folder.parent).listing()) == ["results_1"]
    (folder / "other.jsonl").symlink_to(tmp_path / "secret.txt")
    assert list(Library(folder.parent).listing()) == []


def test_a_damaged_file_of_ours(tmp_path: Path) -> None:
    """Other parts of the page than those that are damaged are shown; nothing breaks the list."""
    lines = ['"schema_version": 1,', '"run": {"label": 5},', '"results": [']
    lines += ['{"name": "a", "model": "m", "verdict": "failed", "diff": [], "checks": 5},']
    lines += ['{"name": "b", "model": "m", "verdict": "failed", "details": {"tool_calls": [7]}}']
    (tmp_path / "results_1.json").write_text("{\n" + "\n".join(lines) + "\n]\n}\n")
    with site_of(tmp_path, tmp_path, bind(0)) as site:
        assert "0.0 %" in site.ask("/")[2]
        assert site.ask("/runs/results_1")[0] == 200
        for number in (1, 2):
            status, _, text = site.ask(f"/runs/results_1/attempts/{number}")
            assert status == 200 or "not as a results file should be" in text


def test_a_run_in_progress(jaffle: Path, tmp_path: Path) -> None:
    """A run that is killed in the middle: what it has so far is shown, and whether it still goes on."""
    root = tmp_path / "shop"
    shutil.copytree(jaffle, root, ignore=shutil.ignore_patterns("outputs", "out"))
    (root / "conftest.py").write_text(
        (root / "conftest.py").read_text()
        + "\nimport os, signal\n"
        + "def pytest_runtest_logreport(report):\n"
        + "    if report.when == 'teardown' and 'cake' in report.nodeid:\n"
        + "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--agent-model",
        "demo:careful",
    ]
    environ = {**os.environ, "PYTHONPATH": str(SRC)}
    run = subprocess.run(command, cwd=root, env=environ, capture_output=True, timeout=100, check=False)
    assert run.returncode == -signal.SIGKILL
    outputs = root / "tests" / "outputs"
    (folder,) = (path for path in outputs.iterdir() if path.is_dir())
    planned = [json.loads(line) for line in (folder / "planned-0.jsonl").read_text().splitlines()]
    with Journal(RunFolder.open(folder), "main") as journal:
        journal.started(planned[-1]["nodeid"])
    with site_of(outputs, root, bind(0)) as site:
        dead = site.ask(f"/runs/{folder.name}")[2]
        assert "the process ended before this attempt had an answer" in dead
        assert "did not finish" in site.ask("/")[2]
        assert "This run did not finish; these are its journals. <code>pytest --agent-resume</code>" in dead
        assert "data-refresh" not in dead
        session = json.loads((folder / "session.json").read_text())
        (folder / "session.json").write_text(json.dumps({**session, "pid": os.getpid(), "birth": None}))
        assert "in progress" in site.ask("/")[2]
        text = site.ask(f"/runs/{folder.name}")[2]
        assert re.search(r"This run is in progress: \d+ of \d+ cases so far", text)
        assert '<span class="badge running">running</span>' in text
        assert "it is being asked now" in text
        assert "the process ended before this attempt had an answer" not in text
        assert 'data-refresh="5"' in text
        assert site.ask(f"/runs/{folder.name}/attempts/1")[0] == 200
        assert site.ask(f"/runs/{folder.name}/results.json")[0] == 404
        (folder / "session.json").write_text(json.dumps({**session, "host": "elsewhere"}))
        assert "in progress" in site.ask("/")[2]
        hour = time.time() - 3600
        for journal in folder.glob("*.jsonl"):
            os.utime(journal, (hour, hour))
        assert "did not finish" in site.ask("/")[2]
        text = site.ask(f"/runs/{folder.name}")[2]
        assert "This run did not finish" in text
        assert "data-refresh" not in text


def test_a_changed_file_is_read_again(outputs: Path, results: Path, changed: Callable[..., Path]) -> None:
    with site_of(outputs, outputs.parents[1], bind(0)) as site:
        assert "86.4 %" in site.ask("/")[2]
        changed(results, lambda entry: entry.update(verdict="passed"), run={"label": "mended"})
        assert "mended" in site.ask("/")[2]
        assert "100.0 %" in site.ask(f"/runs/{results.stem}")[2]


def test_comparison_and_history(outputs: Path, results: Path, changed: Callable[..., Path]) -> None:
    def change(entry: dict[str, Any]) -> None:
        if entry["name"] == "instalments":
            entry.update(verdict="passed", case_hash="another")
        if entry["name"] == "return_rate" and entry["attempt"] == 1:
            entry["verdict"] = "failed"

    changed(outputs / "results_20250101_000000.json", change)
    with site_of(outputs, outputs.parents[1], bind(0)) as site:
        text = words(site.ask(f"/compare?old=results_20250101_000000&new={results.stem}")[2])
        assert "1 regression, 2 fixes" in text
        assert text.index("Regressions 1") < text.index("Fixes 2") < text.index("Unchanged 41")
        assert "p = " in text
        assert "case changed" in text
        history = words(site.ask("/history?path=tests/revenue/return_rate.yml&name=return_rate")[2])
        assert "2 runs" in history
        assert "demo:hasty 3 of 4 (75.0 %) 1 1" in history
        assert site.ask("/history?name=nothing")[0] == 404
        assert site.ask("/compare?old=&new=")[0] == 404
        changed_case = site.ask("/history?path=tests/orders/instalments.yml&name=instalments")[2]
        assert "case changed" in changed_case


def test_queries_that_mean_nothing(outputs: Path, results: Path) -> None:
    with site_of(outputs, outputs.parents[1], bind(0)) as site:
        for query in (
            "show=x",
            "sort=x",
            "page=0",
            "page=-1",
            "page=99999999999999",
            "page=%C2%B2",
            "q=%ff%00",
            "model=x",
        ):
            assert site.ask(f"/runs/{results.stem}?{query}")[0] == 200
        for number in ("0", "-1", "999999", "x", "1e3", "99999999999999999999999999"):
            assert site.ask(f"/runs/{results.stem}/attempts/{number}")[0] == 404
        page = words(site.ask(f"/runs/{results.stem}?model=nothing")[2])
        assert "No result is like that" in page


def test_a_verdict_that_is_none(outputs: Path, results: Path) -> None:
    with site_of(outputs, outputs.parents[1], bind(0)) as site:
        path = f"/runs/{results.stem}/attempts/1/override"
        form = {"form_token": site.access.form_token}
        assert site.post(path, {**form, "verdict": "error"})[0] == 400
        assert site.post(path, {**form, "verdict": "passed", "label": "x"})[0] == 400
        assert site.post(path.replace("/1/", "/99999/"), {**form, "verdict": "passed"})[0] == 404


def large(source: Path, place: Path, count: int, size: int) -> Path:
    """A file of ours with ``count`` results of about ``size`` bytes each."""
    document = read_document(source)
    entries = list(document.entries())
    text = "x" * size

    def made() -> Any:
        for number in range(count):
            entry = dict(entries[number % len(entries)])
            entry["name"] = f"{entry['name']}_{number}"
            entry["details"] = {**entry["details"], "response_text": text}
            yield entry

    return write_document(Document(document.header, document.rows, made), place)


def test_a_large_file_of_ours(jaffle_results: Path, tmp_path: Path) -> None:
    """Pages of a large run (how fast they are: tests/benchmarks)."""
    place = large(jaffle_results, tmp_path / "results_20250101_000000.json", 3_000, 3_000)
    with site_of(tmp_path, tmp_path, bind(0)) as site:
        text = site.ask(f"/runs/{place.stem}")[2]
        while "page 1 of 30" not in text:
            assert "is being read" in text
            time.sleep(0.1)
            text = site.ask(f"/runs/{place.stem}")[2]
        assert text.count("<tr") < 400
        assert "Page 30 of 30" in site.ask(f"/runs/{place.stem}?page=500")[2]
        assert "Download" in site.ask(f"/runs/{place.stem}/attempts/2999")[2]
        assert "The first 200 of" in text


def foreign(source: Path, place: Path, count: int) -> Path:
    """A file as nao writes it, indented, with letters beyond ASCII."""
    entries = json.loads(source.read_text())["results"]
    with open(place, "w", encoding="utf-8") as file:
        file.write('{"timestamp": "2026-01-01T00:00:00",\n "results": [')
        for number in range(count):
            entry = entries[number % len(entries)]
            details = {**entry["details"], "response_text": f"Größe {number} " + "ü" * 4500}
            made = {**entry, "name": f"name {number}", "details": details}
            file.write((",\n" if number else "") + json.dumps(made, ensure_ascii=False, indent=1))
        file.write('], "summary": {"total": 1}, "by_model": []}\n')
    return place


def test_a_large_foreign_file_is_indexed(tmp_path: Path) -> None:
    place = foreign(NAO / "results_3cases_2models.json", tmp_path / "results_1.json", 4_000)
    assert place.stat().st_size > 32 * 1024**2
    shares: list[float] = []
    document = read_document(place, progress=shares.append)
    assert [row.name for row in document.rows] == [f"name {number}" for number in range(4_000)]
    assert shares == sorted(shares)
    assert shares[-1] > 0.9
    whole = json.loads(place.read_text(encoding="utf-8"))["results"]
    for number in (0, 1, 1_999, 3_999):
        assert document.entry(number) == whole[number]
    assert sum(1 for _ in document.entries()) == 4_000


def test_a_file_that_is_being_read_says_so(tmp_path: Path) -> None:
    place = foreign(NAO / "results_3cases_2models.json", tmp_path / "results_1.json", 4_000)
    library = Library(tmp_path)
    try:
        listed = library.listing()[place.stem]
        first = library.open(listed, wait=0.0)
        assert isinstance(first, ReadFile)
        assert 0 <= first.share <= 1
        assert len(library.open(listed, wait=60.0).rows) == 4_000  # type: ignore[union-attr]
    finally:
        library.close()
    with site_of(tmp_path, tmp_path, bind(0)) as site:
        texts = [words(site.ask("/runs/results_1")[2])]
        while "is being read" in texts[-1]:
            time.sleep(0.05)
            texts.append(words(site.ask("/runs/results_1")[2]))
        assert "Performance by Model" in texts[-1]


INDEXED = [
    ('{"results": []}', []),
    ('\ufeff{"a": 1, "results": [{"n": 1}, {"n": 2}], "b": "ü"}', [{"n": 1}, {"n": 2}]),
    (
        '{"a": {"results": [1]}, "results"  :\n[ {"n": "\\u00fc]"} ,\r\n{"n":"}ü"}\t]\n, "z":12}',
        [{"n": "ü]"}, {"n": "}ü"}],
    ),
]


@pytest.mark.parametrize("chunk", [1, 3, CHUNK])
@pytest.mark.parametrize(("text", "entries"), INDEXED)
def test_index_at_any_chunk(
    text: str, entries: list[Any], chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_agenteval.results.document.streaming.CHUNK", chunk)
    place = tmp_path / "x.json"
    place.write_bytes(text.encode())
    seen: list[Any] = []
    index = index_foreign(place, seen.append)
    assert seen == entries
    assert list(index.entries()) == entries
    assert [index.entry(number) for number in range(len(entries))] == entries
    assert index.header == {k: v for k, v in json.loads(text.lstrip("\ufeff")).items() if k != "results"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends in the middle"),
        ("[]", "{ expected at byte 0, not '\\['"),
        ("{}", "there is no 'results' in it"),
        ('{"results": {}}', "'results' is not a list"),
        ('{"results": [1', "ends in the middle"),
        ('{"results": [1 2]}', ", or ] expected at byte 15, not '2'"),
        ('{"results": [], 5: 1}', "a key is a text, not 5"),
        ('{"a": tru', "Expecting value"),
    ],
)
def test_what_is_no_results_file(text: str, reason: str, tmp_path: Path) -> None:
    place = tmp_path / "x.json"
    place.write_text(text)
    with pytest.raises(ValueError, match=reason):
        index_foreign(place, lambda entry: None)


def test_the_header_alone(jaffle_results: Path, tmp_path: Path) -> None:
    (tmp_path / "results_1.json").write_text('{\n"schema_version": 1,\n"run": {},\n')
    with pytest.raises(ResultsError, match="the file ends in the middle"):
        header_of_file(tmp_path / "results_1.json")
    assert header_of_file(jaffle_results) == read_document(jaffle_results).header
    assert header_of_file(NAO / "results_1case_pass.json") is None


def test_view_command(jaffle: Path, jaffle_results: Path) -> None:
    command = [sys.executable, "-m", "pytest_agenteval", "view", str(jaffle_results), "-p", "0", "--no-open"]
    environ = {**os.environ, "PYTHONPATH": str(SRC)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            found = re.fullmatch(
                r"results of (\S+): (http://127\.0\.0\.1:\d+/runs/(\S+))  \(Ctrl-C ends it\)\n", line
            )
            assert found is not None, line
            assert found[1] == str(jaffle_results.parent)
            import urllib.request

            with urllib.request.urlopen(found[2], timeout=10) as answer:
                assert b"Performance by Model" in answer.read()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0


def test_view_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(tmp_path / "missing"), "--no-open"]) == 2
    assert capsys.readouterr().err == f"agenteval: no such file or folder: {tmp_path / 'missing'}\n"
    with pytest.raises(SystemExit):
        main(["view", "-p", "70000"])
    assert "'70000' is no port (0 to 65535)" in capsys.readouterr().err


def test_the_plugin_loads_nothing_of_the_viewer() -> None:
    code = (
        "import sys, pytest_agenteval.plugin, pytest_agenteval.cli\n"
        "print([m for m in ('starlette', 'uvicorn', 'jinja2', 'markdown_it', 'sqlglot') if m in sys.modules])"
    )
    environ = {**os.environ, "PYTHONPATH": str(SRC)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
