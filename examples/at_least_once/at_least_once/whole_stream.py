"""Reading a whole stream alone, from its head, over all scalings: the rules of a reader group without the group."""

import asyncio
from collections.abc import AsyncIterator

from at_least_once.group_state import Decision, GroupState, begin, come_online, complete, evolve, rebalance, record
from sluice_client import Client, StoredEvent, find_start, read_piece

_PIECE_BYTES = 1024 * 1024
_ALONE = "alone"


class WholeStream:
    """All events of a stream; those of one routing key in their order. One task."""

    def __init__(self, client: Client, scope: str, stream: str, patience_s: float) -> None:
        self._client = client
        self._scope = scope
        self._stream = stream
        self._patience_s = patience_s
        self._state = GroupState()

    async def rounds(self, poll_s: float) -> AsyncIterator[list[StoredEvent]]:
        """What came since the last round, without end; waits `poll_s` after a round that brought nothing."""
        start = await find_start(self._client.controller, self._scope, self._stream)
        self._do(begin(start.segments, start.waiting))
        self._do(come_online(_ALONE))
        while True:
            self._do(rebalance(_ALONE))
            events = await self._round()
            yield events
            if not events:
                await asyncio.sleep(poll_s)

    async def _round(self) -> list[StoredEvent]:
        events: list[StoredEvent] = []
        for segment, offset in self._state.held_by(_ALONE).items():
            piece = await read_piece(self._client.store, segment, offset, _PIECE_BYTES, self._patience_s)
            events += piece.events
            self._do(record(_ALONE, {segment: piece.end}))
            if piece.finished:
                successors = await self._client.controller.successors(segment)
                self._do(complete(_ALONE, segment, successors))
        return events

    def _do(self, decision: Decision) -> None:
        for update in decision(self._state):
            self._state = evolve(self._state, update)
