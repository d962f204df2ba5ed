"""Clients: they open transactions, write to them, keep them, end them, and send all that can be sent, right or wrong.

Names of segments are derived as client libraries do it, from the ids in the reply; nothing of the product is used.
"""

import asyncio
from collections.abc import Awaitable
from random import Random

from simulation.txn.plant import Plant
from simulation.violation import Violation

from api_gateway.edge.reads import Reads
from sluice.domain.decision import Reply
from sluice.domain.ids import TransactionId
from sluice.domain.segment import Segment
from sluice.domain.transaction import commands as c

PATIENCE_S = 8.0
EVENT = 16
"""Bytes of one event."""


def event_of(transaction: int, number: int, segment_number: int) -> bytes:
    """An event says whose it is, which one, and in which of the transaction's segments it was put."""
    return b"%06d.%04d.%03d|" % (transaction, number, segment_number)


class Written:
    """What a client has written to one transaction: for each segment number its events, in order."""

    def __init__(self, number: int, scope: str, stream: str, id: str, segments: tuple[Segment, ...]) -> None:
        self.number, self.id = number, id
        self.key = TransactionId(scope, stream, id)
        self.segments = segments
        self.events: dict[int, list[bytes]] = {}
        self.names: dict[int, str] = {}
        self.written = 0
        for segment in segments:
            segment_number = segment.id & 0xFFFFFFFF
            parent = f"{scope}/{stream}/{segment_number}.#epoch.{segment.id >> 32}"
            self.names[segment_number] = f"{parent}#transaction.{id.replace('-', '')}"


