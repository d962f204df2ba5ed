"""Steps that need something to be gone: what the view does not show may be what it has not yet heard of."""

import asyncio
from typing import Any, cast

import pytest
from support.memory_journal import Instance, JournalWorld, settle

from sluice.domain import events as ev
from sluice.domain import table as tables
from sluice.domain.commands import CreateTable, RemoveSubscriber
from sluice.domain.config import GroupRetention, ReaderGroupConfig, StreamConfig, TableConfig
from sluice.domain.group import find_group
from sluice.domain.names import group_aggregate, key_of, stream_key
from sluice.domain.table import find_table
from sluice.workflows.sending import Sender
from sluice.workflows.waiting import StillWaiting
from stream_workflows import group_steps, table_steps
from stream_workflows.tools import StreamTools

CONFIG = ReaderGroupConfig(id="i", starts={"sc/st": {}}, retention=GroupRetention.MANUAL)


def catch_up_with(world: JournalWorld, behind: Instance, key: str) -> None:
    """Have one that was frozen learn all of the partition of this key, and nothing else."""
    partition = behind.journal.partition_of(key)
    behind.journal._on_batch(world.log[partition][behind.journal.views()[partition].next_offset :])


async def needed(step: Any, world: JournalWorld, behind: Instance) -> list[Any]:
    """What a step asks for that was begun by one that is behind, and learns the rest only later."""
    task = asyncio.ensure_future(step)
    await settle()
    assert not task.done(), "it goes on without knowing"
    behind.thaw()
    with pytest.raises(StillWaiting) as waiting:
        await asyncio.wait_for(task, 10)
    return [need.ask for need in waiting.value.needs]


async def test_a_group_leaves_a_stream_that_its_new_owner_has_not_yet_heard_of() -> None:
    world = JournalWorld(2)
    behind, key = world.instances[1], stream_key("sc", "st")
    group = next(
        name
        for name in (f"g{i}" for i in range(99))
        if behind.journal.partition_of(key_of(group_aggregate("sc", name))) != behind.journal.partition_of(key)
    )
    group_key = key_of(group_aggregate("sc", group))
    behind.frozen = True
    created = ev.StreamCreationStarted(
        scope="sc",
        stream="st",
        incarnation="r",
        config=StreamConfig(),
        created_at=1,
        segments=(ev.Segment(0, 0.0, 1.0),),
    )
    subscribed = ev.SubscriberAdded(scope="sc", stream="st", subscriber=f"sc/{group}", group_id="i", generation=0, at=1)
    world.seed(key, created, ev.StreamCreated(scope="sc", stream="st"), subscribed)
    begun = ev.ReaderGroupCreationStarted(scope="sc", group=group, incarnation="q", config=CONFIG, created_at=1)
    world.seed(group_key, begun, ev.ReaderGroupCreated(scope="sc", group=group))
    world.seed(group_key, ev.ReaderGroupDeletionStarted(scope="sc", group=group, request="d", at=2))
    catch_up_with(world, behind, group_key)
    state = find_group(behind.journal.reader(group_key), "sc", group)
    assert state is not None
    tools = StreamTools(cast(Any, None), behind.journal, Sender(cast(Any, behind)))
    asked = await needed(group_steps.unsubscribe(tools, state), world, behind)
    assert asked == [RemoveSubscriber("sc", "st", f"sc/{group}", 0, "i")]


async def test_a_name_is_released_in_a_scope_that_the_new_owner_has_not_yet_heard_of() -> None:
    world = JournalWorld(2)
    behind = world.instances[1]
    partition = behind.journal.partition_of("sc")
    name = next(n for n in (f"t{i}" for i in range(99)) if behind.journal.partition_of(f"sc/{n}") != partition)
    key, config = stream_key("sc", name), TableConfig(1, 4)
    behind.frozen = True
    command = CreateTable("sc", name, config)
    reserved = ev.NameReserved(scope="sc", create=command, incarnation="r", at=1)
    world.seed("sc", ev.ScopeCreated(scope="sc", at=1), reserved)
    begun = ev.TableCreationStarted(
        scope="sc",
        table=name,
        incarnation="r",
        config=config,
        created_at=1,
        segments=(ev.Segment(0, 0.0, 1.0),),
    )
    world.seed(key, begun, ev.TableCreated(scope="sc", table=name))
    catch_up_with(world, behind, key)
    table = find_table(behind.journal.reader(key), "sc", name)
    assert table is not None
    tools = StreamTools(cast(Any, None), behind.journal, Sender(cast(Any, behind)))
    assert await needed(table_steps.release_name(tools, table), world, behind) == [tables.release(table)]
