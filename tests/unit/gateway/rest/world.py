"""What the HTTP application stands on in these tests."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx
from support.wait import SOON_S
from unit.gateway.system import CONTAINERS, PARTITIONS, MemorySystem

from api_gateway.app import build_app, open_app
from api_gateway.console.dead_letters import DeadLetters
from api_gateway.console.demonstration import Demonstration
from api_gateway.console.feed.feeds import Feeds, Hello
from api_gateway.console.feed.watch import ChangeWatch
from api_gateway.console.group_readers import GroupReaders
from api_gateway.console.last_hour import LastHour
from api_gateway.console.lookback import Lookback
from api_gateway.console.overview import Overview
from api_gateway.console.partitions import Partitions
from api_gateway.console.rates import Rates
from api_gateway.console.statistics import Statistics
from api_gateway.console.stored_data import StoredData
from api_gateway.console.stream_groups import StreamGroups
from api_gateway.console.stream_loads import StreamLoads
from api_gateway.console.table_sizes import TableSizes
from api_gateway.console.tally import Tally
from api_gateway.console.what_ifs import WhatIfs
from api_gateway.console.written import Written
from api_gateway.edge.containers import Containers
from api_gateway.edge.group_states import GroupStates
from api_gateway.edge.heartbeats import LastHeartbeats
from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.edge.security.browsers import Browsers
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.sessions import Sessions
from api_gateway.edge.worker import Worker
from api_gateway.settings import GatewaySettings
from sluice.domain.cluster.events import ContainersAssigned
from sluice.domain.host import Host
from sluice.engine.ports import Clock, Message, PartitionProgress
from sluice.kafka.dead_letters import DeadLettersUnavailableError
from sluice.kafka.group_progress import GroupsUnavailableError
from sluice.kafka.headers import Headers
from sluice.kafka.requests import Request
from sluice.kafka.topics import DEAD_LETTERS
from sluice.lookback.memory import MemoryLookback
from sluice.memory.broker import MemoryBroker, MemoryMessage
from sluice.pravega.memory import InMemorySegmentStore
from sluice.pravega.store import SegmentStore

OFFSET_OF_ORIGIN = "7"


def as_text(at_ms: int) -> str:
    """A time as calls take it; numbers have to be large, and those of these tests are small."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


CLUSTER_NAME = "test-cluster"
MAX_FEEDS = 60


