"""A segment store in memory: the twin of the real one, for simulated tests.

It answers the same requests with the same replies, so that everything above the connection, the table of errors
included, is the code that runs in production. Faults are injected before or after a request has its effect. Rules:
segment-store-wire-protocol 2 to 5. Concurrency: a request takes effect at once, between two turns of the event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Literal
from uuid import UUID

import msgspec

from sluice.domain.config import MAX_KEY_LENGTH
from sluice.pravega.calls import RequestChannel, SegmentCalls
from sluice.pravega.event_frames import frame_event
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory_table import MemoryTable
from sluice.pravega.store import CREATION_TIME_ATTRIBUTE, EVENT_COUNT_ATTRIBUTE
from sluice.pravega.wire import appends, others, refusals, segments, tables
from sluice.pravega.wire.command import Command, Numbered
from sluice.pravega.wire.fields import MergedSource

Moment = Literal["before", "after"]
Fault = Callable[[Moment, str, str], Awaitable[None] | None]
"""Gets the moment, the request's type name and its segment.

It may raise ConnectionFailure or, before the effect, ContainerAway, or return what to wait for.
"""


class ContainerAway(Exception):
    """The container of the segment does not run on this store at the moment."""


_LARGEST_READ = 2 * 1024 * 1024

_TABLE_REQUESTS = (
    tables.DeleteTableSegment,
    tables.GetTableSegmentInfo,
    tables.UpdateTableEntries,
    tables.RemoveTableKeys,
    tables.ReadTable,
    tables.ReadTableEntries,
    others.ReadTableKeys,
    others.ReadTableEntriesDelta,
)

NO_WRITER = UUID(int=0)
Append = appends.AppendBlockEnd | appends.ConditionalAppend | others.ConditionalBlockEnd
Writers = dict[UUID, tuple[str, int]]
"""The segment that each writer was set up for on a connection, and its last number as far as is known there (2.5)."""


def segment_of(request: Any, writers: Writers) -> str:
    """The segment that a request is about; for an append that of the writer's latest set-up."""
    name: str = getattr(request, "segment", "")
    return name or writers.get(getattr(request, "writer_id", NO_WRITER), ("", 0))[0]


class MemorySegment(msgspec.Struct, eq=False):
    """One segment and all that is stored with it; `stored` holds the bytes from `start_offset` on."""

    scale_type: int = 0
    target_rate: int = 0
    rollover_size_bytes: int = 0
    stored: bytearray = msgspec.field(default_factory=bytearray)
    start_offset: int = 0
    sealed: bool = False
    last_modified_ms: int = 0
    attributes: dict[UUID, int] = msgspec.field(default_factory=dict)
    evicted: set[UUID] = msgspec.field(default_factory=set)
    """Attributes that read as not set until a client changes them, or tries to."""
    table: MemoryTable | None = None

    @property
    def length(self) -> int:
        """Where the next byte goes."""
        return self.start_offset + len(self.stored)

    @property
    def data(self) -> bytes:
        """A copy of what is stored."""
        return bytes(self.stored)

    @data.setter
    def data(self, data: bytes) -> None:
        self.stored = bytearray(data)

    def count_events(self, count: int) -> None:
        self.attributes[EVENT_COUNT_ATTRIBUTE] = self.attributes.get(EVENT_COUNT_ATTRIBUTE, 0) + count


