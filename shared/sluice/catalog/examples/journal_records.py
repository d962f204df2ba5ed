"""An example of every event: the history of a shop's stream, its reader group and its table.

Folded from the first record on, every one counts.
"""

from sluice.catalog.examples import names as n
from sluice.catalog.examples.commands import (
    GROUP_CONFIG,
    HEAD,
    RETENTION_REASON,
    SCALE_REASON,
    STREAM_CONFIG,
    TABLE_CONFIG,
    WITH_RETENTION,
)
from sluice.catalog.examples.example import Example
from sluice.catalog.examples.history import SUCCESS, History
from sluice.catalog.examples.restored_records import restored
from sluice.catalog.examples.transaction_records import ended, prepared, rolled, transactions
from sluice.domain.cluster.events import (
    ContainerLoadMeasured,
    ContainersAssigned,
    ContainersUnresponsive,
    MemberJoined,
    MemberLeft,
    StoreDrained,
    StoreUndrained,
)
from sluice.domain.config import ReaderGroupConfig, StreamConfig
from sluice.domain.decision import Reply
from sluice.domain.host import Host
from sluice.domain.ids import StreamId
from sluice.domain.names import (
    REQUEST_STREAM,
    SYSTEM_SCOPE,
    fences_aggregate,
    group_stream,
    mark_stream,
    scope_aggregate,
)
from sluice.domain.policy.requests import scale_id, truncation_id
from sluice.domain.reader_group.events import (
    ReaderGroupCreated,
    ReaderGroupCreationStarted,
    ReaderGroupDeleted,
    ReaderGroupDeletionStarted,
    ReaderGroupUpdated,
    ReaderGroupUpdateStarted,
)
from sluice.domain.scope.events import FenceRaised, ScopeCreated, ScopeDeleted, ScopeDeletionStarted, ScopeKept
from sluice.domain.segment import Segment, segment_id
from sluice.domain.status import Status
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.events import (
    DecisionRecorded,
    Replacement,
    ReportsForwarded,
    RetentionPolicyAnnounced,
    StreamCreated,
    StreamCreationStarted,
    StreamDeleted,
    StreamDeletionStarted,
    StreamEpochAdded,
    StreamScaleCancelled,
    StreamScaled,
    StreamScaleStarted,
    StreamSealed,
    StreamSealStarted,
    StreamTruncated,
    StreamTruncationStarted,
    StreamUpdated,
    StreamUpdateStarted,
    SubscriberAdded,
    SubscriberCutUpdated,
    SubscriberRemoved,
    WatermarkEmitted,
    WorkflowAdmitted,
    WorkflowQueued,
    WriterRemoved,
    WritersForgotten,
    WriterTimeNoted,
)
from sluice.domain.table.events import TableCreated, TableCreationStarted, TableDeleted, TableDeletionStarted
from sluice.domain.transaction.events import TransactionOpened, TransactionReady
from sluice.domain.workflow import WorkflowCancelled, WorkflowRetryRequested, WorkflowStepFailed
from sluice.kafka.topics import REQUESTS_STREAMS, REQUESTS_TRANSACTIONS

_S, _O, _M = n.SCOPE, n.STREAM, n.MARK
_HALVES = (Segment(n.FIRST, 0.0, 0.5), Segment(n.SECOND, 0.5, 1.0))
_WHOLE = (Segment(0, 0.0, 1.0),)
_FENCES = fences_aggregate(n.PARTITION)
_STREAM_AGGREGATE = f"stream:{_S}/{_O}"


def journal_records() -> list[Example]:
    """Records of the journal in the order in which they were appended."""
    history = History()
    _cluster(history)
    _created(history)
    _progress(history)
    _scaled(history)
    _cancelled(history)
    _truncated(history)
    transactions(history)
    prepared(history)
    rolled(history)
    _group_and_table_end(history)
    _stream_ends(history)
    _scope_ends(history)
    restored(history)
    return history.examples


def _cluster(history: History) -> None:
    east, west = Host(*n.EAST), Host(*n.WEST)
    endpoints = {"grpc": "10.0.4.17:9090", "rest": "10.0.4.17:10080"}
    joined = MemberJoined("api-gateway", "api-gateway-0", endpoints, at=n.at(0), started_at=n.at(0))
    history.append(0, n.CLUSTER, joined)
    assigned = ContainersAssigned({0: east, 1: west, 2: east, 3: west}, (east, west), at=n.at(0.1))
    history.append(0.1, n.CLUSTER, assigned)
    history.append(0.2, n.CLUSTER, MemberLeft(instance="api-gateway-1", at=n.at(0.2)))
    silent = ContainersUnresponsive(instance="txn-manager-0", containers=(1, 3), at=n.at(0.3))
    history.append(0.3, n.CLUSTER, silent)
    history.append(0.4, n.WORKFLOWS, StoreDrained(east, at=n.at(0.4)))
    history.append(0.5, n.WORKFLOWS, StoreUndrained(east, at=n.at(0.5)))
    history.append(0.6, n.WORKFLOWS, ContainerLoadMeasured({0: 1_200_000, 2: 40_000}, at=n.at(0.6)))


