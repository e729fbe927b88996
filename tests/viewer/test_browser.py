"""The pages in a real browser: every view, filters, keys, dark, narrow, without scripts, hostile answers."""

from __future__ import annotations

import http.server
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser, Window
from playwright.sync_api import expect
from viewer_site import number_of, site_of

from pytest_agenteval.reports.html import write_html
from pytest_agenteval.results.document.load import read_document
from pytest_agenteval.viewer.server import bind

pytestmark = pytest.mark.chromium
NAO = Path(__file__).resolve().parents[1] / "data" / "nao"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view(
    browser: Browser,
    home: str,
    addresses: dict[str, str],
    scheme: str,
) -> None:
    window = browser.window(home, scheme=scheme)
    for address, text in addresses.items():
        window.page.goto(home + address)
        assert text in " ".join(window.page.locator("main").inner_text().split()), address
        assert window.sideways <= 0, address


def test_on_a_phone(browser: Browser, home: str, addresses: dict[str, str]) -> None:
    window = browser.window(home, width=400)
    for address, text in addresses.items():
        window.page.goto(home + address)
        assert text in " ".join(window.page.locator("main").inner_text().split()), address
        assert window.sideways <= 0, address


def follow(page: Any, step: Callable[[], object]) -> None:
    """Take a step that leads to another page, and wait until that one is there."""
    before = page.url
    step()
    page.wait_for_url(lambda url: url != before)


def background(window: Window) -> str:
    return str(window.page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_dark_and_light(browser: Browser, home: str) -> None:
    light, dark = browser.window(home), browser.window(home, scheme="dark")
    for window in (light, dark):
        window.page.goto(home)
    colours = background(light), background(dark)
    assert colours[0] != colours[1]
    light.page.keyboard.press("t")
    assert background(light) == colours[1]
    light.page.reload()
    assert background(light) == colours[1]
    light.page.get_by_role("button", name="Switch between light and dark").click()
    assert background(light) == colours[0]


def test_filters_search_and_order(browser: Browser, home: str, jaffle_results: Path) -> None:
    page = browser.window(home).page
    page.goto(f"{home}/runs/{jaffle_results.stem}")
    rows = page.locator("table.results tbody tr")
    expect(rows).to_have_count(44)
    follow(page, page.get_by_role("link", name="Failures 6").click)
    assert "show=failures" in page.url
    expect(rows).to_have_count(6)
    page.get_by_role("searchbox").fill("fan_out")
    page.get_by_role("searchbox").press("Enter")
    page.wait_for_url("**q=fan_out**")
    assert "show=failures" in page.url
    expect(rows).to_have_count(1)
    assert rows.first.locator("th").inner_text().startswith("instalments")
    page.go_back()
    expect(rows).to_have_count(6)
    page.goto(f"{home}/runs/{jaffle_results.stem}")
    follow(page, page.get_by_role("link", name="demo:careful", exact=True).first.click)
    assert "model=demo%3Acareful" in page.url
    expect(rows).to_have_count(22)
    follow(page, page.get_by_role("link", name="only demo:careful").click)
    follow(page, page.get_by_role("link", name="Cost").click)
    follow(page, page.get_by_role("link", name="Cost").click)
    assert "sort=-cost" in page.url
    costs = [float(text.strip("$-") or 0) for text in page.locator("td[data-label=Cost]").all_inner_texts()]
    assert costs == sorted(costs, reverse=True)


def test_steps_stay_within_the_filter(browser: Browser, home: str, jaffle_results: Path) -> None:
    page = browser.window(home).page
    page.goto(f"{home}/runs/{jaffle_results.stem}?show=failures")
    follow(page, page.locator("table.results tbody th a").first.click)
    seen = []
    for _ in range(3):
        seen.append(page.locator("h1").inner_text())
        follow(page, lambda: page.keyboard.press("n"))
    assert seen == ["never_ordered", "never_ordered", "instalments"]
    follow(page, lambda: page.keyboard.press("p"))
    assert page.locator("h1").inner_text() == "instalments"
    page.keyboard.press("u")
    page.wait_for_url("**show=failures**")


def test_keys(browser: Browser, home: str, jaffle_results: Path) -> None:
    page = browser.window(home).page
    page.goto(f"{home}/runs/{jaffle_results.stem}")
    page.keyboard.press("/")
    page.keyboard.type("december")
    assert page.get_by_role("searchbox").input_value() == "december"
    page.keyboard.press("Enter")
    page.wait_for_url("**q=december**")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.textContent") == "december returns"
    page.keyboard.press("Enter")
    page.wait_for_url("**/attempts/*")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"


def test_the_difference(browser: Browser, home: str, jaffle_results: Path) -> None:
    page = browser.window(home).page
    page.goto(f"{home}/runs/{jaffle_results.stem}/attempts/{number_of(jaffle_results, 'category_ranking')}")
    row = page.locator("table.diff tbody tr").first
    assert row.locator("del").first.inner_text() == "catering"
    assert row.locator("ins").first.inner_text() == "cakes"
    colours = {
        tag: row.locator(tag).first.evaluate(
            "e => getComputedStyle(e).backgroundColor.match(/\\d+/g).map(Number)"
        )
        for tag in ("del", "ins")
    }
    red, green, _ = colours["ins"]
    assert red > green  # the wrong value is the red one
    red, green, _ = colours["del"]
    assert green > red
    codes = page.locator("figure.code pre").all_inner_texts()
    assert codes[0].startswith("SELECT\n  category,\n  SUM(amount) AS revenue")
    assert codes[1].strip().endswith("ORDER BY\n  category")
    expect(page.locator("table.grid mark")).to_have_count(20)
    assert "the last query whose columns cover the expected ones" in page.locator("main").inner_text()


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory, changed: Callable[..., Path]) -> Path:
    """Eight of the cases, with both models."""
    place = tmp_path_factory.mktemp("few") / "results_20250404_000000.json"
    names = ("instalments", "best_customers")
    return changed(place, bool, lambda one: one["name"] in names or one["path"].startswith("tests/revenue"))


