"""How many segments and transactions streams have: counted once, then kept up to date from what changes.

Only a state says how many segments its stream has, and states are at rest, so a count of all takes a while: it goes in
slices, and lasts for as long as the watch listens. Belongs to the event loop.
"""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from api_gateway.console.feed.changes import Change
from api_gateway.console.feed.watch import ChangeWatch
from api_gateway.edge.slices import Slices
from sluice.domain.ids import ResourceKind, StreamId
from sluice.domain.listings import MEMBERS
from sluice.domain.names import SYSTEM_SCOPE
from sluice.domain.policy.scaling import ScaleCode
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.transaction.index import transactions_of
from sluice.engine.journal import Journal

_HOT = frozenset({ScaleCode.AT_MAXIMUM.value, ScaleCode.SPLIT.value, ScaleCode.SPLIT_AND_MERGE.value})


class StreamCounts(NamedTuple):
    """Of one stream; `hot_at` is when its segments last had too much to do, epoch ms, 0 for never."""

    segments: int
    open: int
    waiting: int
    hot_at: int


class Totals(NamedTuple):
    """Of all streams but internal ones."""

    segments: int
    open: int
    waiting: int


class Tally:
    """The counts of all streams of a journal, while `watch` listens."""

    def __init__(self, journal: Journal, watch: ChangeWatch) -> None:
        self._journal = journal
        self._watch = watch
        self._streams: dict[str, StreamCounts] = {}
        self._segments = self._open = self._waiting = 0
        self._counting: asyncio.Task[None] | None = None
        watch.on_changes.append(self._observe)

    async def totals(self, most_s: float) -> Totals | None:
        """The counts; None if they are not known within so many seconds."""
        self._watch.listen()
        if self._counting is None:
            self._counting = asyncio.get_running_loop().create_task(self._count(), name="tally")
        counting = self._counting
        await asyncio.wait((counting,), timeout=most_s)
        if not counting.done() or self._counting is not counting:
            # Or the watch has missed something meanwhile: the next call has all counted anew.
            return None
        counting.result()
        return Totals(self._segments, self._open, self._waiting)

    def hot(self, since_ms: int) -> list[str]:
        """The streams, as scope/name, whose segments had too much to do since then."""
        return sorted(name for name, counts in self._streams.items() if counts.hot_at >= since_ms)

    def with_open(self) -> Iterator[StreamId]:
        """The streams with open transactions; nothing may change meanwhile."""
        return (StreamId.of(name) for name, counts in self._streams.items() if counts.open)

    async def stop(self) -> None:
        """Count no more."""
        self._forget()

    def _forget(self) -> None:
        if self._counting is not None:
            self._counting.cancel()
            self._counting = None
        self._streams.clear()
        self._segments = self._open = self._waiting = 0

    async def _count(self) -> None:
        slices = Slices()
        for view in self._journal.views():
            members = view.projection(MEMBERS) or {}
            for scope in list(members):
                found = members.get(scope)
                if scope == SYSTEM_SCOPE or found is None:
                    continue
                for name in list(found.after(ResourceKind.STREAM, "", internal=False)):
                    self._look(StreamId(scope, name))
                    if slices.is_over():
                        await slices.pause()

    def _look(self, id: StreamId) -> None:
        view = self._journal.reader(id.key)
        stream = view.peek(id.aggregate)
        before = self._streams.pop(str(id), None)
        if before is not None:
            self._segments -= before.segments
            self._open -= before.open
            self._waiting -= before.waiting
        if not isinstance(stream, Stream):
            return
        index = transactions_of(view, id)
        found = StreamCounts(_segments(stream), len(index.open), len(index.committing), _hot_at(stream))
        self._streams[str(id)] = found
        self._segments += found.segments
        self._open += found.open
        self._waiting += found.waiting

    def _observe(self, changes: list[Change] | None) -> None:
        if changes is None:
            self._forget()
        elif self._counting is not None:
            for change in changes:
                kind, _, name = change.subject.partition(":")
                if kind in ("stream", "txn"):
                    id = StreamId.of(name)
                    if id.scope != SYSTEM_SCOPE and not id.name.startswith("_"):
                        self._look(id)


def _segments(stream: Stream) -> int:
    return 0 if stream.state is StreamState.SEALED else len(stream.active_epoch.segments)


def _hot_at(stream: Stream) -> int:
    decision = stream.decisions.get(DecisionKind.SCALE)
    return decision.at if decision is not None and decision.code in _HOT else 0
