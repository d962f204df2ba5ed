"""Pictures of the past and what they are made of: bands, timelines, stacked counts, ticks."""

import re
from typing import Any

from page.fixtures import Open
from page.gateway import InThread
from playwright.sync_api import expect
from support.wait import SOON_S, eventually


def test_a_search_goes_on_where_an_answer_ends_and_asks_the_reader_once_enough_is_found(
    sample: InThread, visit: Open
) -> None:
    opened = visit(sample.url)
    fetched: list[str] = []
    pages = {"": ("a", 60), "a": ("b", 60), "b": ("", 5)}

    def answer(route: Any) -> None:
        after = dict(part.split("=") for part in route.request.url.partition("?")[2].split("&")).get("after", "")
        fetched.append(after)
        following, count = pages[after]
        items = [
            {
                "stream": "demo/orders",
                "kind": "scale",
                "code": "split",
                "reason": f"reason {after}{number}",
                "at": 1_763_899_000_000 - len(fetched) * 1000 - number,
            }
            for number in range(count)
        ]
        more = {"next": following} if following else {}
        route.fulfill(json={"items": items, "searchedTo": items[-1]["at"], "complete": not following, **more})

    opened.page.route("**/sluice/v1/decisions?*", answer)
    page = opened.go("#/decisions")
    listed = page.locator("ol.decisions > li")
    expect(listed).to_have_count(120)
    assert fetched == ["", "a"]
    page.get_by_role("button", name="Go on searching").press("Enter")
    expect(listed).to_have_count(125)
    assert fetched == ["", "a", "b"]
    expect(page.get_by_text("That is all.")).to_be_visible()


def test_the_picture_of_outcomes_says_its_counts_to_the_keyboard_and_as_a_table(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/transactions?stream=demo/payments")
    expect(page.get_by_text("None has ended in the last hour")).to_be_visible()
    page.get_by_role("button", name="a day, by 5 min").click()
    picture = page.get_by_role("application", name="How transactions ended")
    expect(picture.locator("i.stack")).not_to_have_count(0)
    picture.focus()
    page.keyboard.press("Home")
    caption = page.locator("figure", has=picture).locator("figcaption")
    expect(caption).to_contain_text("committed")
    page.locator("figure", has=picture).get_by_text("As a table").click()
    rows = page.locator("figure", has=picture).locator("tbody tr")
    expect(rows).not_to_have_count(0)
    said = caption.inner_text()
    assert any(cell in said for cell in rows.last.locator("td").nth(1).all_inner_texts())


def test_a_stretch_of_time_that_is_drawn_over_is_all_that_is_shown_until_zero_is_pressed(
    sample: InThread, visit: Open
) -> None:
    page = visit(sample.url).go("#/cluster")
    picture = page.get_by_role("application", name="Which segment store held which container")
    ticks = picture.locator(".axis span")
    whole = ticks.all_inner_texts()
    plot = picture.locator(".plot")
    plot.hover(position={"x": 400, "y": 10})
    expect(page.locator("figure", has=picture).locator("figcaption")).to_contain_text("container 0: store")
    page.mouse.down()
    plot.hover(position={"x": 450, "y": 10})
    page.mouse.up()
    expect(ticks).not_to_have_text(whole)
    picture.press("0")
    expect(ticks).to_have_text(whole)


def test_a_moment_on_the_slider_is_taken_when_keys_rest_and_then_no_action_is_offered(
    sample: InThread, visit: Open
) -> None:
    opened = visit(sample.url)
    page = opened.go("#/streams/demo/orders")
    page.locator(".time-slider > summary").click()
    slider = page.locator(".time-slider")
    slider.get_by_role("button", name="1 d", exact=True).click()
    expect(slider).to_contain_text("now, after")
    moments: list[str] = []
    described = "/scopes/demo/streams/orders?at="
    page.on("request", lambda request: moments.append(request.url) if described in request.url else None)
    moment = page.get_by_role("slider", name="Moment of")
    moment.focus()
    # As three presses of Page Down do, of which none comes late.
    moment.evaluate(
        """(slider) => {
            for (let press = 0; press < 3; press++) {
                slider.stepDown(100);
                for (const type of ['input', 'change']) slider.dispatchEvent(new Event(type, {bubbles: true}));
            }
        }"""
    )
    expect(page).to_have_url(re.compile(r"\?at=\d{4}-"))
    expect(page.get_by_role("button", name="Seal…")).to_have_attribute("aria-disabled", "true")
    opened.watch.settle(page)
    assert len(moments) == 1, moments
    picture = slider.get_by_role("application")
    picture.focus()
    picture.press("Home")
    picture.press("Enter")
    expect(page.locator(".status-line")).to_contain_text("epoch 0")


def test_a_request_of_hours_ago_is_found_by_looking_further_back(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    page = opened.go("#/journal?key=demo/payments&from=-1d")
    expect(page.get_by_role("button", name="Go on searching")).to_be_visible()
    link = page.locator("ol.records a[href*='/requests/']").last
    id = link.inner_text()
    link.click()
    expect(page.get_by_role("heading", name=f"Request {id}")).to_be_visible()
    expect(page.locator("table.steps tbody tr").first).to_contain_text("requested")


def test_a_policy_from_what_if_becomes_the_streams_and_unlimited_stays_unlimited(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    # The browser says so of every dialog whose button has the focus from the start; it is no fault.
    opened.expected.append("Autofocus processing was blocked")
    page = opened.go("#/streams/demo/orders?tab=why&if=retention&ifKeep=43200000")
    keep = page.get_by_role("slider", name="Keep at least")
    expect(keep).to_have_attribute("aria-valuetext", "12 h")
    expect(page.get_by_role("slider", name="At most")).to_have_attribute("aria-valuetext", "unlimited")
    page.get_by_role("button", name="Make this the policy").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("From 6 h to unlimited by age to 12 h to unlimited by age")
    expect(dialog).to_contain_text("sluice stream update demo/orders --retain time=12h")
    dialog.get_by_role("button", name="Make it the policy").click()
    expect(dialog).to_contain_text("Done")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Make this the policy")).to_have_attribute("aria-disabled", "true")
    stream = page.request.get(f"{sample.origin}/sluice/v1/scopes/demo/streams/orders").text()
    assert f'"max":{2**63 - 1}' in stream.replace(" ", "")
    assert '"min":43200000' in stream.replace(" ", "")


def test_a_search_anew_finds_what_came_since(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/journal?key=came-since")
    expect(page.locator("main")).to_contain_text("No record in this span")
    assert sample.call("PUT", "scopes/came-since").status_code == 201

    def finds_it() -> bool:
        """Once the page's clock, which may be a little behind the gateway's, has passed the record's time."""
        page.get_by_role("button", name="Search anew").click()
        expect(page.locator("main")).to_contain_text(re.compile("No record in this span|ScopeCreated"))
        return "came-since" in page.locator(".records").inner_text()

    eventually(finds_it, SOON_S, "the record is found")
