"""Waiting for other keys: what a step lacks is asked for by request, and looked for in the view.

A step never waits itself. It raises `StillWaiting` with what it needs, and the runner asks for that, gives the slot of
the handler back, and carries the step out again when it is there; so however many workflows wait for a key, the
requests of that key find a slot. What it waits for is noted, with backoff. A kick or a cancellation ends the waiting.

A request may have got lost, so it is asked for again, less and less often, under the same id: that follows from the
workflow and the command. So repetitions do nothing once one of them was answered. Only if the answer was a refusal, and
what was asked for is needed still, the next one has another id. What was asked for is not asked for again while the
lane that it stands in is held up (`sluice.workflows.lanes`), or it would pile up there; should it have got lost, it is
asked for when the lane is seen to be free. Everything here belongs to the event loop.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from sluice.domain.commands import Command
from sluice.domain.decision import Reader, Reply
from sluice.domain.workflow import Workflow, can_cancel, running
from sluice.journal.journal import Journal
from sluice.journal.partition_view import PartitionView
from sluice.workflows.backoff import delays
from sluice.workflows.lanes import ahead_of, at_work
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
    """When it came into its topic last, and when it will be asked for again, in the loop's time."""

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
        self._kicks = workflow.kicks
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
        """What is lacking, for people: the first few, and what runs where they were asked for, or why not."""
        more = len(needs) - TOLD
        told = "; ".join(need.what + self._beside(need.ask) for need in needs[:TOLD])
        return f"waits: {told}" + (f"; {more} more" if more > 0 else "")

    def _beside(self, command: Command | None) -> str:
        if command is None:
            return ""
        found = at_work(self._journal.reader(command.key), command)
        if found is not None:
            return f" ({found.beside(command)})"
        answer = self._last_answer(command)
        return f" (answered {answer.status}: {answer.reason})" if answer is not None else ""

    async def wait_for(self, needs: Sequence[Need], key: str) -> None:
        """Ask for what is due; return when it may be worth to look again. Raises ProduceError, JournalError."""
        if self._was_kicked():
            # While the step was carried out, or noted: what it lacks may be old by now.
            return
        by_id = {self._id(need.ask): need for need in needs if need.ask is not None}
        has_more = await self._ask_for({id: need.ask for id, need in by_id.items() if need.ask is not None})
        watched = self._watched(needs, by_id)
        await self._changed(watched, key, FIRST_S if has_more else next(self._pauses), len(needs))
        if not self._was_kicked() and any(need.holds(self._journal.reader(need.key)) for need in watched):
            self._pauses = delays(FIRST_S, most_s=LONGEST_S)

    def _was_kicked(self) -> bool:
        """Whether somebody has kicked since this was asked last. Then everything begins anew."""
        if self.workflow.kicks == self._kicks:
            return False
        self._kicks = self.workflow.kicks
        self._asked.clear()
        self._pauses = delays(FIRST_S, most_s=LONGEST_S)
        return True

    async def _ask_for(self, commands: dict[str, Command]) -> bool:
        """Send what is due, that never asked for first; say whether some of that has to wait for room."""
        now = self._loop.time()
        self._asked = {id: asked for id, asked in self._asked.items() if id in commands}
        room = max(0, AT_ONCE - sum(now - asked.at < FIRST_S for asked in self._asked.values()))
        new = [id for id in commands if id not in self._asked]
        due = sorted((id for id, asked in self._asked.items() if asked.again_at <= now), key=self._again_at)
        again = (id for id in due if not self._is_kept(commands[id]))
        sending = list(itertools.islice(itertools.chain(new, again), room))
        await all_done(self._send(id, commands[id]) for id in sending)
        return len(new) > room

    async def _send(self, id: str, command: Command) -> None:
        """Only what came into its topic counts as asked for: if that fails, it stays due. Raises ProduceError."""
        assert self._ask is not None
        await self._ask(self._unanswered(id, command), command)
        now = self._loop.time()
        # Half as long as the pauses, so that what was asked for before a pause is due behind it.
        asked = self._asked.setdefault(id, _Asked(now, now, delays(FIRST_S / 2, most_s=LONGEST_S / 2)))
        asked.at, asked.again_at = now, now + next(asked.waits)

    def _is_kept(self, command: Command) -> bool:
        return ahead_of(self._journal.reader(command.key), command) is not None

    def _asked_at(self, id: str) -> float:
        return self._asked[id].at

    def _again_at(self, id: str) -> float:
        return self._asked[id].again_at

    def _watched(self, needs: Sequence[Need], by_id: dict[str, Need]) -> list[Need]:
        """What was asked for last, and the first of what comes without being asked for."""
        newest = sorted(self._asked, key=self._asked_at, reverse=True)
        unasked = (need for need in needs if need.ask is None)
        return [*(by_id[id] for id in newest[:AT_ONCE]), *itertools.islice(unasked, AT_ONCE)]

    async def _changed(self, watched: list[Need], key: str, pause: float, all_needs: int) -> None:
        """Return when all of it is there, or soon after some of it; when kicked or cancelled; or after the pause."""
        parts: dict[int, list[Need]] = {}
        for need in watched:
            parts.setdefault(self._journal.partition_of(need.key), []).append(need)

        def is_over(view: PartitionView) -> bool:
            state = view.get(self._aggregate)
            workflow = running(state)
            return (
                workflow is not self.workflow
                or workflow.kicks != self._kicks
                or (workflow.cancelled and can_cancel(state))
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
        return next(i for i in _ids(id) if view.answer(i) is None)

    def _last_answer(self, command: Command) -> Reply | None:
        """What was answered lately when this was asked for: it is needed still, so it was refused."""
        view = self._journal.reader(command.key)
        answers = itertools.takewhile(bool, (view.answer(id) for id in _ids(self._id(command))))
        return next(iter(deque(answers, maxlen=1)), None)


def _ids(id: str) -> Iterator[str]:
    """The id, and those made from it, in order."""
    return itertools.chain((id,), (f"{id}.{number}" for number in itertools.count(2)))


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
