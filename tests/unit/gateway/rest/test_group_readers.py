"""The readers of a group, from the state that they write, and what they have yet to read."""

import asyncio
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from support import group_state as written
from unit.gateway.rest.test_sluice_others import BODY, RG
from unit.gateway.rest.test_sluice_segments import SPLIT, THIRD, scale
from unit.gateway.rest.test_sluice_streams import S, problem
from unit.gateway.rest.world import World

from api_gateway.console import group_readers
from api_gateway.edge import group_state, group_states
from api_gateway.edge.errors import QuotaExceededError
from api_gateway.edge.group_states import GroupStates
from api_gateway.edge.reads import Reads
from api_gateway.edge.security.guard import calling
from api_gateway.edge.worker import Worker
from sluice.domain.errors import NotFoundError
from sluice.domain.ids import GroupId
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.kafka.topics import RETENTION
from sluice.pravega.store import SegmentData, SegmentInfo
from sluice.security.caller import Caller
from sluice.security.resources import Permission

STATE = "sc/_RGrg/0.#epoch.0"
CONFIG = written.config(["sc/st"], "0f0e0d0c-0b0a-4908-8706-050403020100", 0)
FIRST, SECOND = "sc/st/0.#epoch.0", "sc/st/1.#epoch.0"
READERS = f"{RG}/readers"
PRAVEGAS = "/v1/scopes/sc/readergroups/rg"


