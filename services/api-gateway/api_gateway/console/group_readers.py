"""Who of a reader group reads what, and how much it has yet to read.

From the group's state segment, which its readers write, and the lengths of the segments that are written to. What was
found is shared for two seconds, so that many who look cost no more than one. Since when something is unread, sampled
cuts say; that is looked up in the past and holds for half a minute. Belongs to the event loop.

What is shared knows no caller: what one may not read has to be left out of the answer.
"""

import asyncio
from collections.abc import Collection, Mapping
from functools import partial
from itertools import islice
from typing import TypeVar

import msgspec

from api_gateway.console.lengths import lengths_of
from api_gateway.console.lookback import Lookback
from api_gateway.edge.group_state import GroupState, StateError
from api_gateway.edge.group_states import GroupStates
from api_gateway.edge.reads import Reads
from api_gateway.edge.worker import Worker
from sluice.domain.config import ReaderGroupConfig
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.segment import parse_segment_name, segment_name
from sluice.engine.ports import Clock
from sluice.insight.backlog import Backlog, backlog, start_of
from sluice.insight.topology import snapshot
from sluice.lookback.rate_history import UNREAD, UnreadQuestion
from sluice.pravega.store import SegmentStore

T = TypeVar("T")

SHARED_S = 2.0
MAX_STREAMS = 100
"""In how many streams of a group it is counted what is unread."""
MAX_AGE_STREAMS = 20
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


class Unread(msgspec.Struct, frozen=True):
    """The bytes of a stream that are known to be unread, and how far the group is in its segments."""

    bytes: int
    position: dict[int, int]


class Readers(msgspec.Struct, frozen=True):
    """`unread` has the streams that the group reads, MAX_STREAMS at most. `complete`: all that is unread is counted.

    `at` in epoch ms.
    """

    readers: list[Reader]
    unassigned: list[Held]
    at: int
    complete: bool
    unread: dict[StreamId, Unread] = {}


class _Arranged(msgspec.Struct, frozen=True):
    """What a state says, by readers and by streams."""

    readers: list[Reader]
    unassigned: list[Held]
    positions: dict[StreamId, dict[int, int]]
    waiting: dict[StreamId, dict[int, int]]


class GroupReaders:
    """Finds the readers of groups."""

    def __init__(
        self,
        states: GroupStates,
        store: SegmentStore,
        reads: Reads,
        worker: Worker,
        clock: Clock,
        lookback: Lookback,
    ) -> None:
        self._states = states
        self._lookback = lookback
        self._store = store
        self._reads = reads
        self._worker = worker
        self._clock = clock
        self._readers: dict[GroupId, asyncio.Task[Readers]] = {}
        self._ages: dict[tuple[GroupId, StreamId], int | None] = {}

    async def find(self, id: GroupId, group: ReaderGroup | None) -> Readers:
        """As of a moment ago at most. Without `group`, which old clients do not create, only its stream is there.

        Before the first reader has written a state, the group is at its start. Raises as
        `GroupStates.state`.
        """
        config = group.config if group is not None else None
        return await self._states.shared(self._readers, id, SHARED_S, partial(self._find, id, config))

    async def age(self, id: GroupId, readers: Readers, streams: Collection[StreamId]) -> int | None:
        """For how long the oldest of what is unread of these streams was written, in ms, as of half a minute ago.

        None if it is not known: cuts are sampled of streams with a policy only. Raises as `Lookback.run`.
        """
        behind = [stream for stream in streams if readers.unread[stream].bytes]
        if not behind:
            return 0
        found = [await self._age(id, readers, stream) for stream in behind[:MAX_AGE_STREAMS]]
        return max((age for age in found if age is not None), default=None)

    async def _age(self, id: GroupId, readers: Readers, stream: StreamId) -> int | None:
        key = id, stream
        if key in self._ages:
            return self._ages[key]
        position = {segment: at for segment, at in readers.unread[stream].position.items() if at >= 0}
        query = UnreadQuestion(*stream, position, max(readers.at - AGE_SEARCHED_MS, 0))
        since = (await self._lookback.run(UNREAD, query)).since
        age = self._ages[key] = max(readers.at - since, 0) if since is not None else None
        asyncio.get_running_loop().call_later(AGE_SHARED_S, self._ages.pop, key, None)
        return age

    async def _find(self, id: GroupId, config: ReaderGroupConfig | None) -> Readers:
        state = await self._states.read(id)
        at = self._clock.now_ms()
        if state is not None:
            found = await self._worker.run(partial(_arranged, state))
        elif config is not None:
            found = _Arranged([], [], await self._starts(config), {})
        else:
            return Readers([], [], at, False)
        unread, complete = await self._unread(found, config.ends if config is not None else {})
        return Readers(found.readers, found.unassigned, at, complete, unread)

    async def _starts(self, config: ReaderGroupConfig) -> dict[StreamId, dict[int, int]]:
        """Where reading begins in each stream; empty where nothing can be read."""
        found: dict[StreamId, dict[int, int]] = {}
        for stream, start in sorted((StreamId.of(name), start) for name, start in config.starts.items()):
            found[stream] = {}
            present = await self._reads.stream_or_none(stream) if len(found) <= MAX_STREAMS else None
            if present is not None:
                found[stream] = await self._worker.run(partial(start_of, snapshot(present), start))
        return found

    async def _unread(
        self, arranged: _Arranged, ends: Mapping[str, Mapping[int, int]]
    ) -> tuple[dict[StreamId, Unread], bool]:
        """What is unread of each stream, and whether that is all."""
        positions = dict(islice(sorted(arranged.positions.items()), MAX_STREAMS))
        found: dict[StreamId, Backlog] = {}
        for stream, position in positions.items():
            present = await self._reads.stream_or_none(stream)
            if present is not None and position:
                waiting, end = arranged.waiting.get(stream, {}), ends.get(f"{stream}", {})
                found[stream] = await self._worker.run(partial(backlog, snapshot(present), position, waiting, end))
        growing = {
            segment_name(*stream, segment): (stream, at)
            for stream, one in found.items()
            for segment, at in one.growing.items()
        }
        lengths = await lengths_of(self._store, growing)
        totals = {stream: found[stream].known if stream in found else 0 for stream in positions}
        for name, length in lengths.items():
            stream, at = growing[name]
            totals[stream] += max(length - at, 0)
        unread = {stream: Unread(total, positions[stream]) for stream, total in totals.items()}
        return unread, len(found) == len(arranged.positions) and len(lengths) == len(growing)


def _arranged(state: GroupState) -> _Arranged:
    """Raises StateError."""
    return _Arranged(
        [Reader(name, _held(state.held_by(name))) for name in sorted(state.assigned)],
        _held(state.unassigned),
        _by_stream(state.positions()),
        _by_stream(dict.fromkeys(state.future, 0)),
    )


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
