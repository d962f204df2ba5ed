"""What the sample system has behind it: a day of streams that scaled, transactions, decisions, hand-overs.

Names are those of a small shop. `demo/orders` is the stream that has everything; `demo/wide` has many segments and
`load/…` many streams, as many as are wanted.
"""

from itertools import pairwise
from random import Random
from typing import NamedTuple

from page.sample_log import SampleLog

from sluice.domain.cluster.events import ContainersAssigned, MemberJoined, MemberLeft
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
from sluice.domain.decision import Reader
from sluice.domain.host import Host
from sluice.domain.ids import GroupId, StreamId, TableId
from sluice.domain.policy.retention import RetentionCode
from sluice.domain.policy.scaling import ScaleCode
from sluice.domain.reader_group import decide as groups
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.scope.commands import CreateScope
from sluice.domain.segment import Segment
from sluice.domain.stream import decide as streams
from sluice.domain.stream import scale
from sluice.domain.stream.commands import (
    AddSubscriber,
    CreateStream,
    DecisionKind,
    RecordDecision,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
    UpdateSubscriberCut,
)
from sluice.domain.stream.state import find_stream
from sluice.domain.table import decide as tables
from sluice.domain.table.commands import CreateTable
from sluice.domain.transaction import batch
from sluice.domain.transaction import decide as transactions
from sluice.domain.transaction.commands import AbortReason, AbortTransaction, CommitTransaction, OpenTransaction
from sluice.domain.transaction.state import segments_to_write
from sluice.domain.transaction_ids import transaction_id

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

STORES = tuple(Host("127.0.0.1", port) for port in (12345, 12346, 12347))
ORDERS = StreamId("demo", "orders")
WIDE = StreamId("demo", "wide")
UNLIMITED = (1 << 63) - 1
MOST_OF_A_BATCH = 100
GROUP_UUID = "0f0e0d0c-0b0a-4908-8706-0504030201{:02x}"
SCRIPT = "<script>alert('no')</script>"


class Size(NamedTuple):
    """How much there is: `streams` beside those with names, `segments` active ones of `demo/wide` and its `scales`."""

    streams: int = 40
    segments: int = 24
    scales: int = 12


LARGE = Size(streams=10_000, segments=1_000, scales=500)


def write(log: SampleLog, now: int, size: Size, containers: int) -> None:
    """A day of the sample system up to `now` (epoch ms)."""
    write_cluster(log, now, containers)
    log.at(now - 25 * HOUR)
    for scope in ("demo", "iot", "load", "shop"):
        log.ask(CreateScope(scope), "amy")
    _small_streams(log)
    _many_streams(log, size.streams)
    _wide(log, now, size)
    _orders(log, now)
    _payments(log, now)
    log.at(now - 10 * HOUR)
    log.ask(SealStream("shop", "refunds"), "bob", refused=True)
    log.at(now)


def create(log: SampleLog, id: StreamId, config: StreamConfig, principal: str = "") -> None:
    """A stream, and the end of its creation."""
    request, _ = log.ask(CreateStream(*id, config), principal)
    log.later(40)
    log.decide(id.key, lambda reader, _: streams.finish_create(reader, id), request)


def do_scale(log: SampleLog, id: StreamId, seals: tuple[int, ...], ranges: list[tuple[float, float]], size: int) -> str:
    """A scale from request to end; each sealed segment has so many bytes. The id of the request."""
    request, _ = log.ask(ScaleStream(*id, seals=seals, ranges=tuple(ranges), at=log.now))
    log.later(120)
    log.decide(id.key, lambda reader, _: scale.add_epoch(reader, id), request)
    log.later(60)
    log.decide(id.key, lambda reader, _: scale.finish_scale(reader, id, dict.fromkeys(seals, size)), request)
    return request


