"""What the tests of the page stand on: a browser for each module, gateways in memory, and pages that are watched."""

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from page.browser import Theme, Watch, browser
from page.gateway import InThread, in_thread
from page.sample_data import Size
from playwright.sync_api import Browser, Page, expect

from sluice_local.settings import LocalSettings

DEADLINE_S = 60.0
SHOWS_S = 60.0
"""The page asks anew at most 10 s behind a change, if its last call was slow."""

expect.set_options(timeout=SHOWS_S * 1000)

_BURST = """() => {
    const began = performance.now();
    let sum = 0;
    for (let step = 0; step < 20000000; step++) sum += step % 7;
    return performance.now() - began + sum * 0;
}"""
_BURST_MS = 25.0
"""What the burst takes on a machine of the size that the budgets are for, with nothing else to do."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser. Raises NoBrowserError where there is none."""
    with browser() as chromium:
        yield chromium


class Slowness:
    """How much slower than meant this machine is, at least 1: what a limit on a time is widened by."""

    def __init__(self, chromium: Browser) -> None:
        self._chromium = chromium
        self._before = self._at_present()

    def __call__(self) -> float:
        """The most of what it was when it was last asked for, or first made, and what it is at present."""
        before, self._before = self._before, self._at_present()
        return max(1.0, before, self._before)

    def _at_present(self) -> float:
        page = self._chromium.new_page()
        try:
            bursts: list[float] = [page.evaluate(_BURST) for _ in range(5)]
            return statistics.median(bursts) / _BURST_MS
        finally:
            page.close()


@pytest.fixture
def slowness(chromium: Browser) -> Slowness:
    """Measured before and after what a test takes the time of."""
    return Slowness(chromium)


@pytest.fixture(scope="module")
def sample() -> Iterator[InThread]:
    """A gateway with sample data, for all tests of a module."""
    with in_thread(Size()) as served:
        yield served


@pytest.fixture(scope="module")
def empty() -> Iterator[InThread]:
    """A gateway of a system that nothing is in yet."""
    with in_thread() as served:
        yield served


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures of this run of the tests are left; git ignores it."""
    folder = LocalSettings().home / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Visit:
    """A page of the browser, and what is watched of it. `expected` are words of console messages that may come."""

    def __init__(self, page: Page, watch: Watch, url: str) -> None:
        self.page = page
        self.watch = watch
        self.url = url
        self.expected: list[str] = []

    def go(self, route: str = "#/") -> Page:
        """Show a route, `#/streams` for example; return when it has loaded what it shows."""
        self.page.goto(self.url + route)
        self.watch.settle(self.page)
        return self.page

    def check(self) -> None:
        """Fail unless the console was silent and no request has left the origin."""
        unexpected = [line for line in self.watch.console if not any(words in line for words in self.expected)]
        assert unexpected == [], unexpected
        assert self.watch.abroad == []


Open = Callable[..., Visit]


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Open]:
    """Opens a page at an address, in a context of its own; at the end of the test all of them are checked."""
    visits: list[Visit] = []
    with ExitStack() as contexts:

        def open_page(url: str, theme: Theme = "light", width: int = 1280, height: int = 800) -> Visit:
            context = chromium.new_context(
                color_scheme=theme, viewport={"width": width, "height": height}, locale="en-GB", timezone_id="UTC"
            )
            contexts.callback(context.close)
            context.set_default_timeout(DEADLINE_S * 1000)
            parts = urlsplit(url)
            opened = Visit(context.new_page(), Watch(context, f"{parts.scheme}://{parts.netloc}"), url)
            visits.append(opened)
            return opened

        yield open_page
        for opened in visits:
            opened.check()
