"""txn-manager alone: transactions open, live, are committed and aborted on a stream that others have made.

The journal holds the history of the examples when the service starts. Each test then has a stream of its own, made by
the services that make and scale streams, and plays the gateway.
"""

from collections.abc import Iterator

import msgspec
import pytest

from containers.backing import RedisContainer
from containers.container_contract import ContainerContract, EndContract, FollowerContract
from containers.lives import garbage, newer, relocated, with_id
from containers.neighbours import Neighbours, RecordOffset
from containers.service import ServiceContainer
from containers.store_server import SegmentStoreServer
from containers.surroundings import Surroundings, container_map, tell_history
from harness import eventually
from sluice.catalog import examples
from sluice.catalog.examples import Example
from sluice.catalog.examples.names import ABORTED, COMMITTED, FIRST, SCOPE, STREAM, UPPER_LEFT, UPPER_RIGHT, request_id
from sluice.domain.segment import segment_name
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.decide import Limits
from sluice.kafka.topics import ABORT, COMMIT, REQUESTS_STREAMS, REQUESTS_TRANSACTIONS

ANSWERS_S = 60.0
RUNS_OUT_S = 60.0
TOPICS = (REQUESTS_TRANSACTIONS, COMMIT, ABORT)
GROUPS = {topic.name: topic.group for topic in TOPICS}
ACTIVE = (FIRST, UPPER_LEFT, UPPER_RIGHT)
SECOND_OPEN = request_id(0x22)
"""The request that opened the transaction which the examples abort."""


@pytest.fixture(scope="module")
def service(
    surroundings: Surroundings, neighbours: Neighbours, store: SegmentStoreServer, redis: RedisContainer
) -> Iterator[ServiceContainer]:
    tell_history(neighbours)
    neighbours.append(container_map(store))
    # What is prepared for the next client stays for a while: without, a test can say what is left.
    with surroundings.running(
        "txn-manager", redis_url=redis.inside, grace_s="0.2", max_prepared_transactions="0"
    ) as service:
        service.wait_ready()
        yield service


def made(neighbours: Neighbours, store: SegmentStoreServer, scope: str) -> None:
    """A stream in this scope, scaled once, by those who make and scale streams; its segments are there."""
    records = [e for e in examples.journal_records() if e.key.partition("/")[0] == SCOPE]
    ended = next(number for number, e in enumerate(records) if e.type == "StreamScaled") + 1
    by_others = (e for e in records[:ended] if not e.header("ce_source").startswith("txn-manager/"))
    neighbours.append(*(relocated(e, scope) for e in by_others))
    for segment in ACTIVE:
        store.run(store.store.create_segment(segment_name(scope, STREAM, segment), 0, 0))


def client_requests() -> list[Example]:
    """What the gateway asks, in order: a transaction that is committed, and one that is aborted."""
    requests = [
        e for e in examples.requests() if e.topic in GROUPS and e.header("ce_source").startswith("api-gateway/")
    ]
    by_type = {e.type: e for e in requests}
    opening = by_type["OpenTransaction"]
    second = with_id(opening, SECOND_OPEN)
    kinds = ("OpenTransaction", "PingTransaction", "CommitTransaction")
    return [*(by_type[kind] for kind in kinds), second, by_type["AbortTransaction"]]


def send(neighbours: Neighbours, *requests: Example) -> list[RecordOffset]:
    """Put them there and have them taken."""
    offsets = neighbours.send(*requests)
    taken(neighbours, offsets)
    return offsets


def taken(neighbours: Neighbours, offsets: list[RecordOffset]) -> None:
    for topic, group in GROUPS.items():
        neighbours.consumed(group, [each for each in offsets if each.topic == topic])


def ends(neighbours: Neighbours, scope: str) -> tuple[list[str], list[str]]:
    """The transactions of a scope that were committed, and those that were aborted."""
    journal = neighbours.journal
    committed = [e.transaction for e in journal.events(ev.TransactionCommitted) if e.scope == scope]
    return committed, [e.transaction for e in journal.events(ev.TransactionAborted) if e.scope == scope]


STATUS = {"OpenTransaction": "OK", "PingTransaction": "OK"}
REQUESTED = "requested"
"""The scope of the first tests."""


