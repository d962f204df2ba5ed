"""A job's surroundings in memory: the stream as a list, the store, nodes of one process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from distributed_ingest.feed import Feed, Reach, Scene
from distributed_ingest.job import Definition, Job
from distributed_ingest.outlet import Outlet
from distributed_ingest.records import Event, KeyRule
from distributed_ingest.sink import SinkError, StreamEndedError
from distributed_ingest.tally import Tally
from harness import eventually_async
from sluice_coordination import DocumentStore, Functions, LeaseSettings, Node, NodeSettings, SourceState
from sluice_coordination.memory import MemoryStore

SETTINGS = NodeSettings(
    workers=2, look_s=0.02, pause_s=0.001, lease=LeaseSettings(lease_s=20.0, margin_s=2.0, retry_s=0.05)
)
STORE_TIMEOUT_S = 2.0
SOON_S = 60.0


class MemorySink:
    """Twin of the stream.

    While `open` is not set it takes nothing, `closes_after` so many batches that is so; `fails`: how often it refuses;
    `ended`: it never takes anything.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.open = asyncio.Event()
        self.open.set()
        self.fails = 0
        self.ended = False
        self.closes_after = 0
        self.writes = 0
        self.transactions: list[MemoryTransaction] = []

    @property
    def texts(self) -> list[str]:
        return [event.data.decode() for event in self.events]

    async def write(self, events: Sequence[Event]) -> None:
        self.writes += 1
        await self.open.wait()
        if self.ended:
            raise StreamEndedError("the stream has ended")
        if self.fails:
            self.fails -= 1
            raise SinkError("the stream is away")
        self.events += events
        if self.writes == self.closes_after:
            self.open.clear()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["MemoryTransaction"]:
        """Left open at the end of the block, as by a process that was killed."""
        self.transactions.append(MemoryTransaction(self, str(len(self.transactions))))
        yield self.transactions[-1]

    async def is_committed(self, id: str) -> bool:
        found = self.transactions[int(id)]
        if found.state == "OPEN":
            found.state = "ABORTED"
        return found.state == "COMMITTED"


@dataclass
class MemoryTransaction:
    """Its events come into the sink with its commit. `loses_answer`: of which nobody learns."""

    sink: MemorySink
    id: str
    state: str = "OPEN"
    events: list[Event] = field(default_factory=list)
    loses_answer: bool = False

    async def write(self, events: Sequence[Event]) -> None:
        await self.sink.open.wait()
        if self.state != "OPEN":
            raise SinkError("the transaction has ended")
        self.events += events

    async def commit(self) -> None:
        if self.state != "OPEN":
            raise SinkError("the transaction has ended")
        self.state = "COMMITTED"
        await self.sink.write(self.events)
        if self.loses_answer:
            raise SinkError("no answer")


@dataclass
class World:
    """One job on one store. `definition` is of a folder unless changed."""

    store: DocumentStore = field(default_factory=lambda: MemoryStore(STORE_TIMEOUT_S))
    sink: MemorySink = field(default_factory=MemorySink)
    tally: Tally = field(default_factory=Tally)
    kind: Any = "folder"
    records: Any = "lines"
    key: str = "none"
    options: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def scene(self, *, once: bool = False) -> Scene:
        definition = Definition(self.kind, ("here",), "demo/lines", self.records, self.key, self.options)
        outlet = Outlet(self.sink, KeyRule(self.key), self.tally, pauses_s=(0.01, 0.01))
        return Scene(self.store, Job("job", definition), outlet, once, settle_s=0.05, tell=self.said.append)

    @asynccontextmanager
    async def node(self, feed: Feed, settings: NodeSettings = SETTINGS) -> AsyncIterator[Node]:
        await feed.open()
        functions = Functions()
        feed.register(functions)
        try:
            async with Node(
                self.store, "ingest/job/board", functions, settings=settings, sources=[feed.source()]
            ) as node:
                yield node
        finally:
            await feed.close()

    async def run_to_completion(self, feed: Feed) -> None:
        """One node, until everything that was there is in the stream."""
        async with self.node(feed):
            await self.until_finished(feed)

    async def reach(self, feed: Feed) -> Reach:
        found = await self.store.get(f"ingest/job/board/source/{feed.source().name}")
        return await feed.reach(SourceState() if found is None else msgspec.convert(found.body, SourceState))

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        await eventually_async(condition, SOON_S, what)

    async def until_finished(self, feed: Feed) -> None:
        async def finished() -> bool:
            return (await self.reach(feed)).finished

        await eventually_async(finished, SOON_S, "everything that was there is through")
