"""Waiting for other keys: what a step lacks is asked for by request, and looked for in the view.

A step never waits itself. It raises `StillWaiting` with what it needs, and the runner asks for that, gives the slot of
the handler back, and carries the step out again when it is there; so however many workflows wait for a key, the
requests of that key find a slot. What it waits for is noted, with backoff. A kick or a cancellation ends the waiting.

A request may have got lost, so it is asked for again, less and less often, under the same id: that follows from the
workflow and the command. So repetitions do nothing once one of them was answered. Only if the answer was a refusal, and
what was asked for is needed still, the next one has another id. Everything here belongs to the event loop.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from sluice.domain.commands import Command
from sluice.domain.decision import Reader
from sluice.domain.workflow import Workflow, can_cancel, is_under_way, running
from sluice.journal.journal import Journal
from sluice.journal.partition_view import PartitionView
from sluice.workflows.backoff import delays
from sluice.workflows.steps import all_done

FIRST_S = 2.0
LONGEST_S = 60.0
"""What did not come is asked for again after `FIRST_S`, then after twice as long, at most every `LONGEST_S`."""

AT_ONCE = 200
"""Commands of one workflow that may be on their way; one that nothing has come of for `FIRST_S` counts no more."""

TOLD = 3
"""Of what is lacking, how much is named to people."""

GRACE_S = 0.0001
LONGEST_GRACE_S = 1.0
"""For each thing that is needed: how long others may take when the first has come, because a step looks at all."""

Ask = Callable[[str, Command], Awaitable[None]]
"""Sends a command under an id. Raises ProduceError."""


class Need(msgspec.Struct, frozen=True):
    """Something that another key has to bring about: `holds` of its view then.

    `what` tells people; `ask` is the command that asks for it, None for what comes without.
    """

    what: str
    key: str
    holds: Callable[[Reader], bool]
    ask: Command | None = None


class StillWaiting(Exception):
    """The step cannot go on without these."""

    def __init__(self, needs: Sequence[Need]) -> None:
        super().__init__(needs)
        self.needs = needs


class _Asked(msgspec.Struct):
    """When it was asked for, and when it will be again, in the loop's time."""

    at: float
    again_at: float
    waits: Iterator[float]


