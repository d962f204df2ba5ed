"""What all simulations have: the twin of Kafka, segment stores, and processes that can be killed and frozen.

A process is the production `Runtime` with a service on it; only what it connects to is in memory. Whatever it does to
the outside is a touch, at which it may be killed or frozen. `Truth` is what the journal says, folded as it grows.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextvars import ContextVar
from random import Random
from typing import Any, TypeVar

from simulation.lives import LIFE, Killed, Life, Living, SimulationLoop
from simulation.violation import Violation

from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.domain.model import DomainModel, JournalEntry, JournalRecord
from sluice.engine.consumer import CONTROL_HEADER
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.partition import partition_keys, partition_of
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import JOURNAL, is_control, topic_of
from sluice.memory.broker import MemoryBroker, MemoryMessage
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.pravega.store import SegmentStore
from sluice.runtime import Runtime
from sluice.settings import ServiceSettings
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings

OnEntry = Callable[[int, JournalEntry], None]
OnRequest = Callable[[MemoryMessage], None]
OnRecord = Callable[[MemoryMessage, JournalRecord, list[Outcome]], None]
P = TypeVar("P", bound="Process")

LOOK_S = 0.25
"""How often violations are looked for."""


class Truth:
    """The journal, folded as it lands. `replies` has all that count, by request.

    Listeners may raise Violation; the first one is kept, and nothing is listened to any more.
    """

    def __init__(self, broker: MemoryBroker) -> None:
        keys = partition_keys(broker.partitions)
        self.model = DomainModel()
        self.views = [PartitionView(self.model, key, self.view, lambda: self.views) for key in keys]
        self.replies: dict[str, list[Reply]] = {}
        self.violation: Violation | None = None
        self.on_request: list[OnRequest] = []
        """Called with each record of other topics."""
        self.on_record: list[OnRecord] = []
        """Called with each record of the journal, before its replies are passed on."""
        self.on_entry: list[OnEntry] = []
        """Called with the partition and each entry that counts, after its record was folded."""
        broker.on_landed.append(self._landed)

    def view(self, key: str) -> PartitionView:
        return self.views[partition_of(key, len(self.views))]

    def states(self) -> dict[str, Any]:
        """All aggregates that exist."""
        return {name: state for view in self.views for name, state in view.aggregates()}

    def reply(self, request: str) -> Reply | None:
        """The reply to a request, if there is one."""
        return self.replies.get(request, [None])[0]

    def _landed(self, message: MemoryMessage) -> None:
        try:
            if self.violation is None:
                self._listen(message)
        except Violation as violation:
            self.violation = violation

    def _listen(self, message: MemoryMessage) -> None:
        if message.topic() != JOURNAL.name:
            for on_request in self.on_request:
                on_request(message)
            return
        record = self.model.decode(message.value())
        outcomes = self.views[message.partition()].fold(record, message.offset(), message.timestamp()[1])
        for on_record in self.on_record:
            on_record(message, record, outcomes)
        for entry, outcome in zip(record.entries, outcomes, strict=True):
            if outcome is not Outcome.COUNTED:
                continue
            if entry.request is not None and entry.reply is not None:
                self.replies.setdefault(entry.request, []).append(entry.reply)
            for on_entry in self.on_entry:
                on_entry(message.partition(), entry)


PROCESS: ContextVar["Process"] = ContextVar("process")


class Process:
    """One process of a service. `fuse` is how many touches are left, and what happens then."""

    name = ""
    loads_snapshots = False
    """Else it has the whole journal at once: nothing is trimmed then."""

    def __init__(self, system: "System", number: int, settings: ServiceSettings) -> None:
        self.system = system
        # Of two processes one has its aggregates at rest: both must know and do the same.
        warm = 0 if number % 2 else settings.warm_aggregates
        self.settings = settings.model_copy(update={"instance": str(number), "warm_aggregates": warm})
        self.source = f"{self.name}/{number}"
        self.fuse: tuple[int, Callable[[Process], None]] | None = None
        self.life = Life(self.source, self.touch)
        self.life.context.run(PROCESS.set, self)
        self.life.context.run(self._begin)

    def _begin(self) -> None:
        loads = self.loads_snapshots
        self.connections = MemoryConnections(self.system.groups, self, self.touch, loads_snapshots=loads)
        self.runtime = Runtime(self.name, self.settings, self.connections)
        self.journal = self.runtime.journal
        if not loads:
            # What is there comes at once. A journal that loads freezes what the collector knows, each time for ever.
            self.journal.loaded.set()
        self.journal.start()
        if loads:
            self.system.loop.create_task(self._serve_once_loaded())
        else:
            self.serve()

    async def _serve_once_loaded(self) -> None:
        await self.journal.loaded.wait()
        self.serve()

    def serve(self) -> None:
        """Put the service together and start it."""
        raise NotImplementedError

    @property
    def is_running(self) -> bool:
        return self.life.living is Living.RUNNING

    def touch(self, what: str) -> None:
        """Every call that reaches the outside comes by here, before and after; it may be the last."""
        self.system.touched(self, what)
        if self.fuse is not None:
            left, action = self.fuse
            self.fuse = (left - 1, action) if left > 0 else None
            if left <= 0:
                action(self)
        if self.life.living is Living.DEAD:
            raise Killed


class WorkflowProcess(Process):
    name = "stream-workflows"

    def serve(self) -> None:
        assert isinstance(self.settings, WorkflowSettings)
        self.service = WorkflowService(self.runtime, self.settings, self.system.store)
        self.consumer = self.service.consumer
        self.consumer.start()


def touch_store(what: str) -> None:
    """Called by segment stores around each request, in the life of the process that makes it."""
    life = LIFE.get()
    if life is not None:
        life.touch(what)


class System:
    """The outside of all processes, and the processes. All chance comes from `random`."""

    store: SegmentStore

    def __init__(self, random: Random, partitions: int, delays_s: Sequence[float] = (0.0,)) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulationLoop)
        self.loop = loop
        self.random = random
        self.partitions = partitions
        self.broker = MemoryBroker(partitions, random, delays_s)
        self.broker.is_running = _is_running
        self.groups = MemoryGroups(self.broker)
        self.truth = Truth(self.broker)
        self.processes: list[Process] = []
        self.posted: dict[str, Command] = {}
        """What was requested from the outside, by the id of the request."""
        self._numbers = iter(range(1, 1_000_000))

    def now_ms(self) -> int:
        return self.broker.now_ms()

    # Processes.

    def start(self, kind: type[P], settings: ServiceSettings) -> P:
        process = kind(self, next(self._numbers), settings)
        self.processes.append(process)
        return process

    def kill(self, process: Process) -> None:
        """As kill -9 does. Who kills from within the process raises Killed."""
        self.loop.kill(process.life)
        self.processes.remove(process)
        process.connections.log.close()
        for group in self.groups.all.values():
            group.lose(process)

    def freeze(self, process: Process) -> None:
        self.loop.freeze(process.life)
        for group in self.groups.all.values():
            group.lose(process)

    def thaw(self, process: Process, stale_s: float) -> None:
        """It goes on with what it knew; what was appended since it learns a little later."""
        if process.life.living is not Living.FROZEN:
            return
        process.connections.log.lag(self.loop.now + stale_s)
        self.loop.thaw(process.life)
        for group in self.groups.all.values():
            group.wake(process)

    def running(self, kind: type[P]) -> list[P]:
        return [process for process in self.processes if isinstance(process, kind) and process.is_running]

    def frozen(self) -> Iterator[Process]:
        return (process for process in self.processes if process.life.living is Living.FROZEN)

    def touched(self, process: Process, what: str) -> None:
        """A process reaches the outside."""

    # Callers.

    def post(self, command: Command, principal: str = "") -> str:
        """Send a request as a gateway does, now or when the broker is back; its id."""
        id = f"request-{next(self._numbers)}"
        self.posted[id] = command
        value = encode_request(Request(id=id, at=self.now_ms(), by="gateway/0", command=command, principal=principal))
        headers = ((CONTROL_HEADER, "true"),) if is_control(command) else ()
        back_s = self.broker.back_s
        if back_s is None:
            self.broker.land(topic_of(command).name, command.key, value, headers)
        else:
            landing = (topic_of(command).name, command.key, value, headers)
            self.loop.call_at(back_s, self.broker.land, *landing, context=self.loop.outside)
        return id

    def reply(self, request: str) -> Reply | None:
        """The reply to a request, if there is one."""
        return self.truth.reply(request)

    async def run_all(self, doing: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Return when all have ended. Raises Violation soon after there is one."""
        tasks = [asyncio.ensure_future(each) for each in doing]
        try:
            waiting: set[asyncio.Task[None]] = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(tasks, timeout=LOOK_S)
                for task in done:
                    task.result()
                self.look()
        finally:
            for task in tasks:
                task.cancel()

    def look(self) -> None:
        """Raises Violation if one was found meanwhile, or something went wrong that was not caught."""
        if self.truth.violation is not None:
            raise self.truth.violation
        if self.loop.failures:
            raise Violation("; ".join(self.loop.failures))
        for process in self.processes:
            if process.journal.failed:
                raise Violation(f"{process.source}: {process.journal.failure}")

    def unanswered(self) -> list[str]:
        """The posted requests without a reply."""
        return [id for id in self.posted if id not in self.truth.replies]


def _is_running(process: object) -> bool:
    return isinstance(process, Process) and process.is_running