def _created(history: History) -> None:
    """The scope, then what is in it, each resource guarded by the fences of its partition."""
    history.append(
        1,
        n.WORKFLOWS,
        ScopeCreated(_S, n.SCOPE_CREATION, at=n.at(1)),
        decides=REQUESTS_STREAMS,
        request=n.SCOPE_CREATION,
        reply=SUCCESS,
    )
    refused = Reply(Status.SCOPE_EXISTS)
    history.append(
        1.5,
        n.WORKFLOWS,
        decides=REQUESTS_STREAMS,
        request=n.request_id(2),
        reply=refused,
        guards=(scope_aggregate(_S),),
        key=_S,
    )
    history.append(
        2.1,
        n.WORKFLOWS,
        StreamCreationStarted(_S, _O, n.CREATION, STREAM_CONFIG, n.at(2.1), _HALVES, n.CREATION, n.at(2.1)),
        StreamCreationStarted(_S, _M, n.CREATION, StreamConfig(), n.at(2.1), _WHOLE, at=n.at(2.1)),
        decides=REQUESTS_STREAMS,
        guards=(_FENCES,),
    )
    done = (StreamCreated(_S, _O), StreamCreated(_S, _M))
    history.append(2.2, n.WORKFLOWS, *done, request=n.CREATION, reply=SUCCESS)
    _group_created(history)
    started = TableCreationStarted(
        _S, n.TABLE, n.TABLE_CREATION, TABLE_CONFIG, n.at(9.1), _HALVES, n.TABLE_CREATION, n.at(9.1)
    )
    history.append(9.1, n.WORKFLOWS, started, decides=REQUESTS_STREAMS, guards=(_FENCES,))
    created = TableCreated(_S, n.TABLE)
    history.append(9.2, n.WORKFLOWS, created, request=n.TABLE_CREATION, reply=SUCCESS)
    _reports_stream(history)


def _group_created(history: History) -> None:
    """With the stream that holds its state, and that one's mark stream; then it subscribes."""
    state = group_stream(n.GROUP)
    streams = (
        StreamCreationStarted(_S, name, n.GROUP_CREATION, StreamConfig(), n.at(6.1), _WHOLE, at=n.at(6.1))
        for name in (state, mark_stream(state))
    )
    started = ReaderGroupCreationStarted(
        _S, n.GROUP, n.GROUP_CREATION, GROUP_CONFIG, n.at(6.1), n.GROUP_CREATION, n.at(6.1)
    )
    history.append(6.1, n.WORKFLOWS, started, *streams, decides=REQUESTS_STREAMS, guards=(_FENCES,))
    subscribed = SubscriberAdded(_S, _O, n.SUBSCRIBER, n.GROUP_ID, generation=0, at=n.at(6.15))
    history.append(6.15, n.WORKFLOWS, subscribed, decides=REQUESTS_STREAMS)
    created = (StreamCreated(_S, state), StreamCreated(_S, mark_stream(state)))
    done = ReaderGroupCreated(_S, n.GROUP)
    history.append(6.2, n.WORKFLOWS, *created, done, request=n.GROUP_CREATION, reply=SUCCESS)


def _reports_stream(history: History) -> None:
    """The internal stream that segment stores report to; how far its reports were forwarded is recorded here."""
    started = StreamCreationStarted(
        SYSTEM_SCOPE, REQUEST_STREAM, "system", StreamConfig(), n.at(10), _WHOLE, at=n.at(10)
    )
    history.append(10, n.WORKFLOWS, started)
    history.append(10.1, n.WORKFLOWS, StreamCreated(SYSTEM_SCOPE, REQUEST_STREAM))
    history.append(10.2, n.WORKFLOWS, ReportsForwarded(SYSTEM_SCOPE, REQUEST_STREAM, segment=0, offset=412))


