"""What an original knows, into a journal that is held.

The records are a function of the original and of the moment that stands in the first of them. So an import that was
broken off goes on where it was, and one that is made a second time finds that nothing is to be done: what stands in the
journal must be what would be written there.
"""

import hashlib
from collections import Counter
from collections.abc import Collection
from typing import Any

from sluice.backup.restoring import records
from sluice.domain.model import decode_record, encode_record
from sluice.engine.record import record_kind
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.topics import JOURNAL
from sluice.lookback.progress import Progress
from sluice.lookback.source import KafkaRecord, Source, Span
from sluice_cli.errors import CommandError, RefusedError
from sluice_cli.migration.model import Original
from sluice_cli.migration.tables import UnreadableEntry
from sluice_cli.migration.to_states import take
from sluice_cli.migration.to_stream import UnfitError
from sluice_cli.records.backing_up import Topics, counted
from sluice_cli.records.holding import BY, held_spans, records_at

OTHERS = 2
"""Records of a partition that are not of the import: the hold in front of it, and the release behind."""


def import_original(
    source: Source,
    topics: Topics,
    original: Original,
    left_out: Collection[str],
    now_ms: int,
    progress: Progress,
) -> dict[str, Any]:
    """Import, or finish an import; what was brought. Raises CommandError."""
    spans = held_spans(source)
    begun = {record.partition: decode_record(record.value or b"") for record in records_at(source, 1)}
    if any(not record.entries for record in begun.values()):
        raise RefusedError("the journal was released, and nothing was imported before", _ANEW)
    at = min((record.at for record in begun.values()), default=now_ms)
    try:
        taken = take(original, at, left_out)
    except UnfitError as error:
        hint = f'nothing was imported; `--except "{error.of}"` leaves it out: no client would find it'
        raise RefusedError(f"{error}", hint) from error
    except UnreadableEntry as error:
        raise RefusedError(f"{error}", "nothing was imported") from error
    present = _present(source, spans, {partition: record.whole_at for partition, record in begun.items()})
    made: Counter[int] = Counter()
    appended: Counter[int] = Counter()
    with progress("importing", None) as advance:
        for found in records(taken.backed_up, len(spans), f"imported-{at:x}", 0, at, BY, OTHERS):
            record, partition, value = found.record, found.partition, encode_record(found.record)
            there = present[partition]
            made[partition] += 1
            advance(1)
            if made[partition] > len(there):
                headers = cloud_event_headers(record_kind(record), record.id, record.by, record.at, found.key)
                topics.append(JOURNAL.name, partition, found.key, value, headers)
                appended[partition] += 1
            elif there[made[partition] - 1] != _digest(value):
                raise RefusedError(f"partition {partition} has another record at {made[partition]}", _ANEW)
    ends = topics.flush()
    if any(ends[p] != made[p] + 1 for p in appended) or any(len(there) > made[p] for p, there in present.items()):
        raise CommandError(f"{JOURNAL.name} has records that are not of this import", _ANEW)
    return {
        **counted(taken.backed_up),
        "records": made.total(),
        "appended": appended.total(),
        "remarks": taken.remarks,
    }


def _present(source: Source, spans: list[Span], whole_at: dict[int, int]) -> dict[int, list[bytes]]:
    """Digests of what an import has written into each partition."""
    found: dict[int, list[bytes]] = {span.partition: [] for span in spans}
    imported = [Span(s.topic, s.partition, 1, min(s.end, whole_at.get(s.partition, 1) - 1)) for s in spans]
    for record in source.read([span for span in imported if span.length]):
        if isinstance(record, KafkaRecord):
            found[record.partition].append(_digest(record.value or b""))
    return found


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()


_ANEW = "stop all services, delete the topics, hold and import once more: it was made from another dump"
