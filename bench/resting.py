"""Streams and groups of a cluster that nobody touches while another controller takes over."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Iterable
from typing import Any, NamedTuple, TypeVar

from support.controller import unique

from bench.systems import Say
from harness import eventually_async
from sluice.controller_api import controller_pb2 as pb
from sluice.pravega.reader_group_config import Retention
from sluice_client import (
    Client,
    Event,
    EventReader,
    GroupConfig,
    ScalingPolicy,
    StreamConfig,
    Transaction,
    TransactionStatus,
    create_reader_group,
    open_reader,
)

T = TypeVar("T")

SEGMENTS = 2
EVENTS, KEYS = 60, 6
ABORTED_EVERY = 4
_LEASE_S = 500.0
_AT_A_TIME = 24
_READ_S, _ENDED_S = 60.0, 60.0
_LIVE_ON = 20
_BOTH_HALVES = ((0.0, 0.5), (0.5, 1.0))


class Size(NamedTuple):
    """How much there is, of epochs in all streams without a group and of open transactions in those with one."""

    streams: int
    epochs: int
    groups: int
    transactions: int


class Reading:
    """A group in the middle of a stream of several epochs, which has open transactions of an earlier one."""

    def __init__(self, client: Client, scope: str, name: str) -> None:
        self._client, self._scope, self._name = client, scope, name
        self._transactions: list[tuple[str, Transaction]] = []
        self._written: list[str] = []
        self._read: list[str] = []
        self._reader: EventReader

    async def begin(self, transactions: int, retention: Retention) -> None:
        """Half of the events are read."""
        stream = self._scope, self._name
        await self._client.streams.create_stream(*stream, StreamConfig(ScalingPolicy(min_segments=SEGMENTS)))
        await self._write()
        for number in range(transactions):
            transaction = await self._client.begin_transaction(*stream, lease_s=_LEASE_S)
            event = f"committed/{number}"
            transaction.add(_key(event), event.encode())
            await transaction.flush()
            self._transactions.append((event, transaction))
        await scale(self._client, *stream)
        await self._write()
        config = GroupConfig(starts={"/".join(stream): None}, retention=retention, automatic_checkpoint_ms=1000)
        assert await create_reader_group(self._client, *stream, config)
        self._reader = await open_reader(self._client, *stream, "reader")
        await self._read_on(len(self._written) // 2)

    async def end_exactly_once(self) -> None:
        """Transactions end as they are told, the stream is sealed, and the group has read everything once."""
        for number, (event, transaction) in enumerate(self._transactions):
            if number % ABORTED_EVERY:
                await transaction.commit()
                self._written.append(event)
            else:
                await transaction.abort()
        await self._await_ends()
        await self._write()
        await self._client.streams.seal_stream(self._scope, self._name)
        await self._read_on(len(self._written) + 1)
        await self._reader.close()
        assert Counter(self._read) == Counter(self._written), f"{self._scope}/{self._name}"
        by_key: dict[str, list[int]] = defaultdict(list)
        for kind, _, digits in (event.partition("/") for event in self._read):
            by_key[f"{kind} {int(digits) % KEYS}"].append(int(digits))
        mixed = {key: numbers for key, numbers in by_key.items() if numbers != sorted(numbers)}
        assert not mixed, f"{self._scope}/{self._name} {mixed}"

    async def _await_ends(self) -> None:
        for number, (_, transaction) in enumerate(self._transactions):
            wanted = TransactionStatus.COMMITTED if number % ABORTED_EVERY else TransactionStatus.ABORTED
            await _await_end(transaction, wanted)

    async def _write(self) -> None:
        async with self._client.event_writer(self._scope, self._name) as writer:
            for number in range(len(self._written), len(self._written) + EVENTS):
                event = f"wrote/{number}"
                writer.add(_key(event), event.encode())
                self._written.append(event)

    async def _read_on(self, count: int) -> None:
        """Until so many were read, or the stream has ended."""
        async with asyncio.timeout(_READ_S):
            while len(self._read) < count:
                item = await self._reader.next()
                if item is None:
                    return
                if isinstance(item, Event):
                    self._read.append(item.data.decode())


class Resting:
    """All of it. Belongs to one event loop."""

    def __init__(self, client: Client, size: Size) -> None:
        self.scope = unique("resting")
        self._client = client
        self._size = size
        self._streams = [f"s{number}" for number in range(size.streams)]
        self._readings = [Reading(client, self.scope, f"g{number}") for number in range(size.groups)]

    async def grow_up(self, say: Say) -> None:
        """Everything begins, and is left alone."""
        await self._client.streams.create_scope(self.scope)
        await side_by_side(self._client.streams.create_stream(self.scope, name) for name in self._streams)
        say(f"{len(self._streams)} streams")
        scales = max(0, self._size.epochs // self._size.streams - 1)
        await side_by_side(self._scale(name, scales) for name in self._streams)
        say(f"{len(self._streams) * (scales + 1)} epochs")
        share = self._size.transactions // len(self._readings)
        retentions = (Retention.NONE, Retention.AUTOMATIC)
        await side_by_side(
            reading.begin(share, retentions[number % 2]) for number, reading in enumerate(self._readings)
        )
        say(f"{len(self._readings)} groups, each beside {share} open transactions")

    async def answers(self) -> dict[str, Any]:
        """What the controller says of all of it."""
        names = sorted([name async for name in self._client.streams.streams(self.scope)])
        found = await side_by_side(self._of_stream(name) for name in names)
        groups = await side_by_side(self._of_group(f"g{number}") for number in range(self._size.groups))
        return {"streams": dict(zip(names, found, strict=True)), "groups": groups}

    async def live_on(self, times: int = 1) -> None:
        """Some streams are rolled by a commit, truncated, and scaled twice, one after the other so many times."""
        await side_by_side(self._live_on(name, times) for name in self._streams[:_LIVE_ON])

    async def end_exactly_once(self) -> None:
        await side_by_side(reading.end_exactly_once() for reading in self._readings)

    async def _scale(self, name: str, times: int) -> None:
        for _ in range(times):
            await scale(self._client, self.scope, name)

    async def _live_on(self, name: str, times: int) -> None:
        streams = self._client.streams
        for _ in range(times):
            async with await self._client.begin_transaction(self.scope, name) as transaction:
                transaction.add("key", b"event")
                await scale(self._client, self.scope, name)
            await _await_end(transaction, TransactionStatus.COMMITTED)
            await streams.truncate_stream(await streams.tail(self.scope, name))
            await scale(self._client, self.scope, name)

    async def _of_stream(self, name: str) -> dict[str, Any]:
        call, stream = self._client.controller.call, pb.StreamInfo(scope=self.scope, stream=name)
        current = _ranges(await call(lambda stub: stub.getCurrentSegments, stream))
        epochs = [
            _ranges(
                await call(lambda stub: stub.getEpochSegments, pb.GetEpochSegmentsRequest(streamInfo=stream, epoch=e))
            )
            for e in range(max(id >> 32 for id, *_ in current) + 1)
        ]
        ids = sorted({id for ranges in epochs for id, *_ in ranges})
        following = [
            await call(lambda stub: stub.getSegmentsImmediatelyFollowing, pb.SegmentId(streamInfo=stream, segmentId=id))
            for id in ids
        ]
        return {
            "config": await self._client.streams.config(self.scope, name),
            "current": current,
            "head": await self._client.controller.head(self.scope, name),
            "epochs": epochs,
            "successors": [{s.segment.segmentId.segmentId: sorted(s.value) for s in f.segments} for f in following],
            "subscribers": sorted((await call(lambda stub: stub.listSubscribers, stream)).subscribers),
        }

    async def _of_group(self, name: str) -> Any:
        request = pb.ReaderGroupInfo(scope=self.scope, readerGroup=name)
        return await self._client.controller.call(lambda stub: stub.getReaderGroupConfig, request)


async def scale(client: Client, scope: str, stream: str) -> None:
    """Replace all segments by two."""
    await client.streams.scale(await client.controller.segments(scope, stream), _BOTH_HALVES)


async def _await_end(transaction: Transaction, wanted: TransactionStatus) -> None:
    async def is_wanted() -> bool:
        return await transaction.status() is wanted

    await eventually_async(is_wanted, _ENDED_S, f"{transaction.id} is {wanted}")


async def side_by_side(work: Iterable[Awaitable[T]]) -> list[T]:
    """The results of all, in their order; so many of them at a time."""
    turns = asyncio.Semaphore(_AT_A_TIME)

    async def one(each: Awaitable[T]) -> T:
        async with turns:
            return await each

    return await asyncio.gather(*map(one, work))


def _ranges(answer: Any) -> list[tuple[int, float, float]]:
    return sorted((found.segmentId.segmentId, found.minKey, found.maxKey) for found in answer.segmentRanges)


def _key(event: str) -> str:
    return f"key-{int(event.partition('/')[2]) % KEYS}"