class Clients:
    """All clients of a run. `written` has what each transaction holds, by its id."""

    def __init__(self, plant: Plant, random: Random, streams: list[tuple[str, str]], pause_s: float) -> None:
        self.plant = plant
        self.random = random
        self.streams = streams
        self.pause_s = pause_s
        self.written: dict[str, Written] = {}
        self.stopped: dict[str, int] = {}
        self._by_name: dict[str, tuple[Written, int]] = {}
        plant.stores.on_measured = self._flush_late
        self._reads = Reads(_Gateway(plant))  # type: ignore[arg-type]

    async def run(self, transactions: int) -> None:
        """One client, with one transaction after the other."""
        for _ in range(transactions):
            await self._transaction()
            await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(self.random.choice((0.0, 0.1, 0.3, 1.0)) * self.pause_s)

    async def _reply_to(self, asking: Awaitable[Reply]) -> Reply | None:
        """The answer if it comes before the client's patience is gone; the operation goes on anyway."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asking
        except TimeoutError:
            return None

    async def _transaction(self) -> None:
        random, plant = self.random, self.plant
        scope, stream = random.choice(self.streams)
        lease_ms = random.choice(
            (10_000, 10_000, 12_000, 15_000, 20_000, 9_999, 600_001)
            if random.random() < 0.2
            else (10_000, 12_000, 15_000)
        )
        opened = await self._reply_to(plant.ask(c.OpenTransaction(scope, stream, lease_ms=lease_ms)))
        if opened is None or opened.status != "OK":
            return
        written = Written(len(self.written) + 1, scope, stream, opened.transaction, opened.segments)
        self.written[opened.transaction] = written
        self._by_name.update({name: (written, number) for number, name in written.names.items()})
        self._write(written, must=True)
        chance = random.random()
        if chance < 0.2:
            await self._keep(written, lease_ms)
        elif chance < 0.4:
            await self._pause()
            self._write(written)
        chance = random.random()
        if chance < 0.6:
            await self._end(written, (self._commit,))
        elif chance < 0.72:
            await self._end(written, (self._abort,))
        elif chance < 0.86:
            await self._end(written, random.choices((self._commit, self._abort), k=random.randint(2, 3)))
        if random.random() < 0.3:
            await self._look(written)
        self.stopped[written.id] = plant.now_ms()

    async def _keep(self, written: Written, lease_ms: int) -> None:
        """Ping it for a while; as it may be, wrongly."""
        random = self.random
        for _ in range(random.randint(1, 3)):
            await asyncio.sleep(random.choice((0.1, 1.0, lease_ms / 2000, lease_ms / 1200)))
            lease = random.choice(
                (lease_ms, lease_ms, lease_ms, 600_001, 3_000, 0, -1) if random.random() < 0.3 else (lease_ms,)
            )
            ping = c.PingTransaction(*written.key, lease_ms=lease)
            await self._reply_to(self.plant.ask(ping))
            self._write(written)

    def _commit(self, written: Written) -> Awaitable[Reply]:
        writer = self.random.choice(("", "", "w1", "w2"))
        timestamp = self.plant.now_ms() if writer else 0
        return self.plant.ask(c.CommitTransaction(*written.key, writer=writer, timestamp=timestamp))

    def _abort(self, written: Written) -> Awaitable[Reply]:
        return self.plant.ask(c.AbortTransaction(*written.key))

    async def _end(self, written: Written, ways: object) -> None:
        """One after the other, or all at once, and once more what was answered."""
        assert isinstance(ways, tuple | list)
        pending = []
        for way in ways:
            answer = way(written)
            if self.random.random() < 0.5:
                await self._reply_to(answer)
            else:
                pending.append(answer)
            if self.random.random() < 0.2:
                self._write(written)
        for answer in pending:
            await self._reply_to(answer)

    async def _look(self, written: Written) -> None:
        """Read what any client may read, of this transaction and of an unknown one."""
        random = self.random
        id = random.choice((written.id, written.id, "00000000-0000-0000-0000-00000000002a"))
        model = self.plant.auditor.model
        key = written.key.stream_id
        match random.randint(0, 3):
            case 0:
                found = await self._reads.transaction_state(key.transaction(id))
                txn = model.txns.get((*key, id))
                if found.value != (txn.state if txn else "UNKNOWN"):
                    raise Violation(f"{id} is shown as {found}, it is {txn.state if txn else 'unknown'}")
            case 1:
                listed = await self._reads.ended_transactions(key, 500)
                wanted = [(t.id, t.state) for t in reversed(model.ended.get(key, []))]
                if [(t.uuid, t.state.value) for t in listed] != wanted:
                    raise Violation(f"{listed} are shown as ended, {wanted} have")
            case 2:
                await self._reply_to(self.plant.ask(c.CommitTransaction(*key, id)))
            case _:
                ping = c.PingTransaction(*key, id, lease_ms=10_000)
                await self._reply_to(self.plant.ask(ping))

    def _write(self, written: Written, must: bool = False) -> None:
        """Some events, as far as the segments are there; those of an open transaction must be."""
        txn = self.plant.auditor.model.txns[written.key]
        segments = self.plant.stores.segments
        for _ in range(self.random.randint(0, 3)):
            segment_number = self.random.choice(list(written.names))
            segment = segments.get(written.names[segment_number])
            if segment is None:
                if txn.state == "OPEN":
                    raise Violation(f"{written.names[segment_number]} is missing, but the transaction is open")
                continue
            if txn.state != "OPEN":
                # It is too late for more, and nothing is promised about it.
                continue
            self._append(written, segment_number)

    def _append(self, written: Written, segment_number: int) -> None:
        written.written += 1
        event = event_of(written.number, written.written, segment_number % 1000)
        self.plant.stores.segments[written.names[segment_number]].data += event
        written.events.setdefault(segment_number, []).append(event)

    def _flush_late(self, name: str) -> None:
        """Another writer of a transaction flushes when its commit is under way; what the store takes is committed.

        What was merged before and created anew by an open that was late is no segment of the transaction any more.
        """
        written, segment_number = self._by_name.get(name, (None, 0))
        if written is None or self.random.random() > 0.1 or self.plant.stores.segments[name].sealed:
            return
        is_merged = any(source == name for _, source, _ in self.plant.stores.merges)
        if self.plant.auditor.model.txns[written.key].state == "COMMITTING" and not is_merged:
            self._append(written, segment_number)


class _Gateway:
    """A journal for reading only, as far along as the topic is."""

    def __init__(self, plant: Plant) -> None:
        self.partitions = len(plant.truth.views)
        self._plant = plant

    async def barrier(self, _partitions: object) -> None:
        """The view is folded while records land."""

    def partition_of(self, key: str) -> int:
        return self._plant.partition_of(key)

    def reader(self, key: str) -> object:
        return self._plant.truth.views[self._plant.partition_of(key)]

    def views(self) -> object:
        return self._plant.truth.views
