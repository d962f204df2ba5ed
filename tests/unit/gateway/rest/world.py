"""What the HTTP application stands on in these tests."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import httpx
from confluent_kafka import Message
from unit.gateway.memory import PARTITIONS, MemoryRuntime

from api_gateway.reads import Reads
from api_gateway.requests import Requests
from api_gateway.rest.app import build_app, open_app
from api_gateway.rest.backend import Backend
from api_gateway.rest.dead_letters import DeadLetters
from api_gateway.rest.signs_of_life import SignsOfLife
from sluice.messaging.dead_letters import DeadLettersUnavailableError
from sluice.messaging.partition import partition_of
from sluice.messaging.requests import Headers
from sluice.messaging.topics import DEAD_LETTERS
from sluice.segmentstore.memory import InMemorySegmentStore

CONTAINERS = 4
FIRST_AT = 1_700_000_000_000


class FakeMessage:
    """A record as a consumer hands it out."""

    def __init__(self, topic: str, partition: int, offset: int, at: int, key: str, value: bytes, headers: Headers):
        self._place = topic, partition, offset
        self._at, self._key, self._value = at, key, value
        self._headers = [(name, text.encode() if isinstance(text, str) else text) for name, text in headers]

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self._place[2]

    def timestamp(self) -> tuple[int, int]:
        return 2, self._at

    def key(self) -> bytes:
        return self._key.encode()

    def value(self) -> bytes:
        return self._value

    def headers(self) -> Any:
        return self._headers

    def error(self) -> None:
        return None


class MemoryKafka:
    """A producer and the topic of dead letters. `gone` are places that retention has removed; `away`: no answer.

    `told` counts the records that were read; `meanwhile` is done once, before the next record is sent.
    """

    def __init__(self) -> None:
        self.log: list[list[FakeMessage]] = [[] for _ in range(PARTITIONS)]
        self.sent: list[tuple[str, str, bytes, Headers]] = []
        self.gone: set[tuple[int, int]] = set()
        self.away = False
        self.reads = self.told = 0
        self.meanwhile: Callable[[], None] = lambda: None
        self._count = 0

    def send(self, topic: str, key: str, value: bytes, headers: Headers) -> asyncio.Future[None]:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        self.sent.append((topic, key, value, headers))
        if topic == DEAD_LETTERS.name:
            self.append(key, value, headers)
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sent.set_result(None)
        return sent

    def append(self, key: str, value: bytes, headers: Headers) -> tuple[int, int]:
        """Where the record stands."""
        partition = partition_of(key, PARTITIONS)
        offset = len(self.log[partition])
        self._count += 1
        at = FIRST_AT + self._count
        self.log[partition].append(FakeMessage(DEAD_LETTERS.name, partition, offset, at, key, value, headers))
        return partition, offset

    def letter(self, key: str, value: bytes, topic: str = "sluice.commit", reason: str = "why", **more: str) -> Any:
        """Append a dead letter; where it stands."""
        headers: Headers = [
            ("sluice_reason", reason),
            ("sluice_service", "txn-manager/a"),
            *([("sluice_topic", topic)] if topic else []),
            ("sluice_offset", "7"),
            *more.items(),
        ]
        return self.append(key, value, headers)

    def read(self, begin: Mapping[int, int], end: Mapping[int, int], on_message: Callable[[Message], None]) -> None:
        self.reads += 1
        if self.away:
            raise DeadLettersUnavailableError("nothing came")
        for partition, offset in begin.items():
            for message in self.log[partition][offset : end.get(partition, len(self.log[partition])) + 1]:
                if (partition, message.offset()) not in self.gone:
                    self.told += 1
                    on_message(cast(Message, message))


class World:
    """The application, and everything behind it."""

    client: httpx.AsyncClient

    def __init__(self, max_pending: int = 100) -> None:
        self.runtime = MemoryRuntime()
        self.process = SimpleNamespace(checks={}, degraded={}, facts={})
        self.kafka = MemoryKafka()
        self.store = InMemorySegmentStore()
        self.signs_of_life = SignsOfLife()
        self.max_pending = max_pending
        self.app = build_app(cast(Any, self.process), max_calls=100)

    def open(self) -> None:
        """The journal is loaded."""
        runtime: Any = self.runtime
        backend = Backend(
            reads=Reads(runtime.journal),
            requests=Requests(runtime, self.max_pending, 5),
            store=self.store,
            dead_letters=DeadLetters(self.kafka.read, cast(Any, self.kafka), PARTITIONS, "api-gateway/test"),
            signs_of_life=self.signs_of_life,
            container_count=CONTAINERS,
        )
        open_app(self.app, backend)

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
