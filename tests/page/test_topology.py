"""The picture of a stream: what can be done with it in a browser. `units` have what its modules compute."""

import json
import re
import statistics
from typing import Any

import pytest
from page.fixtures import Open, Slowness, Visit
from page.gateway import InThread
from page.topology_sample import NOW, Grown, rolled, wide
from playwright.sync_api import Locator, Page, Request, Route, expect

from sluice.pravega.event_routing import key_position

DRAW_MS = 16
DRAW_20_000_MS = 250
HOVER_MS = 2
ORDERS = "#/streams/demo/orders?tab=configuration"


# In the page of a stream: its topology is made up, everything else is the gateway's.


def _shown(
    visit: Open, served: InThread, answer: dict[str, Any], route: str = ORDERS, **more: Any
) -> tuple[Visit, Page]:
    """The page of a stream with this topology, and rates of all its active segments."""
    opened: Visit = visit(served.url, **more)
    segments = answer["segments"]
    active = [id for id, end in zip(segments["id"], segments["end"], strict=True) if end == 0]
    rates = [
        {"id": id, "bytesPerS": 900.0, "eventsPerS": 9.0 * (n + 1), "length": 4_000} for n, id in enumerate(active)
    ]
    opened.page.route("**/streams/*/topology*", lambda to: to.fulfill(json=answer))
    opened.page.route(
        "**/streams/*/rates", lambda to: to.fulfill(json={"at": NOW, "segments": rates, "complete": True})
    )
    page = opened.go(route)
    expect(_picture(page)).to_be_visible()
    return opened, page


def _picture(page: Page) -> Locator:
    return page.get_by_role("application", name="Segments of")


def _point(page: Page, x: float, key: float) -> tuple[float, float]:
    """The pixel of a share of the width of the plot and a key, while everything is shown."""
    box = _picture(page).bounding_box()
    assert box is not None
    return box["x"] + 46 + x * (box["width"] - 58), box["y"] + 34 + (1 - key) * (box["height"] - 34 - 24 - 12)


def test_pointing_names_a_segment_and_a_click_pins_it_in_the_address(sample: InThread, visit: Open) -> None:
    _, page = _shown(visit, sample, rolled().answer(), f"{ORDERS}&x=epoch")
    page.mouse.move(*_point(page, 0.5, 0.1))
    tip = page.locator(".picture-tip")
    expect(tip).to_contain_text("2.#epoch.1")
    expect(tip).to_contain_text("0 to 0.25")
    page.mouse.click(*_point(page, 0.5, 0.1))
    card = page.get_by_role("complementary", name="Segment 2.#epoch.1")
    expect(card).to_contain_text("sealed")
    expect(card.get_by_role("button", name="0.#epoch.0")).to_be_visible()
    expect(card.get_by_role("button", name="4.#epoch.4")).to_be_visible()
    assert "segment=" in page.url
    page.reload()
    expect(card).to_be_visible()
    card.get_by_role("button", name="4.#epoch.4").click()
    expect(page.get_by_role("complementary", name="Segment 4.#epoch.4")).to_be_visible()
    page.get_by_role("button", name="Close the card").click()
    expect(page.get_by_role("complementary", name="Segment")).to_have_count(0)