class Letters:
    """The topic of dead letters. `gone` are records that retention has removed; `away`: no answer."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.gone: set[tuple[int, int]] = set()
        self.away = False
        self.records_read = 0
        self._broker = broker

    def append(self, key: str, value: bytes, headers: Headers) -> tuple[int, int]:
        """Where the record stands."""
        message = self._broker.land(DEAD_LETTERS.name, key, value, headers)
        return message.partition(), message.offset()

    def letter(
        self, key: str, value: bytes, topic: str = "sluice.commit", reason: str = "why", **more: str
    ) -> tuple[int, int]:
        """Append a dead letter; where it stands."""
        headers: Headers = [
            ("sluice_reason", reason),
            ("sluice_service", "txn-manager/a"),
            *([("sluice_topic", topic)] if topic else []),
            ("sluice_offset", OFFSET_OF_ORIGIN),
            *more.items(),
        ]
        return self.append(key, value, headers)

    def read(self, begin: Mapping[int, int], end: Mapping[int, int], on_message: Callable[[Message], None]) -> None:
        """As `read_dead_letters` does."""
        if self.away:
            raise DeadLettersUnavailableError("nothing came")
        for message in self._between(begin, end):
            if (message.partition(), message.offset()) not in self.gone:
                self.records_read += 1
                on_message(message)

    def _between(self, begin: Mapping[int, int], end: Mapping[int, int]) -> Iterator[MemoryMessage]:
        for partition, offset in begin.items():
            log = self._broker.log(DEAD_LETTERS.name, partition)
            yield from log[offset : end.get(partition, len(log)) + 1]


class Groups:
    """How far the consumers of requests are. `fetched` counts how often that was read; `away`: none can be."""

    def __init__(self) -> None:
        self.items: list[PartitionProgress] = []
        self.fetched = 0
        self.away = False

    def fetch(self, _now_ms: int) -> list[PartitionProgress]:
        """As `GroupProgress.fetch` does."""
        self.fetched += 1
        if self.away:
            raise GroupsUnavailableError("Kafka does not say how far consumers are")
        return self.items

    def close(self) -> None:
        """There is nothing to close."""


class World:
    """The application, and everything behind it. Call `start` before anything else, and `stop` at the end.

    `meanwhile` is done once, before this process next sends a record about a dead letter.
    """

    client: httpx.AsyncClient
    parts: dict[Any, Any]

    def __init__(
        self,
        max_pending: int = 100,
        guard: Guard | None = None,
        browsers: Browsers | None = None,
        sessions: Sessions | None = None,
        broker: MemoryBroker | None = None,
        connections: int = 200,
    ) -> None:
        settings = GatewaySettings(instance="test", container_count=CONTAINERS)
        self.system = MemorySystem(settings, self._touch, broker)
        self.runtime = self.system.runtime
        self.letters = Letters(self.system.broker)
        self.last_heartbeats = LastHeartbeats()
        self.lookback = MemoryLookback(self.system.broker)
        self.statistics = Statistics(PARTITIONS)
        self.written = Written()
        self.demonstration = Demonstration(
            lambda: "127.0.0.1:9090", self.system.broker.now_ms, "there is no client here"
        )
        self.max_pending = max_pending
        self.meanwhile: Callable[[], Any] = lambda: None
        self.groups = Groups()
        self.app = build_app(self.runtime, connections, guard, browsers or Browsers(), sessions)

    @property
    def store(self) -> InMemorySegmentStore:
        return self.system.store

    @property
    def sent(self) -> list[tuple[str, Request]]:
        """The requests of this gateway, each with its topic."""
        return self.system.sent

    async def cover_containers(self) -> Host:
        """The segment store that runs all containers from now on."""
        host = Host("store", 1)
        await self.system.append(
            "cluster", ContainersAssigned(containers=dict.fromkeys(range(CONTAINERS), host), hosts=(host,), at=5)
        )
        return host

    async def start(self) -> None:
        """Load the journal and answer from then on."""
        await self.system.start()
        journal, clock, letters = self.runtime.journal, self.runtime.clock, self.dead_letters()
        watch = ChangeWatch(journal)
        tally = Tally(journal, watch)
        reads, worker = Reads(journal), Worker()
        hello, states = Hello(CLUSTER_NAME, ""), GroupStates(self.store, reads, worker)
        rates = Rates(self.store, reads.known_stream, clock.now_ms)
        readers = GroupReaders(states, self.store, reads, worker, clock, self.lookback)
        groups = StreamGroups(reads, readers)
        self.parts = {
            Reads: reads,
            Requests: Requests(self.runtime, self.max_pending, SOON_S),
            Clock: clock,
            SegmentStore: self.store,
            Worker: worker,
            Containers: Containers(reads, CONTAINERS),
            LastHeartbeats: self.last_heartbeats,
            GroupStates: states,
            DeadLetters: letters,
            Statistics: self.statistics,
            Demonstration: self.demonstration,
            Hello: hello,
            Feeds: Feeds(watch, clock, hello, MAX_FEEDS),
            Overview: Overview(journal, tally, letters, clock),
            LastHour: LastHour(journal, reads, tally, self.written, clock),
            Partitions: Partitions(self.groups, clock),
            Lookback: self.lookback,
            Rates: rates,
            WhatIfs: WhatIfs(),
            GroupReaders: readers,
            StreamGroups: groups,
            TableSizes: TableSizes(self.store),
            StreamLoads: StreamLoads(rates, groups, worker, reads.known_stream),
            StoredData: StoredData(self.store, is_shown=True),
        }
        open_app(self.app, self.parts)

    async def stop(self) -> None:
        for kind in (Feeds, Overview, Partitions, Rates, StreamGroups, TableSizes):
            await self.parts[kind].stop()
        await self.system.stop()

    def dead_letters(self) -> DeadLetters:
        """What a process knows of dead letters that has just begun."""
        runtime, chance = self.runtime, self.system.connections.chance
        return DeadLetters(self.letters.read, runtime.producer, PARTITIONS, runtime.source, runtime.clock, chance)

    def records(self, topic: str) -> list[MemoryMessage]:
        """All there are, partition by partition."""
        return [message for log in self.system.broker.logs(topic) for message in log]

    async def until_idle(self, key: str, aggregate: str) -> None:
        """Return once no workflow changes the aggregate."""
        await self.runtime.journal.until(key, lambda view: aggregate not in view.under_way())

    def _touch(self, what: str) -> None:
        if what == f"append to {DEAD_LETTERS.name}":
            meanwhile, self.meanwhile = self.meanwhile, lambda: None
            meanwhile()

    async def call(self, method: str, path: str, body: Any = None, **query: Any) -> httpx.Response:
        """The answer; a body that is bytes is sent as it is."""
        if isinstance(body, bytes):
            headers = {"Content-Type": "application/json"}
            return await self.client.request(method, path, content=body, headers=headers, params=query or None)
        return await self.client.request(method, path, json=body, params=query or None)

    async def get(self, path: str, **query: Any) -> Any:
        """The body of an answer that must be a good one."""
        answer = await self.call("GET", path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def all_items(self, path: str, **query: Any) -> list[Any]:
        """The items of a list, read two a page."""
        items: list[Any] = []
        after: str | None = ""
        while after is not None:
            page = await self.get(path, limit=2, after=after, **query)
            assert len(page["items"]) <= 2
            items += page["items"]
            after = page.get("next")
        return items
