"""A reader of a reader group: it shares the segments of streams with others, of which some may be Java's.

What it does beside reading is decided in `decisions` and written on condition that the group's state is still the one
that was decided on. What it reads follows from that state: whenever the reader has seen a newer one, it reads what the
group says that it holds, and nothing else. A write of which the outcome is not known, for the store did not answer, has
the state looked at before anything more is returned. Rules: reader-groups 4.

Concurrency: a reader belongs to one task, which may be cancelled while it waits for an event, and loses none. What is
done in the group goes on meanwhile, in a task of its own, and nothing is returned until it is done: so a caller in a
hurry gets on, too. The controller is called beside the reading, for it may be away; a call that failed is an error when
its result is needed.
"""

import asyncio
import logging
import math
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import TracebackType
from typing import Self
from uuid import uuid4

import msgspec

from sluice.domain.names import is_user_name, mark_stream
from sluice.pravega.reader_group_state import GroupState, Predecessors, Ranges, UpdateDistanceToTail
from sluice.pravega.stream_cut import Offsets
from sluice_client.errors import ClientError, Refused
from sluice_client.groups import decisions
from sluice_client.groups.background_calls import BackgroundCalls
from sluice_client.groups.decisions import ReaderOffline, Updates, held_by
from sluice_client.groups.encoding import Position
from sluice_client.groups.group import ReaderGroup, open_reader_group
from sluice_client.groups.state import COMPLETED, at_end_of_data, is_silent, pending
from sluice_client.groups.time_window import TimeWindow, TimeWindows
from sluice_client.opening import Client
from sluice_client.segment_input import LARGEST_READ_BYTES, Event, SegmentInput, Skipped

_NO_END = 2**63 - 1
"""The end of a segment that is read to its own end."""
_LOOK_S = 0.1
"""How often at most timers are looked at while events come."""
_LONGEST_WAIT_S = 1.0
_REPAIR_S = 10.0
"""How often at most a configuration that is being changed is looked for at the controller."""
READ_AHEAD_BYTES = 16 * 1024 * 1024
"""What is read ahead of the program, in all segments together."""

_log = logging.getLogger(__name__)


class CheckpointReached(msgspec.Struct, frozen=True):
    """All that this reader returned before is to be made durable: its next call says that it is."""

    name: str


Item = Event | CheckpointReached | Skipped
Batch = list[Event] | CheckpointReached | Skipped


class _Timers(msgspec.Struct):
    """When each kind of work is due, on the clock of the event loop."""

    refresh: float
    acquire: float
    release: float
    lag: float
    checkpoint: float
    repair: float


