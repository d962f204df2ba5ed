"""A journal that is held: services wait with what they do, and gateways with their answers, until it is released.

A hold is the first record of each partition of an empty journal. What is imported says in its own first record how many
there are with the release, which is one record behind them. So what was imported by half cannot be released.
"""

from collections.abc import Iterable, Iterator
from enum import Enum, auto

from sluice.domain.model import JournalRecord, decode_record, encode_record
from sluice.engine.partition import partition_keys
from sluice.engine.record import HELD, record_kind
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.topics import JOURNAL
from sluice.lookback.source import KafkaRecord, Source, Span
from sluice_cli.errors import RefusedError
from sluice_cli.records.backing_up import Topics, check_empty

BY = "sluice/migrate"
_EMPTY = 1
"""What the release of a journal without an import says of where it is whole."""
_ONLY_EMPTY = "only an empty one can be held: stop all services and delete the topics first"


class Stage(Enum):
    """How far a journal has come; `RELEASING`: a partition is released, and one is left."""

    EMPTY = auto()
    HELD = auto()
    RELEASING = auto()
    RELEASED = auto()


def stage(source: Source) -> Stage:
    """Raises RefusedError for a journal that never was held, and for topics with records but no hold."""
    if not any(records_at(source, 0)):
        check_empty(source)
        return Stage.EMPTY
    spans = _begun_spans(source)
    whole_at = {record.partition: decode_record(record.value or b"").whole_at for record in records_at(source, 1)}
    is_released = [span.end >= whole_at.get(span.partition, HELD) for span in spans]
    if all(is_released):
        return Stage.RELEASED
    return Stage.RELEASING if any(is_released) else Stage.HELD


def hold(source: Source, topics: Topics, partitions: int, replication: int, now_ms: int) -> bool:
    """Make the topics of an empty system, and hold it; False if it is held already. Raises CommandError.

    A hold that was broken off goes on, in the partitions that are there.
    """
    found = stage(source)
    if found in (Stage.RELEASING, Stage.RELEASED):
        raise RefusedError("the journal was released, and its system runs", _ONLY_EMPTY)
    if found is Stage.EMPTY:
        topics.create(partitions, replication)
        _append(topics, partitions, range(partitions), "held", now_ms, HELD)
        return True
    spans = _begun_spans(source)
    left = [span.partition for span in spans if not span.end]
    _append(topics, len(spans), left, "held", now_ms, HELD)
    return bool(left)


def release(source: Source, topics: Topics, now_ms: int, is_empty: bool) -> int:
    """Let services begin; how many records were imported. Raises CommandError unless all of an import is there.

    Where nothing was imported, only `is_empty` says that this is meant. What was released already is left as it is: so
    a release that was broken off goes on.
    """
    spans = held_spans(source)
    first = {record.partition: decode_record(record.value or b"").whole_at for record in records_at(source, 1)}
    imported = {partition: whole_at for partition, whole_at in first.items() if whole_at > _EMPTY}
    if not imported and not is_empty:
        raise RefusedError("nothing was imported yet", "import first, or say --empty: all clients would find nothing")
    short = [s.partition for s in spans if imported and s.end < imported.get(s.partition, HELD) - 1]
    if short:
        raise RefusedError(f"the import is not complete: partitions {short}", "import once more")
    left = [s.partition for s in spans if s.end == imported.get(s.partition, _EMPTY + 1) - 1]
    _append(topics, len(spans), left, "released", now_ms, 0 if imported else _EMPTY)
    return sum(whole_at - 2 for whole_at in imported.values())


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
    spans = _begun_spans(source)
    if not all(span.end for span in spans):
        raise RefusedError("the journal is not held, or not in all partitions", "repeat `sluice migrate hold`")
    return spans


def _begun_spans(source: Source) -> list[Span]:
    """The partitions of the journal, each of which is empty or begins with a hold. Raises RefusedError."""
    spans = sorted(source.spans([JOURNAL.name]), key=lambda span: span.partition)
    held = {r.partition for r in records_at(source, 0) if decode_record(r.value or b"").whole_at == HELD}
    if any(span.start or (span.end and span.partition not in held) for span in spans):
        raise RefusedError("the journal is not held", _ONLY_EMPTY)
    return spans


def _append(topics: Topics, partitions: int, to: Iterable[int], word: str, now_ms: int, whole_at: int) -> None:
    keys = partition_keys(partitions)
    for partition in to:
        key = keys[partition]
        record = JournalRecord(id=f"{word}-{now_ms:x}-{partition}", at=now_ms, by=BY, whole_at=whole_at)
        headers = cloud_event_headers(record_kind(record), record.id, record.by, record.at, key)
        topics.append(JOURNAL.name, partition, key, encode_record(record), headers)
    topics.flush()
