"""The board of workflows: what has ended, what it says of more than it can hold, and of what is old."""

from typing import Any

from page.fixtures import Open
from page.gateway import InThread
from playwright.sync_api import Route, expect


def test_what_a_filter_hides_has_not_ended(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    page = opened.go("#/workflows")
    failing = page.get_by_role("region", name="Failing")
    hidden = failing.get_by_role("article").filter(has_text="orders-eu")
    expect(hidden.first).to_be_visible()
    page.get_by_label("Text in name, kind, step or error").fill("archive")
    expect(hidden).to_have_count(0)
    opened.watch.settle(page)
    expect(failing.get_by_role("article").first).to_be_visible()
    expect(page.get_by_role("region", name="Ended lately").filter(has_text="orders-eu")).to_have_count(0)


def test_a_board_that_does_not_hold_all_does_not_say_that_nothing_fails(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)

    def first_of_many(route: Route) -> None:
        found: dict[str, Any] = route.fetch().json()
        if "state=failing" not in route.request.url:
            found = {"items": [one for one in found["items"] if one["state"] != "failing"], "next": "more"}
        route.fulfill(json=found)

    opened.page.route("**/sluice/v1/workflows?*", first_of_many)
    page = opened.go("#/workflows")
    failing = page.get_by_role("region", name="Failing")
    expect(failing).to_contain_text("None of these is failing.")
    page.locator("header").get_by_role("link", name="failing").click()
    expect(failing.get_by_role("article").filter(has_text="orders-eu").first).to_be_visible()


def test_a_board_that_cannot_be_fetched_anew_says_of_when_it_is(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    page = opened.go("#/workflows")
    card = page.get_by_role("article").first
    expect(card).to_be_visible()
    opened.expected = ["503"]
    page.route("**/sluice/v1/workflows?*", lambda route: route.fulfill(status=503, json={"detail": "not now"}))
    expect(page.locator("main section.panel > header")).to_contain_text("as of")
    expect(card).to_be_visible()
