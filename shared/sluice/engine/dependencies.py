"""What a step needs of other keys: it sends a request for that, until the view shows it.

A step never waits itself. It raises `DependenciesPending` with what is unmet; the runner sends requests for that, and
carries the step out a second time when the view shows it. So however many workflows depend on a key, they take no
place from the steps of that key. What is unmet is recorded, with backoff. A request to retry now, or a cancellation,
ends the waiting.

A request may get lost, so it is sent more than once, less and less often. What its command means is named exactly, so
repetitions do no harm. Nothing is sent while the key queue in which it would stand is held up (`Blockers`), or it would
pile up there. Everything here belongs to the event loop.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from sluice.engine.decision import Reader
from sluice.engine.fold import PartitionView
from sluice.engine.journal import Journal
from sluice.engine.retry import delays
from sluice.engine.step import all_done
from sluice.engine.workflow import WorkflowRules

FIRST_S = 2.0
MAX_RESEND_S = 60.0
"""What did not come is requested a second time after `FIRST_S`, then after twice as long, at most this long."""

MAX_UNDER_WAY = 200
"""Commands of one workflow that may be on their way; one that had no effect for `FIRST_S` counts no more."""

MAX_NAMED = 3
"""Of what is unmet, how much is named to operators."""

GRACE_S = 0.0001
MAX_GRACE_S = 1.0
"""For each dependency: how long others may take when the first is met, because a step looks at all."""

SendRequest = Callable[[str, Any], Awaitable[None]]
"""Sends a command under an id. Raises SendError."""


class Blockers(Protocol):
    """What keeps a command that was sent, as far as the view of its key shows it; in words, for operators."""

    def ahead_of(self, view: PartitionView, command: Any) -> str | None:
        """What is known to hold up the command's queue, so that one more of it would only wait there, too."""
        ...

    def at_work(self, view: PartitionView, command: Any) -> str | None:
        """What runs where the command goes to, whether that keeps it or not."""
        ...


class Dependency(msgspec.Struct, frozen=True):
    """Something that another key has to bring about: `holds` of its view then.

    `what` is for operators; `command` requests it, None for what comes without.
    """

    what: str
    key: str
    holds: Callable[[Reader], bool]
    command: Any = None


class DependenciesPending(Exception):
    """The step cannot go on without these."""

    def __init__(self, unmet: Sequence[Dependency]) -> None:
        super().__init__(unmet)
        self.unmet = unmet


class _Sent(msgspec.Struct):
    """When it came into its topic last, and when it is due once more, in the loop's time; and what it was replied."""

    at: float
    due_at: float
    waits: Iterator[float]
    reply: "asyncio.Future[Any] | None" = None


