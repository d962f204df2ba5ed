"""The picture of a stream: what its pure modules compute, and what can be done with it in a browser."""

import json
import re
import statistics
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from page.fixtures import Open, Slowness, Visit
from page.gateway import InThread
from page.topology_sample import HOUR, NOW, Grown, rolled, wide
from playwright.sync_api import Locator, Page, Request, Route, expect

from sluice.pravega.event_routing import key_position
from sluice.pravega.routing import container_of

DRAW_MS = 16
DRAW_20_000_MS = 250
HOVER_MS = 2
UNLIMITED = (1 << 63) - 1
ORDERS = "#/streams/demo/orders?tab=configuration"


_CALL = """async ([modules, v]) => {
    const script = document.querySelector('script[type=module]').src;
    const found = await Promise.all(modules.map((name) => import(new URL(`../pictures/topology/${name}.js`, script))));
    return ((m, v) => (EXPRESSION))(Object.assign({}, ...found), v);
}"""


def call(page: Page, modules: str, expression: str, *values: Any) -> Any:
    """What an expression comes to with the exports of modules of the picture as `m` and the values as `v`."""
    return page.evaluate(_CALL.replace("EXPRESSION", expression), [modules.split(), list(values)])


@pytest.fixture
def page(empty: InThread, visit: Open) -> Page:
    shown: Page = visit(empty.url).go("#/requests")
    return shown