@pytest.fixture
async def group(world: World, stream: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """A group that reads `sc/st`; nothing that is found of it is shared with a later call."""
    monkeypatch.setattr(group_readers, "SHARED_S", -1.0)
    monkeypatch.setattr(group_readers, "AGE_SHARED_S", -1.0)
    assert (await world.call("PUT", RG, BODY)).status_code == 201
    return world


async def write(world: World, *entries: bytes) -> None:
    for entry in entries:
        await world.store.append(STATE, uuid4(), entry)


def fill(world: World, segment: str, length: int) -> None:
    world.store.segments[segment].data = bytes(length)


def held(segment: int, offset: int) -> dict[str, Any]:
    return {"stream": "sc/st", "segment": segment, "offset": offset}


async def test_readers_and_what_they_have_yet_to_read(group: World) -> None:
    fill(group, FIRST, 100)
    fill(group, SECOND, 60)
    await write(group, written.initial(CONFIG, [FIRST, SECOND]))
    await write(group, written.updates(written.add_reader("b"), written.add_reader("a"), written.acquire("b", FIRST)))
    await write(group, written.updates(written.last_read("b", {FIRST: 30})))
    found = await group.get(READERS)
    assert found["readers"] == [{"name": "a", "segments": []}, {"name": "b", "segments": [held(0, 30)]}]
    assert (found["unassigned"], found["lag"], found["complete"]) == ([held(1, 0)], {"bytes": 130}, True)


@pytest.mark.parametrize(
    ("start", "lag"),
    [
        ({}, {"bytes": 140}),
        ({"0": 30, "1": 50}, {"bytes": 80}),
        ({"0": 5, "1": 0}, {"bytes": 140}),
        ({"7": 5}, {}),
    ],
    ids=["the head", "a cut", "a cut before the head", "a cut of another stream"],
)
async def test_before_the_first_reader_all_from_the_start_is_yet_to_be_read(
    world: World, stream: str, monkeypatch: pytest.MonkeyPatch, start: dict[str, int], lag: dict[str, int]
) -> None:
    fill(world, FIRST, 100)
    fill(world, SECOND, 60)
    assert (await world.call("POST", f"{stream}/truncate", {"cut": {"0": 20, "1": 0}})).status_code == 200
    config = {"streams": {"sc/st": {"start": start}}}
    assert (await world.call("PUT", RG, {"config": config})).status_code == 201
    found = await world.get(READERS)
    assert (found["readers"], found["unassigned"], found["lag"]) == ([], [], lag)
    assert found["complete"] == bool(lag)


async def test_the_lag_of_a_group_whose_stream_is_gone_is_unknown(group: World, stream: str) -> None:
    for write_state in (False, True):
        if write_state:
            await write(group, written.initial(CONFIG, [FIRST]))
        else:
            await group.call("POST", f"{stream}/seal")
            assert (await group.call("DELETE", stream)).status_code == 204
        found = await group.get(READERS)
        assert (found["lag"], found["complete"]) == ({}, False)


async def test_a_state_with_what_is_no_segment_is_refused(group: World) -> None:
    await write(group, written.initial(CONFIG, ["sc/st/x"]))
    assert problem(await group.call("GET", READERS)) == (409, None)


async def test_the_lag_in_time_is_read_off_sampled_cuts(group: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(group, FIRST, 100)
    await write(group, written.initial(CONFIG, [FIRST]), written.updates(written.last_read("r", {})))
    assert "ms" not in (await group.get(READERS))["lag"], "nothing is sampled without a policy"
    now = group.system.broker.now_ms()
    for minute, length in ((3, 0), (2, 50), (1, 100)):
        report = RetentionReport(
            id=f"{minute}", by="t", at=now - minute * 60_000, scope="sc", stream="st", creation_id="", policy=None,
            head=SizedCut({0: 0}, 0), sample=SizedCut({0: length}, 0),
        )  # fmt: skip
        group.system.broker.land(RETENTION.name, "sc/st", msgspec.json.encode(report))
    lag = (await group.get(READERS))["lag"]
    assert 180_000 <= lag["ms"] < 240_000
    monkeypatch.setattr(group.lookback, "run", None)
    assert (await group.get(READERS, age=False))["lag"] == {"bytes": 100}, "the past is not looked at"


async def test_what_comes_behind_a_scale_is_yet_to_be_read(group: World) -> None:
    fill(group, FIRST, 100)
    await scale(group, SPLIT)
    fill(group, f"sc/st/{THIRD & 0xFFFFFFFF}.#epoch.1", 40)
    await write(group, written.initial(CONFIG, [FIRST, SECOND]))
    assert (await group.get(READERS))["lag"] == {"bytes": 140}


async def test_a_group_of_an_old_client_is_a_stream_alone(world: World, stream: str) -> None:
    assert (await world.call("PUT", f"{S}/scopes/sc/streams/_RGrg", {})).status_code == 201
    fill(world, FIRST, 100)
    await write(world, written.initial(CONFIG, [FIRST]))
    assert problem(await world.call("GET", RG)) == (404, "RG_NOT_FOUND")
    assert (await world.get(READERS))["lag"]["bytes"] == 100


async def test_a_segment_that_cannot_be_measured_leaves_the_lag_incomplete(group: World) -> None:
    fill(group, FIRST, 100)
    await write(group, written.initial(CONFIG, [FIRST, SECOND]))
    del group.store.segments[SECOND]
    found = await group.get(READERS)
    assert (found["lag"], found["complete"]) == ({"bytes": 100}, False)


async def test_a_state_that_is_too_long_or_wrong_is_refused(group: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await write(group, written.updates(written.add_reader("r")))
    assert problem(await group.call("GET", READERS)) == (409, None)
    monkeypatch.setattr(group_state, "MAX_STATE_BYTES", 10)
    assert "bytes of state" in (await group.call("GET", READERS)).json()["detail"]
    assert problem(await group.call("GET", f"{S}/scopes/sc/readergroups/none/readers")) == (404, "RG_NOT_FOUND")


async def test_a_state_with_more_than_groups_need_is_refused(group: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await write(group, written.initial(CONFIG, [FIRST, SECOND]), written.updates(written.add_reader("r")))
    monkeypatch.setattr(group_state, "MAX_ENTRIES", 3)
    await group.get(READERS)
    monkeypatch.setattr(group_state, "MAX_ENTRIES", 2)
    assert problem(await group.call("GET", READERS)) == (409, None)
    assert (await group.call("GET", PRAVEGAS)).status_code == 500


async def test_of_more_streams_than_are_counted_the_lag_is_incomplete(
    group: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await group.call("PUT", f"{S}/scopes/sc/streams/other", {})).status_code == 201
    fill(group, "sc/other/0.#epoch.0", 7)
    fill(group, FIRST, 100)
    await write(group, written.initial(CONFIG, ["sc/other/0.#epoch.0", FIRST]))
    seen = []
    for most in (2, 1):
        monkeypatch.setattr(group_readers, "MAX_STREAMS", most)
        found = await group.get(READERS)
        seen.append((found["lag"]["bytes"], found["complete"]))
    assert seen == [(107, True), (7, False)]


async def test_callers_of_pravegas_interface_at_one_time_share_one_look(
    group: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(group, written.initial(CONFIG, [FIRST]))
    reads: list[str] = []
    read = group.store.read_segment

    async def counted(name: str, offset: int, length: int) -> SegmentData:
        reads.append(name)
        return await read(name, offset, length)

    monkeypatch.setattr(group.store, "read_segment", counted)
    answers = await asyncio.gather(*(group.get(PRAVEGAS) for _ in range(3)))
    assert (len(reads), [one["onlineReaderIds"] for one in answers]) == (1, [[], [], []])
    await write(group, written.updates(written.add_reader("r")))
    assert (await group.get(PRAVEGAS))["onlineReaderIds"] == ["r"], "who comes later sees what was written meanwhile"


async def test_one_user_has_a_quarter_of_the_looks_at_most(group: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_states, "MAX_LOOKS", 4)
    goes_on, measure = asyncio.Event(), group.store.segment_info
    states = GroupStates(group.store, group.parts[Reads], group.parts[Worker])

    async def late(name: str) -> SegmentInfo:
        await goes_on.wait()
        return await measure(name)

    monkeypatch.setattr(group.store, "segment_info", late)
    with calling(Caller("reader", lambda _resource: Permission.NONE)):
        first = asyncio.ensure_future(states.state(GroupId("sc", "rg")))
        await asyncio.sleep(0)
        with pytest.raises(QuotaExceededError):
            await states.state(GroupId("sc", "other"))
        goes_on.set()
        assert await first is None
        with pytest.raises(NotFoundError):
            await states.state(GroupId("sc", "other"))


async def test_many_callers_share_one_look(group: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await write(group, written.initial(CONFIG, [FIRST]))
    monkeypatch.setattr(group_readers, "SHARED_S", 60.0)
    before = await group.get(READERS)
    await write(group, written.updates(written.add_reader("late")))
    assert await group.get(READERS) == before
