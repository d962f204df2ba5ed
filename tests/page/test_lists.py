"""What lists say at first sight: what is written, held and unread; what acted; what became of requests."""

import re

from page.fixtures import Open
from page.gateway import InThread
from playwright.sync_api import Route, expect

RATE = re.compile(r"[1-9][\d.]* (KiB|B)/s")


def test_streams_are_ordered_by_what_is_written_and_say_what_is_not_known(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/streams?sort=-rate")
    first = page.locator("main tbody tr:not(.space)").first
    # A container is silent, so of some segments nothing is known.
    expect(first).to_contain_text("demo/orders")
    expect(first.locator("td").nth(2)).to_have_text(re.compile(rf"^≥ {RATE.pattern}$"))
    expect(first.locator("td").nth(3)).to_have_text(re.compile(r"^≥ \d+ MiB$"))
    expect(first.locator("td").nth(5)).to_contain_text(re.compile(r"(audit|billing)\s*≥ [\d.]+ [KM]iB"))


def test_a_list_of_streams_asks_only_for_the_rows_that_are_seen(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    requested: list[int] = []

    def answer(route: Route) -> None:
        requested.append(route.request.url.count("name="))
        route.continue_()

    opened.page.route("**/sluice/v1/streams/loads?*", answer)
    page = opened.go("#/streams")
    rows = page.locator("main tbody tr:not(.space)")
    expect(rows.filter(has_text="demo/orders").locator("td").nth(2)).to_have_text(re.compile(RATE.pattern))
    assert requested and max(requested) <= rows.count()


def test_decisions_that_changed_nothing_are_folded_until_they_are_wanted(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/decisions")
    listed = page.locator("ol.decisions > li")
    expect(listed.filter(has_text="split").first).to_be_visible()
    expect(listed.filter(has_text="steady")).to_have_count(0)
    page.get_by_text("What was decided and changed nothing").press("Enter")
    expect(listed.filter(has_text="steady").first).to_be_visible()


def test_requests_of_late_are_listed_by_outcome(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/requests?span=24h")
    rows = page.locator("table.plain tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_role("button", name=re.compile("× started")).press("Enter")
    expect(rows.first).to_contain_text("started")
    expect(rows.filter(has_text="success")).to_have_count(0)
    page.get_by_role("button", name="refused", exact=True).press("Enter")
    expect(page.get_by_text(re.compile("^(No request|[0-9]+ request)")).first).to_be_visible()
    expect(rows.filter(has_text="started")).to_have_count(0)


def test_groups_tables_and_scopes_say_how_far_how_many_and_what_is_in_them(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    group = opened.go("#/groups").locator("main tbody tr").filter(has_text="demo/billing")
    expect(group).to_contain_text(re.compile(r"≥ [\d.]+ [KM]iB\s*2\s*\d+ h"))
    table = opened.go("#/tables").locator("main tbody tr").filter(has_text="shop/prices")
    expect(table).to_contain_text("unknown")
    scope = opened.go("#/scopes/demo").locator("main tbody tr").filter(has_text="demo/orders")
    expect(scope.locator("td").nth(3)).to_contain_text("MiB")
