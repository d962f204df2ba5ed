"""The history of one stream's workflows and commits, as the journal has it: who began after whom."""

from collections import Counter
from enum import Enum

import msgspec

from harness import System
from sluice.domain.events import Event
from sluice.domain.ids import StreamId
from sluice.domain.model import DomainModel, decode_record
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.stream.events import StreamScaleStarted, StreamUpdateStarted, WorkflowQueued
from sluice.domain.transaction.events import CommitBatchStarted, TransactionCommitting
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.partition import partition_of
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import JOURNAL, REQUESTS_STREAMS
from support.kafka import read


class Change(Enum):
    """What happened to a stream."""

    BATCH = "batch"
    SCALE = "scale"
    UPDATE = "update"
    WAITING = "waiting"
    COMMITTING = "committing"


class Happened(msgspec.Struct, frozen=True):
    """One event of the history; `at` is the broker's time of its record, epoch ms."""

    change: Change
    at: int
    transactions: tuple[str, ...] = ()
    rolls: bool = False


class History(msgspec.Struct, frozen=True):
    """In order. `scales_asked` are the broker's times of the requests, by their id, that began a scale."""

    happened: list[Happened]
    scales_asked: list[int]

    @property
    def rolls(self) -> int:
        """How many batches rolled."""
        return sum(one.rolls for one in self.happened)

    def of_kind(self, change: Change) -> list[Happened]:
        return [one for one in self.happened if one.change is change]

    def summary(self) -> dict[str, int]:
        return Counter(one.change.value for one in self.happened)

    def batches_before_scales(self) -> list[int]:
        """For each scale how many batches began after it was asked for and before it began."""
        counts, scales = [], iter(self.scales_asked)
        for place, one in enumerate(self.happened):
            if one.change is Change.SCALE:
                asked_at = next(scales)
                before = self.happened[:place]
                counts.append(sum(each.change is Change.BATCH and each.at > asked_at for each in before))
        return counts

    def workflows_before_commits(self) -> list[int]:
        """For each commit how many scales and updates began after it was accepted and before its batch began."""
        counts, waiting = [], dict[str, int]()
        for one in self.happened:
            if one.change is Change.COMMITTING:
                waiting[one.transactions[0]] = 0
            elif one.change is Change.BATCH:
                counts += [waiting.pop(transaction) for transaction in one.transactions]
            elif one.change in (Change.SCALE, Change.UPDATE):
                waiting = {transaction: count + 1 for transaction, count in waiting.items()}
        return counts


def history(system: System, scope: str, stream: str) -> History:
    """What the journal holds of a stream."""
    partition = partition_of(StreamId(scope, stream).key, system.settings.partitions)
    asked = {
        request.id: message.timestamp()[1]
        for message in read(system.kafka_bootstrap, REQUESTS_STREAMS.name, [partition])
        if message.headers() and isinstance((request := decode_request(message.value() or b"")).command, ScaleStream)
    }
    view, happened, scales_asked = PartitionView(DomainModel()), list[Happened](), list[int]()
    for message in read(system.kafka_bootstrap, JOURNAL.name, [partition]):
        record, at = decode_record(message.value() or b""), message.timestamp()[1]
        outcomes = view.fold(record, message.offset() or 0, at)
        counted = [e for e, outcome in zip(record.entries, outcomes, strict=True) if outcome is Outcome.COUNTED]
        for id, event in ((entry.request, event) for entry in counted for event in entry.events):
            if getattr(event, "scope", None) == scope and getattr(event, "stream", None) == stream:
                one = _happened(event, at)
                happened += [one] if one is not None else []
                if isinstance(event, StreamScaleStarted):
                    scales_asked.append(asked[id or ""])
    return History(happened, scales_asked)


def _happened(event: Event, at: int) -> Happened | None:
    match event:
        case CommitBatchStarted():
            return Happened(Change.BATCH, at, event.transactions, event.rolls)
        case StreamScaleStarted():
            return Happened(Change.SCALE, at)
        case StreamUpdateStarted():
            return Happened(Change.UPDATE, at)
        case WorkflowQueued():
            return Happened(Change.WAITING, at)
        case TransactionCommitting():
            return Happened(Change.COMMITTING, at, (event.transaction,))
    return None
