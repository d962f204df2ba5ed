"""A reader group as a whole, on a cluster in memory; its readers are their decisions."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from sluice.controller_api import controller_pb2 as pb
from sluice.pravega import InMemorySegmentStore
from sluice.pravega.reader_group_config import GroupConfig, Retention
from sluice.pravega.reader_group_state import CreateCheckpoint, GroupState
from sluice.pravega.stream_cut import StreamCut
from sluice_client import Client, Refused, ScopeMissing, Start, start_at
from sluice_client.channel import Answer, Request, Rpc
from sluice_client.groups import decisions
from sluice_client.groups.group import (
    CheckpointGivenUp,
    ConfigDiffers,
    ReaderGroup,
    TooManyCheckpoints,
    create_reader_group,
    delete_reader_group,
    open_reader_group,
)
from sluice_client.groups.messages import config_message
from sluice_client.groups.synchronizer import GroupMissing
from sluice_client.memory import InMemoryController

A, B = "s/t/0.#epoch.0", "s/t/1.#epoch.0"
C, D = "s/t/2.#epoch.1", "s/t/3.#epoch.1"
CONFIG = GroupConfig(starts={"s/t": None})
EVENT = 8 + 10


class SpiedController(InMemoryController):
    """Keeps what is said about subscribers; `loses` the first answer to an update of a group, so it comes twice."""

    def __init__(self, store: InMemorySegmentStore) -> None:
        super().__init__(store)
        self.cuts: list[pb.SubscriberStreamCut] = []
        self.loses = False

    async def call(self, rpc: Rpc[Request, Answer], request: Request) -> Answer:
        found: Any = request
        if isinstance(found, pb.SubscriberStreamCut):
            self.cuts.append(found)
        if self.loses and isinstance(found, pb.ReaderGroupConfiguration):
            self.loses = False
            await super().call(rpc, request)
        return await super().call(rpc, request)


@pytest.fixture
def store() -> InMemorySegmentStore:
    return InMemorySegmentStore()


@pytest.fixture
def controller(store: InMemorySegmentStore) -> SpiedController:
    return SpiedController(store)


@pytest.fixture
async def client(store: InMemorySegmentStore, controller: SpiedController) -> AsyncIterator[Client]:
    """With a stream of two segments, A and B, of two events each."""
    client = Client(controller, store)
    await controller.create_scope("s")
    await controller.create_stream("s", "t", 2)
    for segment in (A, B):
        await store.append_events(segment, uuid4(), [b"0123456789"] * 2, 2)
    yield client
    controller.close()


async def made(client: Client, config: GroupConfig = CONFIG) -> ReaderGroup:
    assert await create_reader_group(client, "s", "g", config)
    return await open_reader_group(client, "s", "g")


async def join(group: ReaderGroup, *readers: str) -> None:
    """Each takes its share."""
    for reader in readers:
        await group.shared.update(partial(decisions.join, reader=reader))
    for reader in readers:
        lag = decisions.lag_of(reader, 0, None, {}, {})
        await group.shared.update(partial(decisions.acquire, reader=reader, lag=lag))


async def begun(group: ReaderGroup) -> str:
    """The checkpoint that waits for readers, when there is one."""
    async with asyncio.timeout(30):
        while True:
            waiting = (await group.shared.refresh()).checkpoints.waiting
            if waiting:
                return next(iter(waiting))
            await asyncio.sleep(0.05)


async def tick(client: Client, reader: str, at: int) -> None:
    """A reader that takes part in the next checkpoint, at this offset in all its segments."""
    group = await open_reader_group(client, "s", "g")
    id = await begun(group)
    positions = dict.fromkeys(group.shared.state.assigned[reader], at)
    await group.shared.update(lambda state: decisions.checkpoint(state, reader, id, positions))


async def test_a_group_is_made_once(client: Client) -> None:
    group = await made(client)
    assert not await create_reader_group(client, "s", "g", CONFIG)
    with pytest.raises(ConfigDiffers):
        await create_reader_group(client, "s", "g", GroupConfig(starts={"s/t": None}, refresh_ms=1))
    stored = await group.config()
    assert stored.means_the_same(GroupConfig(starts={"s/t": None}, ends={"s/t": None})) and stored.generation == 0
    assert await group.cuts() == {"s/t": StreamCut("s", "t", {A: 0, B: 0})}


async def test_who_finds_a_group_looks_at_no_history(
    client: Client, controller: SpiedController, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.streams.scale([A, B], [(0.0, 1.0)])
    await made(client)
    monkeypatch.setattr(controller, "successors", None)
    assert not await create_reader_group(client, "s", "g", CONFIG)


async def test_a_group_whose_maker_died_half_way_is_made_by_the_next(
    client: Client, controller: SpiedController
) -> None:
    half = GroupConfig(starts={"s/t": None}, ends={"s/t": None}, generation=0, id=uuid4())
    await controller.call(lambda stub: stub.createReaderGroup, config_message("s", "g", half))
    with pytest.raises(GroupMissing):
        await open_reader_group(client, "s", "g")
    assert not await create_reader_group(client, "s", "g", CONFIG)
    assert (await (await open_reader_group(client, "s", "g")).config()).id == half.id


async def test_a_group_that_is_deleted_is_gone(client: Client) -> None:
    await made(client)
    assert await delete_reader_group(client, "s", "g")
    assert not await delete_reader_group(client, "s", "g")
    with pytest.raises(GroupMissing):
        await open_reader_group(client, "s", "g")


@pytest.mark.parametrize(
    "config",
    [
        GroupConfig(starts={}),
        GroupConfig(starts={"s/t": None}, max_outstanding=0),
        GroupConfig(starts={"s/t": StreamCut("s", "u", {A: 0})}),
        GroupConfig(starts={"s/t": None}, ends={"s/u": None}),
        GroupConfig(starts={"s/t": StreamCut("s", "t", {A: 9})}, ends={"s/t": StreamCut("s", "t", {A: 8})}),
        GroupConfig(starts={"s/t": StreamCut("s", "t", {C: 0})}, ends={"s/t": StreamCut("s", "t", {A: 8})}),
    ],
)
async def test_a_configuration_without_sense_is_refused(client: Client, config: GroupConfig) -> None:
    with pytest.raises(Refused):
        await create_reader_group(client, "s", "g", config)


async def test_impossible_names_and_missing_scopes(client: Client) -> None:
    with pytest.raises(Refused):
        await create_reader_group(client, "s", "_g", CONFIG)
    with pytest.raises(ScopeMissing):
        await create_reader_group(client, "none", "g", CONFIG)


async def test_a_checkpoint_is_where_all_readers_say_they_are(client: Client) -> None:
    group = await made(client)
    await join(group, "r", "q")
    assert await group.readers() == {"r": [A], "q": [B]}
    checkpoint, *_ = await asyncio.gather(group.checkpoint("c"), tick(client, "r", EVENT), tick(client, "q", 0))
    assert (checkpoint.name, checkpoint.cuts) == ("c", {"s/t": StreamCut("s", "t", {A: EVENT, B: 0})})
    assert await group.cuts() == checkpoint.cuts and await group.unread_bytes() == 3 * EVENT


async def test_a_checkpoint_that_a_dead_reader_holds_up_is_given_up(client: Client) -> None:
    group = await made(client)
    await join(group, "r", "dead")
    ticked = asyncio.create_task(tick(client, "r", EVENT))
    with pytest.raises(CheckpointGivenUp, match=r"waits for the readers \['dead'\]"):
        await group.checkpoint(deadline_s=5.0)
    await ticked
    await group.reader_offline("dead")
    await asyncio.gather(group.checkpoint(), tick(client, "r", EVENT))


async def test_no_more_checkpoints_than_allowed_wait(client: Client) -> None:
    group = await made(client, GroupConfig(starts={"s/t": None}, max_outstanding=1))
    await join(group, "r")
    await group.shared.append([CreateCheckpoint("first")])
    with pytest.raises(TooManyCheckpoints):
        await group.checkpoint()
    await group.cancel_checkpoints()
    await asyncio.gather(group.checkpoint(), tick(client, "r", EVENT))
    with pytest.raises(Refused):
        await group.checkpoint("a_SILENT_one")


async def test_a_checkpoint_that_was_cleared_has_no_result(client: Client) -> None:
    group, other = await made(client), await open_reader_group(client, "s", "g")
    await join(group, "r")
    waiting = asyncio.create_task(group.checkpoint())
    await begun(other)
    await other.cancel_checkpoints()
    with pytest.raises(CheckpointGivenUp, match="cleared"):
        await waiting


async def test_cuts_are_generated_without_a_checkpoint(client: Client) -> None:
    group = await made(client)
    await join(group, "r")
    cuts, _ = await asyncio.gather(group.generate_cuts(), tick(client, "r", EVENT))
    assert cuts == {"s/t": StreamCut("s", "t", {A: EVENT, B: EVENT})}
    assert (await group.cuts())["s/t"].offsets == {A: 0, B: 0} and await group.unread_bytes() == 4 * EVENT
    with pytest.raises(CheckpointGivenUp, match="'r'"):
        await group.generate_cuts(deadline_s=1.0)


async def test_a_reader_is_reported_offline_with_or_without_its_position(client: Client) -> None:
    group = await made(client)
    await join(group, "r")
    await group.reader_offline("r", {A: EVENT})
    await group.reader_offline("r", {A: 0})
    assert await group.readers() == {} and (await group.cuts())["s/t"].offsets == {A: EVENT, B: 0}


async def test_a_group_begins_anew_at_a_checkpoint(client: Client) -> None:
    group = await made(client)
    await join(group, "r")
    checkpoint, _ = await asyncio.gather(group.checkpoint(), tick(client, "r", EVENT))
    await asyncio.gather(group.checkpoint(), tick(client, "r", 2 * EVENT))
    await group.reset_to(checkpoint.cuts)
    assert await group.readers() == {} and await group.cuts() == checkpoint.cuts
    config = await group.config()
    assert config.generation == 1 and config.starts == checkpoint.cuts
    assert not group.shared.state.updating and not group.shared.state.checkpoints.last
    with pytest.raises(decisions.ReaderOffline):
        decisions.held_by(group.shared.state, "r")


async def test_a_reset_whose_answer_was_lost_has_happened_once(client: Client, controller: SpiedController) -> None:
    group = await made(client)
    controller.loses = True
    await group.reset(GroupConfig(starts={"s/t": None}, refresh_ms=1))
    config = await group.config()
    assert (config.generation, config.refresh_ms) == (1, 1)


async def test_a_reset_that_a_reader_has_ended_meanwhile_puts_no_reader_out(
    client: Client, controller: SpiedController, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, call = await made(client), controller.call
    other = await open_reader_group(client, "s", "g")

    async def repaired(rpc: Any, request: Any) -> Any:
        answer = await call(rpc, request)
        if isinstance(request, pb.ReaderGroupConfiguration):
            assert await other.repair()
            await join(other, "r")
        return answer

    monkeypatch.setattr(controller, "call", repaired)
    await group.reset(GroupConfig(starts={"s/t": None}, refresh_ms=1))
    assert await group.readers() == {"r": [A, B]} and (await group.config()).generation == 1


async def test_a_group_that_the_controller_knows_under_another_id_is_not_reset(
    client: Client, controller: SpiedController
) -> None:
    group = await made(client)
    other = replace(await group.config(), id=uuid4())
    await group.shared.update(lambda _: [GroupState(other)])
    with pytest.raises(Refused, match="another group"):
        await group.reset(CONFIG)


async def test_a_reset_that_died_is_ended_by_readers(client: Client, controller: SpiedController) -> None:
    group = await made(client)
    await join(group, "r")
    assert not await group.repair()
    message = config_message("s", "g", await group.config())
    message.maxOutstandingCheckpointRequest = 7
    await controller.call(lambda stub: stub.updateReaderGroup, message)
    assert await group.repair() and not await group.repair()
    assert (await group.config()).max_outstanding == 7 and await group.readers() == {}


async def test_the_last_checkpoint_is_published_for_retention(client: Client, controller: SpiedController) -> None:
    group = await made(client, GroupConfig(starts={"s/t": None}, retention=Retention.AUTOMATIC))
    await join(group, "r")
    await group.publish_last_checkpoint()
    await client.streams.scale([A, B], [(0.0, 0.75), (0.75, 1.0)])
    await asyncio.gather(group.checkpoint(), tick(client, "r", EVENT))
    await group.shared.update(lambda state: decisions.complete(state, "r", A, {C: {0, 1}}, {}))
    await asyncio.gather(group.checkpoint(), tick(client, "r", -1))
    await group.publish_last_checkpoint()
    await group.shared.refresh()
    await group.publish_last_checkpoint()
    published = [(cut.subscriber, cut.generation, dict(cut.streamCut.cut)) for cut in controller.cuts]
    at_first, at_last = {0: 0, 1: 0}, {1: 2 * EVENT, (1 << 32) + 2: -1}
    assert published == [("s/g", 0, at_first), ("s/g", 0, at_last)], "from the start, the end, and no hole"
    with pytest.raises(Refused, match="AUTOMATIC"):
        await group.update_retention_cuts([])


async def test_what_is_needed_no_more_is_said_by_hand(client: Client, controller: SpiedController) -> None:
    group = await made(client, GroupConfig(starts={"s/t": None}, retention=Retention.MANUAL))
    await group.update_retention_cuts([StreamCut("s", "t", {A: EVENT, B: -1})])
    cuts = [dict(cut.streamCut.cut) for cut in controller.cuts]
    assert cuts == [{0: 0, 1: 0}, {0: EVENT, 1: 2 * EVENT}], "from the start; the end is a number"
    for impossible in ({A: EVENT}, {A: 0, B: 0}):
        with pytest.raises(Refused, match="NOT_VALID"):
            await group.update_retention_cuts([StreamCut("s", "t", impossible)])


async def test_what_follows_a_hole_of_a_cut_waits_for_the_rest_only(client: Client) -> None:
    """B was read to its end, A was not: what follows both waits for A."""
    await client.streams.scale([A, B], [(0.0, 0.75), (0.75, 1.0)])
    assert await start_at(client.controller, {A: EVENT, D: 0}) == Start({A: EVENT, D: 0}, {C: {A}})
    group = await made(client, GroupConfig(starts={"s/t": StreamCut("s", "t", {A: EVENT, D: 0})}))
    state = await group.shared.refresh()
    assert (state.unassigned, state.future) == ({A: EVENT, D: 0}, {C: {0}})
    assert await group.unread_bytes() == EVENT


async def test_a_group_ends_where_its_end_cut_is(client: Client) -> None:
    await client.streams.scale([A, B], [(0.0, 1.0)])
    end = StreamCut("s", "t", {A: -1, B: EVENT})
    group = await made(client, GroupConfig(starts={"s/t": None}, ends={"s/t": end}))
    state = await group.shared.refresh()
    assert (state.end, state.future) == ({A: 2**63 - 1, B: EVENT}, {})
    assert await group.unread_bytes() == 3 * EVENT
