"""stream-workflows alone: what the gateway and retention-spark ask is decided, carried out and answered, once.

The journal holds the history of the examples when the service starts; the requests are about later scopes.
"""

from collections.abc import Iterator
from typing import cast
from uuid import uuid4

import msgspec
import pytest

from containers.container_contract import ContainerContract, EndContract, FollowerContract
from containers.lives import decided_now, garbage, newer, relocated, with_id
from containers.neighbours import Neighbours
from containers.service import ServiceContainer
from containers.store_server import SegmentStoreServer
from containers.surroundings import Surroundings, container_map, tell_history
from harness import eventually
from sluice.catalog import examples
from sluice.catalog.examples import Example
from sluice.catalog.examples.names import ABORTED, STREAM
from sluice.domain.scope.events import ScopeCreated, ScopeDeleted
from sluice.domain.segment import segment_name
from sluice.domain.stream.commands import TruncateStream
from sluice.domain.stream.events import DecisionRecorded, StreamDeletionStarted, StreamSealStarted
from sluice.domain.table.events import TableCreationStarted
from sluice.domain.transaction.commands import AbortReason, AbortTransaction
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import ABORT, REQUESTS_CLUSTER, REQUESTS_STREAMS

ANSWERS_S = 60.0

STATUS = {
    "ScaleStream": "STARTED",
    "RetryWorkflow": "NOT_RUNNING",
    "CancelWorkflow": "NOT_RUNNING",
    "DrainStore": "PRECONDITION_FAILED",
}
"""What is answered, where that is not SUCCESS: the segment store of the examples is not registered here."""
UNANSWERED = "RecordDecision"


@pytest.fixture(scope="module")
def service(
    surroundings: Surroundings, neighbours: Neighbours, store: SegmentStoreServer
) -> Iterator[ServiceContainer]:
    # What the service recorded of its own stream is left out: the store does not hold that one's segments.
    tell_history(neighbours, leave_out="_system")
    neighbours.append(container_map(store))
    with surroundings.running("stream-workflows") as service:
        service.wait_ready()
        yield service


def client_requests() -> list[Example]:
    """The requests of others, in order."""
    requests = [r for r in examples.requests() if r.topic == REQUESTS_STREAMS.name]
    return [decided_now(r) for r in requests if not r.header("ce_source").startswith("stream-workflows/")]


def standing(neighbours: Neighbours, store: SegmentStoreServer) -> object:
    """All that requests can change."""
    others = neighbours.others(ABORT.name, REQUESTS_STREAMS.name)
    return store.contents, neighbours.journal.versions(), len(others), len(neighbours.dead_letters())


def write_up_to(request: Example, store: SegmentStoreServer) -> None:
    """What clients have written: up to the cut that is requested."""
    command = cast(TruncateStream, decode_request(request.value).command)
    for segment, at in command.cut.items():
        name = segment_name(*command.stream_id, segment)
        if at > 0:
            store.run(store.store.append(name, uuid4(), bytes(at)))


@pytest.mark.usefixtures("service")
def test_each_request_is_replied_to_once(neighbours: Neighbours, store: SegmentStoreServer) -> None:
    """From services of a later version."""
    scope, offsets = "asked", []
    for request in (relocated(newer(example), scope) for example in client_requests()):
        if request.type == "TruncateStream":
            write_up_to(request, store)
        offsets += neighbours.send(request)
        if request.type != UNANSWERED:
            assert (request.type, neighbours.answered(request)) == (request.type, STATUS.get(request.type, "SUCCESS"))
    neighbours.consumed(REQUESTS_STREAMS.group, offsets)
    assert [e.code for e in neighbours.journal.events(DecisionRecorded) if e.scope == scope] == ["split"]
    kinds = (ScopeCreated, TableCreationStarted, StreamSealStarted, StreamDeletionStarted, ScopeDeleted)
    for kind in kinds:
        found = [e for e in neighbours.journal.events(kind) if e.scope == scope]
        assert len(found) == 1, found
    assert not [name for name in store.segments if name.startswith(f"{scope}/")]


