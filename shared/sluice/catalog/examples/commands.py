"""An example of every command, as its sender would put it: the sender, the id, the time."""

from collections.abc import Iterator

from sluice.catalog.examples import names as n
from sluice.catalog.examples.example import Example, example
from sluice.domain.cluster.commands import DrainStore, Heartbeat, RebalanceContainers, UndrainStore
from sluice.domain.commands import Command
from sluice.domain.config import (
    GroupRetention,
    ReaderGroupConfig,
    RetentionPolicy,
    RetentionType,
    ScaleType,
    ScalingPolicy,
    StreamConfig,
    TableConfig,
)
from sluice.domain.host import Host
from sluice.domain.ids import StreamId
from sluice.domain.policy.requests import scale_id, truncation_id
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup, UpdateReaderGroup
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.stream.commands import (
    AddSubscriber,
    CreateStream,
    DecisionKind,
    DeleteStream,
    NoteWriterTime,
    RecordDecision,
    RemoveSubscriber,
    RemoveWriter,
    ScaleStream,
    SealStream,
    Subscription,
    TruncateStream,
    UpdateStream,
    UpdateSubscriberCut,
)
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.transaction.commands import (
    AbortReason,
    AbortTransaction,
    CheckLease,
    CommitTransaction,
    OpenTransaction,
    PingTransaction,
)
from sluice.domain.workflow import CancelWorkflow, RetryWorkflow
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import Topic, topics_of

STREAM_CONFIG = StreamConfig(
    scaling=ScalingPolicy(ScaleType.EVENTS, target_rate=1000, scale_factor=2, min_segments=2),
    tags=("team-payments",),
)
WITH_RETENTION = StreamConfig(
    scaling=STREAM_CONFIG.scaling,
    retention=RetentionPolicy(RetentionType.TIME, minimum=86_400_000, maximum=604_800_000),
    tags=STREAM_CONFIG.tags,
)
GROUP_CONFIG = ReaderGroupConfig(
    id=n.GROUP_ID, starts={f"{n.SCOPE}/{n.STREAM}": {}}, retention=GroupRetention.AUTOMATIC
)
TABLE_CONFIG = TableConfig(partitions=2, primary_key_length=16, secondary_key_length=8)

CREATE_STREAM = CreateStream(n.SCOPE, stream=n.STREAM, config=STREAM_CONFIG)
CREATE_GROUP = CreateReaderGroup(n.SCOPE, group=n.GROUP, config=GROUP_CONFIG)
CREATE_TABLE = CreateTable(n.SCOPE, table=n.TABLE, config=TABLE_CONFIG)

UPPER_HALVES = ((0.5, 0.75), (0.75, 1.0))
HEAD = {n.FIRST: 1200, n.UPPER_LEFT: 0, n.UPPER_RIGHT: 0}
SCALE_REASON = "segment 1.#epoch.0 carries more than 1000 events/s per segment: split in 2"
RETENTION_REASON = "86400 s must be kept and nothing older is there"

_HEARTBEAT = Heartbeat(
    service="api-gateway",
    instance="api-gateway-0",
    endpoints={"grpc": "10.0.4.17:9090", "rest": "10.0.4.17:10080"},
    started_at=n.at(0),
)


def _created() -> Iterator[tuple[str, str, Command]]:
    yield n.GATEWAY, n.SCOPE_CREATION, CreateScope(n.SCOPE)
    yield n.GATEWAY, n.CREATION, CREATE_STREAM
    yield n.GATEWAY, n.GROUP_CREATION, CREATE_GROUP
    yield n.GATEWAY, n.TABLE_CREATION, CREATE_TABLE


def _placed() -> Iterator[tuple[str, str, Command]]:
    yield n.GATEWAY, n.request_id(0x51), DrainStore(Host(*n.EAST))
    yield n.GATEWAY, n.request_id(0x52), UndrainStore(Host(*n.EAST))
    yield n.GATEWAY, n.request_id(0x53), RebalanceContainers({0: 1_200_000, 2: 40_000})


