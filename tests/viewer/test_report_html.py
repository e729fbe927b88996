"""The one-file report: what it says, what it never does."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pytest_agenteval.authoring.save_case import draft_of
from pytest_agenteval.cli import main
from pytest_agenteval.reports.html import write_html
from pytest_agenteval.reports.html.attempt_view import attempt_view
from pytest_agenteval.reports.html.markup import formatted_sql, markdown_markup, sql_markup
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.results.document.overrides import Override, write_override

NAO = Path(__file__).resolve().parents[1] / "data" / "nao"


class Seen(HTMLParser):
    """Elements and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


def page(source: Path, tmp_path: Path) -> Seen:
    return Seen(write_html(read_document(source), tmp_path / "report.html").read_text(encoding="utf-8"))


def test_a_run_writes_its_report(jaffle: Path) -> None:
    seen = Seen((jaffle / "out" / "report.html").read_text(encoding="utf-8"))
    assert "first" in seen.text
    assert "Performance by Model" in seen.text
    assert "Pass / Fail by Test and Model" in seen.text
    assert "100 of 182 rows, the rest missing: looks like LIMIT 100" in seen.text


def test_every_link_leads_somewhere(jaffle_results: Path, tmp_path: Path) -> None:
    seen = page(jaffle_results, tmp_path)
    ids = {attrs["id"] for _, attrs in seen.elements if attrs.get("id")}
    links = {attrs["href"] for attrs in seen.of("a")}
    assert {link for link in links if link and not link.startswith("#")} == set()
    assert {str(link)[1:] for link in links} <= ids
    assert sum(str(name).startswith("attempt-") for name in ids) == len(read_document(jaffle_results).rows)


def test_nothing_is_loaded_from_elsewhere(jaffle_results: Path, tmp_path: Path) -> None:
    seen = page(jaffle_results, tmp_path)
    assert not [
        tag for tag, attrs in seen.elements if attrs.get("src") or tag in ("link", "iframe", "object")
    ]
    assert not [
        attrs for _, attrs in seen.elements if "style" in attrs or any(a.startswith("on") for a in attrs)
    ]
    policy = next(a["content"] for a in seen.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("name", [path.name for path in sorted(NAO.glob("results_*.json"))])
def test_files_of_nao(name: str, tmp_path: Path) -> None:
    seen = page(NAO / name, tmp_path)
    assert "written by another program" in seen.text
    assert "total_revenue" in seen.text
    rows = read_document(NAO / name).rows
    assert {f"attempt-{n}" for n in range(1, len(rows) + 1)} <= {
        attrs.get("id") for _, attrs in seen.elements
    }


HOSTILE = (
    "<img src=x onerror=alert(1)> </script><script>alert(1)</script> [go](javascript:alert(1)) "
    "![i](http://example.invalid/i.png) <javascript:alert(1)> \x1b[31mred\x1b[0m \u202e"
)


def test_text_of_models_is_text(changed: Callable[..., Path], tmp_path: Path) -> None:
    def change(entry: dict[str, Any]) -> None:
        entry["details"]["response_text"] = HOSTILE
        entry["message"] = entry["name"] = entry["prompt"] = entry["error"] = HOSTILE
        entry["turns"] = [HOSTILE]
        entry["tags"] = [HOSTILE]
        for call in entry["details"]["tool_calls"]:
            call["toolName"], call["args"], call["result"] = HOSTILE, {HOSTILE: HOSTILE}, {HOSTILE: [HOSTILE]}
        entry["details"]["reference_sql"] = HOSTILE
        entry["extraction"] = {"source": HOSTILE, "query": HOSTILE}

    source = changed(tmp_path / "results_1.json", change)
    text = write_html(read_document(source), tmp_path / "report.html").read_text(encoding="utf-8")
    seen = Seen(text)
    assert not seen.of("img")
    assert len(seen.of("script")) == 2
    assert not [
        a for a in seen.of("a") if not str(a["href"]).startswith("#") and "example.invalid" not in str(a)
    ]
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[31mred" in seen.text


def test_a_persons_verdict_is_said(results: Path, tmp_path: Path) -> None:
    document = read_document(results)
    row = next(row for row in document.rows if row.verdict == "failed")
    write_override(results, row, Override("passed", "the reference is old", "the case is wrong"))
    seen = page(results, tmp_path)
    assert "1 verdict overridden by a person" in seen.text
    assert "A person says passed (the case is wrong): the reference is old" in seen.text


def test_report_command(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(results), "--html", str(tmp_path / "new" / "r.html")]) == 0
    assert capsys.readouterr().out == f"report: {tmp_path / 'new' / 'r.html'}\n"
    assert "<!doctype html>" in (tmp_path / "new" / "r.html").read_text()[:300]


def test_the_name_says_the_form(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(results), "-o", str(tmp_path / "r.html")]) == 0
    assert "<!doctype html>" in (tmp_path / "r.html").read_text()[:300]
    both = ["--html", str(tmp_path / "s.html"), "-o", str(tmp_path / "s.md")]
    assert main(["report", str(results), *both]) == 0
    assert (tmp_path / "s.html").is_file()
    assert (tmp_path / "s.md").read_text().startswith("#")
    capsys.readouterr()


