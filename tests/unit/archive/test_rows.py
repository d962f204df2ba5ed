"""Records become rows and are the same records afterwards, also in what this release does not know."""

import msgspec
import pyarrow as pa
import pytest
from unit.cli.memory import History

from sluice.archive.rows import (
    JOURNAL_SCHEMA,
    ArchivedRecord,
    UnreadableRecordError,
    journal_rows,
    journal_value,
    records_of,
)
from sluice.catalog.examples.journal_records import journal_records
from sluice.domain.config import StreamConfig
from sluice.domain.model import decode_record
from sluice.kafka.topics import JOURNAL

RECORDS = [
    ArchivedRecord(3, offset, 1_700_000_000_000 + offset, example.key, example.value)
    for offset, example in enumerate(journal_records())
]


def test_every_record_of_the_examples_is_itself_afterwards() -> None:
    rows = [row for record in RECORDS for row in journal_rows(record)]
    pa.Table.from_pylist(rows, schema=JOURNAL_SCHEMA).validate(full=True)
    found = list(records_of(rows))
    assert [(r.partition, r.offset, r.at, r.key) for r in found] == [
        (r.partition, r.offset, r.at, r.key) for r in RECORDS
    ]
    for before, after in zip(RECORDS, found, strict=True):
        assert msgspec.json.decode(after.value or b"") == msgspec.json.decode(before.value or b"")
        assert decode_record(after.value or b"") == decode_record(before.value or b"")


def test_an_entry_says_what_it_changes_and_for_which_request() -> None:
    history = History()
    history.create_stream(StreamConfig())
    log = [one for partition in history.source.logs[JOURNAL.name] for one in partition]
    rows = [
        row
        for one in log
        for row in journal_rows(ArchivedRecord(one.partition, one.offset, one.at, one.key, one.value))
    ]
    begun = next(row for row in rows if "StreamCreationStarted" in row["events"])
    assert "stream:demo/orders" in begun["aggregates"]
    assert (begun["proposer"], begun["key"], begun["entry"], begun["entries"]) == (
        "stream-workflows/b", "demo/orders", 0, 1,
    )  # fmt: skip
    assert {row["request"] for row in rows if row["request"]} == {"scope", "create"}


def test_an_entry_says_who_called_and_null_if_nobody_was_asked() -> None:
    value = b'{"id":"a","at":1,"by":"s/0","entries":[{"request":"r","principal":"alice"},{}]}'
    rows = journal_rows(ArchivedRecord(0, 7, 5, "a/b", value))
    assert [row["principal"] for row in rows] == ["alice", None]


def test_unknown_fields_of_record_and_entry_stay() -> None:
    value = (
        b'{"id":"a","at":1,"by":"s/0","later":{"x":[1.50]},"entries":[{"expect":{"stream:a/b":3},"new":"\\u00e9"},{}]}'
    )
    rows = journal_rows(ArchivedRecord(0, 7, 5, "a/b", value))
    (found,) = records_of(rows)
    assert msgspec.json.decode(found.value or b"") == msgspec.json.decode(value)
    assert b"1.50" in (found.value or b""), "numbers stay as they were written"


@pytest.mark.parametrize("value", [b'{"id":"a","at":1,"by":"s/0"}', b'{"id":"a","at":1,"by":"s/0","entries":[]}'])
def test_a_record_without_entries_is_one_row(value: bytes) -> None:
    (row,) = journal_rows(ArchivedRecord(0, 7, 5, "a/b", value))
    assert (row["entry"], row["entries"], row["value"]) == (0, 0, None)
    assert decode_record(journal_value(row["head"], [row["value"]])) == decode_record(value)


@pytest.mark.parametrize("value", [None, b"", b"{not json", b"[]", b'{"id":1}', b"\xff"])
def test_what_is_no_record_is_refused_with_its_position(value: bytes | None) -> None:
    with pytest.raises(UnreadableRecordError, match="3@7"):
        journal_rows(ArchivedRecord(3, 7, 5, "a/b", value))
