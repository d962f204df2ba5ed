"""The topology as it is transferred."""

import gzip
import json
from itertools import pairwise

from unit.gateway.rest.test_sluice_segments import SPLIT, scale
from unit.gateway.rest.test_sluice_streams import ST, problem
from unit.gateway.rest.world import World, as_text

from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, segment_id
from sluice.domain.stream.events import Replacement, StreamEpochAdded, StreamScaled, StreamScaleStarted

COLUMNS = {"id", "number", "low", "high", "bornEpoch", "born", "endEpoch", "end", "bytes", "flags"}
MOST_BYTES = 100_000


async def test_the_rectangles_are_the_segments_of_each_epoch(world: World, stream: str) -> None:
    await scale(world, SPLIT)
    found = await world.get(f"{ST}/topology")
    columns = found["segments"]
    assert columns.keys() == COLUMNS
    for epoch in found["epochs"]["epoch"]:
        listed = {s["id"] for s in (await world.get(f"{ST}/segments", epoch=epoch))["items"]}
        rows = zip(columns["id"], columns["bornEpoch"], columns["endEpoch"], strict=True)
        assert {id for id, born, end in rows if born <= epoch and not 0 <= end <= epoch} == listed
    assert (found["state"], found["head"], found["merged"]) == ("ACTIVE", {"0": 0, "1": 0}, False)
    assert "workflow" not in found and "target" not in found
    began = found["epochs"]["at"][1]
    assert (await world.get(f"{ST}/topology", to=as_text(began - 1)))["segments"]["id"] == [0, 1]
    assert 0 not in (await world.get(f"{ST}/topology", **{"from": as_text(began)}))["segments"]["id"]
    assert problem(await world.call("GET", f"{ST}/topology", **{"from": "-1m", "to": "-2m"})) == (400, None)
    assert problem(await world.call("GET", "/sluice/v1/scopes/sc/streams/none/topology"))[0] == 404


async def test_a_stream_of_thousands_of_segments_is_small_to_transfer(world: World, stream: str) -> None:
    """1,000 active segments and 500 scales."""
    for event in _much(1_000, 500, began=(await world.get(ST))["createdAt"]):
        await world.system.append("sc/st", event)
    answer = await world.call("GET", f"{ST}/topology")
    assert len(answer.json()["segments"]["id"]) > 3_499
    assert len(gzip.compress(answer.content, 6)) <= MOST_BYTES
    few = json.loads((await world.call("GET", f"{ST}/topology", most=500)).content)
    assert few["merged"] and len(few["segments"]["id"]) <= 500


def _much(count: int, scales: int, began: int) -> list[StreamScaleStarted | StreamEpochAdded | StreamScaled]:
    """The events of a scale to so many segments, and of as many more that change a few segments each."""
    id = StreamId("sc", "st")
    active = [Segment(n, n / 2, (n + 1) / 2) for n in range(2)]
    events: list[StreamScaleStarted | StreamEpochAdded | StreamScaled] = []
    number = 2
    for epoch in range(1, scales + 1):
        at = began + epoch * 61_234
        if epoch == 1:
            gone, ranges = active, [(n / count, (n + 1) / count) for n in range(count)]
        else:
            # Five become six, or six five.
            first, width = epoch * 37 % (count - 6), 6 if epoch % 2 else 5
            gone = active[first : first + width]
            parts, low, high = 11 - width, gone[0].low, gone[-1].high
            bounds = [low + (high - low) * n / parts for n in range(parts)] + [high]
            ranges = list(pairwise(bounds))
        creates = tuple(Segment(segment_id(epoch, number + n), *r) for n, r in enumerate(ranges))
        number += len(creates)
        replacement = Replacement(tuple(s.id for s in gone), creates, at)
        events.append(StreamScaleStarted(*id, replacement=replacement, at=at))
        events.append(StreamEpochAdded(*id, created_at=at))
        sizes = {s.id: 1_000_000 + (s.id * 7919) % 500_000_000 for s in gone}
        events.append(StreamScaled(*id, sealed_sizes=sizes))
        where = active.index(gone[0])
        active[where : where + len(gone)] = creates
    return events
