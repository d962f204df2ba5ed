"""One partition of the journal, folded up to its end, and further each time that is requested.

Partition by partition, so that the memory is that of one of them.
"""

from collections.abc import Iterator

from sluice.domain.ids import StreamId, TableId
from sluice.domain.listings import MEMBERS, members_of
from sluice.domain.model import DomainModel, JournalRecord
from sluice.domain.names import mark_stream, scope_aggregate
from sluice.engine.fold import Outcome, PartitionView
from sluice.kafka.topics import JOURNAL
from sluice.lookback.as_of import fold
from sluice.lookback.progress import Advance, Progress
from sluice.lookback.snapshots import begin
from sluice.lookback.source import KafkaRecord, Source, Span
from sluice.verification import subjects
from sluice.verification.subjects import Former, Subject


class JournalPartition:
    """See Follower; what was deleted meanwhile is in `former`. Blocks while it folds."""

    def __init__(self, source: Source, partition: int) -> None:
        self.view = PartitionView(DomainModel())
        self.former = Former()
        self._source = source
        self._partition = partition
        self._deletions: list[list[tuple[Subject, ...]]] = []

    def load(self, progress: Progress) -> None:
        """Fold all there is, from a snapshot on if the journal is trimmed. Raises LookbackError if there is none."""
        (span,), _ = begin(self._source, [self._span()], {self._partition: self.view})
        with progress(f"folding partition {self._partition}", span.length) as advance:
            self._fold(span, advance)

    async def catch_up(self) -> None:
        """Fold what was acknowledged before this call. Raises LookbackError."""
        span = self._span()
        if span.end > self.view.next_offset:
            self._fold(Span(span.topic, span.partition, self.view.next_offset, span.end), lambda _steps: None)

    def ids(self, scope: str | None, stream: str | None) -> list[StreamId | TableId]:
        """The streams and tables of the scope, or one stream with its mark stream; else all."""
        if scope is not None and stream is not None:
            id = StreamId(scope, stream)
            return [id, id.mark]
        scopes = [scope] if scope is not None else sorted(self.view.projection(MEMBERS) or ())
        found: list[StreamId | TableId] = []
        for name in scopes:
            members = members_of(self.view, name)
            found += [StreamId(name, stream) for stream in members.streams]
            found += [TableId(name, table) for table in members.tables]
        return found

    def subjects(self, id: StreamId | TableId, *, leftovers: bool) -> Iterator[Subject]:
        """The segments of a stream or table; more may be folded while this goes on."""
        if isinstance(id, TableId):
            return subjects.of_table(self.view, id)
        return subjects.of_stream(self.view, id, leftovers=leftovers)

    def has(self, scope: str, stream: str | None) -> bool:
        """Whether the partition knows the scope, or a stream of it; one that was deleted, too."""
        if stream is not None:
            return self.view.get(StreamId(scope, stream).aggregate) is not None
        return self.view.get(scope_aggregate(scope)) is not None

    def deleted(self, scope: str | None, stream: str | None) -> list[Subject]:
        """Those of the same choice that went with what was deleted."""
        return [s for s in self.former.segments() if _is_chosen(s.of, scope, stream)]

    def _span(self) -> Span:
        (span,) = self._source.spans([JOURNAL.name], partitions=[self._partition])
        return span

    def _fold(self, span: Span, advance: Advance) -> None:
        fold(self._source, [span], {self._partition: self}, advance)

    # A watcher of the fold.

    def before(self, _message: KafkaRecord, record: JournalRecord) -> None:
        """See Watcher."""
        self._deletions = [self.former.find(self.view, entry.events) for entry in record.entries]

    def folded(self, _message: KafkaRecord, _record: JournalRecord, outcomes: list[Outcome]) -> None:
        """See Watcher."""
        for deletions, outcome in zip(self._deletions, outcomes, strict=True):
            if outcome is Outcome.COUNTED:
                self.former.add(deletions)


def _is_chosen(id: StreamId | TableId, scope: str | None, stream: str | None) -> bool:
    if scope is None or id.scope != scope:
        return scope is None
    return stream is None or (isinstance(id, StreamId) and id.name in (stream, mark_stream(stream)))
