"""What stands in the address: back, forward, reload and a shared link show the same."""

import hashlib
import re
from typing import NamedTuple

from page.fixtures import DEADLINE_S, Open, Visit
from page.gateway import InThread
from playwright.sync_api import expect
from support.wait import eventually


def test_filters_stand_in_the_address_and_survive_back_forward_reload_and_sharing(
    sample: InThread, visit: Open
) -> None:
    opened = visit(sample.url)
    page = opened.go("#/streams?q=order")
    rows = page.locator("main table tbody tr:not(.space)")
    expect(page.get_by_role("link", name="demo/orders", exact=True)).to_be_visible()
    shown = rows.count()
    assert shown > 0
    page.goto(f"{sample.url}#/workflows?state=failing")
    opened.watch.settle(page)
    page.go_back()
    expect(rows).to_have_count(shown)
    assert page.url.endswith("#/streams?q=order")
    page.go_forward()
    expect(page).to_have_url(f"{sample.url}#/workflows?state=failing")
    page.go_back()
    page.reload()
    expect(rows).to_have_count(shown)
    other = visit(sample.url)
    other.go("#/streams?q=order")
    expect(other.page.locator("main table tbody tr:not(.space)")).to_have_count(shown)


TABS = {
    "Why": "Decided",
    "Transactions": "Commits, in order",
    "Readers": "Reader groups that the stream is kept for",
    "Segments": "Segments that are written to",
    "Configuration": "Configuration",
}
"""The tabs of a stream, each with a heading that it alone has."""


def test_each_tab_of_a_stream_is_shown_after_each_other_one(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    page = opened.go("#/streams/demo/orders")
    tabs = page.get_by_role("navigation", name="About the stream")
    for tab in ("Transactions", "Why", "Readers", "Transactions", "Segments", "Why", "Configuration"):
        tabs.get_by_role("link", name=tab, exact=True).click()
        expect(page.get_by_role("heading", name=TABS[tab], exact=True)).to_be_visible()


def test_a_tab_of_a_stream_keeps_what_the_picture_shows(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/streams/demo/orders?color=age&x=epoch")
    page.get_by_role("navigation", name="About the stream").get_by_role("link", name="Readers", exact=True).click()
    expect(page).to_have_url(f"{sample.url}#/streams/demo/orders?color=age&x=epoch&tab=readers")


def test_a_moment_that_is_chosen_stays_the_same_instant(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/streams/demo/orders")
    page.keyboard.press("t")
    page.get_by_role("button", name="-10m", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?at=\d{4}-\d\d-\d\dT"))


def test_the_form_of_the_journal_has_what_the_address_says_after_back(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    page = opened.go("#/journal?key=demo/orders")
    key = page.get_by_label("Key", exact=True)
    expect(key).to_have_value("demo/orders")
    page.evaluate("location.hash = '#/journal?key=demo/payments'")
    expect(key).to_have_value("demo/payments")
    page.go_back()
    expect(key).to_have_value("demo/orders")


def test_zoom_and_moment_survive_back_forward_reload_and_sharing(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    page = opened.go("#/streams/demo/orders?tab=configuration")
    page.locator(".time-slider > summary").click()
    page.locator(".time-slider").get_by_role("button", name="1 d", exact=True).click()
    page.get_by_role("slider", name="Moment of").fill("600")
    page.wait_for_url("**at=**")
    at_moment, whole = page.url, settled(opened)
    page.get_by_role("button", name="Closer").click()
    page.wait_for_url("**view=**")
    zoomed, closer = page.url, settled(opened)
    assert "at=" in zoomed and closer.picture != whole.picture and closer.status == whole.status
    page.get_by_role("link", name="Journal", exact=False).last.click()
    expect(page.get_by_role("heading", name="Journal")).to_be_visible()
    page.go_back()
    page.wait_for_url(zoomed)
    await_shown(opened, closer)
    page.reload()
    await_shown(opened, closer)
    other = visit(sample.url)
    other.page.goto(zoomed)
    await_shown(other, closer)
    page.goto(at_moment)
    await_shown(opened, whole)
    page.go_back()
    page.go_forward()
    page.wait_for_url(at_moment)
    await_shown(opened, whole)


class Seen(NamedTuple):
    """What a stream's page shows: the line of its state, and what is drawn, as a hash."""

    status: str
    picture: str


def await_shown(opened: Visit, expected: Seen) -> None:
    """What is late, such as a banner that pushes the picture, goes by itself."""
    eventually(lambda: settled(opened) == expected, DEADLINE_S, "the same is shown")


def settled(opened: Visit) -> Seen:
    """What is shown once nothing is loaded any more and the picture rests."""
    opened.watch.settle(opened.page)
    canvas = opened.page.get_by_role("application", name="Segments of")
    expect(canvas).to_be_visible()
    drawn: set[str] = set()

    def rests() -> bool:
        now = canvas.screenshot()
        digest = hashlib.sha256(now).hexdigest()
        if digest in drawn:
            return True
        drawn.clear()
        drawn.add(digest)
        return False

    eventually(rests, DEADLINE_S, "the picture rests")
    return Seen(opened.page.locator("main .status-line").inner_text(), drawn.pop())
