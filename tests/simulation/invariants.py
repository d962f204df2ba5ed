"""What must hold whenever a world has come to rest, whatever was done and wherever the process was killed."""

from itertools import pairwise

from simulation.world import World

from sluice.domain.commands import NameKind
from sluice.domain.group import ReaderGroup
from sluice.domain.scope import Scope
from sluice.domain.segment_id import kvt_segment_name, segment_name
from sluice.domain.stream import cuts, queries
from sluice.domain.stream.state import Stream
from sluice.domain.table import Table
from sluice.domain.workflow import running


def check(world: World) -> None:
    states = world.states()
    streams = [s for s in states.values() if isinstance(s, Stream)]
    for stream in streams:
        _epochs_tile_the_key_space(stream)
        _relations_mirror_each_other(stream)
    _nothing_is_under_way(world)
    _scopes_hold_what_exists(world)
    assert not world.outlived
    _no_segment_is_leaked_or_missing(world, streams, [t for t in states.values() if isinstance(t, Table)])
    _followers_agree(world)


def _epochs_tile_the_key_space(stream: Stream) -> None:
    for epoch in stream.epochs:
        found = stream.epoch_segments(epoch)
        assert found[0].low == 0.0 and found[-1].high == 1.0, stream.name
        assert all(a.high == b.low for a, b in pairwise(found)), stream.name
    assert [e.number for e in stream.epochs] == list(range(len(stream.epochs)))
    assert all(a.created_at < b.created_at for a, b in pairwise(stream.epochs))
    assert stream.active == len(stream.epochs) - 1


def _relations_mirror_each_other(stream: Stream) -> None:
    for segment in stream.segments:
        for successor, predecessors in queries.successors_with_predecessors(stream, segment):
            assert segment in predecessors
            assert all(successor.id in {s.id for s in cuts.successors(stream, p)} for p in predecessors)


def _nothing_is_under_way(world: World) -> None:
    for name, state in world.states().items():
        assert running(state) is None, f"{name}: {running(state)}"


def _scopes_hold_what_exists(world: World) -> None:
    states = world.states()
    held = {
        kind.aggregate(scope.name, name)
        for scope in states.values()
        if isinstance(scope, Scope)
        for kind in NameKind
        for name in scope.names[kind]
    }
    existing = {name for name, state in states.items() if isinstance(state, Stream | ReaderGroup | Table)}
    assert held == existing


def _no_segment_is_leaked_or_missing(world: World, streams: list[Stream], tables: list[Table]) -> None:
    expected = {
        segment_name(stream.scope, stream.name, s): s in stream.sealed_in or stream.state.value == "SEALED"
        for stream in streams
        for s in cuts.segments_between(stream, stream.cut, {})
    }
    for table in tables:
        expected |= {kvt_segment_name(table.scope, table.name, s.id): False for s in table.segments}
    spare = {segment_name(stream.scope, stream.name, s) for stream in streams for s in stream.spare}
    present = {name: segment.sealed for name, segment in world.store.segments.items() if not name.endswith("#index")}
    assert {name: sealed for name, sealed in present.items() if name not in spare} == expected


def _followers_agree(world: World) -> None:
    own = world.process.journal.views()
    for mine, theirs in zip(world.views, own, strict=True):
        assert mine.next_offset == theirs.next_offset
        assert dict(mine.aggregates()) == dict(theirs.aggregates())
