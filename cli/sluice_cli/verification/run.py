"""The whole comparison, partition by partition, and what it came to."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec

from sluice.domain.ids import StreamId, TableId
from sluice.engine.partition import partition_of
from sluice.kafka.topics import JOURNAL
from sluice.lookback.progress import Advance, Progress
from sluice.lookback.source import Source
from sluice.pravega.store import SegmentStore
from sluice.verification.questions import Questions
from sluice.verification.subjects import Subject
from sluice.verification.survey import Finding, NotAnswered, Report, Survey, UnderWay
from sluice_cli.errors import RefusedError
from sluice_cli.verification.following import JournalPartition
from sluice_cli.verification.routes import Routes

FOUND, NOTHING, UNANSWERED = 1, 0, 2
"""Exit codes."""


class Choice(msgspec.Struct, frozen=True):
    """What to look at, and how; without `scope` all of it, `stream` is one of the scope.

    `patience_s` is how long a container may take to answer, its move to another store included.
    """

    scope: str | None = None
    stream: str | None = None
    leftovers: bool = True
    repairs: bool = False
    concurrency: int = 32
    patience_s: float = 20.0

    @property
    def name(self) -> str:
        """What was chosen, for people."""
        return f"scope {self.scope}" if self.stream is None else f"stream {self.scope}/{self.stream}"


class Summary(msgspec.Struct, tag="summary", tag_field="type", rename="camel"):
    """`findings` are those that are left; `former_forgotten` counts deleted streams and the like that were not
    looked for because there were too many.
    """

    segments: int = 0
    findings: int = 0
    repaired: int = 0
    not_answered: int = 0
    under_way: int = 0
    former_forgotten: int = 0

    def count(self, report: Report) -> None:
        if isinstance(report, Finding):
            self.repaired += report.repaired is True
            self.findings += report.repaired is not True
        elif isinstance(report, NotAnswered):
            self.not_answered += 1
        elif isinstance(report, UnderWay):
            self.under_way += report.segments

    @property
    def exit_code(self) -> int:
        return FOUND if self.findings else UNANSWERED if self.not_answered else NOTHING


async def verify(
    source: Source, store: SegmentStore, routes: Routes, choice: Choice, progress: Progress
) -> AsyncIterator[Report | Summary]:
    """All reports, and at last the summary. Raises LookbackError where the journal cannot be read."""
    comparison = _Comparison(source, store, routes, choice, progress)
    for partition in _partitions(source, choice):
        async for report in comparison.of_partition(partition):
            yield report
    if not comparison.is_known and not comparison.summary.segments:
        raise RefusedError(f"the journal knows no {choice.name}", "look at the name: `sluice scope list`")
    yield comparison.summary


class _Comparison:
    """What is counted over all partitions. `is_known` is whether one of them knows what was chosen."""

    def __init__(self, source: Source, store: SegmentStore, routes: Routes, choice: Choice, progress: Progress) -> None:
        self.summary = Summary()
        self.is_known = choice.scope is None
        self._source = source
        self._store = store
        self._choice = choice
        self._progress = progress
        self._questions = Questions(
            store, routes.container_count, routes.renew, concurrency=choice.concurrency, patience_s=choice.patience_s
        )

    async def of_partition(self, partition: int) -> AsyncIterator[Report]:
        """Its reports. What it takes in memory is free when this ends."""
        choice = self._choice
        follower = JournalPartition(self._source, partition)
        await asyncio.to_thread(follower.load, self._progress)
        self.is_known = self.is_known or follower.has(choice.scope or "", choice.stream)
        survey = Survey(follower, self._store, self._questions, repairs=choice.repairs)
        ids = follower.ids(choice.scope, choice.stream)
        with self._progress(f"comparing partition {partition}", len(ids)) as advance:
            async for report in survey.run(_subjects(follower, ids, choice, advance)):
                self.summary.count(report)
                yield report
        self.summary.segments += survey.segments
        self.summary.former_forgotten += follower.former.forgotten if choice.leftovers else 0


def _subjects(
    follower: JournalPartition, ids: Sequence[StreamId | TableId], choice: Choice, advance: Advance
) -> Iterator[Subject]:
    for id in ids:
        yield from follower.subjects(id, leftovers=choice.leftovers)
        advance(1)
    if choice.leftovers:
        yield from follower.deleted(choice.scope, choice.stream)


def _partitions(source: Source, choice: Choice) -> list[int]:
    count = source.partitions(JOURNAL.name)
    if choice.scope is not None and choice.stream is not None:
        return [partition_of(StreamId(choice.scope, choice.stream).key, count)]
    return list(range(count))
