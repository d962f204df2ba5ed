"""What was decided on a stream by itself: the reason, the numbers, and the request that it led to."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from page.fixtures import Open
from page.gateway import InThread, in_thread
from page.sample_data import HOUR, create, do_scale
from page.sample_log import SampleLog
from playwright.sync_api import expect

from sluice.domain.config import ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.policy.scaling import ScaleCode
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import DecisionKind, RecordDecision

STREAM = StreamId("tickets", "sales")
REASON = "0.#epoch.0: 870 events a second, the target is 200"


@pytest.fixture(scope="module")
def scaled() -> Iterator[tuple[InThread, str]]:
    """A stream that was split because of its rate; the request for it."""
    requests: list[str] = []

    def write(log: SampleLog, now: int) -> None:
        log.at(now - HOUR)
        log.ask(CreateScope(STREAM.scope))
        create(log, STREAM, StreamConfig(ScalingPolicy(ScaleType.EVENTS, 200, 2, 1)))
        ranges = list(pairwise((0.0, 0.25, 0.5, 0.75, 1.0)))
        requests.append(do_scale(log, STREAM, (0,), ranges, 1 << 20))
        kind, code, numbers = DecisionKind.SCALE, ScaleCode.SPLIT.value, {"targetEvents": 200}
        creation = log.stream(STREAM).creation_id
        log.ask(RecordDecision(*STREAM, creation, kind, code, REASON, log.now, True, requests[0], numbers))

    with in_thread(past=write) as served:
        yield served, requests[0]


def test_a_decision_has_its_reason_and_its_request_opens_the_trace(scaled: tuple[InThread, str], visit: Open) -> None:
    served, request = scaled
    page = visit(served.url).go(f"#/streams/{STREAM}")
    decided = page.locator("ol.decisions > li")
    expect(decided).to_have_count(1)
    for words in ("split", REASON, "200 events/s", "carried out"):
        expect(decided).to_contain_text(words)
    expect(page.get_by_text("No segment is hot or cold; no report on load came in 7 d.")).to_be_visible()
    decided.get_by_role("link", name=request).click()
    expect(page.get_by_role("heading", name=f"Request {request}")).to_be_visible()
    steps = page.locator("table.steps tbody tr")
    expect(steps.filter(has_text="ScaleStream").first).to_contain_text("requested")
    expect(steps.filter(has_text="StreamScaled").first).to_be_visible()


def test_loads_and_the_retention_set_are_shown_with_when_the_last_reports_came(
    scaled: tuple[InThread, str], visit: Open
) -> None:
    opened, at = visit(scaled[0].url), 1_763_899_000_000
    loads = [{"segment": 1 << 32 | 2, "load": "hot", "since": at, "reportedAt": at}]
    cuts = {"at": [at, at + 1], "bytes": [1 << 20, 3 << 20]}
    said = {"loads": loads, "loadReportedAt": at, "retentionReportedAt": at, "retentionSet": cuts}
    said |= {"complete": False, "searchedTo": at}
    opened.page.route("**/streams/sales/reports", lambda route: route.fulfill(json=said))
    page = opened.go(f"#/streams/{STREAM}")
    reported = page.locator("section.panel").filter(has=page.get_by_role("heading", name="Reported"))
    expect(reported.locator("tbody tr")).to_contain_text("2.#epoch.1")
    held = "chooses from 2 cuts", "one frees 1 MiB to 3 MiB"
    for words in ("hot", "the last report on load came", *held, "took too long to read"):
        expect(reported).to_contain_text(words)


def test_no_policy_is_replayed_while_a_past_moment_is_shown(scaled: tuple[InThread, str], visit: Open) -> None:
    served, _request = scaled
    opened = visit(served.url)
    page = opened.go(f"#/streams/{STREAM}?at=-1s")
    expect(page.get_by_text("go back to now")).to_be_visible()
    assert not any(call.endswith("/what-if") for call in opened.watch.calls)