def test_positions_of_keys_and_containers_of_segments_are_those_of_clients(page: Page) -> None:
    keys = ["", "a", *("kü€y-🐦"[: n % 6] * (n // 2) for n in range(60)), "\ud800lone", "x" * 5_000]
    sent = [[ord(unit) for unit in _units(key)] for key in keys]
    found = call(page, "key_position", "v[0].map((units) => m.keyPosition(String.fromCharCode(...units)))", sent)
    assert found == [key_position(key) for key in keys]
    numbers = [*range(40), 2**31 - 1]
    in_4 = call(page, "key_position", "v[0].map((n) => m.containerOf('demo', 'orders', n, 4))", numbers)
    in_64 = call(page, "key_position", "v[0].map((n) => m.containerOf('demo', 'orders', n, 64))", numbers)
    names = [f"demo/orders/{number}.#epoch.7" for number in numbers]
    assert in_4 == [container_of(name, 4) for name in names]
    assert in_64 == [container_of(name, 64) for name in names]


def _units(text: str) -> str:
    """A text as its units of UTF-16, one character each."""
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(int.from_bytes(data[at : at + 2], "little")) for at in range(0, len(data), 2))


_MODEL = """(() => {
    const x = m.modelOf(v[0], {fold: v[1]});
    const lists = {first: x.first, last: x.last, low: x.low, high: x.high, born: x.born, bytes: x.bytes};
    const all = Object.fromEntries(Object.entries(lists).map(([name, column]) => [name, [...column]]));
    const end = [...x.end].map((at) => (at === Infinity ? 0 : at));
    return {...all, end, id: x.id, epoch: [...x.epochs.epoch], known: [...x.known.rect]};
})()"""


def test_rolling_commits_are_folded_into_the_segments_that_go_on(page: Page) -> None:
    answer = rolled().answer()
    folded = call(page, "model", _MODEL, answer, True)
    assert folded["epoch"] == [0, 1, 4]
    assert sorted(zip(folded["low"], folded["high"], folded["first"], folded["last"], strict=True)) == [
        (0.0, 0.25, 1, 2),
        (0.0, 0.5, 0, 1),
        (0.0, 0.5, 2, 3),
        (0.25, 0.5, 1, 2),
        (0.5, 1.0, 0, 3),
    ]
    upper = folded["low"].index(0.5)
    assert (folded["born"][upper], folded["end"][upper], folded["bytes"][upper]) == (NOW - 5 * HOUR, 0, -1)
    assert folded["known"].count(-1) == 3  # the passing duplicates of what was sealed long before
    _check_cover(folded)
    unfolded = call(page, "model", _MODEL, answer, False)
    assert unfolded["epoch"] == list(range(7))
    assert len(unfolded["id"]) == len(answer["segments"]["id"])
    _check_cover(unfolded)


def _check_cover(model: dict[str, list[float]]) -> None:
    """In each column the rectangles have each key once."""
    for column in range(len(model["epoch"])):
        rects = [n for n in range(len(model["id"])) if model["first"][n] <= column < model["last"][n]]
        ranges = sorted((model["low"][n], model["high"][n]) for n in rects)
        assert ranges[0][0] == 0.0 and ranges[-1][1] == 1.0
        assert all(a[1] == b[0] for a, b in pairwise(ranges))


def test_a_past_moment_shows_what_there_was_then(page: Page) -> None:
    shown = """(() => {
        const x = m.modelOf(v[0], {at: v[1], head: {0: 5}});
        return [x.now, x.epochs.count, x.head.get('0'), m.active(x).map((rect) => [x.low[rect], x.high[rect]])];
    })()"""
    assert call(page, "model", shown, rolled().answer(), NOW - 2 * HOUR - 1) == [
        NOW - 2 * HOUR - 1,
        2,
        5,
        [[0, 0.25], [0.25, 0.5], [0.5, 1]],
    ]


def test_a_cut_is_exact_at_ends_and_samples_and_in_proportion_elsewhere(page: Page) -> None:
    grown = Grown(4, 2)
    low, *_ = grown.by_key()
    grown.at = NOW - HOUR
    grown.scale([low], [(0.0, 0.25)], size=3_600)
    begun, new = NOW - 2 * HOUR, low["id"]
    after = grown.active[-1]["id"]
    steps = """m.stairs(m.modelOf(v[0]), new Map(v[1]), {length: new Map(v[2]), samples: new Map(v[3])})
        .steps.map((step) => [step.id, step.at, step.exact])"""
    samples = [["2", {"at": [begun, begun + HOUR, NOW], "bytes": [0, 100, 900]}]]
    cut = [[str(new), 900], ["1", 0], ["2", 500], ["3", 80]]
    assert call(page, "model cuts", steps, grown.answer(), cut, [["3", 80]], samples) == [
        [str(new), begun + HOUR // 4, False],
        ["1", begun, True],
        ["2", begun + HOUR * 3 // 2, True],
        ["3", NOW, True],
    ]
    ends = [[str(after), -1], [str(new), 3_600]]
    found = call(page, "model cuts", steps, grown.answer(), ends, [], [])
    assert sorted(found) == sorted([[str(after), NOW - HOUR, True], [str(new), NOW - HOUR, True]])


def test_cuts_are_read_as_interfaces_and_the_command_line_write_them(page: Page) -> None:
    read = "[...m.cutIn(v[0])].map(([id, offset]) => [id, String(offset)])"
    for text in ('{"0": 1024, "4294967297": -1}', "0=1024,1.#epoch.1=-1", "0=1024 demo/orders/1.#epoch.1:-1"):
        assert call(page, "cuts", read, text) == [["0", "1024"], ["4294967297", "-1"]]
    assert call(page, "cuts", read, f"9007199254740993={UNLIMITED}") == [["9007199254740993", str(UNLIMITED)]]
    wrong = "(() => { try { m.cutIn(v[0]); return ''; } catch (error) { return error.message; } })()"
    assert "no segment with an offset" in call(page, "cuts", wrong, "0=one")


def test_ranges_cover_or_the_reason_is_told(page: Page) -> None:
    gone = [(0.0, 0.25), (0.25, 0.5)]
    why = "m.uncovered(v[0], v[1])"
    assert call(page, "cover", why, gone, [(0.3, 0.5), (0.0, 0.3)]) is None
    assert call(page, "cover", why, [(0.0, 0.1), (0.5, 0.6)], [(0.5, 0.6), (0.0, 0.05), (0.05, 0.1)]) is None
    assert "no segment: 0.3 to 0.31" in call(page, "cover", why, gone, [(0.0, 0.3), (0.31, 0.5)])
    assert "segments that stay: 0.5 to 0.6" in call(page, "cover", why, gone, [(0.0, 0.6)])
    assert "overlap" in call(page, "cover", why, gone, [(0.0, 0.3), (0.2, 0.5)])
    assert "begin before it ends" in call(page, "cover", why, gone, [(0.0, 0.0), (0.0, 0.5)])
    thirds = call(page, "cover", "m.inParts([0, 1], 3)", None)
    assert call(page, "cover", why, [(0.0, 1.0)], thirds) is None


def test_a_view_in_the_address_comes_back_as_it_was(page: Page) -> None:
    code = """(() => {
        const model = m.modelOf(v[0]), box = {left: 40, top: 30, width: 800, height: 300};
        return v[1].map((one) => m.toAddress(m.fromAddress(one, model, box), model));
    })()"""
    begin = NOW - 3 * HOUR
    kept = [
        {"x": None, "view": None},
        {"x": "epoch", "view": None},
        {"x": None, "view": f"{begin}.."},
        {"x": None, "view": f"{begin}..{NOW - HOUR},0.25..0.5"},
        {"x": "epoch", "view": "1..2.5"},
    ]
    assert call(page, "model view", code, rolled().answer(), kept) == kept
    assert call(page, "model view", code, rolled().answer(), [{"x": "", "view": "9..1,nonsense"}]) == [kept[0]]


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


def test_random_rolls_and_scales_always_cover_all_keys(page: Page) -> None:
    random = Random(23)
    for _ in range(8):
        grown = Grown(random.randrange(1, 5), 10)
        for _ in range(25):
            grown.at += 60_000
            if random.random() < 0.3:
                older = [epoch["epoch"] for epoch in grown.epochs if epoch["epoch"] == epoch["reference"]]
                chosen = random.choice(older)
                if chosen != grown.epochs[-1]["reference"]:
                    grown.roll(chosen)
            else:
                one = random.choice(grown.active)
                middle = random.uniform(one["low"], one["high"])
                grown.scale([one], [(one["low"], middle), (middle, one["high"])])
        _check_cover(call(page, "model", _MODEL, grown.answer(), True))
