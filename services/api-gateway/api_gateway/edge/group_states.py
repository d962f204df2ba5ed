"""Looks at reader groups: many who ask for the same share one.

What is shared knows no caller: what one may not read has to be left out of the answer. How many groups are looked at
side by side has a bound, for each may take memory and the worker. Belongs to the event loop.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

from api_gateway.edge.group_state import GroupState, read_group_state
from api_gateway.edge.reads import Reads
from api_gateway.edge.security.guard import calling
from api_gateway.edge.shares import Shares
from api_gateway.edge.worker import Worker
from sluice.domain.ids import GroupId
from sluice.domain.segment import segment_name
from sluice.pravega.store import SegmentStore

T = TypeVar("T")

MAX_LOOKS = 100
LOOK_CONCURRENCY = 8
"""How many groups are looked at side by side; other looks wait."""


class GroupStates:
    """What the readers of groups wrote into their state streams."""

    def __init__(self, store: SegmentStore, reads: Reads, worker: Worker) -> None:
        self._store = store
        self._reads = reads
        self._worker = worker
        self._states: dict[GroupId, asyncio.Task[GroupState | None]] = {}
        self._shares = Shares(MAX_LOOKS, "looks at reader groups")
        self._turns = asyncio.Semaphore(LOOK_CONCURRENCY)

    async def state(self, id: GroupId) -> GroupState | None:
        """What readers wrote, as it is now; None before the first one.

        Raises StateError, NotFoundError if there is no stream of it, SegmentStoreError, OverloadedError,
        QuotaExceededError.
        """
        return await self.shared(self._states, id, 0.0, partial(self.read, id))

    async def read(self, id: GroupId) -> GroupState | None:
        """The same, for work that is `shared` already."""
        stream = await self._reads.stream(id.state_stream)
        (segment, *_) = stream.active_epoch.segments
        return await read_group_state(self._store, self._worker, segment_name(*id.state_stream, segment))

    async def shared(
        self,
        kept: "dict[GroupId, asyncio.Task[T]]",
        id: GroupId,
        for_s: float,
        work: Callable[[], Coroutine[Any, Any, T]],
    ) -> T:
        """What the work finds, for all who ask while it does, and for some seconds more."""
        found = kept.get(id)
        if found is None:
            share = ExitStack()
            share.enter_context(self._shares.taken())
            found = kept[id] = asyncio.ensure_future(self._look(share, work))
            found.add_done_callback(partial(_keep, kept, id, for_s))
        # One caller that leaves does not end it for the others.
        return await asyncio.shield(found)

    async def _look(self, share: ExitStack, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """It is for all who ask, so for no caller, whose permissions and share would count."""
        with share, calling(None):
            async with self._turns:
                return await work()


def _keep(kept: "dict[GroupId, asyncio.Task[T]]", id: GroupId, for_s: float, found: "asyncio.Task[T]") -> None:
    """Forget in some seconds what was found now; without any before its callers go on."""
    if not found.cancelled():
        # A failure is for those who wait; asyncio need not report that they have left.
        found.exception()
    if for_s > 0:
        found.get_loop().call_later(for_s, kept.pop, id)
    else:
        del kept[id]
