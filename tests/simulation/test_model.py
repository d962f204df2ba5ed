"""Random sequences of operations, with the process killed between any two of its touches of the outside.

A small model predicts the status of every reply; the invariants hold whenever the world has come to rest.
"""

from collections.abc import Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from simulation import invariants
from simulation.lives import SimulationLoop
from simulation.world import World
from support.histories import replaced

from sluice.domain.config import GroupRetention, ReaderGroupConfig, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.ids import StreamId
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
)
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.table.commands import CreateTable, DeleteTable

T = TypeVar("T")

scopes = st.sampled_from(["sc", "sc", "sc", "sc", "other"])
names = st.sampled_from(["a", "b"])
crash_plans = st.lists(st.integers(0, 25), max_size=3)


@dataclass
class Model:
    """What is expected to exist: streams with whether they are sealed, groups and tables by name."""

    streams: dict[str, bool] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)

    def is_empty(self) -> bool:
        return not (self.streams or self.groups or self.tables)


class Operations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = SimulationLoop()
        self.model: dict[str, Model] = {}

    @initialize(seed=st.integers(0, 2**32 - 1))
    def begin(self, seed: int) -> None:
        """Chance is a part of the example."""
        self.world = self.run(self._make_world(Random(seed)))
        self.create_scope("sc", [])
        for name in ("a", "b"):
            self.create_stream("sc", name, 2, [])

    async def _make_world(self, random: Random) -> World:
        """With the scope and the stream that the first process makes for itself."""
        world = World(random=random)
        await world.until(world.is_at_rest)
        reply = await world.ask(CreateScope("_system"))
        assert reply.status == "SCOPE_EXISTS"
        return world

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def ask(self, command: Any, crashes: list[int], expected: str) -> None:
        reply = self.run(self.world.ask(command, crashes))
        assert reply.status == expected, (command, reply)

    def stream(self, scope: str, name: str) -> Stream | None:
        return find_stream(self.world.view(StreamId(scope, name).key), StreamId(scope, name))

    @rule(scope=scopes, crashes=crash_plans)
    def create_scope(self, scope: str, crashes: list[int]) -> None:
        self.ask(CreateScope(scope), crashes, "SCOPE_EXISTS" if scope in self.model else "SUCCESS")
        self.model.setdefault(scope, Model())

    @rule(scope=scopes, crashes=crash_plans)
    def delete_scope(self, scope: str, crashes: list[int]) -> None:
        model = self.model.get(scope)
        expected = "SCOPE_NOT_FOUND" if model is None else "SUCCESS" if model.is_empty() else "SCOPE_NOT_EMPTY"
        self.ask(DeleteScope(scope), crashes, expected)
        if expected == "SUCCESS":
            del self.model[scope]

    @rule(scope=scopes, seldom=st.integers(0, 4), crashes=crash_plans)
    def delete_scope_recursive(self, scope: str, seldom: int, crashes: list[int]) -> None:
        if seldom:
            return
        self.ask(DeleteScopeRecursive(scope), crashes, "SUCCESS")
        self.model.pop(scope, None)

    @rule(scope=scopes, name=names, segments=st.integers(1, 4), crashes=crash_plans)
    def create_stream(self, scope: str, name: str, segments: int, crashes: list[int]) -> None:
        model = self.model.get(scope)
        expected = "SCOPE_NOT_FOUND" if model is None else "STREAM_EXISTS" if name in model.streams else "SUCCESS"
        config = StreamConfig(scaling=ScalingPolicy(min_segments=segments))
        self.ask(CreateStream(scope, name, config), crashes, expected)
        if model is not None:
            model.streams.setdefault(name, False)

    def _sealed(self, scope: str, name: str) -> bool | None:
        model = self.model.get(scope)
        return model.streams.get(name) if model else None

    @rule(scope=scopes, name=names, which=st.integers(0, 9), split=st.booleans(), crashes=crash_plans)
    def scale(self, scope: str, name: str, which: int, split: bool, crashes: list[int]) -> None:
        stream = self.stream(scope, name)
        if stream is None or self._sealed(scope, name):
            self.ask(ScaleStream(scope, name, (0,), ((0.0, 1.0),), 0), crashes, "FAILURE")
            return
        active = stream.active_segments()
        i = which % len(active)
        is_merge = not split and i + 1 < len(active)
        is_refused = is_merge and len(active) <= stream.config.scaling.min_segments
        command = ScaleStream(scope, name, *replaced(active, i, is_merge), 0)
        self.ask(command, crashes, "PRECONDITION_FAILED" if is_refused else "STARTED")

    @rule(scope=scopes, name=names, segments=st.integers(1, 5), crashes=crash_plans)
    def update(self, scope: str, name: str, segments: int, crashes: list[int]) -> None:
        sealed = self._sealed(scope, name)
        expected = {None: "STREAM_NOT_FOUND", True: "STREAM_SEALED", False: "SUCCESS"}[sealed]
        config = StreamConfig(scaling=ScalingPolicy(min_segments=segments), tags=(f"t{segments}",))
        self.ask(UpdateStream(scope, name, config), crashes, expected)
        if expected == "SUCCESS":
            stream = self.stream(scope, name)
            assert stream is not None and len(stream.active_epoch.segments) == segments

    @rule(scope=scopes, name=names, crashes=crash_plans)
    def truncate_to_tail(self, scope: str, name: str, crashes: list[int]) -> None:
        stream, sealed = self.stream(scope, name), self._sealed(scope, name)
        cut = dict.fromkeys(stream.active_epoch.segments, 0) if stream else {0: 0}
        expected = {None: "STREAM_NOT_FOUND", True: "STREAM_SEALED", False: "SUCCESS"}[sealed]
        self.ask(TruncateStream(scope, name, cut), crashes, expected)

    @rule(scope=scopes, name=names, seldom=st.integers(0, 1), crashes=crash_plans)
    def seal(self, scope: str, name: str, seldom: int, crashes: list[int]) -> None:
        if seldom:
            return
        known = self._sealed(scope, name) is not None
        self.ask(SealStream(scope, name), crashes, "SUCCESS" if known else "STREAM_NOT_FOUND")
        if known:
            self.model[scope].streams[name] = True

    @rule(scope=scopes, name=names, crashes=crash_plans)
    def delete_stream(self, scope: str, name: str, crashes: list[int]) -> None:
        expected = {None: "STREAM_NOT_FOUND", True: "SUCCESS", False: "STREAM_NOT_SEALED"}[self._sealed(scope, name)]
        self.ask(DeleteStream(scope, name), crashes, expected)
        if expected == "SUCCESS":
            del self.model[scope].streams[name]

    @rule(scope=scopes, group=names, reads=names, subscribes=st.booleans(), crashes=crash_plans)
    def create_group(self, scope: str, group: str, reads: str, subscribes: bool, crashes: list[int]) -> None:
        model = self.model.get(scope)
        retention = GroupRetention.MANUAL if subscribes else GroupRetention.NONE
        config = ReaderGroupConfig(id=f"id-{group}", starts={f"{scope}/{reads}": {}}, retention=retention)
        missing = model is not None and reads not in model.streams
        expected = "SCOPE_NOT_FOUND" if model is None else "SUCCESS"
        if model is not None and group not in model.groups and subscribes and missing:
            expected = "FAILURE"
        self.ask(CreateReaderGroup(scope, group, config), crashes, expected)
        if expected == "SUCCESS":
            assert model is not None
            model.groups.add(group)

    @rule(scope=scopes, group=names, crashes=crash_plans)
    def delete_group(self, scope: str, group: str, crashes: list[int]) -> None:
        model = self.model.get(scope)
        known = model is not None and group in model.groups
        self.ask(DeleteReaderGroup(scope, group), crashes, "SUCCESS" if known else "RG_NOT_FOUND")
        if model is not None:
            model.groups.discard(group)

    @rule(scope=scopes, table=names, partitions=st.integers(1, 3), crashes=crash_plans)
    def create_table(self, scope: str, table: str, partitions: int, crashes: list[int]) -> None:
        model = self.model.get(scope)
        expected = "SCOPE_NOT_FOUND" if model is None else "TABLE_EXISTS" if table in model.tables else "SUCCESS"
        self.ask(CreateTable(scope, table, TableConfig(partitions, 4)), crashes, expected)
        if model is not None:
            model.tables.add(table)

    @rule(scope=scopes, table=names, crashes=crash_plans)
    def delete_table(self, scope: str, table: str, crashes: list[int]) -> None:
        model = self.model.get(scope)
        known = model is not None and table in model.tables
        self.ask(DeleteTable(scope, table), crashes, "SUCCESS" if known else "TABLE_NOT_FOUND")
        if model is not None:
            model.tables.discard(table)

    @rule(seldom=st.integers(0, 4))
    def redeliver_every_request(self, seldom: int) -> None:
        if seldom:
            return
        before = self._shown()
        self.run(self._redeliver())
        self.ask(CreateScope("_system"), [], "SCOPE_EXISTS")
        assert self._shown() == before

    async def _redeliver(self) -> None:
        self.world.redeliver()

    def _shown(self) -> dict[str, Any]:
        """All that is true, as it cannot change in place any more."""
        return {name: msgspec.to_builtins(state, enc_hook=repr) for name, state in self.world.states().items()}

    @invariant()
    def all_is_well(self) -> None:
        invariants.check(self.world)
        for scope, model in self.model.items():
            streams = {name for name in model.streams if self.stream(scope, name) is not None}
            assert streams == model.streams.keys()

    def teardown(self) -> None:
        self.loop.end()


TestOperations = Operations.TestCase
TestOperations.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
