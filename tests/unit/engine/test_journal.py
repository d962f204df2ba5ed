"""The journal as a process follows it: what it does with gaps, marks, listeners that fail, and those who wait."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any

import pytest
from prometheus_client import REGISTRY
from support.counters import Added, Counter, CounterEntry, CounterModel, add, entry, record
from support.engine_world import JOURNAL, MODEL, EngineWorld, Process, engine_world, settle

from sluice.engine.errors import MissingRecordsError
from sluice.engine.journal import Journal, JournalUnavailableError, PartitionFailedError
from sluice.engine.offsets import RequestFacts
from sluice.engine.ports import Ends, EndsUnknownError, Message, RecordFacts, SendError
from sluice.memory.broker import MemoryMessage

KEY = "k"


class HandLog:
    """A log of one partition that is handed over by hand. Nothing is appended to it; its end is not known at first."""

    name = JOURNAL
    partitions = 1
    failure: str | None = None

    def __init__(self) -> None:
        self.deliver: Callable[[Sequence[Message]], None] = lambda _batch: None
        self.end: int | None = None

    def start(self, on_batch: Callable[[Sequence[Message]], None], begin: Mapping[int, int]) -> None:
        assert begin == {0: 0}
        self.deliver = on_batch

    async def stop(self) -> None:
        pass

    async def trim(self, _before: Mapping[int, int], _appended_before_ms: int) -> Ends:
        raise AssertionError

    def append(
        self,
        _key: str,
        _value: bytes,
        _facts: RecordFacts,
        _carrier: Mapping[str, str],
        _failed: Callable[[SendError], None],
    ) -> None:
        raise AssertionError

    def ends(self, _partitions: Collection[int] | None = None) -> asyncio.Future[Ends]:
        answer: asyncio.Future[Ends] = asyncio.get_running_loop().create_future()
        if self.end is None:
            answer.set_exception(EndsUnknownError("away"))
        else:
            answer.set_result({0: self.end})
        return answer


class AtEnd(MemoryMessage):
    """Says that the partition was read to its end."""

    def __init__(self, offset: int) -> None:
        super().__init__(JOURNAL, 0, offset, "", b"")

    def error(self) -> Any:
        return "end of partition"


def added(offset: int, name: str = "a") -> MemoryMessage:
    return MemoryMessage(JOURNAL, 0, offset, name, MODEL.encode(record(entry(Added(name)))))


@pytest.fixture
def log() -> HandLog:
    return HandLog()


@pytest.fixture
async def journal(log: HandLog) -> AsyncIterator[Journal]:
    journal = Journal(log, CounterModel(), "test/0")
    journal.start()
    yield journal
    await journal.stop()


async def test_a_partition_of_which_records_are_missing_stops_there(log: HandLog, journal: Journal) -> None:
    log.end = 4
    log.deliver([added(0), added(2), added(3)])
    assert "record at offset 2" in (journal.failure or "") and MissingRecordsError.__name__ in journal.failed[0]
    assert dict(journal.reader("a").aggregates()) == {"a": Counter("a", 1)}
    with pytest.raises(PartitionFailedError):
        await journal.append("a", ())
    with pytest.raises(PartitionFailedError):
        await journal.barrier([0])
    with pytest.raises(PartitionFailedError):
        await journal.until("a", lambda _view: False)
    with pytest.raises(PartitionFailedError):
        journal.expect_reply("r", ["a"])
    assert not journal.overtaken.is_set(), "it is loading: begun anew it would miss the same records"


async def test_a_loaded_journal_of_which_records_are_missing_has_been_overtaken(log: HandLog, journal: Journal) -> None:
    log.end = 1
    log.deliver([added(0)])
    await journal.loaded.wait()
    log.deliver([added(2)])
    assert journal.overtaken.is_set() and "record at offset 2" in (journal.failure or "")


@pytest.mark.parametrize("value", [b"no record", b'{"id":"1","at":1,"by":"t","entries":[{"events":[{"type":"New"}]}]}'])
async def test_a_record_that_cannot_be_read_stops_its_partition(log: HandLog, journal: Journal, value: bytes) -> None:
    log.deliver([added(0), MemoryMessage(JOURNAL, 0, 1, "a", value), added(2)])
    assert "record at offset 1" in (journal.failure or "") and journal.views()[0].next_offset == 1


async def test_a_partition_that_ends_behind_what_was_delivered_stops(log: HandLog, journal: Journal) -> None:
    log.deliver([AtEnd(0), added(0), AtEnd(1)])
    assert journal.failure is None
    log.deliver([AtEnd(3)])
    assert "offset 3" in (journal.failure or "")


async def test_only_records_that_were_folded_are_counted(log: HandLog, journal: Journal) -> None:
    def folded() -> float:
        return REGISTRY.get_sample_value("sluice_journal_records_total") or 0.0

    before = folded()
    log.deliver([AtEnd(0), added(0), added(1), AtEnd(2), MemoryMessage(JOURNAL, 0, 2, "a", b"no record"), added(3)])
    assert journal.views()[0].next_offset == 2 and folded() - before == 2


async def test_a_log_that_fails_is_a_failure_of_the_journal(log: HandLog, journal: Journal) -> None:
    assert journal.failure is None
    log.failure = "its thread has ended"
    assert journal.failure == "its thread has ended"


async def test_it_is_loaded_once_all_that_was_there_is_folded(log: HandLog, journal: Journal) -> None:
    await asyncio.sleep(3)
    assert not journal.loaded.is_set()
    log.end = 2
    await asyncio.sleep(3)
    log.deliver([added(0)])
    await asyncio.sleep(3)
    assert not journal.loaded.is_set()
    log.deliver([added(1)])
    await asyncio.wait_for(journal.loaded.wait(), 1)


async def test_a_partition_that_stops_while_loading_does_not_hold_up_the_others(log: HandLog, journal: Journal) -> None:
    log.end = 2
    await asyncio.sleep(1)
    log.deliver([added(0), MemoryMessage(JOURNAL, 0, 1, "a", b"no record")])
    await asyncio.wait_for(journal.loaded.wait(), 1)


async def test_what_a_listener_fails_at_is_folded_and_observed_by_the_others(world: EngineWorld) -> None:
    observed: list[CounterEntry] = []

    def fail(_partition: int, _entry: CounterEntry) -> None:
        raise ValueError("cannot observe")

    world.journal.on_entry += [fail, lambda _partition, entry: observed.append(entry)]
    world.seed(KEY, Added(KEY), Added(KEY))
    world.land(KEY, record(entry(Added(KEY), expect={KEY: 9}), entry(Added("other"), expect={"other": 0})))
    await settle()
    assert [len(e.events) for e in observed] == [2, 1], "what is void is not observed"
    assert world.first.total(KEY) == 2 and world.journal.failure is None


async def test_a_barrier_fails_if_the_end_is_not_known_or_not_reached_in_time(world: EngineWorld) -> None:
    partition = world.journal.partition_of(KEY)
    world.broker.go_away(5)
    with pytest.raises(JournalUnavailableError, match="Timed out"):
        await world.journal.barrier([partition])
    world.broker.come_back()
    world.first.log.freeze()
    world.seed(KEY, Added(KEY))
    with pytest.raises(JournalUnavailableError):
        await world.journal.barrier([partition])


async def test_a_partition_without_a_leader_is_missed_by_its_own_readers_alone(world: EngineWorld) -> None:
    world.first.log.leaderless.add(1)
    await world.journal.barrier((0, 2))
    await world.journal.barrier(())
    with pytest.raises(JournalUnavailableError, match="partition 1 does not answer"):
        await world.journal.barrier((0, 1))
    assert await world.journal.ends() == {0: 0, 2: 0, 3: 0}


async def test_a_journal_is_not_loaded_without_any_of_its_partitions(world: EngineWorld) -> None:
    late = Process(world, 1, 1)
    late.log.leaderless.add(3)
    await asyncio.sleep(1)
    assert not late.journal.loaded.is_set()
    late.log.leaderless.clear()
    await asyncio.wait_for(late.journal.loaded.wait(), 1)
    await late.journal.stop()


async def test_a_barrier_returns_with_the_batch_that_brings_the_last_partition_to_its_end(world: EngineWorld) -> None:
    world.first.log.freeze()
    for partition in range(3):
        world.seed(world.key_at(partition), Added(KEY))
    waiting = asyncio.ensure_future(world.journal.barrier(range(4)))
    await settle()
    world.first.log.thaw()
    await settle()
    assert waiting.done(), "nothing more is appended to any partition"
    await waiting


async def test_until_returns_with_the_change_that_makes_it_true(world: EngineWorld) -> None:
    looked: list[int] = []

    def is_three(view: Any) -> bool:
        looked.append(world.first.total(KEY))
        return looked[-1] >= 3

    waiting = asyncio.ensure_future(world.journal.until(KEY, is_three))
    for _ in range(3):
        await settle()
        world.seed(KEY, Added(KEY))
    await waiting
    assert looked == [0, 1, 2, 3, 3], "after a change only, and where it goes on, for more may have been folded by then"


async def test_who_waits_for_a_partition_that_stops_learns_why(world: EngineWorld) -> None:
    partition = world.journal.partition_of(KEY)
    elsewhere = world.key_at((partition + 1) % 4)
    world.first.log.freeze()
    world.broker.land(JOURNAL, KEY, b"no record")
    waiting = [
        asyncio.ensure_future(world.journal.until(KEY, lambda _view: False)),
        asyncio.ensure_future(world.journal.barrier([partition])),
        world.journal.expect_reply("a", [KEY]),
        world.journal.expect_reply("b", [elsewhere, KEY]),
    ]
    other = world.journal.expect_reply("c", [elsewhere])
    await settle()
    world.first.log.thaw()
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, PartitionFailedError) and "offset 0" in str(outcome)
    assert not other.done() and world.journal.replies_expected == 1
    other.cancel()
    await settle()
    assert world.journal.replies_expected == 0


async def test_a_reply_goes_to_who_expects_it_once_the_entry_counts() -> None:
    async with engine_world(processes=2) as world:
        caller, decider = world.processes
        expected = caller.journal.expect_reply("r", [KEY])
        other = caller.journal.expect_reply("other", [KEY])
        world.land(KEY, record(entry(Added(KEY), expect={KEY: 7}, request="r", reply="void")))
        await decider.journal.propose(KEY, add(KEY), RequestFacts("r"))
        assert await asyncio.wait_for(expected, 1) == "0"
        assert not other.done() and caller.journal.replies_expected == 1


async def test_a_reply_expected_anew_is_not_forgotten_with_the_earlier_one(world: EngineWorld) -> None:
    earlier, later = world.journal.expect_reply("r", [KEY]), world.journal.expect_reply("r", [KEY])
    earlier.cancel()
    await settle()
    await world.journal.propose(KEY, add(KEY), RequestFacts("r"))
    assert await asyncio.wait_for(later, 1) == "0"