def truncate(log: SampleLog, id: StreamId, cut: dict[int, int], policy: RetentionPolicy | None = None) -> None:
    known = log.stream(id).subscriptions
    request, _ = log.ask(TruncateStream(*id, cut=cut, policy=policy, subscriptions=known, at=log.now))
    log.later(30)
    log.decide(id.key, lambda reader, _: streams.finish_truncate(reader, id), request)


def decided(log: SampleLog, id: StreamId, kind: DecisionKind, code: ScaleCode | RetentionCode, reason: str) -> None:
    """A decision of retention-spark, as it is recorded."""
    acts = code in _ACTS
    log.ask(RecordDecision(*id, log.stream(id).creation_id, kind, code.value, reason, log.now, acts))


_ACTS = {
    ScaleCode.SPLIT,
    ScaleCode.MERGE,
    ScaleCode.SPLIT_AND_MERGE,
    RetentionCode.BEYOND_MINIMUM,
    RetentionCode.CONSUMED,
    RetentionCode.BEYOND_MAXIMUM,
}


def active(log: SampleLog, id: StreamId) -> list[Segment]:
    """The active segments, from the lowest key on."""
    stream = log.stream(id)
    return sorted((stream.history.segment(s) for s in stream.active_epoch.segments), key=lambda s: s.low)


def write_cluster(log: SampleLog, now: int, containers: int) -> None:
    """A day of the instances of services, and of three segment stores that come and go."""
    log.at(now - 26 * HOUR)

    def assigned(stores: tuple[Host, ...]) -> None:
        held = {container: stores[container % len(stores)] for container in range(containers)}
        log.happen("cluster", ContainersAssigned(containers=held, hosts=stores, at=log.now))

    for service in ("api-gateway", "cluster-manager", "stream-workflows", "txn-manager"):
        for instance in ("a", "b"):
            name = f"{service}-{instance}"
            endpoints = {"rest": "127.0.0.1:10080"} if service == "api-gateway" else {}
            log.happen("cluster", MemberJoined(service, name, endpoints, log.later(), log.now))
    assigned(STORES[:2])
    for before, stores in ((9 * HOUR, STORES), (5 * HOUR, (STORES[0], STORES[2])), (4 * HOUR, STORES)):
        log.at(now - before)
        assigned(stores)
    log.at(now - 3 * HOUR)
    log.happen("cluster", MemberLeft("txn-manager-b", log.now))
    log.later(5 * MINUTE)
    log.happen("cluster", MemberJoined("txn-manager", "txn-manager-b", {}, log.now, log.now))


def _small_streams(log: SampleLog) -> None:
    events = ScalingPolicy(ScaleType.EVENTS, 500, 2, 2)
    by_time = RetentionPolicy(RetentionType.TIME, HOUR, UNLIMITED)
    by_size = RetentionPolicy(RetentionType.SIZE, 1 << 20, 1 << 30)
    configs = {
        StreamId("shop", "carts"): StreamConfig(events, by_time, tags=("shop", "team-a")),
        StreamId("shop", "clicks"): StreamConfig(ScalingPolicy(ScaleType.KBYTES, 200, 4, 1), by_size, tags=("web",)),
        StreamId("shop", "returns"): StreamConfig(),
        StreamId("shop", "mails"): StreamConfig(tags=(SCRIPT,)),
        StreamId("iot", "sensors"): StreamConfig(ScalingPolicy(min_segments=8), by_size, tags=("team-b",)),
        StreamId("iot", "alarms"): StreamConfig(ScalingPolicy(min_segments=2)),
    }
    for id, config in configs.items():
        create(log, id, config, "amy")
    archive = StreamId("shop", "archive-2025")
    create(log, archive, StreamConfig(ScalingPolicy(min_segments=3)), "bob")
    request, _ = log.ask(SealStream(*archive), "bob")
    log.decide(archive.key, lambda reader, _: streams.finish_seal(reader, archive), request)
    prices = TableId("shop", "prices")
    request, _ = log.ask(CreateTable(*prices, TableConfig(partitions=2, primary_key_length=8)))
    log.decide(prices.key, lambda reader, _: tables.finish_create(reader, prices), request)