def _changed() -> Iterator[tuple[str, str, Command]]:
    subscription = AddSubscriber(
        n.SCOPE, n.STREAM, subscriber=n.SUBSCRIBER, group_id=n.GROUP_ID, generation=0, creation_id=n.CREATION
    )
    yield n.WORKFLOWS, n.SUBSCRIPTION, subscription
    yield (
        n.GATEWAY,
        n.request_id(0x11),
        UpdateSubscriberCut(
            n.SCOPE, n.STREAM, n.SUBSCRIBER, n.GROUP_ID, generation=0, cut={n.FIRST: 800, n.SECOND: 640}
        ),
    )
    yield n.GATEWAY, n.request_id(0x12), UpdateStream(n.SCOPE, n.STREAM, config=WITH_RETENTION)
    yield (
        n.GATEWAY,
        n.request_id(0x13),
        NoteWriterTime(n.SCOPE, n.STREAM, n.WRITER, timestamp=n.at(20), position={n.FIRST: 900, n.SECOND: 700}),
    )
    yield n.GATEWAY, n.request_id(0x14), RemoveWriter(n.SCOPE, n.STREAM, writer=n.WRITER)
    yield (
        n.SPARK,
        scale_id(StreamId(n.SCOPE, n.STREAM), n.CREATION, 0, (n.SECOND,), WITH_RETENTION.scaling),
        ScaleStream(
            n.SCOPE,
            n.STREAM,
            seals=(n.SECOND,),
            ranges=UPPER_HALVES,
            at=n.at(30),
            policy=WITH_RETENTION.scaling,
        ),
    )
    yield (
        n.SPARK,
        "note-5f1a3bb2c5a94a0d9c7de2b7b3fd5a10",
        RecordDecision(
            n.SCOPE, n.STREAM, n.CREATION, DecisionKind.SCALE, code="split", reason=SCALE_REASON, at=n.at(30), acts=True
        ),
    )
    yield (
        n.SPARK,
        truncation_id(StreamId(n.SCOPE, n.STREAM), n.CREATION, HEAD, WITH_RETENTION.retention),
        TruncateStream(
            n.SCOPE,
            n.STREAM,
            cut=HEAD,
            policy=WITH_RETENTION.retention,
            subscriptions={n.SUBSCRIBER: Subscription(n.GROUP_ID, generation=0, has_reported=True)},
            at=n.at(60),
        ),
    )
    workflow = StreamId(n.SCOPE, n.STREAM).aggregate
    yield n.GATEWAY, n.request_id(0x17), RetryWorkflow(workflow)
    yield n.GATEWAY, n.request_id(0x18), CancelWorkflow(workflow, f"scale-stream-{n.at(40)}")


def _transactions() -> Iterator[tuple[str, str, Command]]:
    yield n.GATEWAY, n.request_id(0x21), OpenTransaction(n.SCOPE, n.STREAM, lease_ms=30_000)
    yield n.GATEWAY, n.request_id(0x23), PingTransaction(n.SCOPE, n.STREAM, n.COMMITTED, lease_ms=30_000)
    committing = CommitTransaction(n.SCOPE, n.STREAM, n.COMMITTED, writer=n.WRITER, timestamp=n.at(55))
    yield n.GATEWAY, n.request_id(0x24), committing
    yield n.GATEWAY, n.request_id(0x25), AbortTransaction(n.SCOPE, n.STREAM, n.ABORTED)
    yield n.TRANSACTIONS, n.LEASE_CHECK, CheckLease(n.SCOPE, n.STREAM, n.ABORTED)
    silent = AbortTransaction(n.SCOPE, n.STREAM, n.ABORTED, AbortReason.LEASE, version=2)
    yield n.TRANSACTIONS, n.LEASE_CHECK, silent


def _ended() -> Iterator[tuple[str, str, Command]]:
    later = ReaderGroupConfig(id=n.GROUP_ID, starts=GROUP_CONFIG.starts, refresh_ms=5000)
    yield n.GATEWAY, n.request_id(0x31), UpdateReaderGroup(n.SCOPE, n.GROUP, config=later)
    yield (
        n.WORKFLOWS,
        n.UNSUBSCRIPTION,
        RemoveSubscriber(n.SCOPE, n.STREAM, n.SUBSCRIBER, 1, n.GROUP_ID, creation_id=n.CREATION),
    )
    yield n.GATEWAY, n.request_id(0x32), DeleteReaderGroup(n.SCOPE, n.GROUP, n.GROUP_ID, n.GROUP_CREATION)
    yield n.GATEWAY, n.request_id(0x33), DeleteTable(n.SCOPE, n.TABLE, n.TABLE_CREATION)
    yield n.GATEWAY, n.request_id(0x34), SealStream(n.SCOPE, n.STREAM)
    yield n.GATEWAY, n.request_id(0x35), DeleteStream(n.SCOPE, n.STREAM, n.CREATION)
    yield n.GATEWAY, n.request_id(0x36), DeleteScope(n.SCOPE, n.SCOPE_CREATION)
    yield n.GATEWAY, n.request_id(0x37), DeleteScopeRecursive(n.SCOPE, n.SCOPE_CREATION)
    going = SealStream(n.SCOPE, "returns", creation_id=n.request_id(0x28))
    yield n.WORKFLOWS, n.SEAL_IN_SCOPE, going
    yield n.GATEWAY, f"api-gateway-0-{n.at(100)}", _HEARTBEAT


def command_examples() -> list[Example]:
    """Requests from a stream's creation to its deletion; a few commands twice, as different services send them."""
    found: list[Example] = []
    requests = [*_created(), *_placed(), *_changed(), *_transactions(), *_ended()]
    for number, (sender, id, command) in enumerate(requests):
        request = Request(id=id, at=n.at(number), by=sender, command=command)
        found += (_as_sent(topic, request) for topic in topics_of(type(command)))
    return found


def _as_sent(topic: Topic, request: Request) -> Example:
    kind, key = type(request.command).__name__, request.command.key
    return example(topic.name, key, kind, request.id, request.by, request.at, encode_request(request))
