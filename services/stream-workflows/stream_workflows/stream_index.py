"""Which streams need periodic work, kept up by the records of the journal instead of looking at every stream each time.

Belongs to the event loop. It is put together once from the view, then every entry that counts has the streams it
touches looked at again; so what it says never depends on which records were seen.
"""

from collections import defaultdict
from collections.abc import Collection

from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry
from sluice.domain.names import SYSTEM_SCOPE
from sluice.domain.stream import events as ev
from sluice.domain.stream.retention import is_announced
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


class StreamIndex:
    """Sets of streams by partition."""

    def __init__(self, journal: Journal) -> None:
        self._views = journal.views()
        self._with_writers: _Names = defaultdict(set)
        self._with_marks_behind: _Names = defaultdict(set)
        self._retained: _Names = defaultdict(set)
        self._unannounced: _Names = defaultdict(set)
        self._changed: _Names = defaultdict(set)
        for partition, view in enumerate(self._views):
            for _, state in view.aggregates():
                if isinstance(state, Stream):
                    self._look(partition, state.id, state)
        journal.on_entry.append(self._on_entry)

    def with_writers(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams whose writers have reported times; not those of our own scope (3.4)."""
        return _of(self._with_writers, partitions)

    def with_marks_behind(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams with watermarks whose head has moved, so that some of those may lie behind it."""
        return _of(self._with_marks_behind, partitions)

    def retained(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams that have a retention policy, sealed ones included."""
        return _of(self._retained, partitions)

    def unannounced(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams whose retention policy has yet to be announced."""
        return _of(self._unannounced, partitions)

    def take_changed(self, partitions: Collection[int]) -> list[StreamId]:
        """The streams with a policy of which something else has changed, once; those of other partitions are dropped.

        The owners of those report them, and every sample reports everything anew.
        """
        changed, self._changed = self._changed, defaultdict(set)
        return _of(changed, partitions)

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

    def _look(self, partition: int, stream: StreamId, state: Stream | None) -> None:
        has_writers = state is not None and bool(state.writers) and state.id.scope != SYSTEM_SCOPE
        _put(self._with_writers[partition], stream, has_writers)
        marks_behind = state is not None and state.watermark is not None and bool(state.cut)
        _put(self._with_marks_behind[partition], stream, marks_behind)
        _put(self._retained[partition], stream, state is not None and state.config.retention is not None)
        _put(self._unannounced[partition], stream, state is not None and not is_announced(state))


def _put(names: set[StreamId], stream: StreamId, belongs: bool) -> None:
    if belongs:
        names.add(stream)
    else:
        names.discard(stream)


def _of(names: _Names, partitions: Collection[int]) -> list[StreamId]:
    return [stream for partition in sorted(partitions) for stream in names.get(partition, ())]
