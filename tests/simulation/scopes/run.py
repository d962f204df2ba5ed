"""One run: everything it does follows from its seed. First anything may fail; then nothing does, and all must end.

At its end every request has one reply, no workflow is left, every follower knows the same, and in every scope things
can be created: none stays fenced.
"""

import asyncio
from random import Random

from simulation import invariants
from simulation.counting import Counting
from simulation.processes import LOOK_S, System, WorkflowProcess, touch_store
from simulation.scopes.callers import ONE, SCOPES, Callers
from simulation.scopes.faults import Faults
from simulation.scopes.rules import ScopeRules
from simulation.seeds import run_one
from simulation.stores import Stores
from simulation.violation import Violation

from sluice.domain.commands import Command
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream
from sluice.domain.workflow import running
from sluice.engine.partition import partition_keys, partition_of
from sluice.kafka.topics import DEAD_LETTERS
from sluice.memory.broker import MemoryMessage
from stream_workflows.settings import WorkflowSettings

PARTITIONS = 3
DELAYS_S = (0.0, 0.0, 0.0, 0.0005, 0.001, 0.003, 0.02)
SETTINGS = WorkflowSettings(instance="0", partitions=PARTITIONS)
QUIET_S = 240.0
"""How long after the last fault everything may take to end."""


class Run(System):
    """`seed` decides on everything."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        super().__init__(Random(random.random()), PARTITIONS, DELAYS_S)
        self.store = self.stores = Stores(Random(random.random()), self.now_ms, touch_store)
        self.rules = ScopeRules(partition_keys(PARTITIONS))
        self.counting = Counting()
        self.counting.after.append(self.rules.entry)
        self.truth.on_record.append(self.rules.record)
        self.truth.on_record.append(self.counting.record)
        self.truth.on_request.append(self._request_landed)
        self._chance = random
        pause_s = random.choice((0.02, 0.1, 0.5, 2.0))
        self._callers = Callers(self, Random(random.random()), pause_s)
        settings = SETTINGS.model_copy(update={"max_steps": random.choice((2, 256))})
        self.faults = Faults(self, self.stores, Random(random.random()), settings, pause_s)
        for _ in range(random.choice((1, 2, 2, 3))):
            self.start(WorkflowProcess, settings)

    async def go(self) -> None:
        """Raises Violation."""
        random = self._chance
        for scope in SCOPES:
            self.post(CreateScope(scope))
        doing = [self._callers.run(random.randint(3, 15)) for _ in range(random.randint(1, 4))]
        if random.random() < 0.9:
            doing.append(self.faults.run(random.randint(1, 5)))
            doing.append(self.faults.lag(random.choice((0, 5, 30))))
            self.faults.lag_behind_deletions(random.choice((0.0, 0.3, 0.6)))
        await self.run_all(doing)
        self.faults.end()
        await self._rest()
        await self._create_in_each_scope()
        await asyncio.sleep(3.0)
        self.look()
        invariants.check_truth(self.truth)
        self._check_followers()

    def _request_landed(self, message: MemoryMessage) -> None:
        if message.topic() == DEAD_LETTERS.name:
            raise Violation(f"dead letter: {message.value()!r} {message.headers()}")
        self.rules.landed(message)

    async def _rest(self) -> None:
        """Return when everything that was requested is replied, and everything begun is done."""
        until_s = self.loop.now + QUIET_S
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()
            working = {name: state for name, state in self.truth.states().items() if running(state) is not None}
            unanswered = self.unanswered()
            if not working and not unanswered:
                return
            if self.loop.now > until_s:
                raise Violation(f"never ended: {working}, unanswered: {[self.posted[id] for id in unanswered]}")

    async def _create_in_each_scope(self) -> None:
        """Whatever was done to a scope, things can be created in it, in each partition."""
        for scope in SCOPES:
            if scope not in self.rules.scopes:
                await self._succeeds(CreateScope(scope))
            for partition in range(PARTITIONS):
                name = next(n for n in (f"last{i}" for i in range(99)) if partition_of(f"{scope}/{n}", 3) == partition)
                await self._succeeds(CreateStream(scope, name, ONE))

    async def _succeeds(self, command: Command) -> None:
        id = self.post(command)
        try:
            async with asyncio.timeout(QUIET_S):
                while (reply := self.reply(id)) is None:
                    await asyncio.sleep(LOOK_S)
                    self.look()
        except TimeoutError:
            raise Violation(f"{command} is not replied, although nothing fails") from None
        if reply.status != "SUCCESS":
            raise Violation(f"{command} is replied {reply}, although nothing fails")

    def _check_followers(self) -> None:
        for process in self.running(WorkflowProcess):
            for mine, theirs in zip(self.truth.views, process.journal.views(), strict=True):
                if dict(mine.aggregates()) != dict(theirs.aggregates()) or mine.next_offset != theirs.next_offset:
                    raise Violation(f"{process.source} knows something else than the journal says")


def run_seed(seed: int) -> Run:
    """Raises Violation."""
    return run_one(Run, seed, "tests/simulation/test_scopes.py")