class InMemorySegmentStore(SegmentCalls):
    """Has all methods of `SegmentStore`. `fault` is called around every request; `clock_ms` dates modifications."""

    def __init__(self, fault: Fault | None = None, clock_ms: Callable[[], int] = lambda: 0) -> None:
        super().__init__(call_timeout_s=30.0)
        self.fault = fault
        self.token_refusal: int | None = None
        """The `error_code` with which every token is refused; None: tokens are not looked at."""
        self.segments: dict[str, MemorySegment] = {}
        """What is stored, by name, for tests to look at."""
        self._clock_ms = clock_ms
        self._writers: Writers = {}
        self._changed = asyncio.Event()

    def evict(self, name: str) -> None:
        """Forgets of a segment what a segment store forgets that was not used for a minute (4.10)."""
        self.segments[name].evicted = set(self.segments[name].attributes)

    async def _channel(self, _: str) -> RequestChannel:
        return self

    async def call(self, request: Numbered, timeout_s: float | None, writers: Writers | None = None) -> Command:
        """Answers one request as a segment store would, on a connection on which these writers are set up.

        Raises ConnectionFailure where a segment store would close the connection.
        """
        writers = self._writers if writers is None else writers
        name = segment_of(request, writers)
        await asyncio.sleep(0)
        if self.token_refusal is not None:
            return refusals.AuthTokenCheckFailed(request.request_id, "", self.token_refusal)
        try:
            async with asyncio.timeout(timeout_s):
                await self._fault("before", request, name)
                while isinstance(request, appends.ReadSegment) and self._is_at_tail(request):
                    await self._changed.wait()
                reply = self._answer(request, name, writers)
                await self._fault("after", request, name)
        except ContainerAway:
            return refusals.WrongHost(request.request_id, name, "")
        except TimeoutError as error:
            raise ConnectionFailure(Failure.TIMED_OUT, type(request).__name__) from error
        return reply

    async def _fault(self, moment: Moment, request: Numbered, name: str) -> None:
        if self.fault is not None:
            wait = self.fault(moment, type(request).__name__, name)
            if wait is not None:
                await wait

    def _answer(self, request: Any, name: str, writers: Writers) -> Command:
        if isinstance(request, segments.CreateSegment | tables.CreateTableSegment):
            return self._create(request)
        if isinstance(request, segments.CreateTransientSegment):
            return self._create_transient(request)
        if isinstance(request, Append) and request.writer_id not in writers:
            raise ConnectionFailure(Failure.CLOSED_BY_PEER, f"writer {request.writer_id} is not set up")
        segment = self.segments.get(name)
        if segment is None:
            return self._without(request, name)
        if isinstance(request, _TABLE_REQUESTS):
            if segment.table is None:
                raise ConnectionFailure(Failure.CLOSED_BY_PEER, "not a table segment")
            if isinstance(request, tables.DeleteTableSegment):
                return self._delete_table(request, segment.table)
            return segment.table.answer(request)
        if isinstance(request, appends.SetupAppend):
            return _set_up(request, segment, writers)
        if isinstance(request, Append):
            return self._append(request, segment, writers)
        answer = self.ANSWERS.get(type(request))
        if answer is None:
            raise ConnectionFailure(Failure.CLOSED_BY_PEER, f"{type(request).__name__} is no request")
        return answer(self, request, segment)

    def _without(self, request: Any, name: str) -> Command:
        offset = request.offset if isinstance(request, appends.ReadSegment) else -1
        return refusals.NoSuchSegment(request.request_id, name, "", offset)

    # Segments

    def _create(self, request: segments.CreateSegment | tables.CreateTableSegment) -> Command:
        if request.segment in self.segments:
            return refusals.SegmentAlreadyExists(request.request_id, request.segment)
        if isinstance(request, tables.CreateTableSegment) and request.key_length > MAX_KEY_LENGTH:
            raise ConnectionFailure(Failure.CLOSED_BY_PEER, "keys that are too long")
        now = self._clock_ms()
        segment = MemorySegment(last_modified_ms=now, attributes={CREATION_TIME_ATTRIBUTE: now})
        segment.rollover_size_bytes = max(0, request.rollover_size_bytes)
        if isinstance(request, tables.CreateTableSegment):
            segment.table = MemoryTable(request.key_length)
        else:
            segment.scale_type, segment.target_rate = request.scale_type, request.target_rate
        self.segments[request.segment] = segment
        return segments.SegmentCreated(request.request_id, request.segment)

    def _create_transient(self, request: segments.CreateTransientSegment) -> Command:
        name = f"{request.segment}#transient.{request.writer_id.hex}.{request.request_id:032x}"
        self.segments[name] = MemorySegment(last_modified_ms=self._clock_ms())
        return segments.SegmentCreated(request.request_id, name)

    def _update_policy(self, request: segments.UpdateSegmentPolicy, segment: MemorySegment) -> Command:
        if segment.sealed:
            return refusals.SegmentIsSealed(request.request_id, request.segment)
        segment.scale_type, segment.target_rate = request.scale_type, request.target_rate
        return segments.SegmentPolicyUpdated(request.request_id, request.segment)

    def _seal(self, request: segments.SealSegment, segment: MemorySegment) -> Command:
        if segment.sealed:
            return refusals.SegmentIsSealed(request.request_id, request.segment)
        segment.sealed = True
        self._record_change(segment)
        return segments.SegmentSealed(request.request_id, request.segment)

    def _truncate(self, request: segments.TruncateSegment, segment: MemorySegment) -> Command:
        offset, start = request.truncation_offset, segment.start_offset
        if not start <= offset <= segment.length:
            return refusals.SegmentIsTruncated(request.request_id, request.segment, start, "", offset)
        del segment.stored[: offset - start]
        segment.start_offset = offset
        return segments.SegmentTruncated(request.request_id, request.segment)

    def _delete(self, request: segments.DeleteSegment, _: MemorySegment) -> Command:
        del self.segments[request.segment]
        self._wake_readers()
        return segments.SegmentDeleted(request.request_id, request.segment)

    def _delete_table(self, request: tables.DeleteTableSegment, table: MemoryTable) -> Command:
        refusal = table.refuse_delete(request)
        if refusal is None:
            del self.segments[request.segment]
            return segments.SegmentDeleted(request.request_id, request.segment)
        return refusal

    def _info(self, request: segments.GetStreamSegmentInfo, segment: MemorySegment) -> Command:
        return segments.StreamSegmentInfo(
            request.request_id,
            request.segment,
            exists=True,
            is_sealed=segment.sealed,
            is_deleted=False,
            last_modified_ms=segment.last_modified_ms,
            write_offset=segment.length,
            start_offset=segment.start_offset,
        )

    def _merge(self, request: segments.MergeSegmentsBatch, target: MemorySegment) -> Command:
        merged = []
        for name in request.sources:
            source = self.segments.get(name)
            if source is not None:
                if source.start_offset > 0:
                    raise ConnectionFailure(Failure.CLOSED_BY_PEER, "a merge source is truncated")
                if target.sealed:
                    return refusals.SegmentIsSealed(request.request_id, request.segment)
                self._take_in(target, source)
                del self.segments[name]
            merged.append(MergedSource(name, target.length))
        return segments.SegmentsBatchMerged(request.request_id, request.segment, tuple(merged))

    def _merge_one(self, request: segments.MergeSegments, target: MemorySegment) -> Command:
        source, present = self.segments.get(request.source), target.attributes
        if source is None:
            return refusals.NoSuchSegment(request.request_id, request.source, "", -1)
        if target.sealed:
            return refusals.SegmentIsSealed(request.request_id, request.source)
        for update in request.updates:
            if present.get(update.attribute_id, segments.NULL_ATTRIBUTE_VALUE) != update.expected:
                return segments.SegmentAttributeUpdated(request.request_id, False)
        present.update({update.attribute_id: update.value for update in request.updates})
        self._take_in(target, source)
        del self.segments[request.source]
        return segments.SegmentsMerged(request.request_id, request.segment, request.source, target.length)

    def _take_in(self, target: MemorySegment, source: MemorySegment) -> None:
        target.count_events(source.attributes.get(EVENT_COUNT_ATTRIBUTE, 0))
        self._store(target, source.stored)

    def _store(self, segment: MemorySegment, data: bytes | bytearray) -> None:
        segment.stored += data
        self._record_change(segment)

    def _record_change(self, segment: MemorySegment) -> None:
        segment.last_modified_ms = self._clock_ms()
        self._wake_readers()

    def _wake_readers(self) -> None:
        """Has every read that waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _is_at_tail(self, request: appends.ReadSegment) -> bool:
        segment = self.segments.get(request.segment)
        return segment is not None and not segment.sealed and request.offset >= segment.length

    def _locate(self, request: others.LocateOffset, segment: MemorySegment) -> Command:
        """The end, as of a segment without an index (4.11)."""
        return others.OffsetLocated(request.request_id, request.segment, segment.length)

    # Attributes, reading and appending

    def _attribute(self, request: segments.GetSegmentAttribute, segment: MemorySegment) -> Command:
        value = segment.attributes.get(request.attribute_id, segments.NULL_ATTRIBUTE_VALUE)
        if request.attribute_id in segment.evicted:
            value = segments.NULL_ATTRIBUTE_VALUE
        return segments.SegmentAttribute(request.request_id, value)

    def _update_attribute(self, request: segments.UpdateSegmentAttribute, segment: MemorySegment) -> Command:
        if segment.sealed:
            return refusals.SegmentIsSealed(request.request_id, request.segment)
        segment.evicted.discard(request.attribute_id)
        present = segment.attributes.get(request.attribute_id, segments.NULL_ATTRIBUTE_VALUE)
        if present == request.expected_value:
            segment.attributes[request.attribute_id] = request.new_value
        return segments.SegmentAttributeUpdated(request.request_id, present == request.expected_value)

    def _read(self, request: appends.ReadSegment, segment: MemorySegment) -> Command:
        at = request.offset - segment.start_offset
        if at < 0:
            return refusals.SegmentIsTruncated(
                request.request_id, request.segment, segment.start_offset, "", request.offset
            )
        wanted = min(_LARGEST_READ, max(8, request.suggested_length))
        data = bytes(segment.stored[at : at + wanted])
        ends = at + len(data) == len(segment.stored) and len(data) < wanted
        return appends.SegmentRead(
            request.segment,
            request.offset,
            ends and not segment.sealed,
            ends and segment.sealed,
            data,
            request.request_id,
        )

    def _append(self, request: Append, segment: MemorySegment, writers: Writers) -> Command:
        writer = request.writer_id
        number = request.last_event_number if isinstance(request, appends.AppendBlockEnd) else request.event_number
        name, last = writers[writer]
        if number < last:
            raise ConnectionFailure(Failure.CLOSED_BY_PEER, f"event number {number} after {last}")
        if segment.sealed:
            return refusals.SegmentIsSealed(request.request_id, name, "", number)
        if segment.attributes.get(writer, segments.NULL_ATTRIBUTE_VALUE) != last:
            return refusals.InvalidEventNumber(writer, request.request_id, "", number)
        if not isinstance(request, appends.AppendBlockEnd) and 0 <= request.expected_offset != segment.length:
            return appends.ConditionalCheckFailed(writer, number, request.request_id)
        data = frame_event(request.event) if isinstance(request, appends.ConditionalAppend) else request.data
        segment.attributes[writer] = number
        segment.count_events(request.num_events if isinstance(request, appends.AppendBlockEnd) else 1)
        writers[writer] = (name, number)
        self._store(segment, data)
        return appends.DataAppended(writer, number, last, request.request_id, segment.length)

    ANSWERS: ClassVar[dict[type[Command], Callable[..., Command]]] = {
        segments.UpdateSegmentPolicy: _update_policy,
        segments.SealSegment: _seal,
        segments.TruncateSegment: _truncate,
        segments.DeleteSegment: _delete,
        segments.GetStreamSegmentInfo: _info,
        segments.MergeSegments: _merge_one,
        segments.MergeSegmentsBatch: _merge,
        others.LocateOffset: _locate,
        segments.GetSegmentAttribute: _attribute,
        segments.UpdateSegmentAttribute: _update_attribute,
        appends.ReadSegment: _read,
    }


def _set_up(request: appends.SetupAppend, segment: MemorySegment, writers: Writers) -> Command:
    last = segment.attributes.get(request.writer_id, segments.NULL_ATTRIBUTE_VALUE)
    writers[request.writer_id] = (request.segment, last)
    return appends.AppendSetup(request.request_id, request.segment, request.writer_id, last)
