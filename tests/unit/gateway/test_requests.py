"""The request path: what happens when the reply does not come."""

import asyncio
from typing import Any

import grpc
import pytest
from support.callers import called_by
from support.wait import SOON_S, eventually_async
from unit.gateway.conftest import Gateway
from unit.gateway.support import failure
from unit.gateway.system import PARTITIONS, MemorySystem

from api_gateway.edge.errors import OverloadedError, QuotaExceededError, RequestTimeoutError
from api_gateway.edge.requests import Requests
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.commands import Command
from sluice.domain.config import StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.model import decode_record
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.stream.commands import CreateStream, SealStream
from sluice.domain.workflow import RetryWorkflow
from sluice.engine.journal import PartitionFailedError
from sluice.engine.partition import partition_keys
from sluice.engine.ports import RecordTooLargeError, SendError
from sluice.kafka import sending
from sluice.kafka.requests import encode_request
from sluice.kafka.topics import JOURNAL, REQUESTS_STREAMS

SCOPE = pb.ScopeInfo(scope="sc")
CREATE_SCOPE = CreateScope(scope="sc")
CREATE_STREAM = CreateStream("sc", "st", StreamConfig())
TIMEOUT_S = 120.0


async def _until_waiting(gateway: Gateway, count: int) -> None:
    await eventually_async(lambda: gateway.waiting == count, SOON_S, f"{count} requests wait")


async def test_over_the_bound_a_request_is_refused_and_the_limit_named(gateway: Gateway) -> None:
    await gateway.system.stop_deciding()
    waiting = [gateway.stub.createScope(pb.ScopeInfo(scope=f"sc-{n}")) for n in range(gateway.settings.max_pending)]
    await _until_waiting(gateway, 2)
    code, details = await failure(gateway.stub.createScope(SCOPE))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert details == "requests: 2 are under way or wait, no more may"
    for call in waiting:
        call.cancel()
    await _until_waiting(gateway, 0)


async def test_one_stream_takes_a_tenth_of_what_may_wait_and_leaves_the_rest_to_others(idle: MemorySystem) -> None:
    requests = Requests(idle.runtime, 20, TIMEOUT_S)
    waiting = [asyncio.ensure_future(requests.submit(CREATE_STREAM)) for _ in range(2)]
    await asyncio.sleep(1)
    with pytest.raises(OverloadedError, match=r"^2 requests on sc/st are waiting for their replies, no more may wait$"):
        await requests.submit(CREATE_STREAM)
    others: list[Command] = [CreateStream("sc", "other", StreamConfig()), RetryWorkflow(StreamId("sc", "st").aggregate)]
    waiting += [asyncio.ensure_future(requests.submit(command)) for command in others]
    await asyncio.sleep(1)
    assert [type(request.command) for _, request in idle.sent] == [*[CreateStream] * 3, RetryWorkflow]
    for call in waiting:
        call.cancel()
    await asyncio.wait(waiting)
    again = asyncio.ensure_future(requests.submit(CREATE_STREAM))
    await asyncio.sleep(1)
    assert len(idle.sent) == 5, "who has gone away waits no more"
    again.cancel()


async def test_one_user_takes_a_quarter_of_what_may_wait(idle: MemorySystem) -> None:
    requests = Requests(idle.runtime, 8, TIMEOUT_S)
    waiting: list[asyncio.Future[Any]] = []

    async def submit(name: str) -> None:
        waiting.append(asyncio.ensure_future(requests.submit(CreateScope(name))))
        await eventually_async(lambda: len(idle.sent) == len(waiting), SOON_S, "it is sent")

    with called_by("alice"):
        await submit("a")
        await submit("b")
        with pytest.raises(QuotaExceededError, match=r"^requests: 2 of one user may be under way or wait$"):
            await requests.submit(CreateScope("c"))
    with called_by("bob"):
        await submit("d")
    for name in ("e", "f", "g"):
        await submit(name)
    for call in waiting:
        call.cancel()
    await asyncio.wait(waiting)
    waiting.clear()
    idle.sent.clear()
    with called_by("alice"):
        await submit("h")
    waiting[0].cancel()


async def test_a_request_names_who_called_and_the_journal_names_them_too(deciding: MemorySystem) -> None:
    requests = Requests(deciding.runtime, 10, TIMEOUT_S)
    with called_by("alice"):
        await requests.submit(CREATE_SCOPE)
    await requests.submit(CREATE_STREAM)
    assert [request.principal for _, request in deciding.sent] == ["alice", ""]
    assert b"principal" not in encode_request(deciding.sent[1][1]), "it costs nothing where callers are not known"
    records = [decode_record(message.value()) for log in deciding.broker.logs(JOURNAL.name) for message in log]
    assert {(e.principal, e.request) for r in records for e in r.entries if e.principal} == {
        ("alice", deciding.sent[0][1].id)
    }


