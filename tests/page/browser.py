"""A headless Chromium of the machine's, by way of Playwright, and what a page does while somebody looks at it.

Playwright's own loop runs in the thread that starts it, as long as the browser lives: no code of asyncio can run in
that thread meanwhile. So a browser belongs to one module of tests.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The programs that will do, the quickest to start first."""

FEED = "/sluice/v1/events"
_HARMLESS = "Autofocus processing was blocked because a document already has a focused element."
"""Chromium's note when a dialog opens: the dialog gives its own element the focus a moment later."""
_QUIET_S = 0.5
_LOADS_S = 60.0
_MEASURES_MS = 6000
"""Rates and sizes take two measurements: a picture shows them."""

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")


class NoBrowserError(Exception):
    """No Chromium is on the PATH: `apt-get install chromium-headless-shell fonts-dejavu-core` on Debian and Ubuntu."""


def program() -> str:
    """The path of the browser. Raises NoBrowserError."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        raise NoBrowserError(NoBrowserError.__doc__)
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that lives inside. Raises NoBrowserError."""
    executable = program()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=executable,
            # Containers of builds have neither the namespaces of the sandbox nor much shared memory.
            args=["--no-sandbox", "--disable-dev-shm-usage"],
        )
        try:
            yield chromium
        finally:
            chromium.close()


class Watch:
    """What the pages of a context say and load. `origin` is the one that they may talk to."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.origin = origin
        self.console: list[str] = []
        self.abroad: list[str] = []
        """Requests that left the origin."""
        self.calls: list[str] = []
        """The paths of all calls, each with its method, without what follows a question mark."""
        self.pending: set[Request] = set()
        self.last_at = time.monotonic()
        context.on("console", self._said)
        context.on("weberror", lambda error: self.console.append(f"uncaught: {error.error}"))
        context.on("request", self._requested)
        context.on("requestfinished", self._ended)
        context.on("requestfailed", self._ended)

    def _said(self, message: ConsoleMessage) -> None:
        if not message.text.startswith(_HARMLESS):
            self.console.append(f"{message.type}: {message.text}")

    def _requested(self, request: Request) -> None:
        self.last_at = time.monotonic()
        url = urlsplit(request.url)
        if url.scheme in ("http", "https", "ws", "wss"):
            if f"{url.scheme}://{url.netloc}" != self.origin:
                self.abroad.append(request.url)
            self.calls.append(f"{request.method} {url.path}")
            # Playwright reports no end of a shared worker's script.
            if not url.path.endswith((FEED, "-worker.js")):
                self.pending.add(request)

    def _ended(self, request: Request) -> None:
        self.last_at = time.monotonic()
        self.pending.discard(request)

    def settle(self, page: Page) -> None:
        """Return when the page has requested nothing for a moment and waits only for its feed, or after a minute."""
        until = time.monotonic() + _LOADS_S
        while time.monotonic() < until:
            page.wait_for_timeout(50)
            if self._is_quiet:
                # What has come is drawn by then.
                page.evaluate("new Promise((next) => requestIdleCallback(next, {timeout: 5000}))")
                if self._is_quiet:
                    return

    @property
    def _is_quiet(self) -> bool:
        return not self.pending and time.monotonic() - self.last_at > _QUIET_S


def look(
    chromium: Browser, url: str, route: str, out: Path, theme: Theme = "light", width: int = 1280, height: int = 800
) -> list[str]:
    """Take a picture of a route of the page; what the console said, and which requests left the origin.

    Of a stream's tab that is chosen, the picture begins with the tabs.
    """
    parts = urlsplit(url)
    context = chromium.new_context(color_scheme=theme, viewport={"width": width, "height": height}, locale="en-GB")
    try:
        watch = Watch(context, f"{parts.scheme}://{parts.netloc}")
        page = context.new_page()
        page.goto(url + route)
        watch.settle(page)
        page.wait_for_timeout(_MEASURES_MS)
        watch.settle(page)
        if "tab=" in route:
            page.locator("nav.tabs").evaluate("(tabs) => tabs.scrollIntoView()")
            watch.settle(page)
        out.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=out)
        waits = [f"still waits for {request.url}" for request in watch.pending]
        return [*watch.console, *(f"left the origin: {abroad}" for abroad in watch.abroad), *waits]
    finally:
        context.close()
