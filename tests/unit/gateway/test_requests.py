"""The request path: what happens when the reply does not come."""

import asyncio
from typing import Any, cast

import grpc
import pytest
from support.memory_journal import JournalWorld, settle
from unit.gateway.conftest import Gateway
from unit.gateway.memory import MemoryRuntime
from unit.gateway.support import failure

from api_gateway import requests
from api_gateway.errors import RequestTimeoutError
from api_gateway.requests import Requests
from harness.wait import eventually_async
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.commands import CreateScope, CreateStream
from sluice.domain.config import StreamConfig
from sluice.journal.journal import JournalUnavailableError, PartitionFailedError
from sluice.messaging.producer import ProduceError, RecordTooLargeError

SCOPE = pb.ScopeInfo(scope="sc")


async def _until_waiting(gateway: Gateway, count: int) -> None:
    await eventually_async(lambda: gateway.journal.replies_expected == count, 5, f"{count} requests wait")


async def test_over_the_bound_a_request_is_refused_and_the_limit_named(gateway: Gateway) -> None:
    gateway.runtime.silent = True
    waiting = [gateway.stub.createScope(SCOPE) for _ in range(gateway.settings.max_pending)]
    await _until_waiting(gateway, 2)
    code, details = await failure(gateway.stub.createScope(SCOPE))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert details == "2 requests are waiting for their replies, no more may wait"
    for call in waiting:
        call.cancel()
    await _until_waiting(gateway, 0)


async def test_a_caller_that_goes_away_is_forgotten(gateway: Gateway) -> None:
    gateway.runtime.silent = True
    call = gateway.stub.createScope(SCOPE)
    await _until_waiting(gateway, 1)
    call.cancel()
    await _until_waiting(gateway, 0)


async def test_a_callers_own_deadline_ends_the_wait(gateway: Gateway) -> None:
    gateway.runtime.silent = True
    code, _ = await failure(gateway.stub.createScope(SCOPE, timeout=0.05))
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    await _until_waiting(gateway, 0)


async def test_without_a_reply_in_time_the_deadline_is_exceeded() -> None:
    runtime = MemoryRuntime()
    runtime.silent = True
    asking = Requests(cast(Any, runtime), max_pending=1, timeout_s=0.01)
    with pytest.raises(RequestTimeoutError, match="it goes on"):
        await asking.ask(CreateScope(scope="sc"))
    assert runtime.journal.replies_expected == 0


async def test_a_request_that_cannot_be_sent_is_unavailable(gateway: Gateway) -> None:
    gateway.runtime.refusing = ProduceError("the broker is away")
    assert await failure(gateway.stub.createScope(SCOPE)) == (grpc.StatusCode.UNAVAILABLE, "the broker is away")
    assert gateway.journal.replies_expected == 0


@pytest.mark.parametrize(("about", "keys"), [("the scope", ["sc"]), ("the stream", ["sc/st"])])
async def test_a_request_that_a_stopped_partition_would_have_to_answer_does_not_wait(
    about: str, keys: list[str]
) -> None:
    world = JournalWorld()
    asking = Requests(cast(Any, world.first), max_pending=2, timeout_s=600)
    before = asyncio.ensure_future(asking.ask(CreateStream("sc", "st", StreamConfig())))
    await settle()
    world.first.tell(world._append(world.first.journal.partition_of(keys[0]), b"no record"))
    with pytest.raises(PartitionFailedError, match="offset 0"):
        await asyncio.wait_for(before, 10)
    with pytest.raises(PartitionFailedError, match="offset 0"):
        await asyncio.wait_for(asking.ask(CreateStream("sc", "st", StreamConfig())), 10)
    assert len(world.first.sent) == 1 and world.first.journal.replies_expected == 0, about


async def test_a_request_too_large_for_what_follows_from_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = MemoryRuntime()
    asking = Requests(cast(Any, runtime), max_pending=1, timeout_s=5)
    monkeypatch.setattr(requests, "MAX_REQUEST_BYTES", 200)
    assert (await asking.ask(CreateScope(scope="sc"))).status == "SUCCESS"
    with pytest.raises(RecordTooLargeError, match="the limit is 200"):
        await asking.ask(CreateScope(scope="sc" * 100))
    assert len(runtime.sent) == 1 and runtime.journal.replies_expected == 0


async def test_a_reply_counts_even_if_sending_is_not_known_to_have_succeeded() -> None:
    runtime = MemoryRuntime()
    asking = Requests(cast(Any, runtime), max_pending=1, timeout_s=5)
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    send = runtime.send
    runtime.send = lambda topic, request: (send(topic, request), never)[1]  # type: ignore[method-assign]
    assert (await asking.ask(CreateScope(scope="sc"))).status == "SUCCESS"


async def test_a_read_without_the_journal_is_unavailable(gateway: Gateway) -> None:
    gateway.journal.unavailable = JournalUnavailableError("end of journal not reached")
    code, details = await failure(gateway.stub.checkScopeExists(SCOPE))
    assert (code, details) == (grpc.StatusCode.UNAVAILABLE, "end of journal not reached")


@pytest.mark.parametrize(
    ("headers", "trace"),
    [
        ((), None),
        ((("requestid", "-42"), ("requestdescriptor", "createScope-sc")), "-42"),
        ((("requestid", "42"),), None),
        ((("requestid", "4 2"), ("requestdescriptor", "createScope-sc")), None),
        ((("requestid", "9" * 21), ("requestdescriptor", "createScope-sc")), None),
    ],
)
async def test_the_callers_id_becomes_part_of_ours(
    gateway: Gateway, headers: tuple[tuple[str, str], ...], trace: str | None
) -> None:
    await gateway.stub.createScope(SCOPE, metadata=headers)
    ((_, request),) = gateway.runtime.sent
    _, dot, found = request.id.partition(".")
    assert (found if dot else None) == trace
