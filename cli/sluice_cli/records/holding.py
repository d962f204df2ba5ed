"""A journal that is held: services wait with what they do, and gateways with their answers, until it is released.

A hold is the first record of each partition of an empty journal. What is imported says in its own first record how many
there are with the release, which is one record behind them. So what was imported by half cannot be released.
"""

from collections.abc import Iterator

from sluice.domain.model import JournalRecord, decode_record, encode_record
from sluice.engine.partition import partition_keys
from sluice.engine.record import HELD, record_kind
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.topics import JOURNAL
from sluice.lookback.source import KafkaRecord, Source, Span
from sluice_cli.errors import RefusedError
from sluice_cli.records.backing_up import Topics, check_empty

BY = "sluice/migrate"


def hold(source: Source, topics: Topics, partitions: int, replication: int, now_ms: int) -> bool:
    """Make the topics of an empty system, and hold it; False if it is held already. Raises CommandError."""
    if any(records_at(source, 0)):
        held_spans(source)
        return False
    check_empty(source)
    topics.create(partitions, replication)
    _append(topics, partitions, "held", now_ms, HELD)
    return True


def release(source: Source, topics: Topics, now_ms: int, is_empty: bool) -> int:
    """Let services begin; how many records were imported. Raises CommandError unless all of an import is there.

    Where nothing was imported, only `is_empty` says that this is meant.
    """
    spans = held_spans(source)
    imported = {record.partition: decode_record(record.value or b"") for record in records_at(source, 1)}
    if not imported and not is_empty:
        raise RefusedError("nothing was imported yet", "import first, or say --empty: all clients would find nothing")
    short = [s.partition for s in spans if imported and s.end != _whole_at(imported.get(s.partition)) - 1]
    if short:
        raise RefusedError(f"the import is not complete, or was released: partitions {short}", "import once more")
    _append(topics, len(spans), "released", now_ms, 0 if imported else 1)
    return sum(span.end - 1 for span in spans)


def _whole_at(record: JournalRecord | None) -> int:
    return record.whole_at if record is not None else 0


def records_at(source: Source, offset: int) -> Iterator[KafkaRecord]:
    """The record at this offset of each partition of the journal that has one."""
    if JOURNAL.name not in {facts.name for facts in source.topics()}:
        return
    spans = [
        Span(JOURNAL.name, s.partition, offset, offset + 1) for s in source.spans([JOURNAL.name]) if s.end > offset
    ]
    yield from (record for record in source.read(spans) if isinstance(record, KafkaRecord))


def held_spans(source: Source) -> list[Span]:
    """The partitions of the journal, each of which begins with a hold. Raises RefusedError."""
    spans = sorted(source.spans([JOURNAL.name]), key=lambda span: span.partition)
    held = {r.partition for r in records_at(source, 0) if decode_record(r.value or b"").whole_at == HELD}
    if any(span.start or span.partition not in held for span in spans):
        raise RefusedError(
            "the journal is not held", "only an empty one can be: stop all services and delete the topics first"
        )
    return spans


def _append(topics: Topics, partitions: int, word: str, now_ms: int, whole_at: int) -> None:
    for partition, key in enumerate(partition_keys(partitions)):
        record = JournalRecord(id=f"{word}-{now_ms:x}-{partition}", at=now_ms, by=BY, whole_at=whole_at)
        headers = cloud_event_headers(record_kind(record), record.id, record.by, record.at, key)
        topics.append(JOURNAL.name, partition, key, encode_record(record), headers)
    topics.flush()
