"""The follower of the journal: what it does with gaps, with listeners that fail, and with a question that fails."""

import asyncio
from typing import Any, cast

import pytest
from support.memory_journal import JournalWorld, settle

from sluice.domain.events import ScopeCreated
from sluice.journal import barrier
from sluice.journal.barrier import BarrierError, EndOffsets
from sluice.journal.journal import PartitionFailedError
from sluice.journal.record import Record


class _NoFailure:
    failure = None


def world_of(scopes: int) -> JournalWorld:
    """One instance that was frozen while these scopes came, all in one partition."""
    world = JournalWorld()
    world.first.journal._ends = cast(Any, _NoFailure())
    world.first.frozen = True
    for number in range(scopes):
        world.seed("sc", ScopeCreated(f"s{number}", at=1))
    return world


def known(world: JournalWorld) -> set[str]:
    return {name for name, _ in world.view("sc").aggregates()}


async def test_what_a_listener_fails_at_is_folded_and_heard_by_the_others() -> None:
    world, heard = world_of(3), list[str]()

    def fail(_partition: int, _record: Record) -> None:
        raise ValueError("cannot hear")

    world.first.journal.on_record += [fail, lambda _partition, record: heard.append(record.id)]
    world.first.thaw()
    assert len(heard) == 3 and known(world) == {"scope:s0", "scope:s1", "scope:s2"}
    assert world.first.journal.failure is None


async def test_a_partition_of_which_records_are_missing_stops() -> None:
    world = world_of(3)
    journal = world.first.journal
    partition = journal.partition_of("sc")
    first, _, third = world.log[partition]
    journal._on_batch([first])
    journal._on_batch([third])
    assert "record at offset 2" in (journal.failure or "") and known(world) == {"scope:s0"}
    with pytest.raises(PartitionFailedError):
        await journal.append("sc", {}, (), at=1)


async def test_a_partition_that_ends_behind_what_was_told_stops() -> None:
    class End:
        def __init__(self, offset: int) -> None:
            self._offset = offset

        def partition(self) -> int:
            return partition

        def offset(self) -> int:
            return self._offset

        def error(self) -> str:
            return "end of partition"

    world = world_of(1)
    journal = world.first.journal
    partition = journal.partition_of("sc")
    journal._on_batch([*world.log[partition], cast(Any, End(1))])
    assert journal.failure is None
    journal._on_batch([cast(Any, End(3))])
    assert "offset 3" in (journal.failure or "")


class Admin:
    """Fails in the ways there are, then answers."""

    failing: list[str]
    made = 0

    def __init__(self, _client: object) -> None:
        self._fail("made")
        Admin.made += 1

    def __len__(self) -> int:
        """As the real one: what waits in its queue."""
        return 0

    def list_offsets(self, question: dict[Any, Any], request_timeout: float) -> dict[Any, Any]:
        self._fail("asked")
        return {}

    def _fail(self, when: str) -> None:
        if Admin.failing and Admin.failing[0] == when:
            Admin.failing.pop(0)
            raise ValueError(f"cannot be {when}")


async def test_the_read_barrier_survives_whatever_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(barrier, "AdminClient", Admin)
    Admin.failing = ["made", "made", "asked", "made", "made"]
    ends = EndOffsets({}, "t", 1, 1.0)
    assert ends.failure is None, "not begun"
    ends.start()
    for why in ("made", "asked", "made"):
        with pytest.raises(BarrierError, match=why):
            await asyncio.wait_for(ends.ask(), 10)
    assert await asyncio.wait_for(ends.ask(), 10) == {} and ends.failure is None
    made = Admin.made
    assert await asyncio.wait_for(ends.ask(), 10) == {} and Admin.made == made, "it is kept while it works"
    ends.stop()
    await asyncio.to_thread(ends._thread.join, 10)
    assert ends.failure is None, "stopped"


async def test_a_read_barrier_that_has_ended_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = EndOffsets({}, "t", 1, 1.0)
    monkeypatch.setattr(ends._thread, "run", lambda: None)
    ends.start()
    await asyncio.to_thread(ends._thread.join, 10)
    world = JournalWorld()
    world.first.journal._ends = ends
    await settle()
    assert "has ended" in (world.first.journal.failure or "")


async def test_who_no_longer_waits_leaves_nothing_behind() -> None:
    world = JournalWorld()
    world.first.frozen = True
    world.seed("sc", ScopeCreated("sc", at=1))
    journal = world.first.journal
    partition = journal.partition_of("sc")
    for wait in (journal.until("sc", lambda _view: False), journal.barrier([partition])):
        task = asyncio.ensure_future(wait)
        await settle()
        assert len(journal._changed[partition]) + len(journal._reached[partition]) == 1
        task.cancel()
        await settle()
        assert task.cancelled() and not journal._changed[partition] and not journal._reached[partition]


async def test_a_reply_awaited_from_a_partition_that_stops_fails_with_the_reason() -> None:
    world = JournalWorld()
    journal = world.first.journal
    partition = journal.partition_of("sc")
    elsewhere = next(key for key in map(str, range(99)) if journal.partition_of(key) != partition)
    here, both = journal.expect_reply("a", ["sc"]), journal.expect_reply("b", [elsewhere, "sc"])
    other = journal.expect_reply("c", [elsewhere])
    world.first.tell(world._append(partition, b"no record"))
    for reply in (here, both):
        with pytest.raises(PartitionFailedError, match="offset 0"):
            await reply
    with pytest.raises(PartitionFailedError, match="offset 0"):
        journal.expect_reply("d", [elsewhere, "sc"])
    await settle()
    assert not other.done() and journal.replies_expected == 1
    other.cancel()
    await settle()
    assert journal.replies_expected == 0 and not any(journal._awaited)