class Waiting:
    """What one workflow has asked of others, and when it does so again."""

    def __init__(self, journal: Journal, ask: Ask | None, aggregate: str, workflow: Workflow) -> None:
        self.workflow = workflow
        self._journal = journal
        self._ask = ask
        self._aggregate = aggregate
        self._asker = f"{workflow.request or f'{aggregate}@{workflow.since}'}-{workflow.kind.value}"
        self._loop = asyncio.get_running_loop()
        self._asked: dict[str, _Asked] = {}
        self._note_at = self._loop.time() + FIRST_S / 2
        self._notes = delays(FIRST_S, most_s=LONGEST_S)
        self._pauses = delays(FIRST_S, most_s=LONGEST_S)

    def is_worth_a_note(self) -> bool:
        """Whether people should be told by now, and again."""
        now = self._loop.time()
        if now < self._note_at:
            return False
        self._note_at = now + next(self._notes)
        return True

    def says(self, needs: Sequence[Need]) -> str:
        """What is lacking, for people: the first few, and what runs where they were asked for."""
        more = len(needs) - TOLD
        told = "; ".join(need.what + self._beside(need.ask) for need in needs[:TOLD])
        return f"waits: {told}" + (f"; {more} more" if more > 0 else "")

    def _beside(self, command: Command | None) -> str:
        found = running(self._journal.reader(command.key).get(command.aggregate)) if command is not None else None
        return f" ({found.kind.value} runs there)" if found is not None else ""

    async def wait_for(self, needs: Sequence[Need], key: str) -> None:
        """Ask for what is due; return when it may be worth to look again. Raises ProduceError, JournalError."""
        kicks = self.workflow.kicks
        by_id = {self._id(need.ask): need for need in needs if need.ask is not None}
        has_more = await self._ask_for({id: need.ask for id, need in by_id.items() if need.ask is not None})
        watched = self._watched(needs, by_id)
        await self._changed(watched, key, kicks, FIRST_S if has_more else next(self._pauses), len(needs))
        if self.workflow.kicks != kicks:
            self._asked.clear()
        if self.workflow.kicks != kicks or any(need.holds(self._journal.reader(need.key)) for need in watched):
            self._pauses = delays(FIRST_S, most_s=LONGEST_S)

    async def _ask_for(self, commands: dict[str, Command]) -> bool:
        """Send what is due, that never asked for first; say whether some of that has to wait for room."""
        now = self._loop.time()
        self._asked = {id: asked for id, asked in self._asked.items() if id in commands}
        room = max(0, AT_ONCE - sum(now - asked.at < FIRST_S for asked in self._asked.values()))
        new = [id for id in commands if id not in self._asked]
        due = sorted((id for id, asked in self._asked.items() if asked.again_at <= now), key=self._again_at)
        again = (id for id in due if not self._is_in_line(commands[id]))
        sending = []
        for id in itertools.islice(itertools.chain(new, again), room):
            command, ask = commands[id], self._ask
            assert ask is not None
            # Half as long as the pauses, so that what was asked for before a pause is due behind it.
            asked = self._asked.setdefault(id, _Asked(now, now, delays(FIRST_S / 2, most_s=LONGEST_S / 2)))
            asked.at, asked.again_at = now, now + next(asked.waits)
            sending.append(ask(self._unanswered(id, command), command))
        await all_done(sending)
        return len(new) > room

    def _is_in_line(self, command: Command) -> bool:
        """Whether the request is known to wait behind a workflow: one more would only wait behind it, too.

        Requests of a scope wait for none.
        """
        state = self._journal.reader(command.key).get(command.aggregate)
        return is_under_way(state) and not command.aggregate.startswith("scope:")

    def _asked_at(self, id: str) -> float:
        return self._asked[id].at

    def _again_at(self, id: str) -> float:
        return self._asked[id].again_at

    def _watched(self, needs: Sequence[Need], by_id: dict[str, Need]) -> list[Need]:
        """What was asked for last, and the first of what comes without being asked for."""
        newest = sorted(self._asked, key=self._asked_at, reverse=True)
        unasked = (need for need in needs if need.ask is None)
        return [*(by_id[id] for id in newest[:AT_ONCE]), *itertools.islice(unasked, AT_ONCE)]

    async def _changed(self, watched: list[Need], key: str, kicks: int, pause: float, all_needs: int) -> None:
        """Return when all of it is there, or soon after some of it; when kicked or cancelled; or after the pause."""
        parts: dict[int, list[Need]] = {}
        for need in watched:
            parts.setdefault(self._journal.partition_of(need.key), []).append(need)

        def is_over(view: PartitionView) -> bool:
            state = view.get(self._aggregate)
            workflow = running(state)
            return (
                workflow is not self.workflow or workflow.kicks != kicks or (workflow.cancelled and can_cancel(state))
            )

        async def each(part: list[Need], enough: Callable[[Iterable[bool]], bool]) -> None:
            await self._journal.until(part[0].key, lambda view: enough(need.holds(view) for need in part))

        some = (each(part, any) for part in parts.values())
        await _one_of((self._journal.until(key, is_over), *some), pause)
        if is_over(self._journal.reader(key)) or all(n.holds(self._journal.reader(n.key)) for n in watched):
            return
        if any(n.holds(self._journal.reader(n.key)) for n in watched):
            grace = min(max(GRACE_S * all_needs, 0.005), LONGEST_GRACE_S)
            await _one_of((_each_of(each(part, all) for part in parts.values()),), grace)

    def _id(self, command: Command) -> str:
        digest = blake2b(msgspec.json.encode(command), digest_size=6).hexdigest()
        return f"{self._asker}-{type(command).__name__}-{digest}"

    def _unanswered(self, id: str, command: Command) -> str:
        """The id, or the next one made from it that the view has no answer to."""
        view = self._journal.reader(command.key)
        following = (f"{id}.{number}" for number in itertools.count(2))
        return next(i for i in itertools.chain((id,), following) if view.answer(i) is None)


async def _each_of(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*works)


async def _one_of(works: Iterable[Coroutine[Any, Any, None]], seconds: float) -> None:
    """Return when one of them has ended, or after a while; the others are cancelled. Raises what one raises."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, timeout=max(seconds, 0.0), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
