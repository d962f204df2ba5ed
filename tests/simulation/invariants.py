"""What must hold whenever a world has come to rest, whatever was done and wherever the process was killed."""

from itertools import pairwise

from simulation.processes import Truth
from simulation.violation import Violation
from simulation.world import World
from support.histories import epochs_of, sealed_in, segments_of

from sluice.domain.ids import ResourceKind
from sluice.domain.listings import MEMBERS
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.index import scopes_of
from sluice.domain.scope.state import Scope
from sluice.domain.segment import kvt_segment_name, segment_name
from sluice.domain.stream import cuts, queries
from sluice.domain.stream.state import Stream
from sluice.domain.table.state import Table
from sluice.domain.workflow import running


def check(world: World) -> None:
    states = world.states()
    streams = [s for s in states.values() if isinstance(s, Stream)]
    for stream in streams:
        check_history(stream)
        assert stream.active == stream.history.count - 1
    check_truth(world.truth)
    assert not world.outlived
    _no_segment_is_leaked_or_missing(world, streams, [t for t in states.values() if isinstance(t, Table)])
    _followers_agree(world)


def check_truth(truth: Truth) -> None:
    """What the journal says, by whichever process it was written."""
    _nothing_is_under_way(truth)
    _nothing_is_without_its_scope(truth)
    _listings_show_what_exists(truth)


def check_history(stream: Stream) -> None:
    """Epochs tile the key space, follow each other, and their segments know each other. Raises Violation."""
    for at, epoch in enumerate(epochs_of(stream)):
        segments = stream.history.segments_of(at)
        tiled = segments[0].low == 0.0 and segments[-1].high == 1.0
        if epoch.number != at or not tiled or any(a.high != b.low for a, b in pairwise(segments)):
            raise Violation(f"{stream.id.name}: epoch {at} does not tile the key space: {segments}")
        if any((s.id >> 32) > at for s in segments):
            raise Violation(f"{stream.id.name}: epoch {at} has segments of later ones: {segments}")
        if epoch.reference != at:
            of = stream.history.segments_of(epoch.reference)
            if [(s.id & 0xFFFFFFFF, s.low, s.high) for s in of] != [
                (s.id & 0xFFFFFFFF, s.low, s.high) for s in segments
            ]:
                raise Violation(f"{stream.id.name}: epoch {at} is no duplicate of {epoch.reference}")
    if any(a.created_at >= b.created_at for a, b in pairwise(epochs_of(stream))):
        raise Violation(f"{stream.id.name}: epochs do not follow each other in time")
    for segment in segments_of(stream):
        for successor, predecessors in queries.successors_with_predecessors(stream, segment):
            mutual = all(successor.id in {s.id for s in cuts.successors(stream, p)} for p in predecessors)
            if segment not in predecessors or not mutual:
                raise Violation(f"{stream.id.name}: {successor.id} follows {segment}, which does not know it")


def _nothing_is_under_way(truth: Truth) -> None:
    for name, state in truth.states().items():
        assert running(state) is None, f"{name}: {running(state)}"


def _nothing_is_without_its_scope(truth: Truth) -> None:
    states = truth.states().values()
    scopes = {state.name for state in states if isinstance(state, Scope)}
    assert {state.id.scope for state in states if isinstance(state, Stream | ReaderGroup | Table)} <= scopes


def _listings_show_what_exists(truth: Truth) -> None:
    for view in truth.views:
        states = dict(view.aggregates())
        scopes = [state.name for state in states.values() if isinstance(state, Scope)]
        assert list(scopes_of(view).names) == sorted(scopes) and not scopes_of(view).deletions
        held = view.projection(MEMBERS) or {}
        listed = {
            kind.id(scope, name).aggregate
            for scope, members in held.items()
            for kind in ResourceKind
            for name in members.names(kind)
        }
        existing = {name: state for name, state in states.items() if isinstance(state, Stream | ReaderGroup | Table)}
        assert listed == existing.keys()
        tags = {
            (s.id.scope, tag, s.id.name) for s in existing.values() if isinstance(s, Stream) for tag in s.config.tags
        }
        assert tags == {
            (scope, tag, name)
            for scope, members in held.items()
            for tag, names in members.tagged.items()
            for name in names
        }


def _no_segment_is_leaked_or_missing(world: World, streams: list[Stream], tables: list[Table]) -> None:
    expected = {
        segment_name(*stream.id, s): s in sealed_in(stream) or stream.state.value == "SEALED"
        for stream in streams
        for s in cuts.segments_between(stream, stream.cut, {})
    }
    for table in tables:
        expected |= {kvt_segment_name(*table.id, s.id): False for s in table.segments}
    spare = {segment_name(*stream.id, s) for stream in streams for s in stream.spare}
    present = {name: segment.sealed for name, segment in world.store.segments.items() if not name.endswith("#index")}
    assert {name: sealed for name, sealed in present.items() if name not in spare} == expected


def _followers_agree(world: World) -> None:
    own = world.process.journal.views()
    for mine, theirs in zip(world.truth.views, own, strict=True):
        assert mine.next_offset == theirs.next_offset
        assert dict(mine.aggregates()) == dict(theirs.aggregates())
