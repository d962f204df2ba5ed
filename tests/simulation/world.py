"""A world in memory: the journal, the request topic and the segment stores, with one stream-workflows in it at a time.

The service, its consumer and its journal are the production code; only Kafka is two lists, and time is virtual. The
process can be killed at any moment at which it touches the outside: before or after each request to a segment store,
each append to the journal, each command sent on. What was appended stays, what was accepted is not delivered again,
and the next process begins from that.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from sluice.domain.aggregates import evolve
from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.domain.events import ScopeDeleted
from sluice.domain.group import ReaderGroup
from sluice.domain.stream.state import Stream
from sluice.domain.table import Table
from sluice.journal.barrier import Ends
from sluice.journal.journal import Journal
from sluice.journal.partition_view import Outcome, PartitionView
from sluice.journal.record import decode_record
from sluice.messaging.partition import partition_of
from sluice.messaging.producer import RecordTooLargeError
from sluice.messaging.requests import Headers, Request, encode_request
from sluice.messaging.topics import DEAD_LETTERS, JOURNAL, MAX_RECORD_BYTES, Topic
from sluice.segmentstore.failure import ConnectionFailure, Failure
from sluice.segmentstore.memory import InMemorySegmentStore, Moment
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings

PARTITIONS = 4
LONGEST_WAIT_S = 600.0


class Message:
    """As much of Kafka's message as the consumers look at."""

    def __init__(self, topic: str, partition: int, offset: int, key: str, value: bytes, at_ms: int) -> None:
        self._facts = (topic, partition, offset, key.encode(), value, at_ms)

    def topic(self) -> str:
        return self._facts[0]

    def partition(self) -> int:
        return self._facts[1]

    def offset(self) -> int:
        return self._facts[2]

    def key(self) -> bytes:
        return self._facts[3]

    def value(self) -> bytes:
        return self._facts[4]

    def timestamp(self) -> tuple[int, int]:
        return 1, self._facts[5]

    def headers(self) -> None:
        return None

    def error(self) -> None:
        return None


class _EndOffsets:
    def __init__(self, world: "World") -> None:
        self._world = world

    def ask(self) -> asyncio.Future[Ends]:
        answer: asyncio.Future[Ends] = asyncio.get_running_loop().create_future()
        answer.set_result({p: len(log) for p, log in enumerate(self._world.journal)})
        return answer


class _DeadLetters:
    """As much of KafkaProducer as keeps what could not be handled."""

    def __init__(self, world: "World") -> None:
        self._world = world

    async def send(self, topic: str, _key: str, value: bytes, _headers: Headers) -> None:
        assert topic == DEAD_LETTERS.name, topic
        self._world.dead_letters.append(value)


class Process:
    """One life of stream-workflows. Once dead it touches nothing any more."""

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.source = f"stream-workflows/{number}"
        self.name = "stream-workflows"
        self.alive = True
        self.producer = _DeadLetters(world)
        settings = WorkflowSettings(instance=str(number), partitions=PARTITIONS, max_handlers=world.max_handlers)
        self.settings = settings
        self.journal = Journal({}, self, self.source, PARTITIONS)  # type: ignore[arg-type]
        self.journal._ends = _EndOffsets(world)  # type: ignore[assignment]
        # While it loads, a journal freezes what the collector knows, each time for ever.
        self.journal.loaded.set()
        for log in world.journal:
            self.journal._on_batch(log)  # type: ignore[arg-type]
        self.service = WorkflowService(self, settings, world.store)  # type: ignore[arg-type]
        self.consumer = self.service.consumer
        self.consumer._assigned(list(range(PARTITIONS)))
        for partition, log in enumerate(world.requests):
            self.consumer._on_batch(log[world.committed[partition] :])  # type: ignore[arg-type]

    def request(self, id: str, command: Command) -> Request:
        return Request(id=id, at=self.world.now_ms(), by=self.source, command=command)

    def send(self, _topic: Topic, request: Request) -> asyncio.Future[None]:
        """Part of Runtime."""
        self.world.touch("send")
        self.world.append_request(request)
        self.world.touch("sent")
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sent.set_result(None)
        return sent

    def send_quietly(self, topic: str, key: str, value: bytes, _headers: Headers, _failed: Callable[..., None]) -> None:
        """Part of KafkaProducer."""
        assert topic == JOURNAL.name, topic
        if len(value) > self.world.most_bytes:
            raise RecordTooLargeError(f"{len(value)} bytes, the limit is {self.world.most_bytes}")
        self.world.touch("append")
        self.world.append_record(key, value)
        self.world.touch("appended")

    def is_idle(self) -> bool:
        consumer = self.consumer
        return not consumer._queues and not consumer._held

    def end(self) -> None:
        """Die: no task goes on. What is accepted is committed, as the last commit would have left it."""
        self.alive = False
        for partition, offsets in self.consumer._offsets.items():
            if offsets.position is not None:
                self.world.committed[partition] = offsets.position
        for _, task in self.consumer._tasks.values():
            task.cancel()
        for background in self.consumer._background:
            background.cancel()


