"""Which reader groups read a stream, and how far each is behind: for lists, which show the slowest one.

Who reads what is read off the configurations of all groups, anew every ten seconds while a list is open. How far a
group is takes calls to segment stores: so one group is looked at after another, and each at most every ten seconds,
however many lists are open. Belongs to the event loop.

What is known here knows no caller: what one may not read has to be left out of the answer.
"""

import asyncio
import logging

import msgspec

from api_gateway.console.group_readers import GroupReaders, Readers
from api_gateway.edge.errors import OverloadedError, QuotaExceededError
from api_gateway.edge.group_state import StateError
from api_gateway.edge.reads import Reads
from api_gateway.edge.slices import Slices
from sluice.domain.errors import DomainError
from sluice.domain.ids import GroupId, StreamId
from sluice.engine.errors import JournalError
from sluice.pravega.errors import SegmentStoreError

log = logging.getLogger(__name__)

FRESH_S = 10.0
"""Not before so long what is known is looked up anew."""

WANTED_S = 15.0
"""For so long after the last look at a stream its groups are looked at."""

PAUSE_S = 0.5
MAX_WANTED = 300
"""Streams whose groups are looked at at the same time; of more only what is known already is shown."""

MAX_GROUPS = 10_000
"""Of all scopes. Of more it is not known who reads a stream."""


class GroupLag(msgspec.Struct, frozen=True):
    """A group that reads a stream, and how many bytes of that it has yet to read; None: not known (yet).

    It may be more if that is not `complete`: some segment store does not answer.
    """

    group: GroupId
    bytes: int | None
    complete: bool


class _Looked(msgspec.Struct, frozen=True):
    """How far a group was; None if that is not known. `at_s` in seconds of the event loop."""

    at_s: float
    found: Readers | None


class StreamGroups:
    """Call `stop` at the end."""

    def __init__(self, reads: Reads, readers: GroupReaders) -> None:
        self._reads = reads
        self._readers = readers
        self._loop = asyncio.get_running_loop()
        self._wanted: dict[StreamId, float] = {}
        self._by_stream: dict[StreamId, list[GroupId]] | None = None
        self._indexed_s = -FRESH_S
        self._looked: dict[GroupId, _Looked] = {}
        self._working: asyncio.Task[None] | None = None

    def look(self, id: StreamId) -> list[GroupLag] | None:
        """What is known, None if it is not known who reads the stream; and have its groups looked at for a while."""
        if id in self._wanted or len(self._wanted) < MAX_WANTED:
            self._wanted[id] = self._loop.time() + WANTED_S
        if self._working is None or self._working.done():
            self._working = self._loop.create_task(self._work(), name="stream groups")
        if self._by_stream is None:
            return None
        return [self._lag(group, id) for group in self._by_stream.get(id, ())]

    def _lag(self, group: GroupId, stream: StreamId) -> GroupLag:
        looked = self._looked.get(group)
        found = looked.found if looked is not None else None
        unread = found.unread.get(stream) if found is not None else None
        if found is None or unread is None or (unread.bytes == 0 and not found.complete):
            return GroupLag(group, None, complete=False)
        return GroupLag(group, unread.bytes, found.complete)

    async def stop(self) -> None:
        """Look at no more."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    async def _work(self) -> None:
        """While a list is open."""
        while self._still_wanted():
            now_s = self._loop.time()
            if now_s - self._indexed_s >= FRESH_S:
                self._by_stream, self._indexed_s = await self._readers_of_streams(), now_s
            group = self._due(self._by_stream or {}, now_s)
            if group is None:
                await asyncio.sleep(PAUSE_S)
            else:
                self._looked[group] = await self._look_at(group)
        # What was known then says nothing of the next time.
        self._by_stream, self._indexed_s = None, -FRESH_S
        self._looked.clear()

    def _still_wanted(self) -> bool:
        now_s = self._loop.time()
        self._wanted = {id: until_s for id, until_s in self._wanted.items() if until_s >= now_s}
        return bool(self._wanted)

    def _due(self, by_stream: dict[StreamId, list[GroupId]], now_s: float) -> GroupId | None:
        """The group that was looked at longest ago, of those that are wanted and due."""
        groups = {group for id in self._wanted for group in by_stream.get(id, ())}
        since = {group: self._looked[group].at_s if group in self._looked else 0.0 for group in groups}
        oldest = min(groups, key=lambda group: (since[group], group), default=None)
        return oldest if oldest is not None and now_s - since[oldest] >= FRESH_S else None

    async def _look_at(self, id: GroupId) -> _Looked:
        try:
            found = await self._readers.find(id, await self._reads.group_or_none(id))
        except (JournalError, SegmentStoreError, StateError, DomainError, OverloadedError, QuotaExceededError) as error:
            log.debug("how far a group is, is not known", extra={"group": f"{id}", "error": f"{error}"})
            return _Looked(self._loop.time(), None)
        return _Looked(self._loop.time(), found)

    async def _readers_of_streams(self) -> dict[StreamId, list[GroupId]] | None:
        """Who reads each stream; None if that is not known."""
        try:
            return await self._index()
        except JournalError as error:
            log.debug("who reads streams is not known", extra={"error": f"{error}"})
            return None

    async def _index(self) -> dict[StreamId, list[GroupId]] | None:
        """As far as configurations say; None if there are too many groups."""
        found: dict[StreamId, list[GroupId]] = {}
        slices, seen = Slices(), 0
        for scope in await self._reads.scope_names():
            behind: str | None = ""
            while behind is not None:
                groups = await self._reads.groups_in(scope, behind)
                behind = None
                for group in groups or ():
                    seen += 1
                    for stream in group.config.starts:
                        found.setdefault(StreamId.of(stream), []).append(group.id)
                    if slices.is_over():
                        behind = group.id.name
                        break
                if seen > MAX_GROUPS:
                    return None
                if behind is not None:
                    await slices.pause()
        return found
