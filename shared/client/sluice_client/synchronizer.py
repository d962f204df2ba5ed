"""A state that many processes share: each holds it in memory, and all apply the same updates in the same order.

The revisioned stream is the order. A process that changes the state decides on its own copy and appends the updates on
condition that no other one appended since. If one did, it applies what came and decides anew. So an update was
decided on exactly the state that it is applied to, everywhere.

Compaction appends the state itself as an entry, moves the mark to that entry, then truncates where the mark was before,
in this order, as Java does. So the mark is at an entry that holds a state, and so is the head of a stream that was
truncated, wherever a compaction is interrupted: who finds what it wants to read truncated goes on from the mark, or
from the head if the mark cannot be had, because the stream was sealed since. Several that compact at once do each other
no harm: the mark only moves forward. And a copy that is less than one compaction behind never meets a truncation.

The copy changes only by what was read back or is known to be stored, so a call that fails or is cancelled leaves it at
some revision of the stream, and the next call goes on from there.

A call waits for the lock as long as the stream's patience lasts, and tries to be first for as long again. What it
requests meanwhile has the patience for each request, so that a copy far behind catches up however long that takes.
Concurrency: calls of one object go one after the other; other processes, and other objects of this one, may do what
they like meanwhile.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Generic, TypeVar

from sluice.pravega import synchronizer_records as records
from sluice.pravega.envelope import MalformedPayload
from sluice_client.call_lock import CallLock
from sluice_client.codec import Codec
from sluice_client.errors import Contended, EntryMalformed, RevisionTruncated, StateLost
from sluice_client.revision import Revision
from sluice_client.revisioned_stream import RevisionedStream

State = TypeVar("State")
Update = TypeVar("Update")

_ATTEMPTS = 100
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.2


class StateSynchronizer(Generic[State, Update]):
    """One copy of the state that a revisioned stream describes.

    `initial` gives the state of an empty stream and `apply` the state after an update. Both must do the same in every
    process and for ever, and must not change what they are given; values that cannot change are best. The stream
    must have no retention policy and no other kind of entry. Every method may raise what `RevisionedStream` does, and
    NotSent if others were at work on this object for too long.
    """

    def __init__(
        self,
        stream: RevisionedStream,
        *,
        initial: Callable[[], State],
        apply: Callable[[State, Update], State],
        state_codec: Codec[State],
        update_codec: Codec[Update],
    ) -> None:
        self._stream = stream
        self._apply = apply
        self._state_codec = state_codec
        self._update_codec = update_codec
        self._state = initial()
        self._revision = Revision(stream.segment, 0)
        # Begin and end of the last entry seen that holds a state.
        self._written: tuple[Revision, Revision] | None = None
        self._call_lock = CallLock(f"the state in {stream.segment}")

    @property
    def state(self) -> State:
        """The state as of the last call that ended, the initial one before."""
        return self._state

    @property
    def revision(self) -> Revision:
        """The revision of `state`."""
        return self._revision

    async def fetch(self) -> State:
        """Applies what was written up to now, and returns the state.

        Raises EntryMalformed, StateLost, ValueError if a codec cannot read what is there, and what `apply` raises.
        """
        async with self._turn():
            await self._catch_up()
            return self._state

    async def update(self, decide: Callable[[State], Sequence[Update]]) -> State:
        """Writes the updates that `decide` makes of the newest state, together or not at all; returns the state after.

        `decide` is called anew, with the newer state, as often as another process was first; only what it returned last
        is written. If that is nothing, nothing is written and the state is one that was the newest during the call.
        What `decide` raises is passed on, and what `apply` raises of the updates, and nothing is written then. Raises
        Contended if others were first 100 times, or for as long as the patience lasts, and what `fetch` raises. After
        Unavailable the updates may or may not be written, after NotSent they are not.
        """
        async with self._turn():
            for pause in self._pauses():
                await self._catch_up()
                updates = decide(self._state)
                if not updates:
                    return self._state
                if await self._write(records.updates_record([self._update_codec.encode(each) for each in updates])):
                    return self._state
                await asyncio.sleep(pause)
        raise Contended(f"attempts to update {self._stream.segment}")

    async def begin(self, state: State) -> State:
        """Writes a state as the first entry if there is none yet; returns the one that is there.

        Java's copies have no initial state: to them updates before a state are corrupt. Raises what `fetch` raises.
        """
        async with self._turn():
            await self._catch_up()
            while self._revision.offset == 0 and not await self._write(
                records.state_record(self._state_codec.encode(state))
            ):
                await self._catch_up()
            return self._state

    async def append(self, updates: Sequence[Update]) -> None:
        """Writes updates whatever the state is by now; the copy gets them with the next call.

        Only for updates that `apply` takes on every state. Raises what `RevisionedStream.append` does.
        """
        await self._stream.append(records.updates_record([self._update_codec.encode(each) for each in updates]))

    async def compact(self) -> None:
        """Writes the state to the stream as one entry and truncates where the compaction before this one began.

        Any process may at any time; what was done already is not done again. Raises Contended, EntryTooLarge if the
        state is larger than 8 MiB, and what `fetch` raises.
        """
        async with self._turn():
            revision = await self._write_state()
            before = await self._stream.mark()
            if before is None or before < revision:
                # If another process was first, it has marked a newer state.
                await self._stream.set_mark(revision, before)
            if before is not None:
                await self._stream.truncate(before)

    async def _write_state(self) -> Revision:
        """Where an entry begins that holds the newest state."""
        for pause in self._pauses():
            await self._catch_up()
            revision = self._revision
            if self._written is not None and self._written[1] == revision:
                return self._written[0]
            if await self._write(records.state_record(self._state_codec.encode(self._state))):
                return revision
            await asyncio.sleep(pause)
        raise Contended(f"attempts to compact {self._stream.segment}")

    async def _write(self, record: bytes) -> bool:
        """Writes an entry if the copy is the newest one, and applies it as if it had been read."""
        before, state = self._revision, self._state_after(self._state, record)
        after = await self._stream.append_if(record, before)
        if after is None:
            return False
        self._take(before, after, record, state)
        return True

    async def _catch_up(self) -> None:
        while True:
            try:
                async for after, record in self._stream.read(self._revision):
                    self._take(self._revision, after, record, self._state_after(self._state, record))
                return
            except RevisionTruncated as error:
                await self._begin_at_mark(error)

    async def _begin_at_mark(self, truncated: RevisionTruncated) -> None:
        """Takes the state over from the entry at the mark, or at the head, unless both have moved on again by then."""
        mark = await self._stream.mark()
        revision = Revision(self._stream.segment, truncated.head_offset) if mark is None else mark
        if revision.offset < truncated.head_offset:
            raise StateLost(f"{truncated.detail}, mark {mark}") from truncated
        try:
            async with aclosing(self._stream.read(revision)) as entries:
                after, record = await anext(entries)
        except RevisionTruncated:
            return
        except StopAsyncIteration:
            raise StateLost(f"nothing at {revision}, mark {mark}") from truncated
        state = records.state_in(record)
        if state is None and mark is None:
            raise StateLost(f"{truncated.detail}, mark None") from truncated
        if state is None:
            raise EntryMalformed(f"no state at the mark {mark}")
        self._take(revision, after, record, self._state_codec.decode(state))

    def _state_after(self, state: State, record: bytes) -> State:
        written = records.state_in(record)
        try:
            if written is not None:
                return self._state_codec.decode(written)
            for update in records.updates_in(record):
                state = self._apply(state, self._update_codec.decode(update))
        except MalformedPayload as error:
            raise EntryMalformed(f"{self._stream.segment}: {error}") from error
        return state

    def _take(self, before: Revision, after: Revision, record: bytes, state: State) -> None:
        if records.state_in(record) is not None:
            self._written = (before, after)
        self._state, self._revision = state, after

    def _turn(self) -> AbstractAsyncContextManager[float]:
        return self._call_lock.acquired(self._stream.patience.deadline_s)

    def _pauses(self) -> Iterator[float]:
        """Seconds to wait after each attempt; by chance, so that those who compete do not meet again.

        The time begins to count behind the first attempt, for a copy that is far behind has much to read in it.
        """
        clock = asyncio.get_running_loop().time
        end, longest = 0.0, _FIRST_PAUSE_S
        for _ in range(_ATTEMPTS):
            yield random.uniform(0.0, longest)
            end = end or clock() + self._stream.patience.deadline_s
            if clock() >= end:
                return
            longest = min(2 * longest, _LONGEST_PAUSE_S)