class EventReader:
    """Reads events; `open_reader` makes one. As an async context manager it leaves the group at the end.

    Then all that it returned counts as processed; but after an error only what its last checkpoint has.
    """

    def __init__(self, client: Client, group: ReaderGroup, id: str, read_ahead_bytes: int = READ_AHEAD_BYTES) -> None:
        self.id = id
        self._read_ahead_bytes = read_ahead_bytes
        self._client = client
        self._whole = group
        self._group = group.shared
        self._clock = asyncio.get_running_loop().time
        now = self._clock()
        self._timers = _Timers(now, now, *[now + decisions.TIME_UNIT_S] * 4)
        self._look_at = now
        self._woken = asyncio.Event()
        self._inputs: dict[str, SegmentInput] = {}
        self._turns: deque[SegmentInput] = deque()
        self._completed: Offsets = {}
        self._confirmed: set[str] = set()
        self._windows: dict[str, TimeWindows] = {}
        self._returned: str | None = None
        self._settling = False
        self._uncertain = False
        self._online = True
        self._last_segment: str | None = None
        self._rest: list[Event] = []
        self._working: asyncio.Task[CheckpointReached | None] | None = None
        self._calls = BackgroundCalls(self._woken)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.close()
            else:
                await self.close_at(None)
        except ClientError as failure:
            if error is None:
                raise
            error.add_note(f"{failure}")
        finally:
            await self._stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        """The next item; ends when nothing is left to be read, and nothing will follow."""
        if self._rest and self._clock() < self._look_at:
            return self._rest.pop()
        item = await self.next()
        if item is None:
            raise StopAsyncIteration
        return item

    @property
    def position(self) -> Position:
        """Behind all that was returned: in each segment that the reader holds."""
        return Position(self._positions(), self._group.state.ranges)

    @property
    def segments(self) -> list[str]:
        """What the reader holds at the moment."""
        return [*self._inputs, *self._completed]

    @property
    def at_end_of_data(self) -> bool:
        """Whether nothing is left for any reader of the group, and nothing will follow."""
        return at_end_of_data(self._group.state)

    async def next(self, timeout_s: float = math.inf) -> Item | None:
        """The next event, or a checkpoint to be made, or what was truncated before it was read.

        None when nothing came within `timeout_s`, be it that work in the group goes on, or nothing will come any more.
        ReaderOffline when the group has this reader no more; MalformedEvents, SegmentStoreError, ClientError, after
        which the next call goes on.
        """
        if self._rest and self._clock() < self._look_at:
            return self._rest.pop()
        found = await self.next_batch(timeout_s)
        if not isinstance(found, list):
            return found
        found.reverse()
        self._rest = found
        return found.pop()

    async def batches(self) -> AsyncIterator[Batch]:
        """The batches one after the other, until nothing is left to be read, and nothing will follow."""
        while (found := await self.next_batch()) is not None:
            yield found

    async def next_batch(self, timeout_s: float = math.inf) -> Batch | None:
        """As `next`, but with events of one segment that follow each other, all of which count as returned."""
        until = self._clock() + timeout_s
        # Other tasks have their turn.
        await asyncio.sleep(0)
        while True:
            if self._working is not None or self._is_due:
                checkpoint = await self._work(until)
                if checkpoint is not None or self._working is not None:
                    return checkpoint
            found = self._take()
            if found is not None:
                return found
            now = self._clock()
            if now >= until or self.at_end_of_data:
                return None
            await self._wait(min(until, self._look_at, now + _LONGEST_WAIT_S) - now)

    async def time_window(self, stream: str) -> TimeWindow:
        """How far the group is in `scope/stream`, in the time that its writers noted, as of this reader's last look.

        Raises Refused for a stream that the group does not read.
        """
        state, (scope, _, name) = self._group.state, stream.partition("/")
        if stream not in state.config.starts:
            raise Refused(f"the group does not read {stream}")
        if stream not in self._windows:
            self._windows[stream] = TimeWindows(await self._client.revisioned_stream(scope, mark_stream(name)))
        positions = {segment: at for segment, at in state.last_read.items() if segment.startswith(f"{stream}/")}
        return await self._windows[stream].at(positions, state.ranges)

    async def close(self) -> None:
        """Leaves the group: all that was returned counts as processed, and others go on behind it."""
        await self.close_at(self.position)

    async def close_at(self, position: Position | None) -> None:
        """Leaves the group; others go on at this position, None: at this reader's last checkpoint.

        After an error, or when cancelled, it may be called again.
        """
        offsets = position.offsets if position is not None else {}
        await self._end_work()
        if self._online:
            # Until the group knows, the reader knows where it is: a close that failed can be tried again.
            await self._group.update(lambda state: decisions.leave(state, self.id, offsets))
            self._online = False
        await self._stop()

    # Events

    def _take(self) -> list[Event] | Skipped | None:
        """What is left of the last events, or else those of the next segment that has some."""
        if self._rest:
            rest, self._rest = self._rest[::-1], []
            return rest
        for _ in range(len(self._turns)):
            self._turns.rotate(-1)
            source = self._turns[0]
            found = source.take()
            if isinstance(found, Skipped):
                _log.warning("%s: truncated before it was read, from %d to %s", found.segment, found.start, found.end)
            elif found is not None:
                self._last_segment = source.segment
            elif source.ended:
                self._end(source)
            if found is not None:
                return found
        return None

    def _end(self, source: SegmentInput) -> None:
        """Keeps a segment that was read to its end until the next checkpoint, which says so."""
        self._completed[source.segment] = source.offset if source.at_limit else COMPLETED
        self._drop(source.segment)

    async def _wait(self, seconds: float) -> None:
        self._woken.clear()
        if any(source.ready for source in self._turns):
            return
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return

    # The group

    @property
    def _is_due(self) -> bool:
        return self._calls.answered or self._clock() >= self._look_at

    async def _work(self, until: float) -> CheckpointReached | None:
        """Waits for what is due beside reading, which goes on when the caller is cancelled, or waits no longer."""
        if self._working is None:
            # So nothing more is returned until it has ended, and that without an error or a checkpoint.
            self._look_at = 0.0
            self._working = asyncio.create_task(self._do_what_is_due(), name=f"reader {self.id}")
        seconds = until - self._clock()
        await asyncio.wait([self._working], timeout=seconds if seconds < math.inf else None)
        if not self._working.done():
            return None
        done, self._working = self._working, None
        return done.result()

    async def _do_what_is_due(self) -> CheckpointReached | None:
        """A checkpoint that the user is to hear of comes first."""
        timers, now = self._timers, self._clock()
        self._calls.answered = False
        if self._uncertain or now >= timers.refresh:
            await self._refresh()
        if self._returned is not None:
            await self._confirm(self._returned)
            self._returned, self._settling, self._confirmed = None, True, set(self._completed)
        checkpoint = await self._next_checkpoint()
        if checkpoint is not None:
            self._returned = checkpoint
            return CheckpointReached(checkpoint)
        await self._complete_confirmed()
        if self._settling:
            await self._release()
            self._settling = False
            self._calls.begin("publish", self._whole.publish_last_checkpoint)
        await self._acquire()
        due = min(timers.refresh, timers.acquire, timers.checkpoint if self._interval_s else math.inf)
        self._look_at = max(due, self._clock() + _LOOK_S)
        return None

    async def _refresh(self) -> None:
        self._follow(await self._group.refresh())
        self._uncertain = False
        timers, now = self._timers, self._clock()
        timers.refresh = now + self._group.state.config.refresh_ms / 1000
        if self._group.state.updating and now >= timers.repair:
            timers.repair = now + _REPAIR_S
            self._calls.begin("repair", self._whole.repair)
        await self._group.compact_if_long(random.random())

    async def _confirm(self, checkpoint: str) -> None:
        positions = self._positions()
        await self._update(lambda state: decisions.checkpoint(state, self.id, checkpoint, positions))

    async def _next_checkpoint(self) -> str | None:
        """The checkpoint that waits for this reader; makes those by itself of which the user need not hear."""
        while (checkpoint := pending(self._group.state, self.id)) is not None:
            self._put_off_checkpoint()
            if not is_silent(checkpoint):
                return checkpoint
            await self._confirm(checkpoint)
        if self._interval_s and self._clock() >= self._timers.checkpoint and not self._group.state.checkpoints.waiting:
            id = str(uuid4())
            await self._update(lambda state: decisions.begin_automatic_checkpoint(state, self.id, id))
            self._put_off_checkpoint()
            return await self._next_checkpoint()
        return None

    @property
    def _interval_s(self) -> float:
        return max(0.0, self._group.state.config.automatic_checkpoint_ms / 1000)

    def _put_off_checkpoint(self) -> None:
        self._timers.checkpoint = self._clock() + self._interval_s

    async def _release(self) -> None:
        """Gives a segment away, which may be done only right after a checkpoint."""
        timers, now = self._timers, self._clock()
        positions, lag = self._positions(), self._lag()
        if now >= timers.release and decisions.release(self._group.state, self.id, positions, lag):
            timers.acquire = timers.release = now + decisions.ATTEMPT_S
            self._put_off(await self._update(lambda state: decisions.release(state, self.id, positions, lag)))

    async def _complete_confirmed(self) -> None:
        """Says what was read to its end before the last checkpoint, as soon as the controller said what follows it."""
        for segment in self._confirmed & self._completed.keys():
            following = self._followers(segment)
            if following is not None:
                await self._complete(segment, *following)

    def _followers(self, segment: str) -> tuple[Predecessors, Ranges] | None:
        """None until the controller has answered."""
        if segment in self._group.state.end:
            return {}, {}
        found: tuple[Predecessors, Ranges] | None = self._calls.take(segment)
        if found is None:
            self._calls.begin(segment, partial(self._client.controller.followers, segment))
        return found

    async def _complete(self, segment: str, successors: Predecessors, following: Ranges) -> None:
        """Does nothing when another checkpoint has to be made first."""
        ranges = {**self._group.state.ranges, **following}
        known = {name: ranges[name] for name in (segment, *successors) if name in ranges}
        await self._update(lambda state: decisions.complete(state, self.id, segment, successors, known))
        if segment not in self._completed:
            self._timers.acquire = self._clock()

    async def _acquire(self) -> None:
        """Takes a share of the free segments if it is time; else says now and then how far this reader is."""
        state, timers, now = self._group.state, self._timers, self._clock()
        if now < timers.acquire:
            return
        if state.unassigned and pending(state, self.id) is None:
            timers.acquire = timers.release = now + decisions.ATTEMPT_S
            lag = self._lag()
            self._put_off(await self._update(lambda state: decisions.acquire(state, self.id, lag)))
            return
        timers.acquire = now + decisions.acquire_after_s(state, self.id)
        if now >= timers.lag:
            await self._group.append([self._lag()])
            timers.lag = now + decisions.lag_after_s(state)
            timers.refresh = now

    def _put_off(self, state: GroupState) -> None:
        timers, now = self._timers, self._clock()
        timers.acquire = now + decisions.acquire_after_s(state, self.id)
        timers.release = now + decisions.release_after_s(state, self.id)
        timers.lag = now + decisions.lag_after_s(state)

    async def _update(self, decide: Callable[[GroupState], Updates]) -> GroupState:
        """The state after what is decided on the newest one; the reader reads what it holds by that."""
        self._uncertain = True
        state = await self._group.update(decide)
        self._follow(state)
        self._uncertain = False
        return state

    def _follow(self, state: GroupState) -> None:
        """Reads what the group says that this reader holds, from where it says, and nothing else."""
        try:
            held = held_by(state, self.id)
        except ReaderOffline:
            self._online = False
            for segment in self.segments:
                self._drop(segment)
            self._completed = {}
            raise
        for segment in [segment for segment in self.segments if segment not in held]:
            self._completed.pop(segment, None)
            self._drop(segment)
        for segment, offset in held.items():
            if segment not in self._inputs and segment not in self._completed:
                end = state.end.get(segment, _NO_END)
                if offset < 0 or offset == end:
                    self._completed[segment] = offset
                else:
                    self._begin(segment, offset, None if end == _NO_END else end)
        # Each input has up to two reads, and so has what was taken of one of them.
        share = self._read_ahead_bytes // (2 * len(self._turns) + 2)
        for source in self._turns:
            source.read_bytes = max(1, min(LARGEST_READ_BYTES, share))

    def _begin(self, segment: str, offset: int, limit: int | None) -> None:
        source = SegmentInput(
            self._client.store, segment, offset, limit=limit, patience=self._client.patience, woken=self._woken
        )
        self._inputs[segment] = source
        self._turns.append(source)

    def _drop(self, segment: str) -> None:
        source = self._inputs.pop(segment, None)
        if source is not None:
            source.stop()
            self._turns.remove(source)
            if self._rest and self._rest[0].segment == segment:
                self._rest = []

    async def _end_work(self) -> None:
        working, self._working = self._working, None
        if working is not None:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        await self._calls.cancel()

    async def _stop(self) -> None:
        await self._end_work()
        inputs, self._inputs = self._inputs, {}
        self._turns.clear()
        self._rest = []
        for source in inputs.values():
            await source.close()

    def _positions(self) -> Offsets:
        offsets = {segment: source.offset for segment, source in self._inputs.items()} | self._completed
        if self._rest:
            offsets[self._rest[-1].segment] = self._rest[-1].start
        return offsets

    def _lag(self) -> UpdateDistanceToTail:
        now_ms = time.time_ns() // 1_000_000
        return decisions.lag_of(self.id, now_ms, self._last_segment, self._positions(), self._group.state.ranges)


async def open_reader(
    client: Client, scope: str, group: str, id: str, *, read_ahead_bytes: int = READ_AHEAD_BYTES
) -> EventReader:
    """A reader that has joined a group under an id that no other reader has, nor had while it may still be alive.

    It reads `read_ahead_bytes` ahead of the program, in all its segments together; more only for a larger event.
    Raises Refused for what can be no id, ReaderExists, GroupMissing.
    """
    if not is_user_name(id):
        raise Refused(f"a reader by the id of {id!r}")
    found = await open_reader_group(client, scope, group)
    joins = False

    def join(state: GroupState) -> Updates:
        nonlocal joins
        joins = False
        updates = decisions.join(state, id)
        joins = True
        return updates

    try:
        await found.shared.update(join)
    except BaseException as error:
        if joins:
            await _take_back(found, id, error)
        raise
    return EventReader(client, found, id, read_ahead_bytes)


async def _take_back(group: ReaderGroup, id: str, error: BaseException) -> None:
    """Of a join that was cancelled, or not answered, nobody would report that its reader is gone."""
    try:
        await group.reader_offline(id)
    except ClientError as failure:
        error.add_note(f"{id} may be in the group, and is to be reported offline: {failure}")
