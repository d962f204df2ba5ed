"""Bytes written by minute, from the samples of streams with a policy."""

import msgspec

from api_gateway.console.written import Written
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.kafka.topics import RETENTION
from sluice.memory.broker import MemoryMessage

MINUTE = 60_000
BEGAN = 100 * MINUTE


def sample(
    at: int, size: int, stream: str = "orders", offset: int = 0, life: str = "c", partition: int = 0
) -> MemoryMessage:
    report = RetentionReport(
        id="r", by="t", at=BEGAN + at, scope="demo", stream=stream, creation_id=life, policy=None, head=SizedCut({}, 0),
        sample=SizedCut({0: size}, size) if life else None,
    )  # fmt: skip
    return MemoryMessage(RETENTION.name, partition, offset, f"demo/{stream}", msgspec.json.encode(report), BEGAN + at)


def by_minute(written: Written, count: int) -> list[int | None]:
    return written.bytes_by_minute(BEGAN + number * MINUTE for number in range(count))


def test_what_was_written_between_two_samples_is_in_the_minutes_between_them() -> None:
    written = Written()
    written.take_in([sample(MINUTE, 1_000), sample(2 * MINUTE + MINUTE // 2, 1_300), sample(5 * MINUTE, 1_300)])
    # Before the first sample nothing is known, and behind the last one.
    assert by_minute(written, 7) == [None, 200, 100, 0, 0, None, None]


def test_a_minute_is_known_once_all_streams_were_sampled_behind_it() -> None:
    written = Written()
    written.take_in([sample(0, 0), sample(0, 0, "other"), sample(2 * MINUTE, 100), sample(MINUTE, 70, "other")])
    assert by_minute(written, 3) == [120, None, None]
    # It was deleted.
    written.take_in([sample(2 * MINUTE, 0, "other", life="")])
    assert by_minute(written, 3) == [120, 50, None]


def test_no_minute_waits_for_a_stream_that_nothing_is_written_to() -> None:
    written = Written()
    written.take_in([sample(0, 0), sample(0, 7, "silent"), sample(MINUTE, 60), sample(MINUTE, 7, "silent")])
    written.take_in([sample(2 * MINUTE, 120), sample(3 * MINUTE, 180)])
    assert by_minute(written, 4) == [60, 60, None, None], "another instance may sample it, up to a minute later"
    written.take_in([sample(3 * MINUTE, 7, "silent"), sample(3 * MINUTE + 1, 67, "silent")])
    assert by_minute(written, 4) == [60, 60, 60, None]


def test_a_stream_made_anew_has_no_bytes_of_the_one_before() -> None:
    written = Written()
    written.take_in([sample(0, 500), sample(MINUTE, 9_000, life="d"), sample(2 * MINUTE, 9_060, life="d")])
    assert by_minute(written, 3) == [0, 60, None]


def test_what_is_older_than_the_records_of_a_partition_is_not_known() -> None:
    written = Written()
    written.take_in([sample(0, 0), sample(4 * MINUTE, 400)])
    written.take_in(
        [sample(2 * MINUTE, 7, "other", offset=9, partition=1), sample(4 * MINUTE, 7, "other", partition=1)]
    )
    assert by_minute(written, 5) == [None, None, 100, 100, None]
