"""By keyboard alone: who cannot point at things finds what fails, reads why, and acts."""

from collections.abc import Iterator

import pytest
from page.fixtures import Open
from page.gateway import SILENT, InThread, in_thread
from page.routes import TABS
from page.sample_data import Size
from playwright.sync_api import Page, Route, expect

FOCUSED = "document.activeElement"
MAX_TABS = 12
TABS_BEFORE_TABS = 60
"""What can have the focus before the tabs of a stream."""
KEYS = {
    "w": "Workflows",
    "l": "Dead letters",
    "s": "Streams",
    "x": "Transactions",
    "r": "Reader groups",
    "t": "Tables",
    "d": "Decisions",
    "j": "Journal",
    "q": "Requests",
    "c": "Cluster",
    "o": "Overview",
}
"""After `g`."""
ENDS_MS = 60_000
"""A workflow that has failed for a while waits that long for its next attempt, and then takes its steps."""


@pytest.fixture(scope="module")
def sample() -> Iterator[InThread]:
    """One of its own: its silent container is healed."""
    with in_thread(Size(streams=0)) as served:
        yield served


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the button of that name has the focus."""
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(f"{FOCUSED}.tagName === 'BUTTON' && {FOCUSED}.textContent.trim()") == name:
            return
    raise AssertionError(f"no button {name!r} within {MAX_TABS} presses of Tab")


def test_each_page_and_each_tab_of_a_stream_is_opened_by_keys_alone(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/")
    pages = page.get_by_role("navigation", name="Pages").get_by_role("link")
    assert pages.count() == len(KEYS)
    for key, heading in KEYS.items():
        # In one call: the second counts within a second and a half of the first.
        page.keyboard.type(f"g{key}")
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    page.keyboard.press("/")
    page.get_by_role("combobox", name="Search").fill("demo/orders")
    expect(page.get_by_role("option").first).to_contain_text("demo/orders")
    page.keyboard.press("Enter")
    tabs = page.get_by_role("navigation", name="About the stream")
    expect(tabs).to_be_visible()
    for _ in range(TABS_BEFORE_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(f"{FOCUSED}.closest('nav.tabs') !== null"):
            break
    for tab in TABS:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(tabs.locator("[aria-current]")).to_have_text(tab.capitalize())


def test_no_key_offers_a_retry_while_a_past_moment_is_shown(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/workflows?at=-1s")
    expect(page.locator(".card").first).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator(".card:focus")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_text("a past moment is shown", exact=True)).to_be_attached()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_of_several_tables_keys_move_the_first_and_then_the_focused(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/transactions?stream=demo/payments")
    page.keyboard.press("j")
    expect(page.get_by_role("region", name="Streams with transactions").locator("tr:focus")).to_be_visible()
    page.get_by_role("region", name="Open transactions").focus()
    page.keyboard.press("j")
    expect(page.get_by_role("region", name="Open transactions").locator("tr:focus")).to_be_visible()


def test_enter_opens_no_hit_of_an_earlier_text(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/requests")
    page.keyboard.press("/")
    field = page.get_by_role("combobox", name="Search")
    field.fill("payments")
    expect(page.get_by_role("option").first).to_contain_text("payments")
    held: list[Route] = []
    page.route("**/sluice/v1/search?*", lambda route: held.append(route))
    with page.expect_request("**/sluice/v1/search?q=orders"):
        field.fill("orders")
    field.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    held[0].continue_()
    expect(page.get_by_role("option").first).to_contain_text("orders")
    field.press("Enter")
    expect(page.get_by_role("heading", name="orders")).to_be_visible()


def test_a_failing_workflow_is_found_read_retried_and_seen_to_end_by_keys_alone(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/")
    page.keyboard.type("gw")
    failing = page.get_by_role("region", name="Failing")
    expect(failing.get_by_role("article").first).to_be_visible()
    page.keyboard.press("j")
    card = failing.locator(".card:focus")
    expect(card).to_contain_text(f"container {SILENT} of segment store")
    aggregate = card.get_attribute("data-aggregate")
    assert aggregate is not None

    tab_to(page, "Retry now")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Retry now")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("It tries again.")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(failing.locator(f'[data-aggregate="{aggregate}"]').get_by_role("button", name="Retry now")).to_be_focused()

    sample.do(lambda gateway: gateway.heal())
    ended = page.get_by_role("region", name="Ended lately")
    expect(ended.get_by_title(aggregate, exact=True)).to_be_visible(timeout=ENDS_MS)
    expect(failing.locator(f'[data-aggregate="{aggregate}"]')).to_have_count(0)
