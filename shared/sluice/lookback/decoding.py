"""A record of any topic, decoded with its writer's decoder; what cannot be decoded is shown with the reason.

Pure. `Decoded` is what `topic tail` prints and what `trace` looks through.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from sluice.domain.model import JournalRecord, decode_record
from sluice.domain.names import stream_aggregate
from sluice.domain.reader_group.events import ReaderGroupCreationStarted
from sluice.domain.scope.events import ScopeCreated
from sluice.domain.stream.events import StreamCreationStarted
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport
from sluice.domain.table.events import TableCreationStarted
from sluice.engine.record import Record
from sluice.engine.snapshots import SnapshotConfirmation, SnapshotManifest
from sluice.exceptions import in_words
from sluice.insight.statistics import Folded, Reported, StatisticsProgress, StreamStatistics, WindowStatistics
from sluice.kafka import topics
from sluice.kafka.dead_letters import DeadLetterSettled
from sluice.kafka.requests import Request, decode_request, request_id
from sluice.lookback.source import KafkaRecord
from sluice.policies.memory import StreamMemory

REQUEST_TOPICS = tuple(
    topic.name
    for topic in (
        topics.REQUESTS_STREAMS,
        topics.REQUESTS_TRANSACTIONS,
        topics.COMMIT,
        topics.ABORT,
        topics.REQUESTS_CLUSTER,
    )
)
REFUSAL = "Refusal"
DEAD_LETTER = "DeadLetter"
OTHER_TYPES = (
    REFUSAL,
    DEAD_LETTER,
    *(
        kind.__name__
        for kind in (
            DeadLetterSettled,
            RetentionReport,
            ScaleReport,
            SnapshotConfirmation,
            SnapshotManifest,
            StatisticsProgress,
            StreamMemory,
            StreamStatistics,
            WindowStatistics,
        )
    ),
)
"""What `types` of a record may be besides those of commands and events."""

Content = (
    Request
    | JournalRecord
    | ScaleReport
    | RetentionReport
    | Reported
    | WindowStatistics
    | SnapshotManifest
    | SnapshotConfirmation
    | StreamMemory
    | DeadLetterSettled
)

_scale = msgspec.json.Decoder(ScaleReport)
_retention = msgspec.json.Decoder(RetentionReport)
_reported = msgspec.json.Decoder(Reported)
_windows = msgspec.json.Decoder(Folded)
_memory_decoder = msgspec.json.Decoder(StreamMemory)
_notes = msgspec.json.Decoder(SnapshotManifest | SnapshotConfirmation)
_settlements = msgspec.json.Decoder(DeadLetterSettled)


class Decoded(msgspec.Struct, frozen=True):
    """A record and what it says. `content` is None, and `problem` the reason, if it could not be decoded.

    `types` are those of its command or events, `names` the scopes and "scope/name"s it is about, `requests` the ids it
    belongs to or replies to. `source` is what a dead letter was in its own topic.
    """

    record: KafkaRecord
    types: tuple[str, ...]
    names: frozenset[str] = frozenset()
    requests: frozenset[str] = frozenset()
    by: str = ""
    content: Content | None = None
    problem: str = ""
    source: "Decoded | None" = None

    @property
    def type(self) -> str:
        return ", ".join(dict.fromkeys(self.types))


def decode(record: KafkaRecord) -> Decoded:
    """Never fails."""
    if record.topic == topics.DEAD_LETTERS.name:
        return _dead_letter(record)
    decoder = _DECODERS.get(record.topic)
    if decoder is None:
        return _raw(record, "no topic of Sluice's")
    if record.value is None:
        return _raw(record, "it has no value")
    try:
        return decoder(record, record.value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return _raw(record, in_words(error))


def raw_value(record: KafkaRecord) -> dict[str, Any]:
    """The value as JSON can hold it: `value` parsed if it is JSON, `text` if it is text, else `base64`."""
    if record.value is None:
        return {"value": None}
    try:
        return {"value": msgspec.json.decode(record.value)}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return {"text": record.value.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(record.value).decode()}


def _raw(record: KafkaRecord, problem: str) -> Decoded:
    kind, ids = record.header("ce_type"), (record.header("ce_id"), request_id(record.value or b""))
    return Decoded(
        record,
        types=(kind,) if kind else (),
        names=frozenset((record.key,)) if record.key else frozenset(),
        requests=frozenset(id for id in ids if id),
        by=record.header("ce_source"),
        problem=problem,
    )


def _request(record: KafkaRecord, value: bytes) -> Decoded:
    request = decode_request(value)
    return Decoded(
        record,
        types=(type(request.command).__name__,),
        names=frozenset(names_of(request.command)),
        requests=frozenset((request.id,)),
        by=request.by,
        content=request,
    )


def _journal(record: KafkaRecord, value: bytes) -> Decoded:
    content = decode_record(value)
    events = [event for entry in content.entries for event in entry.events]
    ids = (*(entry.request for entry in content.entries), *(id for event in events for id in ids_of(event)))
    return Decoded(
        record,
        types=tuple(type(event).__name__ for event in events) or (REFUSAL,),
        names=frozenset(name for event in events for name in names_of(event)) or frozenset((record.key,)),
        requests=frozenset(id for id in ids if id),
        by=content.by,
        content=content,
    )


def ids_of(event: Any) -> Iterator[str | None]:
    """The request that an event begins something for; what is created is named after it."""
    yield getattr(event, "request", None)
    if isinstance(event, ScopeCreated | StreamCreationStarted | ReaderGroupCreationStarted | TableCreationStarted):
        yield event.creation_id


def _scale_report(record: KafkaRecord, value: bytes) -> Decoded:
    return _report(record, _scale.decode(value))


def _retention_report(record: KafkaRecord, value: bytes) -> Decoded:
    return _report(record, _retention.decode(value))


def _reported_statistics(record: KafkaRecord, value: bytes) -> Decoded:
    return _statistics(record, _reported.decode(value))


def _window_statistics(record: KafkaRecord, value: bytes) -> Decoded:
    return _statistics(record, _windows.decode(value))


def _statistics(record: KafkaRecord, fact: Reported | Folded) -> Decoded:
    if not isinstance(fact, StatisticsProgress):
        return _report(record, fact)
    return Decoded(record, types=(type(fact).__name__,), requests=frozenset((fact.id,)), by=fact.by, content=fact)


def _report(
    record: KafkaRecord, report: ScaleReport | RetentionReport | StreamStatistics | WindowStatistics
) -> Decoded:
    return Decoded(
        record,
        types=(type(report).__name__,),
        names=frozenset((f"{report.scope}/{report.stream}",)),
        requests=frozenset((report.id,)),
        by=report.by,
        content=report,
    )


def _memory(record: KafkaRecord, value: bytes) -> Decoded:
    memory = _memory_decoder.decode(value)
    return Decoded(
        record,
        types=(type(memory).__name__,),
        names=frozenset((record.key,)),
        requests=frozenset((memory.id,)),
        by=memory.by,
        content=memory,
    )


def _dead_letter(record: KafkaRecord) -> Decoded:
    """A dead letter has value, key and headers of the record that could not be handled."""
    if record.header("ce_type") == DeadLetterSettled.__name__ and not record.header("sluice_reason"):
        return _settled(record)
    topic = record.header("sluice_topic")
    if not topic:
        return _raw(record, "its headers do not say where it comes from")
    if topic == topics.DEAD_LETTERS.name:
        return _raw(record, "its headers say that it comes from the dead letters themselves")
    source = decode(
        KafkaRecord(
            topic=topic,
            partition=_number(record.header("sluice_partition")),
            offset=_number(record.header("sluice_offset")),
            at=record.at,
            key=record.key,
            value=record.value,
            headers=record.headers,
        )
    )
    return Decoded(
        record,
        types=(DEAD_LETTER, *source.types),
        names=source.names,
        requests=source.requests,
        by=record.header("sluice_service"),
        content=source.content,
        problem=source.problem,
        source=source,
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1


def _settled(record: KafkaRecord) -> Decoded:
    try:
        settled = _settlements.decode(record.value or b"")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return _raw(record, in_words(error))
    return Decoded(
        record, types=(type(settled).__name__,), names=frozenset((record.key,)), by=settled.by, content=settled
    )


def _snapshot_note(record: KafkaRecord, value: bytes) -> Decoded:
    note = _notes.decode(value)
    return Decoded(record, types=(type(note).__name__,), by=note.by, content=note)


def _snapshot_chunk(record: KafkaRecord, _value: bytes) -> Decoded:
    return _raw(record, "it is binary; `sluice snapshot list` shows what it belongs to")


_DECODERS: dict[str, Callable[[KafkaRecord, bytes], Decoded]] = {
    **dict.fromkeys(REQUEST_TOPICS, _request),
    topics.JOURNAL.name: _journal,
    topics.SCALE.name: _scale_report,
    topics.RETENTION.name: _retention_report,
    topics.SCALE_MEMORY.name: _memory,
    topics.RETENTION_MEMORY.name: _memory,
    topics.STATISTICS.name: _reported_statistics,
    topics.STATISTICS_WINDOWS.name: _window_statistics,
    topics.SNAPSHOTS.name: _snapshot_note,
    topics.SNAPSHOT_CHUNKS.name: _snapshot_chunk,
}


def aggregates_of(decoded: Decoded) -> frozenset[str]:
    """What a record is about; nothing for one that could not be decoded, and for what is about no aggregate."""
    match decoded.content:
        case Request():
            return frozenset((decoded.content.command.aggregate,))
        case Record():
            return frozenset(event.aggregate for entry in decoded.content.entries for event in entry.events)
        case ScaleReport() | RetentionReport() | StreamStatistics() | WindowStatistics():
            return frozenset((stream_aggregate(decoded.content.scope, decoded.content.stream),))
        case _:
            return frozenset()


def names_of(fact: Any) -> Iterator[str]:
    """The names that a command or an event is about, scopes as "scope", all else as "scope/name"."""
    kind, _, name = fact.aggregate.partition(":")
    yield name.rpartition("/")[0] if kind in ("txn", "prepared") else name or kind