def test_without_scripts(
    browser: Browser, home: str, jaffle_results: Path, few: Path, tmp_path: Path
) -> None:
    page = browser.window(home, scripts=False).page
    page.goto(f"{home}/runs/{jaffle_results.stem}")
    follow(page, page.get_by_role("link", name="Failures 6").click)
    follow(page, page.locator("table.results tbody th a").first.click)
    assert page.locator("h1").inner_text() == "never_ordered"
    assert not page.locator("button.theme").is_visible()
    place = write_html(read_document(few), tmp_path / "report.html")
    page = browser.window(place.as_uri(), scripts=False).page
    page.goto(place.as_uri())
    expect(page.locator("table.results tbody tr")).to_have_count(16)
    assert not page.get_by_role("searchbox").is_visible()
    page.locator("table.results tbody th a", has_text="instalments").last.click()
    assert page.locator("h1:visible").all_inner_texts() == ["instalments"]
    page.get_by_role("link", name="← All results").locator("visible=true").click()
    assert page.locator("table.results").is_visible()


def test_the_one_file_report(browser: Browser, few: Path, tmp_path: Path) -> None:
    place = write_html(read_document(few), tmp_path / "a folder" / "report.html")
    window = browser.window(place.as_uri())
    page = window.page
    number = number_of(few, "average_order_value")
    page.goto(f"{place.as_uri()}#attempt-{number}")
    assert page.locator("h1:visible").all_inner_texts() == ["average_order_value"]
    page.keyboard.press("u")
    rows = page.locator("table.results tbody tr:visible")
    expect(rows).to_have_count(16)
    page.get_by_role("button", name="Failures 5").click()
    expect(rows).to_have_count(5)
    page.keyboard.press("/")
    page.keyboard.type("revenue")
    expect(rows).to_have_count(4)
    assert "show=failures&q=revenue" in page.url
    page.get_by_role("button", name="Tokens").click()
    tokens = [
        int(text.replace(",", "")) for text in page.locator("td[data-label=Tokens]:visible").all_inner_texts()
    ]
    assert tokens == sorted(tokens)
    page.reload()
    expect(rows).to_have_count(4)
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="demo:hasty").click()
    rows.nth(1).locator("th a").click()
    first = page.locator("h1:visible").inner_text()
    page.keyboard.press("n")
    page.keyboard.press("n")
    assert page.locator("h1:visible").inner_text() != first
    narrow = browser.window(place.as_uri(), width=400)
    for address in ("", f"#attempt-{number}"):
        narrow.page.goto(place.as_uri() + address)
        assert narrow.sideways <= 0