def _many_streams(log: SampleLog, count: int) -> None:
    plain, tagged = StreamConfig(), StreamConfig(ScalingPolicy(min_segments=2), tags=("load",))
    for number in range(count):
        create(log, StreamId("load", f"stream-{number:05}"), tagged if number % 10 == 0 else plain)


def _wide(log: SampleLog, now: int, size: Size) -> None:
    """Many segments; each scale replaces five neighbours by five others, or as many as there are."""
    log.at(now - 20 * HOUR)
    create(log, WIDE, StreamConfig(ScalingPolicy(min_segments=size.segments)))
    random = Random(7)
    for number in range(size.scales):
        log.at(now - 20 * HOUR + number * 19 * HOUR // max(1, size.scales))
        present = active(log, WIDE)
        first = random.randrange(len(present) - 4)
        chosen = present[first : first + 5]
        low, high = chosen[0].low, chosen[-1].high
        bounds = [low, *sorted(random.uniform(low, high) for _ in range(4)), high]
        ranges = list(pairwise(bounds))
        do_scale(log, WIDE, tuple(s.id for s in chosen), ranges, random.randrange(1 << 24))


def _orders(log: SampleLog, now: int) -> None:
    """Splits in the morning, merges in the evening, truncated every two hours, two reader groups."""
    policy = ScalingPolicy(ScaleType.EVENTS, 100, 2, 2)
    retention = RetentionPolicy(RetentionType.TIME, 6 * HOUR, UNLIMITED)
    log.at(now - 24 * HOUR)
    create(log, ORDERS, StreamConfig(policy, retention, tags=("shop", "team-a")), "amy")
    billing, audit = (_group(log, name, ORDERS, n) for n, name in enumerate(("billing", "audit")))
    is_split = (True, True, True, False, True, True, False, False, True, True, True, False)
    random = Random(11)
    written: dict[int, int] = {}
    cuts: list[dict[int, int]] = []
    for number, splits in enumerate(is_split):
        log.at(now - 23 * HOUR + number * 110 * MINUTE)
        present = active(log, ORDERS)
        if splits:
            hot = random.choice(present)
            middle = (hot.low + hot.high) / 2
            _scaled(log, ScaleCode.SPLIT, (hot,), [(hot.low, middle), (middle, hot.high)], random)
        else:
            first = random.randrange(len(present) - 1)
            pair = (present[first], present[first + 1])
            _scaled(log, ScaleCode.MERGE, pair, [(pair[0].low, pair[1].high)], random)
        log.later(10 * MINUTE)
        for segment in active(log, ORDERS):
            written[segment.id] = written.get(segment.id, 0) + random.randrange(1 << 20)
        cut = {segment.id: written[segment.id] for segment in active(log, ORDERS)}
        cuts.append(cut)
        _read(log, billing, cut)
        if number % 3 == 2:
            _read(log, audit, cuts[-2])
            reason = "what is older than 6 h goes"
            decided(log, ORDERS, DecisionKind.RETENTION, RetentionCode.BEYOND_MINIMUM, reason)
            truncate(log, ORDERS, cuts[max(0, number - 5)], retention)
        if number == 6:
            log.ask(UpdateStream(*ORDERS, StreamConfig(policy, retention, tags=("shop", "team-a", "eu"))), "bob")
    log.later(20 * MINUTE)
    reason = "all segments are between half and twice the target of 100 events a second"
    decided(log, ORDERS, DecisionKind.SCALE, ScaleCode.STEADY, reason)


def _scaled(
    log: SampleLog, code: ScaleCode, old: tuple[Segment, ...], ranges: list[tuple[float, float]], random: Random
) -> None:
    names = ", ".join(f"{s.id & 0xFFFFFFFF}.#epoch.{s.id >> 32}" for s in old)
    rate = random.randrange(210, 460) if code is ScaleCode.SPLIT else random.randrange(5, 40)
    reason = f"{names}: {rate} events a second, the target is 100"
    decided(log, ORDERS, DecisionKind.SCALE, code, reason)
    do_scale(log, ORDERS, tuple(s.id for s in old), ranges, random.randrange(1 << 20, 1 << 26))


def _group(log: SampleLog, name: str, stream: StreamId, number: int) -> GroupId:
    """A reader group whose cuts hold the stream back."""
    id = GroupId(stream.scope, name)
    uuid = GROUP_UUID.format(number)
    config = ReaderGroupConfig(uuid, {str(stream): {}}, retention=GroupRetention.MANUAL)
    request, _ = log.ask(CreateReaderGroup(*id, config), "amy")
    log.ask(AddSubscriber(*stream, subscriber=str(id), group_id=uuid, generation=0))
    log.decide(id.key, lambda reader, context: groups.finish_create(reader, context, id, []), request)
    return id


def _read(log: SampleLog, group: GroupId, cut: dict[int, int]) -> None:
    """The group has consumed what lies before the cut."""
    known = log.stream(ORDERS).subscribers[str(group)]
    log.ask(UpdateSubscriberCut(*ORDERS, str(group), known.group_id, known.generation, cut))


def _payments(log: SampleLog, now: int) -> None:
    """Transactions of a day: most are committed, some aborted by their client, some by their lease; some wait."""
    id = StreamId("demo", "payments")
    log.at(now - 24 * HOUR)
    create(log, id, StreamConfig(ScalingPolicy(min_segments=3)), "amy")
    random = Random(3)
    for number in range(180):
        log.at(now - 23 * HOUR + number * 7 * MINUTE)
        uuid = opened(log, id, 30_000)
        log.later(random.randrange(200, 20_000))
        if number % 9 == 4:
            abort(log, id, uuid, AbortReason.LEASE if number % 2 else AbortReason.USER)
        else:
            commit(log, id, uuid, f"writer-{number % 4}")
            log.later(random.randrange(20, 900))
            merge(log, id)
    log.at(now - 2 * MINUTE)
    waiting = [opened(log, id, 10 * MINUTE) for _ in range(12)]
    for uuid in waiting[:7]:
        log.later(500)
        commit(log, id, uuid, "writer-1")


def opened(log: SampleLog, id: StreamId, lease_ms: int) -> str:
    """A transaction that may be written to; its UUID."""
    request, reply = log.ask(OpenTransaction(*id, lease_ms=lease_ms))
    if reply is not None:
        return reply.transaction
    uuid = transaction_id(log.stream(id).active_epoch.reference, request)
    log.later(15)
    log.decide(
        id.key, lambda reader, context: transactions.decide_ready(reader, id.transaction(uuid), context.now), request
    )
    return uuid


def commit(log: SampleLog, id: StreamId, uuid: str, writer: str) -> None:
    log.ask(CommitTransaction(*id, uuid, writer=writer, timestamp=log.now))


def merge(log: SampleLog, id: StreamId) -> None:
    """The batch of commits that runs is merged."""
    merged = merged_in(log.view(id.key), id)
    log.decide(id.key, lambda reader, context: batch.end_batch(reader, id, context, merged, MOST_OF_A_BATCH))


def merged_in(reader: Reader, id: StreamId) -> batch.Merged:
    """What a service says once it has merged the batch of commits that runs."""
    commits, stream = batch.find_commits(reader, id), find_stream(reader, id)
    assert commits is not None and commits.workflow is not None and stream is not None
    return batch.Merged(
        {
            uuid: {segment.id: 1_000 for segment in segments_to_write(stream, uuid)}
            for uuid in commits.workflow.transactions
        }
    )


def abort(log: SampleLog, id: StreamId, uuid: str, reason: AbortReason) -> None:
    log.ask(AbortTransaction(*id, uuid, reason=reason))
    log.later(25)
    log.decide(id.key, lambda reader, context: transactions.finish_abort(reader, id.transaction(uuid), context.now))
