"""A world with one stream-workflows in it at a time, which can be killed at any touch of the outside.

What was appended stays, what was acknowledged and committed is not delivered a second time, and the next process begins
from that.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from simulation.chance import SEED
from simulation.processes import Process, System, WorkflowProcess, touch_store
from support.cancellation import cancellation

from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.domain.model import JournalEntry
from sluice.domain.names import key_of
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.events import ScopeDeleted
from sluice.domain.stream.state import Stream
from sluice.domain.table.state import Table
from sluice.domain.workflow import CancelWorkflow, Workflow, running
from sluice.engine.fold import PartitionView
from sluice.kafka.requests import Request, decode_request
from sluice.kafka.topics import DEAD_LETTERS, JOURNAL, REQUESTS_STREAMS
from sluice.memory.broker import MemoryMessage
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from stream_workflows.settings import WorkflowSettings

PARTITIONS = 4
MAX_WAIT_S = 600.0
_SETTINGS = WorkflowSettings(instance="0", partitions=PARTITIONS)


class World(System):
    """`crashes` are the numbers of touches after which the process dies, `failing` the requests that segment stores do
    not answer, `away` how the names of segments begin that are out of reach, `outlived` the scopes that went before
    what was in them. `max_steps` bounds the steps carried out at once.
    """

    store: InMemorySegmentStore

    def __init__(self, max_steps: int = 256, random: Random | None = None) -> None:
        super().__init__(random or Random(SEED), PARTITIONS)
        self.store = InMemorySegmentStore(self._touch_store, self.now_ms)
        self.truth.on_entry.append(self._note_outlived)
        self.crashes: list[int] = []
        self.failing: set[str] = set()
        self.away: tuple[str, ...] = ()
        self.touches = 0
        self.outlived: list[str] = []
        self._settings = _SETTINGS.model_copy(update={"max_steps": max_steps})
        self.process = self.start(WorkflowProcess, self._settings)

    @property
    def journal(self) -> list[list[MemoryMessage]]:
        return self.broker.logs(JOURNAL.name)

    @property
    def requests(self) -> list[list[MemoryMessage]]:
        return self.broker.logs(REQUESTS_STREAMS.name)

    @property
    def dead_letters(self) -> list[bytes]:
        """What could not be handled."""
        return [message.value() for log in self.broker.logs(DEAD_LETTERS.name) for message in log]

    def view(self, key: str) -> PartitionView:
        return self.truth.view(key)

    def cancellation(self, aggregate: str) -> CancelWorkflow:
        """See support.cancellation."""
        return cancellation(self.view(key_of(aggregate)), aggregate)

    def states(self) -> dict[str, Any]:
        """All aggregates that exist."""
        return self.truth.states()

    # What the process touches.

    def touched(self, process: Process, _what: str) -> None:
        """The process dies here if its number of touches is up."""
        self.touches += 1
        if self.crashes and self.touches > self.crashes[0]:
            self.crashes.pop(0)
            self.touches = 0
            self.kill(process)
            self.loop.call_soon(self._begin_anew, context=self.loop.outside)

    def _touch_store(self, moment: Moment, request: str, segment: str) -> None:
        if request in self.failing or segment.startswith(self.away):
            raise ConnectionFailure(Failure.TIMED_OUT)
        touch_store(f"{moment} {request}")

    def heal(self) -> None:
        """From now on segment stores reply to everything."""
        self.failing, self.away = set(), ()

    def workflow(self, aggregate: str) -> Workflow | None:
        return running(self.view(key_of(aggregate)).get(aggregate))

    def _begin_anew(self) -> None:
        self.process = self.start(WorkflowProcess, self._settings)

    def restart(self) -> None:
        """Have the process die here and now, and begin anew."""
        self.kill(self.process)
        self._begin_anew()

    def redeliver(self) -> None:
        """Restart with no offset committed: every request there ever was is delivered a second time."""
        self.kill(self.process)
        for group in self.groups.all.values():
            group.lose_offsets()
        self._begin_anew()

    def _note_outlived(self, _partition: int, entry: JournalEntry) -> None:
        self.outlived += [
            f"{event.scope} by {state.id.name}"
            for event in entry.events
            if isinstance(event, ScopeDeleted)
            for state in self.states().values()
            if isinstance(state, Stream | ReaderGroup | Table) and state.id.scope == event.scope
        ]

    # What the outside does.

    async def ask(self, command: Command, crashes: Sequence[int] = ()) -> Reply:
        """Send a request and return its reply, once everything it set off has come to rest."""
        self.crashes, self.touches = list(crashes), 0
        id = self.post(command)
        await self.until(lambda: self.is_at_rest() and self.reply(id) is not None)
        self.crashes = []
        reply = self.reply(id)
        assert reply is not None
        return reply

    async def do(self, command: Command) -> str:
        """The status of the reply, whatever else is under way."""
        return (await self.replied(self.post(command))).status

    async def replied(self, id: str) -> Reply:
        """The reply to a request that was sent, once it is there."""
        await self.until(lambda: self.reply(id))
        reply = self.reply(id)
        assert reply is not None
        return reply

    async def until(self, holds: Callable[[], object]) -> None:
        """Let time pass until the condition holds."""
        async with asyncio.timeout(MAX_WAIT_S):
            while not holds():  # noqa: ASYNC110 - looking is cheap, time is virtual
                await asyncio.sleep(0.01)

    def is_at_rest(self) -> bool:
        """Whether the process has everything, and has nothing to do."""
        process = self.process
        consumer = process.consumer
        is_idle = process.is_running and consumer.is_idle and not consumer.open_requests
        return is_idle and len(consumer.partitions) == PARTITIONS and self._all_delivered()

    def _all_delivered(self) -> bool:
        positions, committed = self.process.consumer.positions(), self.groups.group(REQUESTS_STREAMS.name).committed
        views = self.process.journal.views()
        return all(positions.get(p, committed[p])[1] >= len(log) for p, log in enumerate(self.requests)) and all(
            view.next_offset == len(log) for view, log in zip(views, self.journal, strict=True)
        )

    def requested(self, kind: type) -> list[Request]:
        """The requests for commands of a kind, as they stand in the topic."""
        requests = (decode_request(message.value()) for log in self.requests for message in log)
        return [request for request in requests if isinstance(request.command, kind)]