async def test_a_callers_own_deadline_ends_the_wait(gateway: Gateway) -> None:
    await gateway.system.stop_deciding()
    code, _ = await failure(gateway.stub.createScope(SCOPE, timeout=0.05))
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    await _until_waiting(gateway, 0)


async def test_a_request_that_cannot_be_sent_is_unavailable(gateway: Gateway) -> None:
    gateway.system.broker.faulty_topic = REQUESTS_STREAMS.name
    gateway.system.broker.refusals = 1
    assert await failure(gateway.stub.createScope(SCOPE)) == (grpc.StatusCode.UNAVAILABLE, "away")
    assert gateway.waiting == 0


def requests_of(system: MemorySystem) -> Requests:
    return Requests(system.runtime, max_pending=2, timeout_s=TIMEOUT_S)


def seconds(system: MemorySystem) -> float:
    return system.broker.loop.time()


async def test_without_a_reply_in_time_the_deadline_is_exceeded(idle: MemorySystem) -> None:
    with pytest.raises(RequestTimeoutError, match="it goes on"):
        await requests_of(idle).submit(CREATE_SCOPE)
    assert seconds(idle) == pytest.approx(TIMEOUT_S)
    assert idle.runtime.journal.replies_expected == 0


async def test_a_request_that_is_not_acknowledged_fails_before_its_reply_is_due(idle: MemorySystem) -> None:
    idle.broker.go_away(TIMEOUT_S)
    with pytest.raises(SendError, match="timed out"):
        await requests_of(idle).submit(CREATE_SCOPE)
    assert seconds(idle) < TIMEOUT_S / 2
    assert idle.runtime.journal.replies_expected == 0


async def test_a_reply_counts_even_if_sending_is_not_known_to_have_succeeded(deciding: MemorySystem) -> None:
    deciding.broker.faulty_topic, deciding.broker.lost_acks = REQUESTS_STREAMS.name, 1
    assert (await requests_of(deciding).submit(CREATE_SCOPE)).status == "SUCCESS"


@pytest.mark.parametrize(
    ("command", "stopped"),
    [
        (CREATE_STREAM, "sc"),
        (CREATE_STREAM, "sc/st"),
        (SealStream("sc", "st"), "sc/st"),
        *((DeleteScope("sc"), key) for key in partition_keys(PARTITIONS)),
        (DeleteScopeRecursive("sc"), partition_keys(PARTITIONS)[3]),
    ],
)
async def test_a_request_that_a_stopped_partition_is_needed_for_fails_at_once(
    idle: MemorySystem, command: Command, stopped: str
) -> None:
    requests = requests_of(idle)
    before = asyncio.ensure_future(requests.submit(command))
    await asyncio.sleep(1)
    await idle.stop_partition_of(stopped)
    with pytest.raises(RequestTimeoutError, match=r"it goes on: .*offset 0"):
        await before
    with pytest.raises(PartitionFailedError, match="offset 0"):
        await requests.submit(command)
    assert seconds(idle) < TIMEOUT_S / 2
    assert len(idle.sent) == 1 and idle.runtime.journal.replies_expected == 0


async def test_a_gateway_that_ends_says_of_the_requests_it_has_sent_that_they_go_on(idle: MemorySystem) -> None:
    requests = requests_of(idle)
    waiting = asyncio.ensure_future(requests.submit(CREATE_SCOPE))
    await asyncio.sleep(1)
    requests.end()
    with pytest.raises(RequestTimeoutError, match="goes on"):
        await waiting
    assert seconds(idle) < TIMEOUT_S / 2 and idle.runtime.journal.replies_expected == 0
    with pytest.raises(OverloadedError, match="takes no more"):
        await requests.submit(CREATE_SCOPE)


async def test_a_request_that_a_stopped_partition_is_not_needed_for_is_answered(deciding: MemorySystem) -> None:
    asking = requests_of(deciding)
    assert (await asking.submit(CREATE_SCOPE)).status == "SUCCESS"
    await deciding.stop_partition_of("sc")
    assert (await asking.submit(SealStream("sc", "st"))).status == "STREAM_NOT_FOUND"


async def test_a_request_too_large_for_what_follows_from_it_is_refused(
    deciding: MemorySystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = requests_of(deciding)
    monkeypatch.setattr(sending, "MAX_REQUEST_BYTES", 200)
    assert (await asking.submit(CREATE_SCOPE)).status == "SUCCESS"
    with pytest.raises(RecordTooLargeError, match="the limit is 200"):
        await asking.submit(CreateScope(scope="sc" * 100))
    assert len(deciding.sent) == 1
    await eventually_async(lambda: deciding.runtime.journal.replies_expected == 0, SOON_S, "no reply is expected")


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
    ((_, request),) = gateway.sent
    _, dot, found = request.id.partition(".")
    assert (found if dot else None) == trace


async def test_two_gateways_give_different_ids(idle: MemorySystem) -> None:
    ids: set[Any] = {requests_of(idle).new_id() for _ in range(2)}
    assert len(ids) == 2