@pytest.mark.usefixtures("service")
def test_transactions_live_and_end_once(neighbours: Neighbours, store: SegmentStoreServer) -> None:
    """Each request twice at once, from gateways of a later version."""
    scope, offsets = REQUESTED, []
    made(neighbours, store, scope)
    for request in (relocated(newer(example), scope) for example in client_requests()):
        offsets += neighbours.send(request, request)
        assert (request.type, neighbours.answered(request)) == (request.type, STATUS.get(request.type, "SUCCESS"))
    committed, aborted = id_of(COMMITTED, scope), id_of(ABORTED, scope)
    eventually(lambda: ends(neighbours, scope) == ([committed], [aborted]), ANSWERS_S, "both transactions have ended")
    taken(neighbours, offsets)
    assert ends(neighbours, scope) == ([committed], [aborted])
    for kind, count in ((ev.TransactionOpened, 2), (ev.TransactionCommitting, 1), (ev.TransactionAborting, 1)):
        assert len([e for e in neighbours.journal.events(kind) if e.scope == scope]) == count
    active = {segment_name(scope, STREAM, segment) for segment in ACTIVE}

    def others_are_gone() -> bool:
        """What commits have skipped is deleted a little later."""
        return {name for name in store.segments if name.startswith(f"{scope}/")} == active

    eventually(others_are_gone, ANSWERS_S, "only active segments are left")


def test_what_comes_again_later_changes_nothing(neighbours: Neighbours, store: SegmentStoreServer) -> None:
    """That of the gateway, and what txn-manager itself has put into its topics: questions and aborts of long ago."""
    own = [e for e in examples.requests() if e.topic in GROUPS and e.header("ce_source").startswith("txn-manager/")]
    before = standing(neighbours, store)
    send(neighbours, *(relocated(e, REQUESTED) for e in (*client_requests(), *own)))
    assert standing(neighbours, store) == before


def standing(neighbours: Neighbours, store: SegmentStoreServer) -> object:
    """All that requests can change."""
    others = neighbours.others(*GROUPS, REQUESTS_STREAMS.name)
    opened = len(neighbours.journal.events(ev.TransactionOpened))
    return store.contents, ends(neighbours, REQUESTED), len(others), opened, len(neighbours.dead_letters())


def test_a_lease_that_runs_out_ends_the_transaction(
    neighbours: Neighbours, store: SegmentStoreServer, service: ServiceContainer
) -> None:
    """Without a ping the timer, kept in Redis, sends through both topics, and the abort goes through the third."""
    scope = "silent"
    made(neighbours, store, scope)
    opening = relocated(client_requests()[0], scope)
    value = opening.json()
    value["command"]["lease_ms"] = Limits().min_lease_ms
    send(neighbours, msgspec.structs.replace(opening, value=msgspec.json.encode(value)))
    assert neighbours.answered(opening) == "OK"
    eventually(lambda: ends(neighbours, scope)[1] == [id_of(COMMITTED, scope)], RUNS_OUT_S, "the lease runs out")
    reasons = [e.reason.value for e in neighbours.journal.events(ev.TransactionAborting) if e.scope == scope]
    assert reasons == ["lease"]
    sent = [m for m in neighbours.others(*GROUPS) if scope.encode() == (m.key() or b"").partition(b"/")[0]]
    assert set(GROUPS) <= {m.topic() for m in sent}
    eventually(lambda: service.get("/readyz").json()["degraded"] == {}, RUNS_OUT_S, "nothing is degraded")


@pytest.mark.usefixtures("service")
def test_dead_letters_are_what_cannot_be_handled(neighbours: Neighbours, store: SegmentStoreServer) -> None:
    """In each of the three topics; kept as they were, with the reason, and their keys go on."""
    scope = "unknown"
    made(neighbours, store, scope)
    requests = client_requests()
    unknown = [examples.of_unknown_type(e) for e in requests]
    create = examples.requests()[0]
    misplaced = [
        msgspec.structs.replace(e, topic=topic) for topic in GROUPS for e in (create, *requests) if e.topic != topic
    ]
    unreadable = [e for topic in GROUPS for e in garbage(Example(topic, f"{scope}/{STREAM}", [], b""))]
    readable = [relocated(e, scope) for e in (*unknown, *misplaced)]
    bad = [*readable, *unreadable]
    offsets = neighbours.send(*bad)
    # The ids of what is readable were answered already, so the good request has another.
    opening = relocated(client_requests()[0], scope)
    opening = with_id(opening, f"{opening.json()['id']}.good")
    good = neighbours.send(opening)
    assert neighbours.answered(opening) == "OK"
    taken(neighbours, [*offsets, *good])
    neighbours.check_dead_letters(offsets, bad)


class TestAsContainer(ContainerContract):
    pass


class TestAsFollower(FollowerContract):
    pass


class TestEnd(EndContract):
    pass


def id_of(transaction: str, scope: str) -> str:
    """The id that a transaction of the examples has in another scope."""
    opened = next(
        e for e in examples.journal_records() if e.type == "TransactionOpened" and transaction.encode() in e.value
    )
    return str(relocated(opened, scope).json()["entries"][0]["events"][0]["transaction"])
