"""Who of a reader group reads what, and how much it has yet to read.

From the group's state segment, which its readers write, and the lengths of the segments that are written to. What was
found is shared for two seconds, so that many who look cost no more than one. Since when something is unread, sampled
cuts say; that is looked up in the past and holds for half a minute. Belongs to the event loop.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

import msgspec

from api_gateway.lengths import lengths_of
from api_gateway.lookback import Lookback
from api_gateway.reads import Reads
from api_gateway.rest.group_state import GroupState, StateError, read_group_state
from api_gateway.worker import Worker
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.segment import parse_segment_name, segment_name
from sluice.domain.stream.backlog import Backlog, backlog
from sluice.domain.stream.topology import snapshot
from sluice.engine.ports import Clock
from sluice.lookback.rate_history import UNREAD, UnreadQuery
from sluice.pravega.store import SegmentStore

SHARED_S = 2.0
MAX_STATE_BYTES = 8 * 1024 * 1024
MAX_KEPT = 200
MAX_STREAMS = 20
"""In how many streams of a group it is looked up since when something is unread."""
AGE_SHARED_S = 30.0
AGE_SEARCHED_MS = 6 * 3600 * 1000
"""What is unread for longer shows as that old."""


class Held(msgspec.Struct, frozen=True):
    """A segment, and the offset of the next event in it: -1 if it is read to its end."""

    stream: str
    segment: int
    offset: int


class Reader(msgspec.Struct, frozen=True):
    name: str
    segments: list[Held]


class Readers(msgspec.Struct, frozen=True):
    """`behind` are the bytes that are known to be unread; all of them if `complete`. `at` in epoch ms.

    `positions` is how far the group is in each stream that has something unread.
    """

    readers: list[Reader]
    unassigned: list[Held]
    behind: int
    at: int
    complete: bool
    positions: dict[StreamId, dict[int, int]] = {}


class _Kept(msgspec.Struct, eq=False):
    until_s: float
    found: "asyncio.Task[Readers]"


class _Age(msgspec.Struct, frozen=True):
    """How long something was unread, in ms, when that was looked up; None if it is not known."""

    until_s: float
    ms: int | None


class GroupReaders:
    """Finds the readers of groups."""

    def __init__(self, store: SegmentStore, reads: Reads, worker: Worker, clock: Clock, lookback: Lookback) -> None:
        self._lookback = lookback
        self._ages: dict[GroupId, _Age] = {}
        self._store = store
        self._reads = reads
        self._worker = worker
        self._clock = clock
        self._kept: dict[GroupId, _Kept] = {}

    async def find(self, id: GroupId, group: ReaderGroup | None) -> Readers:
        """As of a moment ago at most. Without `group`, which old clients do not create, only its stream is there.

        Raises StateError, NotFoundError if there is no such stream, SegmentStoreError, OverloadedError.
        """
        now_s = asyncio.get_running_loop().time()
        kept = self._kept.get(id)
        if kept is None or (kept.found.done() and kept.until_s <= now_s):
            if len(self._kept) >= MAX_KEPT:
                self._kept = {key: one for key, one in self._kept.items() if one.until_s > now_s}
            ends = {**group.config.ends} if group is not None else {}
            kept = self._kept[id] = _Kept(now_s + SHARED_S, asyncio.ensure_future(self._find(id, ends)))
            kept.found.add_done_callback(_observed)
        # One caller that leaves does not end it for the others.
        return await asyncio.shield(kept.found)

    async def age(self, id: GroupId, readers: Readers) -> int | None:
        """For how long the oldest of what is unread was written, in ms, as of half a minute ago at most.

        None if it is not known: cuts are sampled of streams with a retention policy only. Raises as `Lookback.run`.
        """
        if not readers.behind:
            return 0
        now_s = asyncio.get_running_loop().time()
        known = self._ages.get(id)
        if known is None or known.until_s <= now_s:
            if len(self._ages) >= MAX_KEPT:
                self._ages = {key: one for key, one in self._ages.items() if one.until_s > now_s}
            from_ms = max(readers.at - AGE_SEARCHED_MS, 0)
            queries = [UnreadQuery(*stream, position, from_ms) for stream, position in readers.positions.items()]
            found = [await self._lookback.run(UNREAD, query) for query in queries[:MAX_STREAMS]]
            oldest = min((one.since for one in found if one.since is not None), default=None)
            age = max(readers.at - oldest, 0) if oldest is not None else None
            known = self._ages[id] = _Age(now_s + AGE_SHARED_S, age)
        return known.ms

    async def _find(self, id: GroupId, ends: Mapping[str, Mapping[int, int]]) -> Readers:
        stream = await self._reads.stream(id.state_stream)
        (segment, *_) = stream.active_epoch.segments
        name = segment_name(*id.state_stream, segment)
        state = await read_group_state(self._store, name, MAX_STATE_BYTES)
        at = self._clock.now_ms()
        if state is None:
            return Readers([], [], 0, at, True)
        behind, complete, unread = await self._behind(state, ends)
        readers = [Reader(name, _held(state.held_by(name))) for name in sorted(state.assigned)]
        return Readers(readers, _held(state.unassigned), behind, at, complete, unread)

    async def _behind(
        self, state: GroupState, ends: Mapping[str, Mapping[int, int]]
    ) -> tuple[int, bool, dict[StreamId, dict[int, int]]]:
        """How many bytes are unread, whether those are all, and the positions in the streams that have any."""
        waiting, positions = _by_stream(dict.fromkeys(state.future, 0)), _by_stream(state.positions())
        found: dict[StreamId, Backlog] = {}
        for stream, position in positions.items():
            present = await self._reads.stream_or_none(stream)
            if present is not None:
                end = ends.get(f"{stream}", {})
                work = partial(backlog, snapshot(present), position, waiting.get(stream, {}), end)
                found[stream] = await self._worker.run(work)
        growing = {
            segment_name(*stream, segment): (stream, at)
            for stream, one in found.items()
            for segment, at in one.growing.items()
        }
        lengths = await lengths_of(self._store, growing)
        totals = {stream: one.known for stream, one in found.items()}
        for name, length in lengths.items():
            stream, at = growing[name]
            totals[stream] += max(length - at, 0)
        unread = {
            stream: {s: at for s, at in positions[stream].items() if at >= 0} for stream in totals if totals[stream]
        }
        return sum(totals.values()), len(found) == len(positions) and len(lengths) == len(growing), unread


def _held(offsets: Mapping[str, int]) -> list[Held]:
    found = []
    for name, offset in sorted(offsets.items()):
        scope, stream, segment = _parts(name)
        found.append(Held(f"{scope}/{stream}", segment, offset))
    return found


def _parts(name: str) -> tuple[str, str, int]:
    """Scope, stream and id of a segment, as readers wrote its name. Raises StateError."""
    try:
        return parse_segment_name(name)[:3]
    except ValueError as error:
        raise StateError(str(error)) from error


def _by_stream(offsets: Mapping[str, int]) -> dict[StreamId, dict[int, int]]:
    found: dict[StreamId, dict[int, int]] = {}
    for name, offset in offsets.items():
        scope, stream, segment = _parts(name)
        found.setdefault(StreamId(scope, stream), {})[segment] = offset
    return found


def _observed(found: "asyncio.Task[Readers]") -> None:
    """A failure is for those who wait; asyncio need not report that they have left."""
    if not found.cancelled():
        found.exception()