def test_arrows_lead_through_time_and_keys_and_enter_opens_what_has_focus(sample: InThread, visit: Open) -> None:
    _, page = _shown(visit, sample, rolled().answer())
    picture = _picture(page)
    picture.focus()
    focused = picture.locator("span")
    for key, name in (
        ("", "4.#epoch.4"),
        ("ArrowUp", "1.#epoch.0"),
        ("ArrowUp", "1.#epoch.0"),
        ("ArrowDown", "4.#epoch.4"),
        ("ArrowLeft", "3.#epoch.1"),
        ("ArrowLeft", "0.#epoch.0"),
        ("ArrowRight", "3.#epoch.1"),
        ("End", "4.#epoch.4"),
        ("Home", "0.#epoch.0"),
    ):
        if key:
            page.keyboard.press(key)
        expect(focused).to_have_attribute("aria-label", _starting(f"Segment {name},"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Segment 0.#epoch.0")).to_be_visible()
    page.keyboard.press("+")
    page.wait_for_url("**view=**")
    page.keyboard.press("0")
    page.wait_for_function("() => !location.hash.includes('view=')")


def _starting(text: str) -> re.Pattern[str]:
    return re.compile("^" + re.escape(text))


def test_a_split_that_does_not_cover_is_never_sent(sample: InThread, visit: Open) -> None:
    grown = Grown(2, 5)
    opened, page = _shown(visit, sample, grown.answer(), f"{ORDERS}&segment=0")
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    card = page.get_by_role("complementary", name="Segment 0.#epoch.0")
    field = card.get_by_label("Split at")
    expect(field).to_have_value("0.25")
    for wrong, why in (("0.7", "begin before it ends"), ("0", "begin before it ends"), ("one", "Type one key")):
        field.fill(wrong)
        card.get_by_role("button", name="Split…").click()
        expect(card.get_by_role("alert")).to_contain_text(why)
    assert sent == []
    opened.check()


def test_a_dividing_line_that_is_dragged_becomes_a_scale_of_both_neighbours(sample: InThread, visit: Open) -> None:
    grown = Grown(2, 5)
    _, page = _shown(visit, sample, grown.answer(), f"{ORDERS}&x=epoch")
    sent: list[dict[str, Any]] = []

    def answered(route: Route) -> None:
        sent.append(json.loads(route.request.post_data or "{}"))
        is_dry = "dryRun=true" in route.request.url
        route.fulfill(json={"effects": {"segmentsSealed": 2}} if is_dry else {"epoch": 0, "segments": []})

    page.route(re.compile(r"/streams/orders/scale(\?|$)"), answered)
    page.mouse.move(*_point(page, 0.995, 0.5))
    page.mouse.down()
    page.mouse.move(*_point(page, 0.995, 0.6))
    page.mouse.move(*_point(page, 0.995, 0.75), steps=3)
    page.mouse.up()
    dialog = page.get_by_role("dialog", name="Scale demo/orders")
    expect(dialog).to_contain_text("seals 2 segments")
    dialog.get_by_role("button", name="Scale").click()
    expect(dialog).to_contain_text("It has begun")
    assert [body["sealed"] for body in sent] == [[0, 1], [0, 1]]
    (low, middle), (again, high) = sent[1]["ranges"]
    assert (low, high) == (0, 1)
    assert middle == again == pytest.approx(0.75, abs=0.01)


def test_a_key_leads_to_the_segment_its_writer_would_choose(sample: InThread, visit: Open) -> None:
    grown = Grown(16, 5)
    _, page = _shown(visit, sample, grown.answer())
    for key in ("sensor-17", "ü", "🐦"):
        page.get_by_role("searchbox", name="Routing key").fill(key)
        expect(page.get_by_role("status").filter(has_text="at 0.")).to_contain_text(
            f"{int(key_position(key) * 16)}.#epoch.0"
        )


def test_the_table_has_a_row_for_each_rectangle(sample: InThread, visit: Open) -> None:
    answer = rolled().answer()
    _, page = _shown(visit, sample, answer)
    page.get_by_role("button", name="Table").click()
    rows = page.get_by_role("region", name="Segments of demo/orders: 5 segments").locator("tbody tr")
    expect(rows).to_have_count(5)
    expect(rows.filter(has_text="3.#epoch.1")).to_contain_text("0.25 to 0.5")
    page.get_by_role("button", name="Picture").click()
    page.get_by_label("duplicates of rolling commits").check()
    page.get_by_role("button", name="Table").click()
    everything = page.get_by_role("region", name=f"{len(answer['segments']['id'])} segments")
    expect(everything).to_be_visible()


def test_a_zoomed_view_is_kept_by_reload_and_back(sample: InThread, visit: Open) -> None:
    _, page = _shown(visit, sample, rolled().answer())
    page.get_by_role("button", name="Closer").click()
    page.wait_for_url("**view=**")
    zoomed = page.url
    page.reload()
    expect(_picture(page)).to_be_visible()
    assert page.url == zoomed
    page.get_by_role("link", name="Segments", exact=True).click()
    page.go_back()
    page.wait_for_url(zoomed)


@pytest.mark.parametrize(("segments", "scales", "limit"), [(1_000, 500, DRAW_MS), (1_000, 3_800, DRAW_20_000_MS)])
def test_drawing_and_pointing_fit_their_budgets(
    sample: InThread, visit: Open, slowness: Slowness, segments: int, scales: int, limit: float
) -> None:
    _, page = _shown(visit, sample, wide(segments, scales).answer())
    page.wait_for_function("() => document.querySelector('.picture-stage canvas').dataset.drawn")
    measured = page.evaluate(
        """async () => {
            const base = document.querySelector('.picture-stage canvas');
            const over = base.nextElementSibling;
            const draws = [], hovers = [];
            const drawn = Number(base.dataset.drawn);
            const frame = () => new Promise((next) => requestAnimationFrame(next));
            for (let turn = 0; turn < 9; turn++) {
                document.querySelector(`[aria-label=${turn % 2 ? '"Further away"' : 'Closer'}]`).click();
                await frame();
                await frame();
                draws.push(Number(base.dataset.drawMs));
            }
            const box = over.getBoundingClientRect();
            for (let turn = 0; turn < 40; turn++) {
                const at = {clientX: box.left + 80 + turn * 9, clientY: box.top + 60 + turn * 5, pointerId: 1};
                const began = performance.now();
                over.dispatchEvent(new PointerEvent('pointermove', at));
                hovers.push(performance.now() - began);
                await frame();
            }
            return {draws, hovers, drawn};
        }"""
    )
    assert measured["drawn"] == segments + 5 * scales
    slower = slowness()
    assert statistics.median(measured["draws"]) <= limit * slower
    assert statistics.median(measured["hovers"]) <= HOVER_MS * slower