def test_what_is_delivered_again_changes_nothing(
    neighbours: Neighbours, store: SegmentStoreServer, service: ServiceContainer
) -> None:
    """All of it, to a service that has lost its offsets."""
    before = standing(neighbours, store)
    service.end()
    neighbours.rewind(REQUESTS_STREAMS.group, REQUESTS_STREAMS.name)
    service.start_again()
    sent = [each for each in neighbours.sent if each.topic == REQUESTS_STREAMS.name]
    neighbours.consumed(REQUESTS_STREAMS.group, sent)
    assert standing(neighbours, store) == before


def test_sealing_asks_for_the_abort_of_what_is_open(neighbours: Neighbours) -> None:
    """The other half of it is txn-manager's: it says in the journal that the transaction has ended."""
    scope, transaction = "sealing", relocated(_about(ABORTED, "TransactionOpened"), "sealing")
    by_type = {e.type: relocated(e, scope) for e in client_requests()}
    for kind in ("CreateScope", "CreateStream"):
        neighbours.send(by_type[kind])
        assert neighbours.answered(by_type[kind]) == "SUCCESS"
    neighbours.append(transaction, relocated(_about(ABORTED, "TransactionReady"), scope))
    neighbours.send(by_type["SealStream"])
    eventually(lambda: _aborts(neighbours), ANSWERS_S, "the abort is requested")
    command = decode_request(_aborts(neighbours)[0]).command
    id = transaction.json()["entries"][0]["events"][0]["transaction"]
    assert isinstance(command, AbortTransaction)
    assert msgspec.structs.replace(command, version=None) == AbortTransaction(scope, STREAM, id, AbortReason.SEAL)
    assert neighbours.journal.answer(by_type["SealStream"].json()["id"]) is None
    ended = (relocated(_about(ABORTED, kind), scope) for kind in ("TransactionAborting", "TransactionAborted"))
    neighbours.append(*ended)
    assert neighbours.answered(by_type["SealStream"]) == "SUCCESS"


@pytest.mark.usefixtures("service")
def test_dead_letters_are_what_cannot_be_handled(neighbours: Neighbours) -> None:
    """Kept as they were, with the reason, and their keys go on."""
    scope = "unknown"
    unknown = [with_id(examples.of_unknown_type(e), f"{e.json()['id']}.unknown") for e in client_requests()]
    foreign = [e for e in examples.requests() if e.topic not in (REQUESTS_STREAMS.name, REQUESTS_CLUSTER.name)]
    # Some of the examples share an id: what a lease check is passed on as.
    numbered = [with_id(e, f"{e.json()['id']}.{n}") for n, e in enumerate(foreign)]
    misplaced = [msgspec.structs.replace(e, topic=REQUESTS_STREAMS.name) for e in numbered]
    readable = [relocated(e, scope) for e in (*unknown, *misplaced)]
    bad = [*readable, *(msgspec.structs.replace(e, key=scope) for e in garbage(client_requests()[0]))]
    offsets = neighbours.send(*bad)
    create = relocated(client_requests()[0], scope)
    assert create.key == scope
    neighbours.send(create)
    assert neighbours.answered(create) == "SUCCESS"
    neighbours.consumed(REQUESTS_STREAMS.group, offsets)
    neighbours.check_dead_letters(offsets, bad)
    assert {neighbours.answered(r) for r in readable} == {"FAILURE"}, "whatever has an id gets a reply"


class TestAsContainer(ContainerContract):
    pass


class TestAsFollower(FollowerContract):
    pass


class TestEnd(EndContract):
    pass


def _about(transaction: str, kind: str) -> Example:
    """The example of an event of this transaction."""
    return next(e for e in examples.journal_records() if e.type == kind and transaction.encode() in e.value)


def _aborts(neighbours: Neighbours) -> list[bytes]:
    return [m.value() or b"" for m in neighbours.others(ABORT.name)]
