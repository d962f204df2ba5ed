"""Jobs: questions about the past that another process answers, by name.

A job is a name, a struct of arguments, the type of its result, and a function of a `JobContext` and the arguments.
Both travel as MessagePack, so they hold plain values and other such structs, or what is shown. To add one:

1. Write the function in a module of this package. It blocks, in a thread of the process that does the jobs. It reads
   topics through `context.source`, and gets folded partitions from `context.view_before`; both end it by an exception
   once the caller has left (JobCancelledError) or it took as long as one may (TimeIsOverError, a LookbackError). A job
   that can go on another time catches the second one, and says in its result how far it came.
2. Make a `Job` of it there, and name that in `sluice.lookback.all_jobs`.
3. In the gateway, `await backend.lookback.run(JOB, Arguments(...))` gives the result, or raises what the function
   raised: NotFoundError is 404 there, InvalidTextError 400, every other LookbackError 503 with Retry-After. An error
   of another class is a defect: 500, and a stack in the log of the process.

`run_job` runs one in this process: for tests and for commands.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec

from sluice.domain.model import DomainModel, JournalRecord
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.partition import partition_of
from sluice.kafka.topics import JOURNAL
from sluice.lookback.as_of import Watcher, fold
from sluice.lookback.errors import JobCancelledError, LookbackError, TimeIsOverError
from sluice.lookback.folded import FoldedPartitions, PartitionId
from sluice.lookback.snapshots import oldest_snapshots, restore
from sluice.lookback.source import KafkaRecord, Source, Span, TopicFacts

MAX_JOB_S = 8.0
"""How long a job may take."""

KEPT_EVERY = 50_000
"""While a partition is folded, its state is kept so often: so what comes before is near to one of them."""

WORTH_A_SNAPSHOT = 10_000
"""So many records at least must a snapshot spare, for to look for one takes some calls of Kafka."""

SIDE_BY_SIDE = 8
"""So many partitions are folded at once: their views are in memory together."""

ArgumentsT = TypeVar("ArgumentsT", bound=msgspec.Struct)
ResultT = TypeVar("ResultT")


class JobLimit:
    """Ends a job that lasts longer than `max_s`, or that `is_cancelled`."""

    def __init__(
        self,
        is_cancelled: Callable[[], bool] = lambda: False,
        max_s: float = MAX_JOB_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_cancelled = is_cancelled
        self._clock = clock
        self._ends_s = clock() + max_s

    def check(self) -> None:
        """Raises JobCancelledError, TimeIsOverError."""
        if self._is_cancelled():
            raise JobCancelledError
        if self._clock() > self._ends_s:
            raise TimeIsOverError(
                "looking back takes longer than one call may", "repeat the call: it goes on from there"
            )


class LimitedSource:
    """See Source: each record that is read is a moment at which the job may be ended."""

    def __init__(self, source: Source, limit: JobLimit) -> None:
        self._source = source
        self._limit = limit

    def __exit__(self, *error: object) -> None:
        self._source.__exit__(*error)

    def topics(self) -> list[TopicFacts]:
        return self._source.topics()

    def partitions(self, topic: str) -> int:
        return self._source.partitions(topic)

    def id(self, topic: str) -> str:
        return self._source.id(topic)

    def spans(
        self,
        topics: Iterable[str],
        since_ms: int | None = None,
        until_ms: int | None = None,
        partitions: Iterable[int] | None = None,
    ) -> list[Span]:
        self._limit.check()
        return self._source.spans(topics, since_ms, until_ms, partitions)

    def read(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | Span]:
        for item in self._source.read(spans):
            self._limit.check()
            yield item


class JobContext:
    """What a job is run with: the topics, the journal's partitions folded to any offset, and the time it is now.

    `records_folded` are those that `views_at` had to fold: what the same job is spared the next time.
    """

    def __init__(self, source: Source, folded: FoldedPartitions, now_ms: int, limit: JobLimit) -> None:
        self.source: Source = LimitedSource(source, limit)
        self.now_ms = now_ms
        self.records_folded = 0
        self._folded = folded
        self._journal_id = ""

    @property
    def partitions(self) -> int:
        """Of the journal."""
        return self.source.partitions(JOURNAL.name)

    def partition_of(self, key: str) -> int:
        """The key's partition of the journal."""
        return partition_of(key, self.partitions)

    def journal(
        self, partitions: Iterable[int] | None = None, since_ms: int | None = None, until_ms: int | None = None
    ) -> dict[int, Span]:
        """By partition what the journal has that was appended in [since_ms, until_ms)."""
        return {s.partition: s for s in self.source.spans([JOURNAL.name], since_ms, until_ms, partitions)}

    def view_before(self, partition: int, at_ms: int) -> PartitionView:
        """The partition folded up to and with what was appended at `at_ms`. See `views_at`."""
        return next(self.views_before(at_ms, [partition]))

    def views_before(self, at_ms: int, partitions: Iterable[int] | None = None) -> Iterator[PartitionView]:
        """The same of all partitions, or these, in their order; only some of them are in memory at once."""
        spans = self.journal(partitions, until_ms=at_ms + 1)
        for group in side_by_side(spans):
            yield from self.views_at([spans[partition] for partition in group]).values()

    def views_at(self, spans: Sequence[Span]) -> dict[int, PartitionView]:
        """Each of the partitions folded up to the end of its span; the job's own, so it may fold on.

        A span begins where nothing up to its end is missing any more, as those of `journal` without `since_ms` do. The
        views are folded from what is kept, a snapshot or the first record on, and kept. What is missing is read side by
        side, for every reading takes a while to begin. Raises LookbackError where records are missing, and
        TimeIsOverError, after which the next job comes further.
        """
        ends = {span.partition: span.end for span in spans}
        views = {span.partition: self._begun(span) for span in spans}
        starts = {partition: view.next_offset for partition, view in views.items()}
        left = [p for p, end in ends.items() if starts[p] < end]
        if not left:
            return views
        try:
            fold(
                self.source,
                [Span(JOURNAL.name, p, starts[p], ends[p]) for p in left],
                {p: self._keeping(p, views[p]) for p in left},
            )
        except TimeIsOverError as error:
            behind = next(p for p in left if views[p].next_offset < ends[p])
            came = (
                f"partition {behind} of the journal is folded up to {views[behind].next_offset}, "
                f"it is wanted at {ends[behind]}"
            )
            kept = [self._folded.keep(self._id(partition), views[partition]) for partition in left]
            if not all(kept):
                raise TimeIsOverError(f"{came}, and its state is too large to be kept", "make snapshots") from error
            raise TimeIsOverError(came, error.hint) from error
        finally:
            self.records_folded += sum(views[p].next_offset - starts[p] for p in left)
        for partition in left:
            self._folded.keep(self._id(partition), views[partition])
        return views

    def kept(self, spans: Collection[Span]) -> dict[int, tuple[int, int]]:
        """Of each partition the first offset that it can be folded to, and from when on (epoch ms) all is kept.

        That is its beginning and 0; where its first records are trimmed, behind its oldest snapshot, which may be
        behind the span. Without a snapshot it is where its records begin, and nothing can be folded there. Spans as in
        `views_at`.
        """
        trimmed = {span.partition: span for span in spans if span.start > 0}
        now = self.journal(trimmed) if trimmed else {}
        oldest = oldest_snapshots(
            self.source, [msgspec.structs.replace(span, end=now[p].end) for p, span in trimmed.items()]
        )
        behind = {partition: (manifest.offset + 1, manifest.at + 1) for partition, manifest in oldest.items()}
        return {span.partition: behind.get(span.partition, (span.start, 0)) for span in spans}

    def _begun(self, span: Span) -> PartitionView:
        """What is kept of the partition, or a snapshot of it, up to the span's end; else an empty view."""
        view = self._folded.nearest(self._id(span.partition), span.end)
        if span.start > view.next_offset:
            view = self._restored(span, span.start - 1) or view
        elif span.end - view.next_offset >= WORTH_A_SNAPSHOT:
            view = self._restored(span, view.next_offset + WORTH_A_SNAPSHOT) or view
        if view.next_offset < min(span.start, span.end):
            raise LookbackError(
                f"partition {span.partition} of the journal lacks its records before offset {span.start}: "
                "they were trimmed",
                "neither a snapshot nor an archive reaches back to the moment",
            )
        return view

    def _restored(self, span: Span, behind: int) -> PartitionView | None:
        """A view from the newest snapshot of the span that is behind the offset; None if there is none."""
        view = PartitionView(DomainModel())
        taken = restore(self.source, [span], {span.partition: view}, lambda manifest: manifest.offset > behind)
        return view if taken else None

    def _id(self, partition: int) -> PartitionId:
        if not self._journal_id:
            self._journal_id = self.source.id(JOURNAL.name)
        return self._journal_id, partition

    def _keeping(self, partition: int, view: PartitionView) -> Watcher:
        return _Keeping(view, lambda: self._folded.keep(self._id(partition), view))


