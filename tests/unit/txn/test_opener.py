"""Opening a transaction of which none is prepared: the decision, the segments, the reply; and what may come between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest
from support.memory_world import until
from support.opening_world import LEASE_MS, OpenerWorld
from support.transaction_world import KEY, STREAM
from unit.txn.other_stream import other_stream, slow_with_the_first

from sluice.domain.stream.events import StreamSealStarted
from sluice.domain.transaction.commands import OpenTransaction
from sluice.domain.transaction.events import TransactionAborted, TransactionOpened, TransactionReady
from sluice.domain.transaction.state import TransactionState, find_transaction
from sluice.kafka.topics import JOURNAL
from sluice.pravega.memory import Moment
from txn_manager import opener


@pytest.fixture
async def scene(virtual_time: None) -> AsyncIterator[OpenerWorld]:
    scene = OpenerWorld()
    await scene.create()
    scene.created_at_s.clear()
    await scene.opener.start()
    yield scene
    assert scene.opener.failures == []


async def test_an_open_is_opened_with_the_request_and_ready_with_the_reply(scene: OpenerWorld) -> None:
    reply = await asyncio.wait_for(scene.send("r"), 5)
    id = scene.id_of("r")
    assert (reply.status, reply.transaction) == ("OK", id)
    [opened] = [e for e in scene.entries(KEY) if any(isinstance(x, TransactionOpened) for x in e.events)]
    [ready] = [e for e in scene.entries(KEY) if any(isinstance(x, TransactionReady) for x in e.events)]
    assert opened.source is not None and opened.reply is None
    assert [event.request for event in opened.events if isinstance(event, TransactionOpened)] == ["r"]
    assert ready.source is None and (ready.request, ready.reply) == ("r", reply)
    assert len(scene.own_segments) == 1
    found = find_transaction(scene.view(KEY), STREAM.transaction(id))
    assert found is not None and found.state is TransactionState.OPEN


async def test_no_segment_is_created_before_the_record_that_names_it(scene: OpenerWorld) -> None:
    scene.refuse(JOURNAL, 10)
    reply = scene.send("r")
    await until(lambda: scene.broker.refusals < 10)
    await scene.seed(KEY, StreamSealStarted(*STREAM, at=scene.now_ms))
    assert (await asyncio.wait_for(reply, 30)).status == "STREAM_SEALED"
    assert scene.created_at_s == [] and scene.state(scene.id_of("r")) is None


async def test_opens_at_one_moment_create_no_more_segments_at_once_than_the_limit(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "OPEN_CONCURRENCY", 2)
    scene = OpenerWorld()
    await scene.create()
    await scene.opener.start()
    creating, most = set[str](), 0

    def creation(moment: Moment, _request: str, segment: str) -> Awaitable[None] | None:
        nonlocal most
        if moment == "after":
            creating.discard(segment)
            return None
        creating.add(segment)
        most = max(most, len(creating))
        return asyncio.sleep(1.0)

    scene.store.fault = creation
    replies = await asyncio.gather(*(scene.send(f"{number}") for number in range(10)))
    assert {reply.status for reply in replies} == {"OK"} and most == 2


async def test_an_open_that_an_earlier_owner_decides_late_is_carried_out(scene: OpenerWorld) -> None:
    reply = scene.first.journal.expect_reply("late", (KEY,))
    await scene.seed(
        KEY, TransactionOpened(*STREAM, scene.id_of("late"), lease_ms=LEASE_MS, at=1, dies_at=10**15, request="late")
    )
    assert (await asyncio.wait_for(reply, 5)).status == "OK" and len(scene.own_segments) == 1


async def test_the_caller_of_one_aborted_while_opening_gets_ended_with_the_last_record(scene: OpenerWorld) -> None:
    scene.silent = True
    reply = scene.send("r")
    id = await scene.until_opened("r")
    await scene.abort_by_user(id)
    await asyncio.sleep(60)
    assert not reply.done(), "the abort has not ended"
    scene.silent = False
    scene.completer.take_over()
    assert (await asyncio.wait_for(reply, 30)).status == "ENDED"
    [aborted] = [e for e in scene.entries(KEY) if any(isinstance(x, TransactionAborted) for x in e.events)]
    assert aborted.request == "r" and scene.state(id) is TransactionState.ABORTED
    await asyncio.sleep(60)
    assert scene.own_segments == []


async def test_segments_created_late_for_an_aborted_transaction_are_deleted(scene: OpenerWorld) -> None:
    scene.create_s = 20.0
    scene.send("r")
    await scene.abort_by_user(await scene.until_opened("r"))
    scene.completer.take_over()
    await scene.until_ended(max_s=10)
    await asyncio.sleep(60)
    assert len(scene.created_at_s) >= 1 and scene.own_segments == []


async def test_opens_that_a_silent_store_keeps_leave_room_to_other_streams(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opener, "OPEN_CONCURRENCY", 2)
    scene = OpenerWorld(max_opening=3)
    await scene.create()
    other = await other_stream(scene)
    await scene.opener.start()
    scene.store.fault = slow_with_the_first
    stuck = [scene.send(f"{number}") for number in range(3)]
    for number in range(3):
        await scene.until_opened(f"{number}")
    reply = scene.first.journal.expect_reply("r", (other.key,))
    scene.request("r", OpenTransaction(*other, lease_ms=LEASE_MS))
    assert (await asyncio.wait_for(reply, 5)).status == "OK"
    assert not any(one.done() for one in stuck)


async def test_a_stream_that_is_not_there_is_refused_without_segments(scene: OpenerWorld) -> None:
    open = OpenTransaction("sc", "none", lease_ms=LEASE_MS)
    reply = scene.first.journal.expect_reply("r", (open.key,))
    scene.request("r", open)
    assert (await asyncio.wait_for(reply, 5)).status == "STREAM_NOT_FOUND"
    assert scene.created_at_s == []
