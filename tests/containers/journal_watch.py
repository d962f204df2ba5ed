"""The journal as a bystander folds it: which requests were answered, which versions aggregates have. Blocking."""

from typing import Any
from uuid import uuid4

import msgspec
from confluent_kafka import Consumer, TopicPartition

from sluice.domain.decision import Reply
from sluice.domain.events import Event
from sluice.domain.model import DomainModel, JournalEntry, decode_record
from sluice.engine.fold import Outcome, PartitionView
from sluice.kafka.topics import JOURNAL

ANSWERS_S = 60.0


class Counted(msgspec.Struct, frozen=True):
    """An entry that had an effect."""

    partition: int
    entry: JournalEntry


class JournalWatch:
    """Everything up to the last `catch_up`, which all questions begin with."""

    def __init__(self, bootstrap: str, partitions: int) -> None:
        self.counted: list[Counted] = []
        self._views = [PartitionView(DomainModel()) for _ in range(partitions)]
        self._answers: dict[str, list[Reply]] = {}
        self._touched: set[tuple[int, str]] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": uuid4().hex,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 20,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(JOURNAL.name, p, 0) for p in range(partitions)])

    def close(self) -> None:
        self._consumer.close()

    def catch_up(self) -> None:
        """Fold what stands in the journal now."""
        for partition, view in enumerate(self._views):
            assigned = TopicPartition(JOURNAL.name, partition)
            end = self._consumer.get_watermark_offsets(assigned, timeout=ANSWERS_S)[1]
            while view.next_offset < end:
                message = self._consumer.poll(ANSWERS_S)
                assert message is not None, f"journal partition {partition} ends at {view.next_offset}, not {end}"
                self._fold(message)

    def answer(self, request: str) -> Reply | None:
        """The reply to a request, None if there is none yet; if it came twice both replies must be the same."""
        self.catch_up()
        answers = self._answers.get(request, [])
        assert all(answer == answers[0] for answer in answers), f"{request} was answered differently: {answers}"
        return answers[0] if answers else None

    def versions(self, but: str = "cluster") -> dict[str, int]:
        """How often each aggregate was changed, without the one that heartbeats change."""
        self.catch_up()
        return {a: self._views[p].version(a) for p, a in sorted(self._touched) if a != but}

    def version(self, partition: int, aggregate: str) -> int:
        self.catch_up()
        return self._views[partition].version(aggregate)

    def events(self, kind: type[Event]) -> list[Any]:
        """The events of a type that came true, in the order of their partition."""
        self.catch_up()
        return [event for counted in self.counted for event in counted.entry.events if isinstance(event, kind)]

    def _fold(self, message: Any) -> None:
        assert message.error() is None, message.error()
        partition, record = message.partition(), decode_record(message.value())
        outcomes = self._views[partition].fold(record, message.offset(), message.timestamp()[1])
        for entry, outcome in zip(record.entries, outcomes, strict=True):
            if outcome is not Outcome.COUNTED:
                continue
            self.counted.append(Counted(partition, entry))
            self._touched.update((partition, event.aggregate) for event in entry.events)
            if entry.request is not None and entry.reply is not None:
                self._answers.setdefault(entry.request, []).append(entry.reply)
