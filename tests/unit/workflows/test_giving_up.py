"""A request that nobody could handle is answered as soon as the journal takes the answer."""

from types import SimpleNamespace
from typing import Any, cast

from support.memory_journal import JournalWorld, done
from support.virtual_time import run

from sluice.domain.commands import CreateScope
from sluice.messaging.dead_letters import Source
from sluice.messaging.requests import Request, encode_request
from sluice.workflows.giving_up import give_up

REQUEST = Request(id="r", at=1, by="api-gateway/0", command=CreateScope(scope="sc"))
SOURCE = Source("sluice.requests.streams", 0, 7, "sc", encode_request(REQUEST))


def runtime(world: JournalWorld) -> Any:
    producer = SimpleNamespace(send=lambda *_: done(None))
    return cast(Any, SimpleNamespace(producer=producer, source="stream-workflows/0", journal=world.first.journal))


def test_the_answer_outlasts_an_outage() -> None:
    async def scene() -> None:
        world = JournalWorld()
        world.refusals = 5
        await give_up(runtime(world), SOURCE, ValueError("no"))
        answer = world.view("sc").answer("r")
        assert answer is not None and answer.status == "FAILURE" and world.attempts == 6

    run(scene())


def test_a_partition_that_has_stopped_is_not_waited_for() -> None:
    async def scene() -> None:
        world = JournalWorld()
        journal = world.first.journal
        journal.failed[journal.partition_of("sc")] = "stopped"
        await give_up(runtime(world), SOURCE, ValueError("no"))
        assert world.attempts == 0

    run(scene())


def test_an_answer_that_no_record_can_hold_is_not_tried_again() -> None:
    async def scene() -> None:
        world = JournalWorld()
        world.most_bytes = 10
        await give_up(runtime(world), SOURCE, ValueError("no"))
        assert world.attempts == 1

    run(scene())