HOSTILE = (
    "<img src=x onerror=\"document.title='hacked'\"></script><script>document.title='hacked'</script>"
    "<svg onload=\"document.title='hacked'\"> [go](javascript:document.title='hacked') "
    "![i](http://example.invalid/i.png) [web](https://example.invalid/) \x1b[31mred\x1b[0m \u202edcba "
    "'\"`{{ 7*7 }}${7*7}<!-- --><base href=//example.invalid><style>*{display:none}</style>"
)


@pytest.fixture
def hostile(changed: Callable[..., Path], tmp_path: Path) -> Path:
    """Results in which a model has put markup wherever it can."""

    def change(entry: dict[str, Any]) -> None:
        details = entry["details"]
        entry.update(
            message=HOSTILE, prompt=HOSTILE, turns=[HOSTILE], tags=[HOSTILE], owner=HOSTILE, leak=HOSTILE
        )
        entry["extraction"] = {"source": HOSTILE, "query": HOSTILE}
        entry["leniencies"] = [HOSTILE]
        details.update(response_text=HOSTILE, reference_sql=HOSTILE, comparison=HOSTILE)
        details["conversation"] = [{"role": HOSTILE, "content": HOSTILE}]
        for call in details["tool_calls"]:
            call.update(toolName=HOSTILE, result={HOSTILE: HOSTILE, "data": [{HOSTILE: HOSTILE}]})
            call["args"] = {"sql_query": HOSTILE, HOSTILE: {HOSTILE: HOSTILE}}
        for check in entry["checks"]:
            check.update(name=HOSTILE, why=HOSTILE)
        diff = entry.get("diff")
        if diff:
            diff.update(
                warnings=[HOSTILE], notes=[HOSTILE], missing_columns=[HOSTILE], extra_columns=[HOSTILE]
            )
            if diff.get("diagnosis"):
                diff["diagnosis"].update(word=HOSTILE, sentence=HOSTILE)
            for column in diff["mapping"]:
                column.update(expected=HOSTILE, actual=HOSTILE, how=HOSTILE)

    names = ("revenue_by_month", "total_revenue")
    place = tmp_path / "hostile" / "results_20250303_000000.json"
    return changed(place, change, lambda entry: entry["name"] in names, run={"label": HOSTILE})


def test_hostile_answers(browser: Browser, hostile: Path, tmp_path: Path) -> None:
    failed = next(n for n, row in enumerate(read_document(hostile).rows, 1) if row.verdict == "failed")
    report = write_html(read_document(hostile), tmp_path / "report.html")
    with site_of(hostile.parent, tmp_path, bind(0)) as running:
        home = f"http://127.0.0.1:{running.port}"
        window = browser.window(home, report.as_uri())
        page = window.page
        run = f"{home}/runs/{hostile.stem}"
        for address in (
            home,
            run,
            f"{run}/attempts/{failed}",
            f"{report.as_uri()}",
            f"{report.as_uri()}#attempt-{failed}",
        ):
            page.goto(address)
            page.wait_for_timeout(50)
            assert page.title() != "hacked"
            assert (
                page.evaluate("document.querySelectorAll('img, base, iframe, main svg[onload]').length") == 0
            )
            links = page.evaluate("[...document.links].map(link => link.protocol)")
            assert set(links) <= {"http:", "https:", "file:"}
            assert "\x1b" not in page.content()
            assert "\u202e" not in page.content()
        assert "49" not in page.locator(f"#attempt-{failed} .turn").first.inner_text()
        assert "<img src=x" in page.locator(f"#attempt-{failed} .turn").first.inner_text()


