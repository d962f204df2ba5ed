"""The list of streams: when the gateway refuses a part of it, and what changes while it is fetched anew."""

from page.fixtures import Open
from page.gateway import InThread
from playwright.sync_api import Route, expect

FIRST = 10
"""So many rows come with the first page."""


def test_a_list_whose_second_page_is_refused_says_so_and_is_whole_later(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    opened.expected = ["503"]
    refuses = True

    def answer(route: Route) -> None:
        if "limit=100&" in f"{route.request.url}&":
            route.fulfill(response=route.fetch(url=route.request.url.replace("limit=100", f"limit={FIRST}")))
        elif refuses:
            route.fulfill(status=503, json={"detail": "too much to do"})
        else:
            route.continue_()

    opened.page.route("**/sluice/v1/streams?*", answer)
    page = opened.go("#/streams")
    count = page.locator("main .title [role=status]")
    expect(page.get_by_role("alert")).to_contain_text("too much to do")
    expect(count).to_contain_text(f"{FIRST}+")
    refuses = False
    expect(page.get_by_role("alert")).to_have_count(0)
    listed = page.request.get(f"{sample.origin}/sluice/v1/streams?limit=1000").json()["items"]
    expect(count).to_have_text(str(len(listed)))
