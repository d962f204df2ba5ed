"""The journal's log in memory. An instance that is frozen follows nothing until it thaws."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from sluice.engine.ports import Ends, EndsUnknownError, Message, RecordFacts, SendError
from sluice.memory.broker import Fetching, MemoryBroker, MemoryProducer

ENDS_TIMEOUT_S = 2.0


class MemoryLog:
    """See Log. `frozen` partitions are not followed: each may be held back by itself.

    Where those of `leaderless` end is not known.
    """

    def __init__(self, broker: MemoryBroker, producer: MemoryProducer, name: str = "sluice.journal") -> None:
        self.name = name
        self.partitions = broker.partitions
        self.failure: str | None = None
        self.leaderless: set[int] = set()
        self._broker = broker
        self._producer = producer
        self._fetching: Fetching | None = None

    def start(self, on_batch: Callable[[Sequence[Message]], None], begin: Mapping[int, int]) -> None:
        """See Log. What is there already comes at once."""
        self.close()
        self._fetching = Fetching(self._broker, self.name, on_batch)
        positions = {}
        for partition, offset in begin.items():
            log = self._broker.log(self.name, partition)
            if batch := log[max(offset, self._broker.begin(self.name, partition)) :]:
                on_batch(batch)
            positions[partition] = len(log)
        self._fetching.start(positions)

    async def stop(self) -> None:
        """See Log."""
        self.close()

    def close(self) -> None:
        """Follow nothing any more."""
        if self._fetching is not None:
            self._fetching.end()

    def freeze(self, *partitions: int) -> None:
        """Follow these no further, without any: none at all."""
        assert self._fetching is not None
        self._fetching.held.update(partitions or range(self.partitions))

    def thaw(self, *partitions: int) -> None:
        """Follow them again, from where they were left."""
        assert self._fetching is not None
        self._fetching.held.difference_update(partitions or range(self.partitions))
        self._fetching.notice()

    def lag(self, until_s: float) -> None:
        """Follow nothing before that, in the loop's time."""
        assert self._fetching is not None
        self._fetching.stale_until = until_s

    def append(
        self,
        key: str,
        value: bytes,
        facts: RecordFacts,
        carrier: Mapping[str, str],
        failed: Callable[[SendError], None],
    ) -> None:
        """See Log."""
        headers = [("ce_type", facts.kind), ("ce_id", facts.id), *carrier.items()]
        self._producer.send_quietly(self.name, key, value, headers, failed)

    def ends(self, partitions: Collection[int] | None = None) -> asyncio.Future[Ends]:
        """See Log."""
        answer: asyncio.Future[Ends] = self._broker.loop.create_future()
        requested = set(range(self.partitions) if partitions is None else partitions)
        wanted, until_s = requested - self.leaderless, self._broker.loop.time() + ENDS_TIMEOUT_S
        if wanted or not requested:
            self._request_ends(answer, wanted, until_s)
        else:
            self._broker.loop.call_at(until_s, _unknown, answer, context=self._broker.outside)
        return answer

    async def trim(self, before: Mapping[int, int], appended_before_ms: int) -> Ends:
        """See Log."""
        await self.ends()
        return {p: self._broker.trim(self.name, p, offset, appended_before_ms) for p, offset in before.items()}

    def _request_ends(self, answer: asyncio.Future[Ends], wanted: Collection[int], until_s: float) -> None:
        broker, back_s = self._broker, self._broker.back_s
        if answer.done():
            return
        if back_s is None:
            answer.set_result({p: len(broker.log(self.name, p)) for p in wanted})
        elif back_s < until_s:
            broker.loop.call_at(back_s, self._request_ends, answer, wanted, until_s, context=broker.outside)
        else:
            broker.loop.call_at(until_s, _unknown, answer, context=broker.outside)


def _unknown(answer: asyncio.Future[Ends]) -> None:
    if not answer.done():
        answer.set_exception(EndsUnknownError("Local: Timed out"))
