"""What lists show of streams beside their state: what is written to each, how much it holds, who is behind.

Nothing is waited for: what is asked for is measured for a while, by `Rates` and `StreamGroups` within their bounds, and
a later look finds it. Belongs to the event loop.
"""

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from api_gateway.console.rates import Rates, SegmentRate
from api_gateway.console.stream_groups import GroupLag, StreamGroups
from api_gateway.edge.errors import OverloadedError
from api_gateway.edge.worker import Worker
from sluice.domain.ids import StreamId
from sluice.domain.stream.queries import head
from sluice.domain.stream.state import Stream, StreamState
from sluice.insight.backlog import Backlog, backlog
from sluice.insight.topology import snapshot

MAX_HELD = 2_000
"""Of so many streams it is remembered what their sealed segments hold."""


class StreamLoad(msgspec.Struct, frozen=True):
    """What is None is not known, or not yet.

    `bytes` lie between head and end; `groups` are the reader groups that read it. Rates and bytes are those of all
    segments if they are `complete`, else of some.
    """

    id: StreamId
    bytes_per_s: float | None
    events_per_s: float | None
    bytes: int | None
    complete: bool
    groups: list[GroupLag] | None


class _Held(msgspec.Struct, frozen=True):
    """What a stream holds apart from the lengths of the segments that grow, as long as its `form` is this one."""

    form: tuple[object, ...]
    backlog: Backlog


class StreamLoads:
    """`find` gives a stream as far as it is known here."""

    def __init__(
        self, rates: Rates, groups: StreamGroups, worker: Worker, find: Callable[[StreamId], Stream | None]
    ) -> None:
        self._rates = rates
        self._groups = groups
        self._worker = worker
        self._find = find
        self._held: dict[StreamId, _Held] = {}

    async def look(self, ids: Iterable[StreamId]) -> list[StreamLoad]:
        """Of those that are there. Raises OverloadedError and QuotaExceededError as `Worker.run` does."""
        found = [await self._look(id) for id in dict.fromkeys(ids)]
        return [one for one in found if one is not None]

    async def _look(self, id: StreamId) -> StreamLoad | None:
        stream = self._find(id)
        if stream is None:
            self._held.pop(id, None)
            return None
        if stream.state in (StreamState.CREATING, StreamState.RESTORING):
            return StreamLoad(id, None, None, None, complete=False, groups=None)
        held = await self._holds(stream)
        try:
            found = self._rates.look(id, closely=False)
        except OverloadedError:
            return StreamLoad(id, None, None, None, complete=False, groups=self._groups.look(id))
        return StreamLoad(
            id,
            _sum([one.bytes_per_s for one in found.segments]),
            _sum([one.events_per_s for one in found.segments]),
            _size(held, found.segments),
            complete=found.complete,
            groups=self._groups.look(id),
        )

    async def _holds(self, stream: Stream) -> Backlog:
        """What lies behind its head."""
        id = stream.id
        form = (stream.creation_id, stream.active, stream.cut_size, len(stream.history.sealed_sizes))
        held = self._held.get(id)
        if held is None or held.form != form:
            # Of a stream with thousands of segments that takes a while.
            all_of_it = partial(backlog, snapshot(stream), head(stream), (), {})
            held = _Held(form, await self._worker.run(all_of_it))
            if len(self._held) >= MAX_HELD:
                self._held.clear()
            self._held[id] = held
        return held.backlog


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _size(held: Backlog, segments: list[SegmentRate]) -> int | None:
    """Of segments whose length is not known only what was sealed counts; None if that is all."""
    lengths = {one.id: one.length for one in segments if one.length is not None}
    growing = [max(lengths[id] - begin, 0) for id, begin in held.growing.items() if id in lengths]
    return held.known + sum(growing) if growing or held.known or not held.growing else None