def test_a_verdict_and_a_saved_test(browser: Browser, outputs: Path, results: Path) -> None:
    with site_of(outputs, outputs.parents[1], bind(0)) as running:
        home = f"http://127.0.0.1:{running.port}"
        page = browser.window(home).page
        number = number_of(results, "revenue_by_month")
        page.goto(f"{home}/runs/{results.stem}/attempts/{number}")
        page.get_by_label("is right").check()
        page.get_by_label("Because").select_option("the case is wrong")
        page.get_by_label("Note").fill("by month & <channel>")
        page.get_by_role("button", name="Keep").click()
        main = page.locator("main")
        expect(main).to_contain_text("A person says passed (the case is wrong): by month & <channel>")
        held = json.loads(results.with_suffix(".overrides.json").read_text())["overrides"]
        # the other attempt gave the same answer, and the box for it is ticked
        assert [value["label"] for value in held.values()] == ["the case is wrong"] * 2
        page.get_by_label("take my verdict back").check()
        page.get_by_role("button", name="Keep").click()
        expect(main).not_to_contain_text("A person says")
        page.get_by_label("Name").fill("by month and channel")
        page.get_by_role("button", name="Save as test").click()
        expect(main).to_contain_text("Saved as tests/revenue/by_month_and_channel.yml")
        assert (outputs.parents[1] / "tests" / "revenue" / "by_month_and_channel.yml").is_file()


def test_a_test_from_nao_needs_its_prompt(browser: Browser, outputs: Path) -> None:
    shutil.copy(NAO / "results_1case_pass.json", outputs)
    with site_of(outputs, outputs.parents[1], bind(0)) as running:
        home = f"http://127.0.0.1:{running.port}"
        page = browser.window(home).page
        page.goto(f"{home}/runs/results_1case_pass/attempts/1")
        page.get_by_label("Prompt").fill("What is the revenue?")
        page.get_by_role("button", name="Save as test").click()
        expect(page.locator("main")).to_contain_text("Saved as tests/total_revenue.yml")
        assert "prompt: What is the revenue?" in (outputs.parent / "total_revenue.yml").read_text()


class _Evil(http.server.BaseHTTPRequestHandler):
    """A page of another origin that tries to use the viewer of whoever visits it."""

    target = ""

    def do_GET(self) -> None:
        body = f"""<!doctype html><iframe src="{self.target}"></iframe>
        <form method="post" action="{self.target}/override" target="_blank"></form>
        <form id="f" method="post" action="{self.target}/override">
        <input name="verdict" value="passed"><input name="form_token" value="guess"></form>
        <script>fetch("{self.target}").then(r => r.text()).then(() => document.title = "read",
        () => document.title = "refused")</script>""".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_page_of_another_origin(browser: Browser, outputs: Path, results: Path) -> None:
    with site_of(outputs, outputs.parents[1], bind(0)) as running:
        home = f"http://127.0.0.1:{running.port}"
        handler = type("Evil", (_Evil,), {"target": f"{home}/runs/{results.stem}/attempts/1"})
        evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=evil.serve_forever)
        thread.start()
        try:
            there = f"http://localhost:{evil.server_port}"
            window = browser.window(home, there)
            window.allowed = ("CORS", "frame", "Failed to load", "403", "X-Frame-Options", "ERR_")
            page = window.page
            page.goto(there)
            page.wait_for_function("document.title !== ''")
            assert page.title() == "refused"
            assert all("revenue" not in frame.content() for frame in page.frames[1:])
            page.evaluate("document.querySelector('#f').submit()")
            page.wait_for_url("**/override")
            assert "Changes are only made from the viewer's own pages." in page.content()
        finally:
            evil.shutdown()
            evil.server_close()
            thread.join(10)
        assert not results.with_suffix(".overrides.json").exists()