def _progress(history: History) -> None:
    """What readers and writers report, and the policies that come of it."""
    cut = {n.FIRST: 800, n.SECOND: 640}
    moved = SubscriberCutUpdated(_S, _O, n.SUBSCRIBER, cut, at=n.at(17))
    history.append(17, n.WORKFLOWS, moved, decides=REQUESTS_STREAMS, request=n.request_id(0x11), reply=SUCCESS)
    updated = StreamUpdated(_S, _O, config=WITH_RETENTION)
    history.append(18, n.WORKFLOWS, updated, decides=REQUESTS_STREAMS, request=n.request_id(0x12), reply=SUCCESS)
    history.append(18.1, n.WORKFLOWS, RetentionPolicyAnnounced(_S, _O, policy=WITH_RETENTION.retention))
    recorded = WriterTimeNoted(_S, _O, n.WRITER, timestamp=n.at(20), position={n.FIRST: 900, n.SECOND: 700})
    history.append(20.1, n.WORKFLOWS, recorded, decides=REQUESTS_STREAMS, request=n.request_id(0x13), reply=SUCCESS)
    history.append(22, n.WORKFLOWS, WatermarkEmitted(_S, _O, lower=n.at(20), upper=n.at(20), at=n.at(22)))
    removed = WriterRemoved(_S, _O, writer=n.WRITER)
    history.append(23, n.WORKFLOWS, removed, decides=REQUESTS_STREAMS, request=n.request_id(0x14), reply=SUCCESS)
    history.append(24, n.WORKFLOWS, WritersForgotten(_S, _O, writers=(n.WRITER,)))
    kept = DecisionRecorded(_S, _O, DecisionKind.RETENTION, "within-minimum", RETENTION_REASON, at=n.at(25))
    history.append(25, n.WORKFLOWS, kept, decides=REQUESTS_STREAMS)


def _scaled(history: History) -> None:
    """The scale that retention-spark requested, with a step that was retried. One from before is open."""
    history.append(
        29,
        n.TRANSACTIONS,
        TransactionOpened(_S, _O, n.ROLLED, lease_ms=600_000, at=n.at(29), dies_at=n.at(29 + 24 * 3600)),
        decides=REQUESTS_TRANSACTIONS,
    )
    ready = TransactionReady(_S, _O, n.ROLLED, at=n.at(29.1))
    answer = Reply(Status.OK, transaction=n.ROLLED, segments=_HALVES)
    history.append(29.1, n.TRANSACTIONS, ready, request=n.request_id(0x20), reply=answer)
    recorded = DecisionRecorded(_S, _O, DecisionKind.SCALE, code="split", reason=SCALE_REASON, at=n.at(30), acts=True)
    history.append(30.1, n.WORKFLOWS, recorded, decides=REQUESTS_STREAMS)
    history.append(30.2, n.WORKFLOWS, WorkflowQueued(_S, _O, kind="scale-stream", at=n.at(30.2)))
    comes = (Segment(n.UPPER_LEFT, 0.5, 0.75), Segment(n.UPPER_RIGHT, 0.75, 1.0))
    replacement = Replacement(seals=(n.SECOND,), creates=comes, at=n.at(30))
    history.append(
        30.3,
        n.WORKFLOWS,
        StreamScaleStarted(_S, _O, replacement=replacement, at=n.at(30.3)),
        WorkflowAdmitted(_S, _O),
        decides=REQUESTS_STREAMS,
        request=scale_id(StreamId(_S, _O), n.CREATION, 0, (n.SECOND,), WITH_RETENTION.scaling),
        reply=Reply(Status.STARTED, segments=comes),
        guards=(f"commits:{_S}/{_O}",),
    )
    failed = WorkflowStepFailed(
        _STREAM_AGGREGATE, "create segments", attempts=2, error="ConnectionLost: segment-store-1.sluice.svc:12345"
    )
    history.append(31, n.WORKFLOWS, failed)
    retried = WorkflowRetryRequested(_STREAM_AGGREGATE)
    history.append(32, n.WORKFLOWS, retried, request=n.request_id(0x17), reply=SUCCESS)
    history.append(32.1, n.WORKFLOWS, StreamEpochAdded(_S, _O, created_at=n.at(32.1)))
    history.append(32.2, n.WORKFLOWS, StreamScaled(_S, _O, sealed_sizes={n.SECOND: 52_430}))


def _cancelled(history: History) -> None:
    """A scale that was taken back before its epoch was named."""
    whole = Segment(segment_id(2, 4), 0.5, 1.0)
    replacement = Replacement(seals=(n.UPPER_LEFT, n.UPPER_RIGHT), creates=(whole,), at=n.at(40))
    history.append(
        40,
        n.WORKFLOWS,
        StreamScaleStarted(_S, _O, replacement=replacement, at=n.at(40)),
        decides=REQUESTS_STREAMS,
        request=n.request_id(0x1A),
        reply=Reply(Status.STARTED, segments=(whole,), epoch=1),
    )
    history.append(
        40.5,
        n.WORKFLOWS,
        WorkflowCancelled(_STREAM_AGGREGATE),
        request=n.request_id(0x18),
        reply=SUCCESS,
    )
    history.append(40.6, n.WORKFLOWS, StreamScaleCancelled(_S, _O))
    wider = StreamConfig(WITH_RETENTION.scaling, WITH_RETENTION.retention, ("team-payments", "gold"), 10_000)
    request = n.request_id(0x1B)
    started = StreamUpdateStarted(_S, _O, config=wider, request=request, at=n.at(42))
    history.append(42, n.WORKFLOWS, started, decides=REQUESTS_STREAMS)
    history.append(42.1, n.WORKFLOWS, StreamUpdated(_S, _O), request=request, reply=SUCCESS)


