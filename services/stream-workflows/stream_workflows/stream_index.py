"""Which streams need periodic work, kept up by the records of the journal instead of looking at every stream each time.

Belongs to the event loop. A partition is looked through once, before it is asked for the first time; every entry that
counts has the streams it touches looked at again. So what it says never depends on which records were seen. Looking
through decodes every stream of the partition; a caller that can wait has `prepare` do it a little at a time.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator

from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry
from sluice.domain.names import STREAMS, SYSTEM_SCOPE
from sluice.domain.stream import events as ev
from sluice.domain.stream.retention import is_announced, is_sampled
from sluice.domain.stream.state import Stream
from sluice.engine.journal import Journal

_Names = defaultdict[int, set[StreamId]]
_RETENTION_CHANGES = (
    ev.SubscriberAdded,
    ev.SubscriberRemoved,
    ev.SubscriberCutUpdated,
    ev.StreamTruncationStarted,
    ev.StreamSealed,
    ev.StreamDeleted,
)
"""The events that retention-spark needs a report on, beside another policy."""

AT_ONCE = 200
"""Streams that are looked at before other tasks have a turn."""


class StreamIndex:
    """Sets of streams by partition."""

    def __init__(self, journal: Journal) -> None:
        self._views = journal.views()
        self._with_writers: _Names = defaultdict(set)
        self._with_marks_behind: _Names = defaultdict(set)
        self._retained: _Names = defaultdict(set)
        self._sampled: _Names = defaultdict(set)
        self._unannounced: _Names = defaultdict(set)
        self._changed: _Names = defaultdict(set)
        self._looked_through: set[int] = set()
        self._preparing = asyncio.Lock()
        journal.on_entry.append(self._on_entry)

    async def prepare(self, partitions: Collection[int]) -> None:
        """Look through those of the partitions that were not, and let other tasks run between."""
        async with self._preparing:
            for partition in self._new(partitions):
                for _ in self._look_through(partition):
                    await asyncio.sleep(0)

    def with_writers(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams whose writers have reported times; not those of our own scope (3.4)."""
        return self._of(self._with_writers, partitions)

    def with_watermarks_behind(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams with watermarks whose head has moved, so that some of those may lie behind it."""
        return self._of(self._with_marks_behind, partitions)

    def sampled(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams whose cuts are of use."""
        return self._of(self._sampled, partitions)

    def unannounced(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams whose retention policy has yet to be announced."""
        return self._of(self._unannounced, partitions)

    def changed(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams with a policy of which something else has changed; those of other partitions are dropped.

        The owners of those report them, and every sample reports everything anew.
        """
        for partition in self._changed.keys() - set(partitions):
            del self._changed[partition]
        return self._of(self._changed, partitions)

    def take_change(self, partition: int, stream: StreamId) -> None:
        """What has changed so far is about to be reported."""
        self._changed[partition].discard(stream)

    def put_back(self, partition: int, stream: StreamId) -> None:
        """Put back what was taken and could not be reported."""
        self._changed[partition].add(stream)

    def _on_entry(self, partition: int, entry: JournalEntry) -> None:
        for event in entry.events:
            if isinstance(event, ev.StreamEvent):
                stream = event.stream_id
                if isinstance(event, _RETENTION_CHANGES) and stream in self._retained[partition]:
                    self._changed[partition].add(stream)
                state = self._views[partition].get(stream.aggregate)
                self._look(partition, stream, state if isinstance(state, Stream) else None)

    def _of(self, names: _Names, partitions: Collection[int]) -> list[StreamId]:
        for partition in self._new(partitions):
            for _ in self._look_through(partition):
                pass
        return [stream for partition in sorted(partitions) for stream in names.get(partition, ())]

    def _new(self, partitions: Collection[int]) -> list[int]:
        return [partition for partition in sorted(partitions) if partition not in self._looked_through]

    def _look_through(self, partition: int) -> Iterator[None]:
        """Look at all streams there are; a stop after some of them. What is created meanwhile is seen as an entry."""
        view = self._views[partition]
        for count, aggregate in enumerate(view.names(STREAMS), start=1):
            state = view.peek(aggregate)
            if isinstance(state, Stream):
                self._look(partition, state.id, state)
            if count % AT_ONCE == 0:
                yield
        self._looked_through.add(partition)

    def _look(self, partition: int, stream: StreamId, state: Stream | None) -> None:
        has_writers = state is not None and bool(state.writers) and state.id.scope != SYSTEM_SCOPE
        _put(self._with_writers[partition], stream, has_writers)
        marks_behind = state is not None and state.watermark is not None and bool(state.cut)
        _put(self._with_marks_behind[partition], stream, marks_behind)
        _put(self._retained[partition], stream, state is not None and state.config.retention is not None)
        _put(self._sampled[partition], stream, state is not None and is_sampled(state))
        _put(self._unannounced[partition], stream, state is not None and not is_announced(state))


def _put(names: set[StreamId], stream: StreamId, belongs: bool) -> None:
    if belongs:
        names.add(stream)
    else:
        names.discard(stream)
