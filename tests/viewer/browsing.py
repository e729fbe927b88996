"""A browser for tests: Debian's Chromium, offline but for the pages under test; axe-core from npm."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
)

PATIENCE = 60_000
"""Milliseconds that a page may take on a machine under load."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A running browser; skips, naming Chromium, where there is none.

    Not for the session: while Playwright is there, its event loop counts as running in this thread, and
    ``asyncio.run`` in another module's tests would be refused.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Window:
    """A page that notes what it should not do: errors, dialogs, requests that leave ``home``."""

    page: Any
    home: tuple[str, ...]
    troubles: list[str] = field(default_factory=list)
    allowed: tuple[str, ...] = ()

    def watch(self) -> None:
        page = self.page
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", self._request)
        page.on("console", self._console)

    def _dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith((*self.home, "data:", "about:")):
            self.troubles.append(f"request: {request.url}")

    def _console(self, message: Any) -> None:
        if message.type == "error" and not any(word in message.text for word in self.allowed):
            self.troubles.append(f"console: {message.text}")

    @property
    def sideways(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


class Browser:
    """Windows of one browser; all their troubles are checked when the test ends."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.windows: list[Window] = []

    def window(self, *home: str, width: int = 1280, scheme: str = "light", scripts: bool = True) -> Window:
        """A new window that may only ask ``home``."""
        context = self._browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        window = Window(context.new_page(), home)
        window.watch()
        self.windows.append(window)
        return window

    def close(self) -> None:
        """Close all windows."""
        for context in self._contexts:
            context.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Browser]:
    """Windows for one test, which must have caused no trouble."""
    made = Browser(chromium)
    yield made
    made.close()
    assert [trouble for window in made.windows for trouble in window.troubles] == []


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of axe-core; skips, naming npm, where npm cannot give it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: axe-core comes from there")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--no-save", "axe-core@4"]
    got = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    place = Path(folder, "node_modules", "axe-core", "axe.min.js")
    if got.returncode or not place.is_file():
        pytest.skip(f"npm could not install axe-core: {got.stderr.strip()[-200:]}")
    return place.read_text(encoding="utf-8")


def faults(window: Window, axe: str, within: str = "body") -> list[str]:
    """Serious and critical faults that axe finds on a page, or in a part of it."""
    # past the policy that keeps a page's own scripts to the site's: evaluated, not put into the page
    window.page.evaluate(axe + "; undefined")
    rules = "{resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'best-practice']}"
    found = window.page.evaluate(f"within => axe.run(within, {rules})", within)
    return [
        f"{one['id']}: {one['help']}: {node['html'][:120]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
