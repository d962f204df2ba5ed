"""Scopes that are deleted with what is in them: how much of a large one is looked at, and what of it."""

import pytest
from support.memory_world import MemoryWorld

from sluice.domain.config import StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.scope.events import ScopeCreated, ScopeDeletionStarted
from sluice.domain.scope.state import find_scope
from sluice.domain.segment import Segment
from sluice.domain.stream.events import StreamCreated, StreamCreationStarted, StreamSealStarted
from sluice.engine.dependencies import MAX_UNDER_WAY, DependenciesPending, Dependency
from stream_workflows.scope_steps import empty
from stream_workflows.step_context import StreamStepContext


async def required(world: MemoryWorld) -> list[Dependency]:
    scope = find_scope(world.view("sc"), "sc")
    assert scope is not None
    with pytest.raises(DependenciesPending) as pending:
        await empty(StreamStepContext(world.store, world.first.journal, world.first.runtime.sender), scope)
    return list(pending.value.unmet)


async def test_of_a_large_scope_the_first_of_each_partition_are_requested_past_those_at_work() -> None:
    world = MemoryWorld()
    partition_of = world.first.journal.partition_of
    ids = [StreamId("sc", f"st{number:05}") for number in range(5_000)]
    crowded = [id for id in ids if partition_of(id.key) == 0][: MAX_UNDER_WAY + 40]
    few = [id for id in ids if partition_of(id.key) == 1][:3]
    sealing = crowded[:20]
    await world.seed("sc", ScopeCreated("sc", creation_id="c", at=0))
    for id in (*crowded, *few):
        created = StreamCreationStarted(*id, "r", config=StreamConfig(), created_at=1, segments=(Segment(0, 0.0, 1.0),))
        await world.seed(id.key, created, StreamCreated(*id))
    for id in sealing:
        await world.seed(id.key, StreamSealStarted(*id, request="s", at=2))
    await world.seed("sc", ScopeDeletionStarted("sc", recursive=True, request="d", at=3))
    unmet = await required(world)
    requested = [dependency.command.stream for dependency in unmet if dependency.command is not None]
    assert sorted(requested) == sorted(id.name for id in (*crowded[20 : 20 + MAX_UNDER_WAY], *few))
    assert len(unmet) - len(requested) == len(sealing), "those at work are watched"
