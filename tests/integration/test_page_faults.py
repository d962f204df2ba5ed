"""The page while things die and stand still: what fails is shown and can be retried, what is old says so."""

import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest
from page.fixtures import Open, Slowness, chromium, slowness, visit
from page.proxy import balancing
from playwright.sync_api import TimeoutError as NotThereError
from playwright.sync_api import expect
from support.controller import unique
from support.instances import have_instances
from support.pace import Pace

from harness import System, eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
__all__ = ["chromium", "slowness", "visit"]

S = "/sluice/v1"
SETTLED_S = 120.0
COMES_S = 60.0
STOPS_S = 1.0
GOES_S = 10.0
"""After which a card that cannot be clicked is taken for gone."""
MS = 1000


@pytest.fixture(scope="module")
def single(disturbed: System) -> System:
    """One of each service and two segment stores: whatever dies is missed."""
    return have_instances(disturbed, 1, SETTLED_S)


@pytest.fixture(scope="module")
def double(disturbed: System) -> System:
    return have_instances(disturbed, 2, SETTLED_S)


@pytest.fixture
def client(single: System) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=single.rest_url, timeout=120, trust_env=False) as client:
        yield client


def test_a_killed_store_shows_as_a_failing_card_whose_retry_ends_it_when_the_store_is_back(
    single: System, client: httpx.Client, visit: Open
) -> None:
    scope = unique("fault")
    assert client.put(f"{S}/scopes/{scope}").status_code == 201
    assert client.put(f"{S}/scopes/{scope}/streams/st", json={"scaling": {"minSegments": 8}}).status_code == 201
    stores = [name for name in single.names if name.startswith("segment-store-")]
    for store in stores:
        single.kill(store)
    opened = visit(single.page_url)
    page = opened.go(f"#/workflows?scope={scope}")
    with pytest.raises(httpx.ReadTimeout):
        client.post(f"{S}/scopes/{scope}/streams/st/seal", timeout=httpx.Timeout(COMES_S, read=5))
    card = page.get_by_role("region", name="Failing").get_by_role("article")
    expect(card).to_contain_text("attempt", timeout=COMES_S * MS)
    expect(card).to_contain_text("next")
    expect(card.locator(".error").first).not_to_be_empty()
    cancel = card.get_by_role("button", name="Cancel")
    expect(cancel).to_have_attribute("aria-disabled", "true")
    expect(card.locator(".why")).not_to_be_empty()
    for store in stores:
        single.start(store)
    # It is retried by itself, too: then the card goes while it is clicked, or the answer is that nothing waits.
    opened.expected = ["409"]
    with suppress(NotThereError):
        page.locator(f'.card[data-aggregate="stream:{scope}/st"]').get_by_role("button", name="Retry now").click(
            timeout=GOES_S * MS
        )
        page.get_by_role("dialog").get_by_role("button", name="Retry").click(timeout=GOES_S * MS)
    page.keyboard.press("Escape")
    eventually(
        lambda: client.get(f"{S}/scopes/{scope}/streams/st").json()["state"] == "SEALED", SETTLED_S, "it is sealed"
    )
    expect(page.get_by_role("region", name="Failing").get_by_role("article")).to_have_count(0, timeout=COMES_S * MS)


def test_a_gateway_that_stands_still_makes_the_page_amber_then_a_banner_until_it_is_back(
    single: System, visit: Open
) -> None:
    opened = visit(single.page_url)
    page = opened.go()
    live = page.locator("header .live")
    expect(live).to_contain_text("live", timeout=COMES_S * MS)
    opened.expected = ["503", "504"]
    single.freeze("api-gateway-0")
    try:
        expect(live).to_contain_text("late", timeout=COMES_S * MS)
        expect(page.locator("main .banner")).to_contain_text("Data stay, actions are off", timeout=COMES_S * MS)
    finally:
        single.thaw("api-gateway-0")
    expect(live).to_contain_text("live", timeout=COMES_S * MS)
    expect(page.locator("main .banner")).to_have_count(0)


def test_kafka_that_stands_still_shows_as_not_ready_until_it_is_back(single: System, visit: Open) -> None:
    opened = visit(single.page_url)
    opened.expected = ["503", "504"]
    page = opened.go()
    badge = page.locator("header").get_by_text("not ready")
    expect(badge).to_have_count(0)
    single.freeze("kafka")
    try:
        expect(badge).to_be_visible(timeout=COMES_S * MS)
    finally:
        single.thaw("kafka")
    expect(badge).to_have_count(0, timeout=COMES_S * MS)


def test_a_gateway_that_is_killed_behind_a_balancer_is_followed_by_another_and_nothing_is_missed(
    double: System, visit: Open
) -> None:
    scope = unique("switch")
    with balancing(double.rest_urls) as balancer, httpx.Client(base_url=double.rest_urls[1], timeout=60) as other:
        opened = visit(f"{balancer}/ui/")
        opened.expected = ["Failed to load resource", "ERR_"]
        page = opened.go(f"#/streams?q={scope}")
        expect(page.locator("header .live")).to_contain_text("live", timeout=COMES_S * MS)
        double.kill("api-gateway-0")
        try:
            assert other.put(f"{S}/scopes/{scope}").status_code == 201
            assert other.put(f"{S}/scopes/{scope}/streams/missed-by-none", json={}).status_code == 201
            shown = page.locator("main tbody").get_by_text("missed-by-none")
            expect(shown).to_be_visible(timeout=COMES_S * MS)
        finally:
            double.start("api-gateway-0")


def test_a_gateway_with_open_pages_stops_within_a_second_and_logs_no_error(
    double: System, visit: Open, slowness: Slowness
) -> None:
    name, url = "api-gateway-1", double.rest_urls[1]
    opened = visit(f"{url}/ui/")
    opened.expected = ["Failed to load resource", "ERR_"]
    page = opened.go()
    expect(page.locator("header .live")).to_contain_text("live", timeout=COMES_S * MS)
    feeds = httpx.Client(timeout=30, limits=httpx.Limits(max_connections=100), trust_env=False)
    with feeds:
        streams = [
            feeds.send(feeds.build_request("GET", f"{url}{S}/events?of=cluster"), stream=True) for _ in range(50)
        ]
        assert all(stream.status_code == 200 for stream in streams)
        before = double.log(name).stat().st_size
        # A gateway that stops waits for Kafka, and so does a list: behind its barrier.
        scopes = f"{double.rest_urls[0]}{S}/scopes?limit=1"
        with Pace(lambda: httpx.get(scopes, timeout=COMES_S, trust_env=False).raise_for_status()) as pace:
            began = time.monotonic()
            double.stop(name)
            took = time.monotonic() - began
        print(f"stopped within {took:.2f} s; the other gateway took up to {pace.longest_s:.2f} s for an answer")
        for stream in streams:
            stream.close()
    try:
        said = double.log(name).read_bytes()[before:].decode()
        assert '"level":"error"' not in said, said
        assert took <= STOPS_S * slowness() + 2 * pace.longest_s, f"{took:.1f} s"
    finally:
        double.start(name)
