"""Past rates of a stream: read on to the present, and from then on only what is new."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from page.fixtures import Open
from page.gateway import InThread
from page.sample_data import DAY, HOUR, MINUTE
from page.test_past import call
from playwright.sync_api import Request, Route

MODULE = "pages/stream/rate-history.js"


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


def test_answers_about_past_rates_become_one_history(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/requests")

    def reply(begin: int, bucket_ms: int, searched_to: int, **rates: list[float]) -> dict[str, Any]:
        segments = [{"id": int(name[1:]), "bytesPerS": values} for name, values in rates.items()]
        return {
            "from": begin,
            "bucketMs": bucket_ms,
            "segments": segments,
            "searchedTo": searched_to,
            "complete": False,
        }

    replies = [
        reply(0, MINUTE, 150_000, s1=[1, 2, 3, -1]),
        # What is not known now was known before; another segment has been written to.
        reply(2 * MINUTE, MINUTE, 240_000, s1=[-1, 4], s2=[5, 6]),
        # So many segments that the gateway has made the buckets longer.
        reply(4 * MINUTE, 2 * MINUTE, 360_000, s2=[7]),
    ]
    joins = "v[0].reduce((known, one) => m.joined(known, one, v[1]), null)"
    known = call(
        page, MODULE, f"(({{segments, ...rest}}) => ({{...rest, segments: [...segments]}}))({joins})", replies, DAY
    )
    assert known["segments"] == [["1", [1, 2, 3, 4]], ["2", [-1, -1, 5, 6, 7, 7]]]
    assert (known["from"], known["bucketMs"], known["searchedTo"]) == (0, MINUTE, 6 * MINUTE)
    spans = [
        call(
            page,
            MODULE,
            "m.nextSpan(v[0], 0, v[1])",
            {**known, "asked": reached, "searchedTo": to, "complete": done},
            DAY,
        )
        for reached, to, done in ((0, 90 * MINUTE + 1, False), (HOUR, HOUR, False), (HOUR, 2 * HOUR, True))
    ]
    # On from there; past a bucket that one call could not read; and what may have changed since the last sample.
    assert [span["from"] for span in spans] == [90 * MINUTE, 61 * MINUTE, 110 * MINUTE]
