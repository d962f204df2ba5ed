"""Requests that are delivered a second time while others are under way: they do nothing to what has their name by then.

That nothing changes when all is at rest is a rule of `test_model`.
"""

import asyncio
from unittest.mock import Mock, patch

from simulation.scene import in_a_world
from simulation.world import PARTITIONS, World

from sluice.domain import registry as aggregates
from sluice.domain.config import GroupRetention, ReaderGroupConfig, ScalingPolicy, StreamConfig
from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup
from sluice.domain.scope.commands import CreateScope
from sluice.domain.status import Status
from sluice.domain.stream.commands import CreateStream, DeleteStream, SealStream, UpdateStream, UpdateSubscriberCut
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.workflow import CancelWorkflow, Workflow
from sluice.engine.partition import partition_of

CONFIG = StreamConfig(scaling=ScalingPolicy(min_segments=1))
HELD = "away/held"


class Held(World):
    """A world in which a request behind a stuck stream holds an offset back."""

    def find(self, name: str) -> Stream | None:
        return find_stream(self.view(StreamId("sc", name).key), StreamId("sc", name))

    async def hold(self, key: str) -> None:
        """From now on nothing that comes in the key's partition is accepted for good."""
        partition = partition_of(key, PARTITIONS)
        name = next(n for n in (f"held{i}" for i in range(99)) if partition_of(f"away/{n}", PARTITIONS) == partition)
        assert await self.do(CreateScope("away")) == await self.do(CreateStream("away", name, CONFIG)) == "SUCCESS"
        self.away = (HELD,)
        self.post(SealStream("away", name))
        await self.until(lambda: self.workflow(f"stream:away/{name}"))
        self.post(SealStream("away", name))

    async def redeliver_held(self) -> None:
        """The next process gets what is held back a second time; what was acknowledged before it is committed."""
        await asyncio.sleep(1)
        self.restart()
        await asyncio.sleep(30)


@in_a_world(Held)
async def test_a_creation_that_was_refused_does_not_bring_back_what_is_being_deleted(world: Held) -> None:
    await world.hold(StreamId("sc", "st").key)
    create = CreateStream("sc", "st", CONFIG)
    assert [await world.do(create), await world.do(create)] == ["SUCCESS", "STREAM_EXISTS"]
    assert await world.do(SealStream("sc", "st")) == "SUCCESS"
    world.failing = {"DeleteSegment"}
    deletion = world.post(DeleteStream("sc", "st"))
    await asyncio.sleep(1)
    world.restart()
    await asyncio.sleep(5)
    world.failing = set()
    await world.replied(deletion)
    await asyncio.sleep(30)
    assert world.find("st") is None


@in_a_world(Held)
async def test_a_dead_letter_is_not_carried_out_when_the_next_release_could(world: Held) -> None:
    assert await world.do(CreateStream("sc", "st", CONFIG)) == "SUCCESS"
    await world.hold(StreamId("sc", "st").key)
    with patch.dict(aggregates.DECIDE, {UpdateStream: Mock(side_effect=ValueError("a defect"))}):
        assert await world.do(UpdateStream("sc", "st", StreamConfig(tags=("x",)))) == "FAILURE"
    await world.redeliver_held()
    stream = world.find("st")
    assert stream is not None and not stream.config.tags and len(world.dead_letters) == 1


@in_a_world(Held)
async def test_a_creation_is_not_cancelled_with_an_earlier_one(world: Held) -> None:
    await world.hold(StreamId("sc", "st").key)
    world.failing = {"CreateSegment"}

    async def begun() -> tuple[str, Workflow]:
        """A creation that does not get on: its request, and its workflow."""
        request = world.post(CreateStream("sc", "st", CONFIG))
        await world.until(lambda: world.workflow("stream:sc/st"))
        workflow = world.workflow("stream:sc/st")
        assert workflow is not None
        return request, workflow

    first, workflow = await begun()
    assert await world.do(CancelWorkflow("stream:sc/st", workflow.id)) == "SUCCESS"
    assert await world.replied(first) == Reply(Status.FAILURE, "cancelled")
    second, workflow = await begun()
    await world.redeliver_held()
    stream = world.find("st")
    assert stream is not None and stream.workflow is workflow and not workflow.cancelled
    world.failing = set()
    assert await world.replied(second) == Reply(Status.SUCCESS)


@in_a_world(Held)
async def test_a_new_group_keeps_the_cut_that_it_has_reported(world: Held) -> None:
    assert await world.do(CreateStream("sc", "st", CONFIG)) == "SUCCESS"
    await world.hold(StreamId("sc", "st").key)
    for id in ("old", "new"):
        config = ReaderGroupConfig(id=id, starts={"sc/st": {}}, retention=GroupRetention.MANUAL)
        assert await world.do(CreateReaderGroup("sc", "g", config)) == "SUCCESS"
        if id == "old":
            assert await world.do(DeleteReaderGroup("sc", "g", id)) == "SUCCESS"
    assert await world.do(UpdateSubscriberCut("sc", "st", "sc/g", "new", 0, {0: 5})) == "SUCCESS"
    world.restart()
    await asyncio.sleep(30)
    stream = world.find("st")
    assert stream is not None and stream.subscribers["sc/g"].cut == {0: 5}