class World:
    """Everything outside the process, and the process.

    `crashes` are the numbers of touches after which it dies, `failing` the requests that segment stores do not answer,
    `outlived` the scopes that went before what was in them, `dead_letters` what could not be handled, `told`
    the answers that nobody remembers. `max_handlers` bounds the keys worked on at once, `most_bytes` the records of the
    journal.
    """

    def __init__(self, max_handlers: int = 256) -> None:
        self.max_handlers = max_handlers
        self.journal: list[list[Message]] = [[] for _ in range(PARTITIONS)]
        self.requests: list[list[Message]] = [[] for _ in range(PARTITIONS)]
        self.committed = [0] * PARTITIONS
        self.store = InMemorySegmentStore(self._touch_store, self.now_ms)
        self.views = [PartitionView(evolve) for _ in range(PARTITIONS)]
        self.crashes: list[int] = []
        self.failing: set[str] = set()
        self.touched = 0
        self.outlived: list[str] = []
        self.dead_letters: list[bytes] = []
        self.told: dict[str, Reply] = {}
        self.most_bytes = MAX_RECORD_BYTES
        self._numbers = iter(range(1, 1_000_000))
        self.process = Process(self, 0)

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def view(self, key: str) -> PartitionView:
        return self.views[partition_of(key, PARTITIONS)]

    # What the process touches.

    def touch(self, _what: str) -> None:
        """The process may die here, if its number of touches is up."""
        self.touched += 1
        if not self.process.alive:
            raise asyncio.CancelledError
        if self.crashes and self.touched > self.crashes[0]:
            self.crashes.pop(0)
            self.touched = 0
            self.process.end()
            asyncio.get_running_loop().call_soon(self._restart)
            raise asyncio.CancelledError

    def _touch_store(self, moment: Moment, request: str, _segment: str) -> None:
        if request in self.failing:
            raise ConnectionFailure(Failure.TIMED_OUT)
        self.touch(moment)

    def _restart(self) -> None:
        self.process = Process(self, next(self._numbers))

    def restart(self) -> None:
        """Have the process die here and now, and begin again."""
        self.process.end()
        self._restart()

    def deliver_again(self) -> None:
        """Restart, with no offset committed and no answer remembered: every request there ever was comes again."""
        self.process.end()
        self.committed = [0] * PARTITIONS
        self._restart()
        for view in (*self.views, *self.process.journal.views()):
            view._answers.clear()

    def append_record(self, key: str, value: bytes) -> None:
        partition = partition_of(key, PARTITIONS)
        log = self.journal[partition]
        message = Message(JOURNAL.name, partition, len(log), key, value, self.now_ms())
        log.append(message)
        record = decode_record(value)
        outcome = self.views[partition].fold(record, message.offset(), message.timestamp()[1])
        if outcome is Outcome.COUNTED:
            self.told.update(record.answers)
            self.outlived += [
                f"{event.scope} by {state.name}"
                for event in record.events
                if isinstance(event, ScopeDeleted)
                for state in self.states().values()
                if isinstance(state, Stream | ReaderGroup | Table) and state.scope == event.scope
            ]
        asyncio.get_running_loop().call_soon(self.process.journal._on_batch, [message])  # type: ignore[arg-type]

    def append_request(self, request: Request) -> None:
        key = request.command.key
        partition = partition_of(key, PARTITIONS)
        log = self.requests[partition]
        message = Message("requests", partition, len(log), key, encode_request(request), self.now_ms())
        log.append(message)
        asyncio.get_running_loop().call_soon(self._deliver, self.process, message)

    def _deliver(self, process: Process, message: Message) -> None:
        # A process that began after the append has taken the record from the log by itself.
        if process is self.process and process.alive:
            process.consumer._on_batch([message])  # type: ignore[list-item]

    # What the outside does.

    async def ask(self, command: Command, crashes: Sequence[int] = ()) -> Reply:
        """Send a request as a gateway does and return its reply, once everything it set off has come to rest."""
        self.crashes, self.touched = list(crashes), 0
        id = self.post(command)
        await self.until(lambda: self._is_at_rest(id))
        self.crashes = []
        answer = self.answer(id)
        assert answer is not None
        return answer

    def post(self, command: Command) -> str:
        """Send a request and return its id."""
        id = f"request-{next(self._numbers)}"
        self.append_request(Request(id=id, at=self.now_ms(), by="gateway/0", command=command))
        return id

    async def until(self, holds: Callable[[], object]) -> None:
        """Let time pass until the condition holds."""
        async with asyncio.timeout(LONGEST_WAIT_S):
            while not holds():  # noqa: ASYNC110 - looking again costs nothing, time is virtual
                await asyncio.sleep(0.01)

    def _is_at_rest(self, request: str) -> bool:
        idle = self.process.alive and self.process.is_idle()
        return idle and self.answer(request) is not None and self._all_delivered()

    def _all_delivered(self) -> bool:
        return all(self._position(p) >= len(log) for p, log in enumerate(self.requests))

    def _position(self, partition: int) -> int:
        offsets = self.process.consumer._offsets[partition]
        return offsets.position if offsets.position is not None else self.committed[partition]

    def answer(self, request: str) -> Reply | None:
        """The reply to a request, if there is one."""
        return next((a for view in self.views if (a := view.answer(request)) is not None), self.told.get(request))

    def states(self) -> dict[str, Any]:
        """All aggregates that exist."""
        return {name: state for view in self.views for name, state in view.aggregates()}
