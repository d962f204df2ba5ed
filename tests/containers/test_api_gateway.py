"""api-gateway alone: what clients ask becomes requests, what the journal says becomes answers.

The journal holds the history of the examples when the service starts, as services of a later version would tell it.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from support.controller import Controller, info, outcome

from containers.container_contract import ContainerContract, EndContract, FollowerContract
from containers.lives import newer, relocated
from containers.neighbours import Neighbours
from containers.rpc_requests import REQUESTED_BY_RPC, rpc_of
from containers.service import ServiceContainer
from containers.surroundings import Surroundings, tell_history
from harness import eventually
from sluice.catalog import examples
from sluice.catalog.examples import Example
from sluice.catalog.examples.example import example
from sluice.catalog.examples.names import (
    FIRST,
    GROUP,
    SCOPE,
    STREAM,
    TABLE,
    UPPER_LEFT,
    UPPER_RIGHT,
    WORKFLOWS,
    at,
)
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.decision import Reply
from sluice.domain.model import JournalEntry, JournalRecord, encode_record
from sluice.domain.status import Status
from sluice.kafka.requests import Request, decode_request
from sluice.kafka.topics import DEAD_LETTERS, JOURNAL, REQUESTS_CLUSTER, TOPICS

GRPC_PORT = 9090
ANSWERS_S = 60.0
RESTORED = "depot"
"""The scope that the restore in the examples brought back."""

SEEN_S = 60.0


@pytest.fixture(scope="module")
def service(surroundings: Surroundings, neighbours: Neighbours) -> Iterator[ServiceContainer]:
    tell_history(neighbours)
    with surroundings.running("api-gateway", (GRPC_PORT,), grpc_port=str(GRPC_PORT)) as service:
        service.wait_ready()
        yield service


@pytest.fixture(scope="module")
def clients(service: ServiceContainer) -> Iterator[Controller]:
    controller = Controller(service.address(GRPC_PORT))
    yield controller
    controller.close()


def gateway_requests(scope: str) -> list[Request]:
    """The gateway's requests in the examples, as far as clients can make them by an RPC."""
    gateways = [e for e in examples.requests() if e.header("ce_source").startswith("api-gateway/")]
    requests = (decode_request(relocated(e, scope).value) for e in gateways)
    return [r for r in requests if type(r.command) in REQUESTED_BY_RPC]


def requests_of(neighbours: Neighbours) -> dict[str, Request]:
    """What the gateway has requested of other services so far, by id."""
    topics = {topic.name for topic in TOPICS if "api-gateway" in topic.written_by}
    request_topics = topics - {JOURNAL.name, REQUESTS_CLUSTER.name, DEAD_LETTERS.name}
    requests = (decode_request(message.value() or b"") for message in neighbours.others(*request_topics))
    return {request.id: request for request in requests}


def one_more(neighbours: Neighbours, before: set[str]) -> Request | None:
    """The request that was not there before; there must not be two."""
    found = [request for id, request in requests_of(neighbours).items() if id not in before]
    assert len(found) <= 1
    return found[0] if found else None


def answer(request: Request, reply: Reply) -> Example:
    """The record by which the partition's owner replies to a request."""
    entry = JournalEntry(request=request.id, reply=reply)
    record = JournalRecord(id=f"answer-{request.id}", at=at(0), by=WORKFLOWS, entries=(entry,))
    return example(JOURNAL.name, request.command.key, "Refusal", record.id, WORKFLOWS, at(0), encode_record(record))


REQUESTED = "requested"
"""The scope of what clients see and ask for."""


@pytest.mark.usefixtures("service")
def test_what_happened_long_ago_is_over(clients: Controller) -> None:
    """The whole history was understood, to its end: all that was made in it is gone, but for what a restore brought."""
    assert clients.scopes() == [RESTORED]


def test_what_others_say_can_be_read(neighbours: Neighbours, clients: Controller) -> None:
    """A stream that was scaled, its reader group and its table; what is sent once more changes nothing."""
    records = [newer(relocated(e, REQUESTED)) for e in examples.journal_records() if e.key.partition("/")[0] == SCOPE]
    scaled = next(number for number, e in enumerate(records) if e.type == "StreamScaled") + 1
    neighbours.append(*records[:scaled])
    seen = everything(clients, REQUESTED)
    streams, segments, tags, groups, tables = seen
    assert STREAM in streams
    assert segments == [FIRST, UPPER_LEFT, UPPER_RIGHT]
    assert (tags, groups, tables) == (["team-payments"], GROUP, [TABLE])
    neighbours.send(*records[:scaled])
    assert everything(clients, REQUESTED) == seen


def everything(clients: Controller, scope: str) -> tuple[list[str], list[int], list[str], str, list[str]]:
    """The streams of a scope, the segments and tags of the one of the examples, the group and the tables."""
    stream = info(scope, STREAM)
    group = clients.call("getReaderGroupConfig", pb.ReaderGroupInfo(scope=scope, readerGroup=GROUP))
    tables = clients.call("listKeyValueTablesInScope", pb.KVTablesInScopeRequest(scope=pb.ScopeInfo(scope=scope)))
    return (
        clients.streams(scope),
        [segment for segment, _, _ in clients.segments(scope, STREAM)],
        list(clients.call("getStreamConfiguration", stream).tags.tag),
        group.config.readerGroupName,
        [table.kvtName for table in tables.kvtables],
    )


OTHER_STATUS = {"ScaleStream": "STARTED", "OpenTransaction": "OK", "PingTransaction": "OK"}


def test_what_clients_ask_goes_into_its_topic_and_is_answered_once(neighbours: Neighbours, clients: Controller) -> None:
    """Answered by services of a later version, each twice. The stream is that of the test before."""
    before = set(requests_of(neighbours))
    for request in gateway_requests(REQUESTED):
        name, message = rpc_of(request.command)
        call = clients.begin(name, message, ANSWERS_S)
        sent = eventually(partial(one_more, neighbours, before), SEEN_S, f"{name} is requested")
        assert sent is not None
        before.add(sent.id)
        assert sent.command == request.command
        kind = type(request.command).__name__
        status = OTHER_STATUS.get(kind, "SUCCESS")
        transaction = getattr(request.command, "transaction", "") or "1" * 8 + "-2222-3333-4444-" + "5" * 12
        replied = newer(
            answer(sent, Reply(Status(status), transaction=transaction if kind == "OpenTransaction" else ""))
        )
        neighbours.send(replied, replied)
        assert outcome(call) in (status, "OK"), name


def test_gives_up_nothing(neighbours: Neighbours) -> None:
    """It takes no requests from any topic."""
    assert neighbours.dead_letters() == []


class TestAsContainer(ContainerContract):
    pass


class TestAsFollower(FollowerContract):
    pass


def test_reads_of_the_partitions_that_stopped_are_unavailable(clients: Controller) -> None:
    """Those of the others are served."""
    scopes = (pb.ScopeInfo(scope=f"any{number}") for number in range(20))
    assert {clients.status("checkScopeExists", scope) for scope in scopes} == {"OK", "UNAVAILABLE"}


class TestEnd(EndContract):
    pass