def test_sql_is_laid_out_and_marked() -> None:
    assert formatted_sql("select a from t where b='x'") == "SELECT\n  a\nFROM t\nWHERE\n  b = 'x'"
    assert formatted_sql("this is <b>no</b> sql (") == "this is <b>no</b> sql ("
    shown = str(sql_markup("select '<b>' from t -- note"))
    assert "&lt;b&gt;" in shown
    assert '<span class="sql-keyword">SELECT</span>' in shown


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("[a](javascript:alert(1))", None),
        ("[a](data:text/html,x)", None),
        ("[a](//example.invalid/x)", None),
        (
            "[a](https://example.invalid/x)",
            'href="https://example.invalid/x" rel="noopener noreferrer nofollow"',
        ),
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
    ],
)
def test_markdown(text: str, html: str | None) -> None:
    shown = str(markdown_markup(text))
    assert "<b>" not in shown
    if html is None:
        assert not re.search(r"<a\b", shown)
    else:
        assert html in shown


def test_the_tools_that_run_queries_are_those_of_the_run(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
        import pytest
        from pytest_agenteval import Answer, ToolCall

        @pytest.fixture(scope="session")
        def agent():
            rows = [{"n": 2}]
            call = ToolCall("run_query", {"query": "SELECT 40 + 2 AS n"}, rows)
            return lambda prompt: Answer(text="two", data=rows, tool_calls=[call])
    """)
    pytester.makeini("[pytest]\nagenteval_sql_tools = run_query\n")
    pytester.mkdir("tests").joinpath("q.yml").write_text("prompt: q\nexpected: [{n: 1}]\n")
    pytester.runpytest_inprocess("--agent-html", "report.html", "-p", "no:randomly")
    seen = Seen((pytester.path / "report.html").read_text("utf-8"))
    assert seen.text.count("SELECT 40 + 2 AS n") >= 2  # the call's statement, and the agent's last one
    assert '"query":' not in seen.text.partition("Raw")[0]
    document = read_document(next(pytester.path.joinpath("tests/outputs").glob("*.json")))
    assert document.sql_tools == ("run_query",)
    named = attempt_view(1, document.rows[0], document.entry(0), rows=5, sql_tools=document.sql_tools)
    unnamed = attempt_view(1, document.rows[0], document.entry(0), rows=5)
    assert [call.sql for call in named.calls] == ["SELECT 40 + 2 AS n"]
    assert draft_of(document.entry(0), {}, sql_tools=document.sql_tools).sql == "SELECT 40 + 2 AS n"
    assert [call.sql for call in unnamed.calls] == [None]
