"""What the REST interface shows of the events of streams and the entries of tables."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest
from unit.gateway.rest.test_sluice_segments import SPLIT, scale
from unit.gateway.rest.test_sluice_streams import ST, problem
from unit.gateway.rest.world import World

from api_gateway.console import stored_data
from api_gateway.console.rates import Rates
from api_gateway.console.stored_data import MAX_VALUE_BYTES, REACH_BYTES, READ_BYTES, StoredData
from sluice.domain.ids import StreamId
from sluice.pravega.event_frames import frame_event
from sluice.pravega.event_routing import key_position
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.wire.fields import NO_VERSION, TableEntry, TableKey

EVENTS = f"{ST}/events"
FIRST, SECOND = "sc/st/0.#epoch.0", "sc/st/1.#epoch.0"
TABLE = "/sluice/v1/scopes/sc/tables/kv"
ENTRIES = f"{TABLE}/entries"


async def append(world: World, segment: str, *events: bytes) -> None:
    for event in events:
        await world.store.append(segment, uuid4(), event)


def values(found: dict[str, Any], segment: int = 0) -> list[str]:
    return [item["data"]["value"] for item in found["items"] if item["segment"] == segment]


async def test_the_last_events_of_each_segment_with_sizes_and_offsets(world: World, stream: str) -> None:
    await append(world, FIRST, b"one", b"two", b'{"three": 3}')
    await append(world, SECOND, b"\xff\x00")
    found = await world.get(EVENTS, limit=4)
    assert found["items"] == [
        {"segment": 0, "offset": 11, "next": 22, "data": {"value": "two", "encoding": "text", "size": 3}},
        {"segment": 0, "offset": 22, "next": 42, "data": {"value": '{"three": 3}', "encoding": "text", "size": 12}},
        {"segment": 1, "offset": 0, "next": 10, "data": {"value": "/wA=", "encoding": "base64", "size": 2}},
    ]
    assert found["segments"] == [{"id": 0, "startOffset": 0, "length": 42}, {"id": 1, "startOffset": 0, "length": 10}]
    assert (found["moreSegments"], found["next"]) == (0, {"0": 42, "1": 10})


async def test_from_a_cut_on_events_come_in_their_order_and_next_goes_on(world: World, stream: str) -> None:
    await append(world, FIRST, *(b"%d" % number for number in range(6)))
    found = await world.get(EVENTS, **{"from": "0=9,1=-1"}, limit=2)
    assert (values(found), found["next"]) == (["1", "2"], {"0": 27, "1": -1})
    found = await world.get(EVENTS, **{"from": f"0={found['next']['0']}"}, limit=100)
    assert (values(found), found["next"]) == (["3", "4", "5"], {"0": 54})


async def test_where_to_go_on_names_all_of_the_cut_though_some_was_not_read(world: World, stream: str) -> None:
    await append(world, FIRST, b"one")
    await append(world, SECOND, b"two")
    found = await world.get(EVENTS, **{"from": "0=0,1=0"}, segment=1)
    assert (values(found, 1), found["next"]) == (["two"], {"0": 0, "1": 11})
    del world.store.segments[SECOND]
    assert (await world.get(EVENTS, **{"from": "0=0,1=0"}))["next"] == {"0": 11, "1": 0}


async def test_by_key_only_the_segment_that_its_events_go_to_is_read(world: World, stream: str) -> None:
    await append(world, FIRST, b"low")
    await append(world, SECOND, b"high")
    for key in ("customer-7", "customer-8", "customer-9", ""):
        found = await world.get(EVENTS, key=key)
        assert [one["id"] for one in found["segments"]] == [int(key_position(key) > 0.5)]


async def test_a_segment_of_a_past_epoch_is_read_by_its_id(world: World, stream: str) -> None:
    await append(world, FIRST, b"before the split")
    await scale(world, SPLIT)
    found = await world.get(EVENTS, segment=0)
    assert values(found) == ["before the split"]
    assert problem(await world.call("GET", EVENTS, segment=77)) == (404, None)


async def test_of_a_long_segment_only_the_end_is_read_from_where_its_length_was_measured(
    world: World, stream: str
) -> None:
    kept = world.parts[Rates].kept
    await append(world, FIRST, *(b"%06d" % number + bytes(994) for number in range(400)))
    kept.note(StreamId("sc", "st"), {0: world.store.segments[FIRST].length - 150 * 1008})
    reads: list[str] = []
    world.store.fault = lambda moment, request, _name: reads.append(request) if moment == "before" else None
    found = await world.get(EVENTS, segment=0, limit=3)
    assert [text[:6] for text in values(found)] == ["000397", "000398", "000399"]
    assert reads.count("ReadSegment") <= 150 * 1008 // READ_BYTES + 1


async def test_where_no_beginning_of_an_event_is_known_one_is_told_by_the_last_bytes(world: World, stream: str) -> None:
    await append(world, FIRST, b"a" * REACH_BYTES, b"b" * 1000, b"c" * READ_BYTES, b"last")
    found = await world.get(EVENTS, segment=0)
    assert [text[:4] for text in values(found)] == ["cccc", "last"]


async def test_where_no_beginning_of_an_event_can_be_told_nothing_is_shown(world: World, stream: str) -> None:
    await append(world, FIRST, b"a" * REACH_BYTES, b"".join(map(frame_event, (b"not", b"events"))))
    found = await world.get(EVENTS, segment=0)
    assert (found["items"], found["next"]) == ([], {})
    assert found["segments"][0]["problem"].endswith("is not known: read from a cut")
    found = await world.get(EVENTS, segment=0, **{"from": f"0={REACH_BYTES + 8}"})
    assert [item["data"]["size"] for item in found["items"]] == [25]


async def test_of_a_large_event_the_beginning_is_shown_and_the_next_one_is_found(world: World, stream: str) -> None:
    large = "é".encode() * (READ_BYTES * 3)
    await append(world, FIRST, b"a", large, b"b")
    found = await world.get(EVENTS, segment=0)
    assert [item["data"]["size"] for item in found["items"]] == [1, len(large), 1]
    assert values(found)[1] == "é" * (MAX_VALUE_BYTES // 2)


async def test_what_is_no_event_and_a_silent_store_are_said_of_their_segments(world: World, stream: str) -> None:
    world.store.segments[FIRST].data = frame_event(b"x") + b"raw bytes, no event"
    found = await world.get(EVENTS)
    assert found["segments"][0]["problem"].startswith("what stands at offset 9 is no event")
    await append(world, SECOND, b"there")

    def silent(moment: str, _request: str, name: str) -> None:
        if moment == "before" and name == FIRST:
            raise ConnectionFailure(Failure.SILENT)

    world.store.fault = silent
    found = await world.get(EVENTS)
    assert values(found, 1) == ["there"]
    assert found["segments"][0]["problem"].startswith("its segment store does not answer")


async def test_a_store_that_takes_too_long_keeps_nobody_waiting(
    world: World, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_data, "READING_S", 0.01)
    never = asyncio.get_running_loop().create_future()
    world.store.fault = lambda _moment, request, _name: never if request == "ReadSegment" else None
    await append(world, FIRST, b"x")
    found = await world.get(EVENTS, segment=0)
    assert found["segments"][0]["problem"] == "no answer within 0.01 s"


async def test_of_many_segments_the_first_are_read_and_the_others_counted(world: World, scope: str) -> None:
    path = "/sluice/v1/scopes/sc/streams/wide"
    body: Any = {"scaling": {"type": "fixed", "minSegments": 20}}
    assert (await world.call("PUT", path, body)).status_code == 201
    found = await world.get(f"{path}/events")
    assert (len(found["segments"]), found["moreSegments"]) == (8, 12)


async def test_data_are_not_shown_where_a_setting_says_so(world: World, stream: str) -> None:
    world.parts[StoredData].is_shown = False
    for path in (EVENTS, ENTRIES):
        assert (await world.call("GET", path)).status_code == 403


@pytest.fixture
async def table(world: World, scope: str) -> World:
    """With a table of two partitions, whose keys have 4 bytes, and 3 entries."""
    body = {"partitionCount": 2, "primaryKeyLength": 4}
    assert (await world.call("PUT", TABLE, body)).status_code == 201
    names = sorted(name for name in world.store.segments if "/kv" in name)
    for number, key in enumerate((b"aaaa", b"bbbb", b"cc\xff\xff")):
        entry = TableEntry(TableKey(key, NO_VERSION), b"value %d" % number)
        await world.store.update_table_entries(names[number % 2], [entry])
    return world


async def test_entries_come_page_by_page_with_keys_versions_and_values(table: World) -> None:
    items = await table.all_items(ENTRIES)
    assert [(item["partition"], item["key"]["value"], item["value"]["value"]) for item in items] == [
        (0, "aaaa", "value 0"),
        (0, "Y2P//w==", "value 2"),
        (1, "bbbb", "value 1"),
    ]
    assert items[0]["version"] == 0


async def test_a_partition_that_does_not_answer_is_named_and_the_others_are_read(table: World) -> None:
    name = next(name for name in table.store.segments if "/kv" in name and "/0.#" in name)
    del table.store.segments[name]
    found = await table.get(ENTRIES)
    assert [item["key"]["value"] for item in found["items"]] == ["bbbb"]
    assert [one["partition"] for one in found["problems"]] == [0]


async def test_an_entry_is_found_by_its_key_in_the_partition_that_the_key_has(table: World) -> None:
    answers: list[httpx.Response] = [await table.call("GET", ENTRIES, key=key) for key in ("aaaa", "bbbb", "none")]
    found = [answer.json()["items"] for answer in answers]
    assert sum(map(len, found)) <= 2
    assert found[2] == []
    assert problem(await table.call("GET", ENTRIES, key="long key"))[0] == 400


@pytest.mark.parametrize("after", ["LTEu", "MC56eg", "OTk5OTk5OTk5OTk5Lg"])
async def test_a_token_that_is_none_of_entries_is_refused(table: World, after: str) -> None:
    assert problem(await table.call("GET", ENTRIES, after=after))[0] == 400
