"""Every page, on a system that nothing is in and on one that has everything: what it shows and what it must not do."""

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from page.browser import Theme
from page.fixtures import Open
from page.gateway import InThread
from page.proxy import stripping
from page.routes import OF_AN_EMPTY_SYSTEM, OF_ONE, PAGES
from playwright.sync_api import Page, expect

AXE = Axe()
_RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
}
THEMES: tuple[Theme, ...] = ("light", "dark")
ALL = PAGES | OF_ONE


@pytest.mark.parametrize("name", OF_AN_EMPTY_SYSTEM)
def test_a_page_of_an_empty_system_is_drawn_and_says_what_would_be_there(
    name: str, empty: InThread, visit: Open
) -> None:
    page = visit(empty.url).go(OF_AN_EMPTY_SYSTEM[name])
    check_drawn(page)


@pytest.mark.parametrize("name", ALL)
def test_a_page_has_no_barrier_that_axe_knows_in_either_theme(
    name: str, sample: InThread, visit: Open, screenshots: Path
) -> None:
    opened = visit(sample.url)
    page = opened.go(ALL[name])
    check_drawn(page)
    for theme in THEMES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.screenshot(path=screenshots / f"{name}-{theme}.png")
        found = AXE.run(page, options=_RULES)
        assert found.violations_count == 0, f"{theme}: {found.generate_report()}"


def test_all_pages_behind_a_proxy_that_strips_a_prefix_also_by_deep_link_and_reloaded(
    sample: InThread, visit: Open
) -> None:
    with stripping("/ops/sluice", sample.origin) as proxy:
        opened = visit(f"{proxy}/ops/sluice/ui/")
        for route in PAGES.values():
            check_drawn(opened.go(route))
        page = opened.go(PAGES["stream"])
        page.reload()
        opened.watch.settle(page)
        check_drawn(page)
        assert "demo/orders" in page.title()
        assert all(call.partition(" ")[2].startswith("/ops/sluice/") for call in opened.watch.calls)


def test_a_script_that_is_put_into_the_page_does_not_run(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    page = opened.go()
    opened.expected = ["Content Security Policy"]
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.broken = true';
            document.head.append(script);
        }"""
    )
    assert page.evaluate("window.broken") is None
    assert any("Content Security Policy" in line for line in opened.watch.console)


def check_drawn(page: Page) -> None:
    """The page is there, and no part of it says that it could not be drawn."""
    expect(page.locator("main")).to_be_visible()
    expect(page).to_have_title(re.compile(r".+ · Sluice$"))
    assert page.locator("main .state.bad, main [role=alert]").all_inner_texts() == []
