"""What the gateway pushes: to every tab, however many there are, and not to one that is paused."""

from collections.abc import Iterator

import pytest
from page.fixtures import Open, Visit
from page.gateway import InThread, in_thread
from page.sample_data import Size
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def sample() -> Iterator[InThread]:
    """One in which all containers answer, so that what is created comes to be."""
    with in_thread(Size(streams=0)) as served:
        served.do(lambda gateway: gateway.heal())
        yield served


STREAMS = "scopes/demo/streams"
TABS = 7
"""One more than the connections that a browser has to an origin."""


def test_seven_tabs_are_all_live(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    opened.go("#/streams?q=tabs")
    tabs = [opened.page]
    for _ in range(TABS - 1):
        page = opened.page.context.new_page()
        page.goto(f"{sample.url}#/streams?q=tabs")
        tabs.append(page)
    for page in tabs:
        expect(page.locator("header .live")).to_contain_text("live")
    answer = sample.call("PUT", f"{STREAMS}/tabs-are-live", {})
    assert answer.status_code == 201, answer.text
    for page in tabs:
        page.bring_to_front()
        expect(page.locator("main tbody").get_by_text("tabs-are-live")).to_be_visible()


def test_a_stream_that_is_deleted_leaves_a_tombstone_with_the_way_to_its_journal(sample: InThread, visit: Open) -> None:
    path = f"{STREAMS}/gone"
    assert sample.call("PUT", path, {}).status_code == 201
    opened: Visit = visit(sample.url)
    page = opened.go("#/streams/demo/gone")
    opened.expected = ["404"]
    assert sample.call("POST", f"{path}/seal").status_code == 200
    assert sample.call("DELETE", path).status_code in (200, 204)
    expect(page.locator("main .state.gone")).to_be_visible()
    expect(page.locator("main .state.gone a")).to_have_attribute("href", "#/journal?key=demo%2Fgone&from=-7d")


def test_a_paused_page_stays_as_it_is_until_it_goes_on(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/streams?q=pause")
    page.keyboard.press("p")
    expect(page.locator("header .live")).to_contain_text("paused")
    assert sample.call("PUT", f"{STREAMS}/pause-me", {}).status_code == 201
    row = page.locator("main tbody").get_by_text("pause-me")
    expect(row).to_have_count(0)
    page.keyboard.press("p")
    expect(row).to_be_visible()


def test_a_tab_from_the_browsers_cache_shows_what_changed_meanwhile(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    page = opened.go("#/streams?q=meanwhile")
    other = opened.page.context.new_page()
    other.goto(f"{sample.url}#/streams?q=meanwhile")
    expect(other.locator("header .live")).to_contain_text("live")
    # Playwright's Chromium has no such cache: these are the events by which a page knows of it.
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    assert sample.call("PUT", f"{STREAMS}/meanwhile", {}).status_code == 201
    other.bring_to_front()
    expect(other.locator("main tbody").get_by_text("meanwhile")).to_be_visible()
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    page.bring_to_front()
    expect(page.locator("main tbody").get_by_text("meanwhile")).to_be_visible()


BODIES = {
    "readergroups": {"config": {"streams": {"demo/orders": {}}}},
    "tables": {"partitionCount": 1, "primaryKeyLength": 8},
}


@pytest.mark.parametrize(("route", "kind"), [("#/groups", "readergroups"), ("#/tables", "tables")])
def test_what_is_created_in_a_scope_is_listed_at_once(sample: InThread, visit: Open, route: str, kind: str) -> None:
    page = visit(sample.url).go(route)
    row = page.locator("main tbody").get_by_text("just-created")
    expect(row).to_have_count(0)
    answer = sample.call("PUT", f"scopes/demo/{kind}/just-created", BODIES[kind])
    assert answer.status_code == 201, answer.text
    expect(row).to_be_visible()


def test_the_picture_of_a_stream_is_not_fetched_anew_for_its_transactions(sample: InThread, visit: Open) -> None:
    path = f"{STREAMS}/written"
    assert sample.call("PUT", path, {}).status_code == 201
    opened = visit(sample.url)
    page = opened.go("#/streams/demo/written")
    opened.watch.calls.clear()
    for number in range(1, 5):
        assert sample.call("POST", f"{path}/transactions", {"leaseMs": 60_000}).status_code == 201
        expect(page.locator(".status-line")).to_contain_text(f"transactions: {number} open")
    opened.watch.settle(page)
    # The beginning of the feed has each fetched once more: the later, the longer the first call took.
    for part in ("/topology", "/rates"):
        assert len([call for call in opened.watch.calls if call.endswith(part)]) <= 1


def test_a_name_that_is_none_keeps_no_tab_from_being_live(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    opened.expected = ["404"]
    page = opened.go("#/streams/demo/no%20name")
    expect(page.locator("header .live")).to_contain_text("live")


def test_the_overview_begins_with_what_happened_before_it_was_opened(sample: InThread, visit: Open) -> None:
    assert sample.call("PUT", f"{STREAMS}/before-the-page", {}).status_code == 201
    page = visit(sample.url).go()
    changes = page.locator(".changes li")
    expect(changes.filter(has_text="before-the-page").first).to_be_visible()
    shown = changes.filter(has_text="before-the-page").count()
    # The system is a day old, so the line is as wide as its hour.
    drawn = page.get_by_role("img", name="changes:")
    assert drawn.evaluate("(svg) => svg.querySelector('path').getBBox().width") > 0.95 * 600
    assert sample.call("PUT", f"{STREAMS}/after-the-page", {}).status_code == 201
    expect(changes.filter(has_text="after-the-page").first).to_be_visible()
    expect(changes.filter(has_text="before-the-page")).to_have_count(shown)
