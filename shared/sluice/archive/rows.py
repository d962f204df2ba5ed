"""Records of topics as rows of the archive, and back. Pure.

The journal has one row for each entry, so that other engines can query it without knowing the record's format. `head`
is the record without its entries and `value` the entry, both as they stood in the record: together they are the record,
also in fields that this release does not know. Whether an entry counted is known only to the fold; so all are archived,
and a question about what counted folds them.

Other topics have one row for each record, with its value as it was.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from sluice.domain.model import decode_record

_TIME = pa.timestamp("ms", tz="UTC")
_NAMES = pa.list_(pa.string())

JOURNAL_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("entry", pa.int32()),
        ("entries", pa.int32()),
        ("appended_at", _TIME),
        ("key", pa.string()),
        ("record", pa.string()),
        ("proposer", pa.string()),
        ("proposed_at", _TIME),
        ("request", pa.string()),
        ("aggregates", _NAMES),
        ("events", _NAMES),
        ("reply", pa.string()),
        ("head", pa.string()),
        ("value", pa.string()),
        ("principal", pa.string()),
    ]
)
"""docs/archive.md says what each column means."""

RECORD_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("appended_at", _TIME),
        ("key", pa.string()),
        ("value", pa.binary()),
    ]
)

Row = dict[str, Any]


class ArchivedRecord(msgspec.Struct, frozen=True):
    """A record of a topic; `at` is when the broker appended it, epoch ms. A value of None is a tombstone."""

    partition: int
    offset: int
    at: int
    key: str
    value: bytes | None


class UnreadableRecordError(Exception):
    """A record of the journal cannot be decoded: every follower stops there, and so does the archive."""


def journal_rows(record: ArchivedRecord) -> list[Row]:
    """One row for each entry; one without an entry for a record that has none. Raises UnreadableRecordError."""
    value = record.value or b""
    try:
        decoded = decode_record(value)
        parts = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
        entries = msgspec.json.decode(parts.pop("entries", msgspec.Raw(b"[]")), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadableRecordError(f"journal {record.partition}@{record.offset}: {error}") from error
    common = {
        "partition": record.partition,
        "offset": record.offset,
        "entries": len(entries),
        "appended_at": record.at,
        "key": record.key,
        "record": decoded.id,
        "proposer": decoded.by,
        "proposed_at": decoded.at,
        "head": msgspec.json.encode(parts).decode(),
    }
    if not entries:
        none: Row = dict.fromkeys(("request", "reply", "value", "principal"))
        return [{**common, **none, "entry": 0, "aggregates": [], "events": []}]
    return [
        {
            **common,
            "entry": index,
            "request": entry.request,
            "aggregates": list(dict.fromkeys(event.aggregate for event in entry.events)),
            "events": [type(event).__name__ for event in entry.events],
            "reply": None if entry.reply is None else entry.reply.status.value,
            "value": bytes(raw).decode(),
            "principal": entry.principal or None,
        }
        for index, (entry, raw) in enumerate(zip(decoded.entries, entries, strict=True))
    ]


def journal_value(head: str, entries: Sequence[str | None]) -> bytes:
    """The value of the record that these rows were made from, in their order."""
    present = ",".join(entry for entry in entries if entry is not None)
    fields = head[1:-1]
    return f'{{{fields}{"," if fields else ""}"entries":[{present}]}}'.encode()


def record_rows(record: ArchivedRecord) -> list[Row]:
    """The one row of a record of a topic other than the journal."""
    return [
        {
            "partition": record.partition,
            "offset": record.offset,
            "appended_at": record.at,
            "key": record.key,
            "value": record.value,
        }
    ]


def records_of(rows: Iterable[Row]) -> Iterable[ArchivedRecord]:
    """The records of the journal that rows in the order of offset and entry were made from; `appended_at` epoch ms."""
    gathered: list[Row] = []
    for row in rows:
        if gathered and row["offset"] != gathered[0]["offset"]:
            yield _record(gathered)
            gathered = []
        gathered.append(row)
    if gathered:
        yield _record(gathered)


def _record(rows: list[Row]) -> ArchivedRecord:
    first = rows[0]
    value = journal_value(first["head"], [row["value"] for row in rows])
    return ArchivedRecord(first["partition"], first["offset"], first["appended_at"], first["key"], value)
