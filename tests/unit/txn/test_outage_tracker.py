"""Since when clients can reach a partition, and whether they can."""

from txn_manager.outage_tracker import SILENCE_MS, OutageTracker

P = 3


def acknowledged(*times: int) -> OutageTracker:
    outages = OutageTracker()
    for now in times:
        outages.acknowledged(now)
    return outages


def test_a_partition_is_open_as_long_as_kafka_acknowledged_lately() -> None:
    assert OutageTracker().is_open(P, 10_000), "nothing is known against it"
    outages = acknowledged(10_000)
    assert outages.is_open(P, 10_000 + SILENCE_MS)
    assert not outages.is_open(P, 10_000 + SILENCE_MS + 1)


def test_all_partitions_are_open_from_the_end_of_a_silence_of_kafka() -> None:
    outages = acknowledged(10_000)
    assert outages.open_since(P) == 10_000, "whether Kafka was there before is not known"
    outages.acknowledged(10_000 + SILENCE_MS)
    assert outages.open_since(P) == 10_000
    outages.acknowledged(back := 10_000 + 2 * SILENCE_MS + 1)
    assert outages.open_since(P) == outages.open_since(P + 1) == back


def test_a_partition_is_open_from_its_newest_take_over() -> None:
    outages = OutageTracker()
    outages.owned(P, 10_000)
    outages.owned(P, 20_000)
    assert (outages.open_since(P), outages.open_since(P + 1)) == (20_000, 0)
    outages.acknowledged(30_000)
    assert outages.open_since(P) == 30_000


def test_a_partition_that_took_no_checks_for_long_is_open_once_it_takes_them() -> None:
    outages = OutageTracker()
    for partition, took_ms in ((P, SILENCE_MS), (P + 1, SILENCE_MS + 1)):
        outages.sending(partition, 10_000)
        outages.sending(partition, 12_000)
        assert outages.is_open(partition, 10_000 + SILENCE_MS)
        assert not outages.is_open(partition, 10_000 + SILENCE_MS + 1)
        outages.sent(partition, 10_000 + took_ms)
        assert outages.is_open(partition, 60_000)
    assert (outages.open_since(P), outages.open_since(P + 1)) == (0, 10_000 + SILENCE_MS + 1)
    outages.sending(P, 60_000)
    outages.owned(P, 70_000)
    assert outages.is_open(P, 70_000), "what was not sent by an owner before is not our concern"


def test_nothing_began_later_than_a_clock_that_was_set_back_says() -> None:
    outages = acknowledged(10_000)
    outages.owned(P, 3_600_000)
    outages.acknowledged(3_600_000)
    outages.acknowledged(12_000)
    assert outages.open_since(P) == outages.open_since(P + 1) == 12_000 and outages.is_open(P, 12_000)