def side_by_side(partitions: Iterable[int]) -> Iterator[list[int]]:
    """In groups that are folded at once."""
    left = iter(partitions)
    while group := list(islice(left, SIDE_BY_SIDE)):
        yield group


class _Keeping:
    """Has the state kept now and then while a partition is folded."""

    def __init__(self, view: PartitionView, keep: Callable[[], Any]) -> None:
        self.view = view
        self._keep = keep

    def before(self, message: KafkaRecord, _record: JournalRecord) -> None:
        if message.offset and message.offset % KEPT_EVERY == 0:
            self._keep()

    def folded(self, _message: KafkaRecord, _record: JournalRecord, _outcomes: list[Outcome]) -> None:
        """Nothing is looked for."""


class Job(msgspec.Struct, Generic[ArgumentsT, ResultT], frozen=True):
    """See above."""

    name: str
    arguments: type[ArgumentsT]
    result: type[ResultT]
    run: Callable[[JobContext, ArgumentsT], ResultT]


def run_job(
    job: Job[ArgumentsT, ResultT],
    arguments: ArgumentsT,
    source: Source,
    now_ms: int,
    folded: FoldedPartitions | None = None,
    limit: JobLimit | None = None,
) -> ResultT:
    """The result of a job, done here and now. Raises as the job does."""
    context = JobContext(source, folded or FoldedPartitions(), now_ms, limit or JobLimit())
    return job.run(context, arguments)
