"""Past rates of a stream: read on to the present, and from then on only what is new."""

from urllib.parse import parse_qs, urlsplit

from page.fixtures import Open
from page.gateway import InThread
from page.sample_data import HOUR
from playwright.sync_api import Request, Route


def from_of(request: Request) -> int:
    return int(parse_qs(urlsplit(request.url).query)["from"][0])


def test_past_rates_are_read_to_the_present_and_then_only_what_is_new(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    now = sample.do(lambda gateway: gateway.broker.now_ms())
    reached = now - 2 * HOUR

    def answer(route: Route) -> None:
        begin = from_of(route.request)
        is_first = begin < reached - HOUR
        bucket_ms = int(parse_qs(urlsplit(route.request.url).query)["bucket"][0])
        ends = {"searchedTo": reached if is_first else now, "complete": not is_first}
        route.fulfill(json={"from": begin, "bucketMs": bucket_ms, "segments": [], **ends})

    opened.page.route("**/rates/history?*", answer)
    histories = "**/rates/history?*"
    with opened.page.expect_request(histories) as whole:
        opened.page.goto(f"{opened.url}#/streams/demo/orders")
    with opened.page.expect_request(histories) as further:
        pass
    assert from_of(whole.value) < now - 20 * HOUR
    assert reached - HOUR < from_of(further.value) <= reached
    opened.watch.settle(opened.page)
    opened.go("#/requests")
    with opened.page.expect_request(histories) as later:
        opened.page.go_back()
    assert now - HOUR < from_of(later.value) <= now