class Dependencies:
    """What one workflow has requested of others, and when it does so next."""

    def __init__(
        self,
        journal: Journal,
        rules: WorkflowRules,
        send: SendRequest | None,
        blockers: Blockers | None,
        aggregate: str,
        workflow: Any,
    ) -> None:
        self.workflow = workflow
        """As it was when it was met: only what never changes of it may be read."""
        self._journal = journal
        self._rules = rules
        self._send_request = send
        self._blockers = blockers
        self._aggregate = aggregate
        self._loop = asyncio.get_running_loop()
        self._ids = map(f"{workflow.id}-{journal.chance.token()}-{{}}".format, itertools.count(1))
        self._sent: dict[bytes, _Sent] = {}
        self._retry_requests = workflow.retry_requests
        self._record_at = self._loop.time() + FIRST_S / 2
        self._records = self._delays()
        self._pauses = self._delays()

    def _delays(self, part: float = 1.0) -> Iterator[float]:
        return delays(FIRST_S * part, max_s=MAX_RESEND_S * part, chance=self._journal.chance)

    def is_due_for_record(self) -> bool:
        """Whether operators should be able to read by now what is unmet, or what is unmet still."""
        now = self._loop.time()
        if now < self._record_at:
            return False
        self._record_at = now + next(self._records)
        return True

    def describe(self, unmet: Sequence[Dependency]) -> str:
        """What is unmet, for operators: the first few, and what runs where they were requested, or why not."""
        more = len(unmet) - MAX_NAMED
        named = "; ".join(dependency.what + self._beside(dependency.command) for dependency in unmet[:MAX_NAMED])
        return f"waits: {named}" + (f"; {more} more" if more > 0 else "")

    def _beside(self, command: Any) -> str:
        if command is None:
            return ""
        found = self._blockers.at_work(self._journal.reader(command.key), command) if self._blockers else None
        if found is not None:
            return f" ({found})"
        sent = self._sent.get(_identity(command))
        if sent is None or sent.reply is None or not sent.reply.done() or sent.reply.cancelled():
            return ""
        failure = sent.reply.exception()
        return f" ({failure})" if failure is not None else f" (replied {sent.reply.result()})"

    async def wait_for(self, unmet: Sequence[Dependency], key: str) -> None:
        """Send what is due; return when it may be worth to look once more. Raises SendError, JournalError."""
        if self._was_retried(key):
            # While the step was carried out, or recorded: what it found unmet may be old by now.
            return
        by_command = {_identity(d.command): d for d in unmet if d.command is not None}
        has_more = await self._send_due(by_command)
        watched = self._watched(unmet, by_command)
        await self._changed(watched, key, FIRST_S if has_more else next(self._pauses), len(unmet))
        if not self._was_retried(key) and any(d.holds(self._journal.reader(d.key)) for d in watched):
            self._pauses = self._delays()

    def forget(self) -> None:
        """No reply is of interest any more."""
        for sent in self._sent.values():
            if sent.reply is not None:
                sent.reply.cancel()
        self._sent.clear()

    def _was_retried(self, key: str) -> bool:
        """Whether another attempt was requested since the last call. Then everything begins anew."""
        workflow = self._rules.running(self._journal.reader(key).get(self._aggregate))
        if workflow is None or workflow.id != self.workflow.id or workflow.retry_requests == self._retry_requests:
            return False
        self._retry_requests = workflow.retry_requests
        self.forget()
        self._pauses = self._delays()
        return True

    async def _send_due(self, wanted: dict[bytes, Dependency]) -> bool:
        """Send what is due, that never sent first; say whether some of that has to wait for room."""
        now = self._loop.time()
        for identity in [identity for identity in self._sent if identity not in wanted]:
            self._drop(identity)
        room = max(0, MAX_UNDER_WAY - sum(now - sent.at < FIRST_S for sent in self._sent.values()))
        new = [identity for identity in wanted if identity not in self._sent]
        due = sorted((i for i, sent in self._sent.items() if sent.due_at <= now), key=self._due_at)
        repeated = (identity for identity in due if not self._is_blocked(wanted[identity].command))
        sending = list(itertools.islice(itertools.chain(new, repeated), room))
        await all_done(self._send(identity, wanted[identity].command) for identity in sending)
        return len(new) > room

    async def _send(self, identity: bytes, command: Any) -> None:
        """Only what came into its topic counts as sent: if that fails, it stays due. Raises SendError."""
        assert self._send_request is not None
        id = next(self._ids)
        reply = self._journal.expect_reply(id, (command.key,))
        try:
            await self._send_request(id, command)
        except BaseException:
            reply.cancel()
            raise
        now = self._loop.time()
        # Half as long as the pauses, so that what was sent before a pause is due behind it.
        sent = self._sent.setdefault(identity, _Sent(now, now, self._delays(0.5)))
        if sent.reply is not None:
            sent.reply.cancel()
        sent.at, sent.due_at, sent.reply = now, now + next(sent.waits), reply
        reply.add_done_callback(_observed)

    def _drop(self, identity: bytes) -> None:
        sent = self._sent.pop(identity)
        if sent.reply is not None:
            sent.reply.cancel()

    def _is_blocked(self, command: Any) -> bool:
        view = self._journal.reader(command.key)
        return self._blockers is not None and self._blockers.ahead_of(view, command) is not None

    def _sent_at(self, identity: bytes) -> float:
        return self._sent[identity].at

    def _due_at(self, identity: bytes) -> float:
        return self._sent[identity].due_at

    def _watched(self, unmet: Sequence[Dependency], by_command: dict[bytes, Dependency]) -> list[Dependency]:
        """What was sent last, and the first of what comes without a request."""
        newest = sorted(self._sent, key=self._sent_at, reverse=True)
        without = (dependency for dependency in unmet if dependency.command is None)
        return [*(by_command[i] for i in newest[:MAX_UNDER_WAY]), *itertools.islice(without, MAX_UNDER_WAY)]

    async def _changed(self, watched: list[Dependency], key: str, pause: float, of_all: int) -> None:
        """Return when all of it holds, or soon after some of it; when retried or cancelled; or after the pause."""
        parts: dict[int, list[Dependency]] = {}
        for dependency in watched:
            parts.setdefault(self._journal.partition_of(dependency.key), []).append(dependency)

        def is_over(view: PartitionView) -> bool:
            state = view.get(self._aggregate)
            workflow = self._rules.running(state)
            return (
                workflow is None
                or workflow.id != self.workflow.id
                or workflow.retry_requests != self._retry_requests
                or self._rules.is_cancelled(state)
            )

        async def each(part: list[Dependency], enough: Callable[[Iterable[bool]], bool]) -> None:
            await self._journal.until(part[0].key, lambda view: enough(d.holds(view) for d in part))

        some = (each(part, any) for part in parts.values())
        await _one_of((self._journal.until(key, is_over), *some), pause)
        if is_over(self._journal.reader(key)) or all(d.holds(self._journal.reader(d.key)) for d in watched):
            return
        if any(d.holds(self._journal.reader(d.key)) for d in watched):
            grace = min(max(GRACE_S * of_all, 0.005), MAX_GRACE_S)
            await _one_of((_each_of(each(part, all) for part in parts.values()),), grace)


def _identity(command: Any) -> bytes:
    """Commands that are alike are one."""
    return type(command).__name__.encode() + msgspec.json.encode(command)


def _observed(reply: "asyncio.Future[Any]") -> None:
    """A failure is for `describe`; asyncio need not report that no one has awaited it."""
    if not reply.cancelled():
        reply.exception()


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
