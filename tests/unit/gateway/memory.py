"""A journal and a runtime in memory: requests are decided by the domain at once, without Kafka.

What a segment store would have to do is taken as done, so that workflows end as soon as they began.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from sluice.domain import events as ev
from sluice.domain.aggregates import DECIDE, evolve
from sluice.domain.commands import Command, NameKind, ReleaseName
from sluice.domain.decision import Context, Reply
from sluice.domain.names import mark_stream
from sluice.domain.stream.state import find_stream
from sluice.journal.partition_view import PartitionView
from sluice.journal.record import Record
from sluice.messaging.partition import partition_of
from sluice.messaging.requests import Request
from sluice.messaging.topics import Topic

PARTITIONS = 16

_ENDS: dict[type, Any] = {
    ev.StreamCreationStarted: ev.StreamCreated,
    ev.StreamUpdateStarted: ev.StreamUpdated,
    ev.StreamTruncationStarted: ev.StreamTruncated,
    ev.StreamSealStarted: ev.StreamSealed,
}
"""The last event of the workflow that began with the first."""


class MemoryJournal:
    """`unavailable` is raised by every barrier as long as it is set."""

    def __init__(self) -> None:
        self.partitions = PARTITIONS
        self.unavailable: Exception | None = None
        self.barriers: list[set[int]] = []
        self._views = [PartitionView(evolve) for _ in range(PARTITIONS)]
        self._replies: dict[str, asyncio.Future[Reply]] = {}

    def partition_of(self, key: str) -> int:
        return partition_of(key, PARTITIONS)

    def reader(self, key: str) -> PartitionView:
        return self._views[self.partition_of(key)]

    def views(self) -> list[PartitionView]:
        return self._views

    async def barrier(self, partitions: Iterable[int]) -> None:
        self.barriers.append(set(partitions))
        await asyncio.sleep(0)
        if self.unavailable is not None:
            raise self.unavailable

    def expect_reply(self, request: str) -> asyncio.Future[Reply]:
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._replies[request] = reply
        reply.add_done_callback(lambda _: self._replies.pop(request, None))
        return reply

    @property
    def replies_expected(self) -> int:
        return len(self._replies)

    def append(self, key: str, *events: ev.Event, request: str | None = None, reply: Reply | None = None) -> None:
        view = self.reader(key)
        offset = view.next_offset
        view.fold(Record(id=f"{key}-{offset}", at=0, by="test", expect={}, events=events), offset, 0)
        if reply is not None and request in self._replies:
            self._replies[request].set_result(reply)


class MemoryRuntime:
    """`silent` leaves requests unanswered, `refusing` makes sending fail."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.silent = False
        self.refusing: Exception | None = None
        self.sent: list[tuple[str, Request]] = []

    def request(self, id: str, command: Command) -> Request:
        return Request(id=id, at=0, by="api-gateway/test", command=command)

    def send(self, topic: Topic, request: Request) -> asyncio.Future[None]:
        self.sent.append((topic.name, request))
        loop = asyncio.get_running_loop()
        sent: asyncio.Future[None] = loop.create_future()
        if self.refusing is not None:
            sent.set_exception(self.refusing)
            return sent
        sent.set_result(None)
        if not self.silent:
            loop.call_soon(self._decide, request.command, request.id)
        return sent

    def _decide(self, command: Command, request: str) -> None:
        key = command.key
        decision = DECIDE[type(command)](self.journal.reader(key), command, Context(1000, request))
        self.journal.append(key, *decision.events, request=request, reply=decision.reply)
        for following in decision.sends:
            self._decide(following, request)
        for event in decision.events:
            self._finish(key, event, request)

    def _finish(self, key: str, event: ev.Event, request: str) -> None:
        done = Reply("SUCCESS")
        if isinstance(event, ev.StreamDeletionStarted):
            stream = find_stream(self.journal.reader(key), event.scope, event.stream)
            assert stream is not None
            self._decide(ReleaseName(stream.scope, NameKind.STREAM, stream.name, stream.incarnation), request)
            names, following = (stream.name, mark_stream(stream.name)), stream.next_number
            gone = [ev.StreamDeleted(scope=stream.scope, stream=name, next_number=following) for name in names]
            self.journal.append(key, *gone, request=request, reply=done)
        elif isinstance(event, ev.StreamScaleStarted):
            added = ev.StreamEpochAdded(scope=event.scope, stream=event.stream, created_at=event.at)
            self.journal.append(key, added)
            sizes = dict.fromkeys(event.replacement.seals, 100)
            self.journal.append(key, ev.StreamScaled(scope=event.scope, stream=event.stream, sealed_sizes=sizes))
        elif type(event) in _ENDS:
            assert isinstance(event, ev.StreamEvent)
            end = _ENDS[type(event)](scope=event.scope, stream=event.stream)
            self.journal.append(key, end, request=request, reply=done)