def _truncated(history: History) -> None:
    request = truncation_id(StreamId(_S, _O), n.CREATION, HEAD, WITH_RETENTION.retention)
    started = StreamTruncationStarted(
        _S, _O, cut=HEAD, deleted=(n.SECOND,), size_till=53_630, request=request, at=n.at(45)
    )
    history.append(45, n.WORKFLOWS, started, decides=REQUESTS_STREAMS)
    history.append(45.1, n.WORKFLOWS, StreamTruncated(_S, _O), request=request, reply=SUCCESS)


def _group_and_table_end(history: History) -> None:
    state = group_stream(n.GROUP)
    later = ReaderGroupConfig(id=n.GROUP_ID, starts=GROUP_CONFIG.starts, refresh_ms=5000, generation=1)
    leaves, request = (f"{_S}/{_O}",), n.request_id(0x31)
    started = ReaderGroupUpdateStarted(_S, n.GROUP, later, leaves, request, at=n.at(80))
    history.append(80, n.WORKFLOWS, started, decides=REQUESTS_STREAMS)
    removed = SubscriberRemoved(_S, _O, subscriber=n.SUBSCRIBER)
    history.append(80.1, n.WORKFLOWS, removed, decides=REQUESTS_STREAMS)
    answer = Reply(Status.SUCCESS, generation=1)
    history.append(80.2, n.WORKFLOWS, ReaderGroupUpdated(_S, n.GROUP), request=request, reply=answer)
    request = n.request_id(0x32)
    going = ReaderGroupDeletionStarted(_S, n.GROUP, request=request, at=n.at(81))
    history.append(81, n.WORKFLOWS, going, decides=REQUESTS_STREAMS)
    streams = (state, mark_stream(state))
    gone = (StreamDeleted(_S, stream, next_number=1) for stream in streams)
    history.append(81.2, n.WORKFLOWS, ReaderGroupDeleted(_S, n.GROUP), *gone, request=request, reply=SUCCESS)
    request = n.request_id(0x33)
    history.append(
        82, n.WORKFLOWS, TableDeletionStarted(_S, n.TABLE, request=request, at=n.at(82)), decides=REQUESTS_STREAMS
    )
    deleted = TableDeleted(_S, n.TABLE, next_number=2)
    history.append(82.2, n.WORKFLOWS, deleted, request=request, reply=SUCCESS)


def _stream_ends(history: History) -> None:
    request = n.request_id(0x34)
    history.append(84, n.WORKFLOWS, StreamSealStarted(_S, _O, request=request, at=n.at(84)), decides=REQUESTS_STREAMS)
    ended(history)
    history.append(84.5, n.WORKFLOWS, StreamSealed(_S, _O), request=request, reply=SUCCESS)
    request = n.request_id(0x35)
    history.append(
        85, n.WORKFLOWS, StreamDeletionStarted(_S, _O, request=request, at=n.at(85)), decides=REQUESTS_STREAMS
    )
    gone = (StreamDeleted(_S, _O, next_number=5), StreamDeleted(_S, _M, next_number=1))
    history.append(85.2, n.WORKFLOWS, *gone, request=request, reply=SUCCESS)


def _scope_ends(history: History) -> None:
    """A first deletion finds that something has come into the scope meanwhile, the second one takes everything."""
    request, held = n.request_id(0x36), Reply(Status.SCOPE_NOT_EMPTY, "1 stream")
    history.append(88, n.WORKFLOWS, ScopeDeletionStarted(_S, request=request, at=n.at(88)), decides=REQUESTS_STREAMS)
    history.append(88.1, n.WORKFLOWS, FenceRaised(n.PARTITION, n.SCOPES_PARTITION, n.DELETION_POSITION - 4))
    history.append(88.2, n.WORKFLOWS, ScopeKept(_S), request=request, reply=held)
    request = n.request_id(0x37)
    history.append(
        90,
        n.WORKFLOWS,
        ScopeDeletionStarted(_S, recursive=True, request=request, at=n.at(90)),
        decides=REQUESTS_STREAMS,
    )
    history.append(90.1, n.WORKFLOWS, FenceRaised(n.PARTITION, n.SCOPES_PARTITION, n.DELETION_POSITION))
    history.append(90.2, n.WORKFLOWS, ScopeDeleted(_S), request=request, reply=SUCCESS)
