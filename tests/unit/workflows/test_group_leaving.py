"""Groups that leave streams: what a view does not show may be what it has not folded yet."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from support.memory_world import MemoryWorld, Process, settle

from sluice.domain.config import GroupRetention, ReaderGroupConfig, StreamConfig
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.reader_group.events import ReaderGroupCreated, ReaderGroupCreationStarted, ReaderGroupDeletionStarted
from sluice.domain.reader_group.state import find_group
from sluice.domain.segment import Segment
from sluice.domain.stream.commands import RemoveSubscriber
from sluice.domain.stream.events import StreamCreated, StreamCreationStarted, SubscriberAdded
from sluice.engine.dependencies import DependenciesPending
from stream_workflows import group_steps
from stream_workflows.step_context import StreamStepContext

CONFIG = ReaderGroupConfig(id="i", starts={"sc/st": {}}, retention=GroupRetention.MANUAL)


async def required(step: Coroutine[Any, Any, None], behind: Process) -> list[Any]:
    """The commands that a step depends on which began while its process was behind."""
    task = asyncio.ensure_future(step)
    await settle()
    assert not task.done(), "it goes on without knowing"
    behind.log.thaw()
    with pytest.raises(DependenciesPending) as pending:
        await asyncio.wait_for(task, 10)
    return [dependency.command for dependency in pending.value.unmet]


async def test_a_group_leaves_a_stream_that_its_new_owner_does_not_show_yet() -> None:
    world = MemoryWorld()
    behind, key = world.process(), StreamId("sc", "st").key
    partition_of = behind.journal.partition_of
    names = (f"g{i}" for i in range(99))
    group = next(name for name in names if partition_of(GroupId("sc", name).key) != partition_of(key))
    group_key = GroupId("sc", group).key
    behind.log.freeze(behind.journal.partition_of(key))
    segments = (Segment(0, 0.0, 1.0),)
    created = StreamCreationStarted("sc", "st", "r", config=StreamConfig(), created_at=1, segments=segments)
    subscribed = SubscriberAdded("sc", "st", subscriber=f"sc/{group}", group_id="i", generation=0, at=1)
    await world.seed(key, created, StreamCreated("sc", "st"), subscribed)
    begun = ReaderGroupCreationStarted("sc", group, "q", config=CONFIG, created_at=1)
    await world.seed(group_key, begun, ReaderGroupCreated("sc", group))
    await world.seed(group_key, ReaderGroupDeletionStarted("sc", group, request="d", at=2))
    state = find_group(behind.journal.reader(group_key), GroupId("sc", group))
    assert state is not None
    context = StreamStepContext(world.store, behind.journal, behind.runtime.sender)
    assert await required(group_steps.unsubscribe(context, state), behind) == [
        RemoveSubscriber("sc", "st", f"sc/{group}", 0, "i", "r")
    ]
