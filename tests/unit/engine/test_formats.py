"""Formats of what is stored and sent: what says a newer one is refused for that, whatever else it holds."""

import msgspec
import pytest

from sluice.domain.commands import Command
from sluice.domain.model import RECORD_FORMAT, DomainModel, JournalRecord, decode_record, encode_record
from sluice.domain.scope.commands import CreateScope
from sluice.engine.formats import FIRST_FORMAT, NewerFormatError
from sluice.kafka.requests import REQUEST_FORMAT, Request, decode_request, encode_request, request_id

COMMAND: Command = CreateScope(scope="sc")
RECORD = JournalRecord(id="r", at=1, by="x/0")
REQUEST = Request(id="r", at=1, by="x/0", command=COMMAND)
UNREADABLE = [b"", b"{", b"[]", b"{}", b'{"format":"two"}', b"\xff", b'{"a":' * 5000]


def test_the_first_format_is_not_written() -> None:
    assert b"format" not in encode_record(RECORD) and b"format" not in encode_request(REQUEST)
    assert decode_record(encode_record(RECORD)).format == decode_request(encode_request(REQUEST)).format == FIRST_FORMAT


def test_a_record_of_the_newest_known_format_is_read() -> None:
    record = msgspec.structs.replace(RECORD, format=RECORD_FORMAT)
    assert DomainModel().decode(encode_record(record)) == record


def test_a_record_of_a_newer_format_is_refused_although_all_else_is_known() -> None:
    newer = encode_record(msgspec.structs.replace(RECORD, format=RECORD_FORMAT + 1))
    with pytest.raises(NewerFormatError, match=f"format {RECORD_FORMAT + 1} is newer than {RECORD_FORMAT}"):
        DomainModel().decode(newer)


def test_a_record_of_a_newer_format_is_refused_for_that_and_not_for_its_events() -> None:
    value = b'{"id":"r","at":1,"by":"x/0","entries":[{"events":[{"type":"Unheard"}]}],"format":%d}'
    with pytest.raises(NewerFormatError):
        decode_record(value % (RECORD_FORMAT + 1))
    with pytest.raises(msgspec.ValidationError, match="Unheard"):
        decode_record(value % RECORD_FORMAT)


def test_a_request_of_a_newer_format_is_refused() -> None:
    newer = encode_request(msgspec.structs.replace(REQUEST, format=REQUEST_FORMAT + 1))
    with pytest.raises(NewerFormatError):
        decode_request(newer)
    with pytest.raises(NewerFormatError):
        decode_request(newer.replace(b"CreateScope", b"Unheard"))


@pytest.mark.parametrize("value", UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_is_no_request_has_no_id_and_no_format(value: bytes) -> None:
    with pytest.raises(msgspec.DecodeError) as found:
        decode_request(value)
    assert not isinstance(found.value, NewerFormatError) and request_id(value) is None


def test_a_request_that_cannot_be_read_says_its_id() -> None:
    assert request_id(b'{"id":"r","command":{"type":"Unheard"},"format":9}') == "r"
