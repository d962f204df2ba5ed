"""What the HTTP application stands on in these tests."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
from unit.gateway.system import CONTAINERS, PARTITIONS, MemorySystem

from api_gateway.reads import Reads
from api_gateway.requests import Requests
from api_gateway.rest.app import build_app, open_app
from api_gateway.rest.backend import Backend
from api_gateway.rest.dead_letters import DeadLetters
from api_gateway.rest.heartbeats import LastHeartbeats
from api_gateway.rest.statistics import Statistics
from api_gateway.security.guard import Guard
from api_gateway.settings import GatewaySettings
from sluice.engine.ports import Message
from sluice.kafka.dead_letters import DeadLettersUnavailableError
from sluice.kafka.headers import Headers
from sluice.kafka.requests import Request
from sluice.kafka.topics import DEAD_LETTERS
from sluice.memory.broker import MemoryBroker, MemoryMessage
from sluice.pravega.memory import InMemorySegmentStore

OFFSET_OF_ORIGIN = "7"


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


class World:
    """The application, and everything behind it. Call `start` before anything else, and `stop` at the end.

    `meanwhile` is done once, before this process next sends a record about a dead letter.
    """

    client: httpx.AsyncClient

    def __init__(self, max_pending: int = 100, guard: Guard | None = None) -> None:
        settings = GatewaySettings(instance="test", container_count=CONTAINERS)
        self.system = MemorySystem(settings, self._touch)
        self.runtime = self.system.runtime
        self.letters = Letters(self.system.broker)
        self.last_heartbeats = LastHeartbeats()
        self.statistics = Statistics(PARTITIONS)
        self.max_pending = max_pending
        self.meanwhile: Callable[[], Any] = lambda: None
        self.app = build_app(self.runtime, max_calls=100, guard=guard)

    @property
    def store(self) -> InMemorySegmentStore:
        return self.system.store

    @property
    def sent(self) -> list[tuple[str, Request]]:
        """The requests of this gateway, each with its topic."""
        return self.system.sent

    async def start(self) -> None:
        """Load the journal and answer from then on."""
        await self.system.start()
        backend = Backend(
            reads=Reads(self.runtime.journal),
            requests=Requests(self.runtime, self.max_pending, 5),
            store=self.store,
            dead_letters=self.dead_letters(),
            last_heartbeats=self.last_heartbeats,
            statistics=self.statistics,
            container_count=CONTAINERS,
            clock=self.runtime.clock,
        )
        open_app(self.app, backend)

    async def stop(self) -> None:
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
