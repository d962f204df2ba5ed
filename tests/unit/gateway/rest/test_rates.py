"""Rates over HTTP, now and in the past."""

import msgspec
from unit.gateway.rest.test_sluice_streams import ST, problem
from unit.gateway.rest.world import World, as_text

from api_gateway.console.kept_lengths import KeptLengths
from api_gateway.console.rates import Rates
from sluice.domain.ids import StreamId
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.kafka.topics import RETENTION
from sluice.lookback.rate_history import MAX_GAP_MS, Sample, history_of, unread_since

MINUTE = 60_000


async def test_the_first_call_begins_to_measure(world: World, stream: str) -> None:
    found = await world.get(f"{ST}/rates")
    assert ([one["id"] for one in found["segments"]], found["complete"]) == ([0, 1], False)
    assert problem(await world.call("GET", "/sluice/v1/scopes/sc/streams/none/rates"))[0] == 404


async def test_past_rates_of_a_stream_without_a_policy_are_those_that_were_looked_at(world: World, stream: str) -> None:
    assert (await world.get(f"{ST}/rates/history"))["segments"] == []
    began = world.system.broker.now_ms() - 2 * MINUTE
    kept = world.parts[Rates].kept = KeptLengths(iter((began, began + MINUTE)).__next__)
    for lengths in ({0: 0, 1: 0}, {0: 6_000, 1: 0}):
        kept.note(StreamId("sc", "st"), lengths)
    found = await world.get(f"{ST}/rates/history", **{"from": as_text(began), "bucket": MINUTE})
    assert [one["bytesPerS"][0] for one in found["segments"]] == [100.0, 0.0] and found["complete"]


async def test_past_rates_are_read_off_the_samples(world: World, stream: str) -> None:
    policy = {"type": "events", "targetRate": 10, "scaleFactor": 2, "minSegments": 2}
    assert (await world.call("PUT", ST, {"scaling": policy})).status_code == 200
    now = world.system.broker.now_ms()
    for minute, cut in ((3, {0: 0}), (2, {0: 6_000}), (1, {0: 6_000})):
        for name in ("st", "other"):
            report = RetentionReport(
                id=f"{minute}", by="t", at=now - minute * MINUTE, scope="sc", stream=name, creation_id="", policy=None,
                head=SizedCut({0: 0}, 0), sample=SizedCut(cut, 0),
            )  # fmt: skip
            world.system.broker.land(RETENTION.name, "sc/st", msgspec.json.encode(report))
    world.system.broker.land(RETENTION.name, "sc/st", b"no report")
    found = await world.get(f"{ST}/rates/history", **{"from": as_text(now - 3 * MINUTE), "to": as_text(now - MINUTE)})
    # The broker of the test appends all of them now.
    assert found["segments"] == [] and found["complete"]
    found = await world.get(f"{ST}/rates/history", **{"from": as_text(now - 3 * MINUTE), "bucket": MINUTE})
    (segment,) = found["segments"]
    assert segment["id"] == 0 and 100.0 in [round(rate) for rate in segment["bytesPerS"]]
    assert problem(await world.call("GET", f"{ST}/rates/history", **{"from": "-9d"})) == (400, None)


def test_a_bucket_has_the_mean_of_what_is_known_of_it() -> None:
    samples = [Sample(0, {0: 0}), Sample(MINUTE, {0: 600}), Sample(2 * MINUTE, {0: 600 + 1800})]
    length, (only,) = history_of(samples, 0, 3 * MINUTE, MINUTE)
    assert (length, only.id, only.bytes_per_s) == (MINUTE, 0, [10.0, 30.0, -1.0])
    _, (only,) = history_of(samples, 0, 4 * MINUTE, 2 * MINUTE)
    assert only.bytes_per_s == [20.0, -1.0]
    _, (only,) = history_of(samples, MINUTE // 2, MINUTE + MINUTE // 2, MINUTE)
    assert only.bytes_per_s == [20.0]


def test_a_segment_that_came_between_two_samples_was_empty_at_the_first() -> None:
    born = (1 << 32) + 1
    samples = [Sample(0, {0: 100}), Sample(MINUTE, {born: 600})]
    _, (only,) = history_of(samples, 0, MINUTE, MINUTE)
    assert (only.id, only.bytes_per_s) == (born, [10.0])


def test_samples_far_apart_tell_nothing_and_buckets_have_a_bound() -> None:
    samples = [Sample(0, {0: 0}), Sample(MAX_GAP_MS + 1, {0: 9})]
    assert history_of(samples, 0, MAX_GAP_MS * 2, MINUTE)[1] == []
    many = [Sample(0, dict.fromkeys(range(1000), 0)), Sample(MINUTE, dict.fromkeys(range(1000), 60))]
    length, found = history_of(many, 0, 7 * 24 * 60 * MINUTE, MINUTE)
    assert len(found) * len(found[0].bytes_per_s) <= 300_000 and length > MINUTE


def test_what_is_unread_is_as_old_as_its_first_byte() -> None:
    samples = [Sample(1000, {0: 100}), Sample(2000, {0: 200}), Sample(3000, {0: 200, 1: 40})]
    assert unread_since(samples, {0: 150}) == 1500
    assert unread_since(samples, {0: 50}) == 1000, "before the first sample"
    assert unread_since(samples, {0: 200}) == 3000, "since the last one"
    assert unread_since(samples, {0: 200, 1: 0}) == 3000
    assert unread_since(samples, {0: 150, 1: 0, 9: 5}) == 1500
    assert unread_since(samples, {9: 5}) is None and unread_since([], {0: 5}) is None
