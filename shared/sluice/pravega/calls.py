"""The operations of a segment store as requests and replies, over any channel that carries them.

Concurrency: no state but the writers, those that append right now and where others did last; one writer has one append
under way, because an append frame names no segment and the store takes that of the writer's latest set-up on the
connection.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol, TypeVar, cast
from uuid import UUID, uuid4

from sluice.pravega import errors
from sluice.pravega.connection import next_request_id
from sluice.pravega.event_frames import HEADER_BYTES, MAX_EVENT_BYTES, frame_event, frame_events
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.store import SegmentData, SegmentInfo, TableInfo, TablePage
from sluice.pravega.tokens import NO_TOKENS, Tokens
from sluice.pravega.wire import appends, segments, tables
from sluice.pravega.wire.command import Command, Numbered
from sluice.pravega.wire.fields import AttributeUpdate, TableEntry, TableKey

_R = TypeVar("_R", bound=Command)


_MAX_WRITERS = 1000


class RequestChannel(Protocol):
    """What carries requests to the segment store that has a segment."""

    async def call(self, request: Numbered, timeout_s: float) -> Command:
        """The reply to a request. Raises ConnectionFailure."""


class _Block(NamedTuple):
    """The last block of a writer: by which channel it was stored, under which number."""

    channel: RequestChannel
    number: int


class SegmentCalls(ABC):
    """Every method of `SegmentStore`, given a channel."""

    def __init__(self, call_timeout_s: float, tokens: Tokens = NO_TOKENS) -> None:
        self._call_timeout_s = call_timeout_s
        self._token = tokens.for_request
        self._append_token = tokens.for_append
        self._appending: set[UUID] = set()
        self._last_blocks: dict[UUID, _Block] = {}

    @abstractmethod
    async def _channel(self, segment: str) -> RequestChannel:
        """The channel to the store that has the segment now. Raises ConnectionFailure."""

    async def create_segment(self, name: str, scale_type: int, target_rate: int, rollover_size_bytes: int = 0) -> None:
        """See SegmentStore."""
        request = segments.CreateSegment(
            next_request_id(), name, target_rate, scale_type, await self._token(name), rollover_size_bytes
        )
        await self._send(request, name)

    async def update_policy(self, name: str, scale_type: int, target_rate: int) -> None:
        """See SegmentStore."""
        await self._send(
            segments.UpdateSegmentPolicy(next_request_id(), name, target_rate, scale_type, await self._token(name)),
            name,
        )

    async def seal_segment(self, name: str) -> None:
        """See SegmentStore."""
        await self._send(segments.SealSegment(next_request_id(), name, await self._token(name)), name)

    async def truncate_segment(self, name: str, offset: int) -> None:
        """See SegmentStore."""
        await self._send(segments.TruncateSegment(next_request_id(), name, offset, await self._token(name)), name)

    async def delete_segment(self, name: str) -> None:
        """See SegmentStore.

        What a store has not loaded it deletes past a request that is just loading it: a client that sets up appends, or
        reads, at that moment brings the segment back, for good. The question behind the deletion waits for such a
        request. What is loaded is deleted for all. Of a table the store does this itself.
        """
        await self.delete_unused_segment(name)
        with suppress(errors.SegmentMissing):
            await self.segment_info(name)
            await self.delete_unused_segment(name)

    async def delete_unused_segment(self, name: str) -> None:
        """See SegmentStore."""
        await self._send(segments.DeleteSegment(next_request_id(), name, await self._token(name)), name)

    async def merge_batch(self, target: str, sources: Sequence[str]) -> list[int]:
        """See SegmentStore."""
        request = segments.MergeSegmentsBatch(next_request_id(), target, tuple(sources), await self._token(target))
        reply = await self._request_reply(request, target, segments.SegmentsBatchMerged)
        return [merged.target_length for merged in reply.merged]

    async def segment_info(self, name: str) -> SegmentInfo:
        """See SegmentStore."""
        request = segments.GetStreamSegmentInfo(next_request_id(), name, await self._token(name))
        reply = await self._request_reply(request, name, segments.StreamSegmentInfo)
        if not reply.exists or reply.is_deleted:
            raise errors.SegmentMissing(type(request).__name__, name, "", repr(reply), reply)
        return SegmentInfo(reply.write_offset, reply.start_offset, reply.is_sealed, reply.last_modified_ms)

    async def read_segment(self, name: str, offset: int, length: int) -> SegmentData:
        """See SegmentStore."""
        info = await self.segment_info(name)
        available = info.length - offset
        if available <= 0:
            return SegmentData(offset, b"", info.sealed)
        wanted = min(length, available)
        request = appends.ReadSegment(name, offset, wanted, await self._token(name), next_request_id())
        reply = await self._send(request, name)
        if not isinstance(reply, appends.SegmentRead):
            return SegmentData(offset, b"", True)
        # A store reads at least eight bytes, whatever was requested.
        data = reply.data[:wanted]
        return SegmentData(offset, data, info.sealed and offset + len(data) == info.length)

    async def read_or_wait(self, name: str, offset: int, length: int, wait_s: float) -> SegmentData:
        """See SegmentStore."""
        request = appends.ReadSegment(name, offset, length, await self._token(name), next_request_id())
        reply = await self._exchange(await self._channel_for(request, name), request, name, wait_s)
        if not isinstance(reply, appends.SegmentRead):
            return SegmentData(offset, b"", True)
        return SegmentData(offset, reply.data, reply.end_of_segment)

    async def append(
        self, name: str, writer_id: UUID, event: bytes, *, event_number: int = 1, expected_offset: int | None = None
    ) -> int:
        """See SegmentStore."""
        request = _append_request(writer_id, event, event_number, expected_offset)
        appended = await self._append_once(name, writer_id, event_number, request)
        if appended is not None:
            return appended.segment_length
        if expected_offset is not None:
            return expected_offset + HEADER_BYTES + len(event)
        return (await self.segment_info(name)).length

    async def append_events(self, name: str, writer_id: UUID, events: Sequence[bytes], last_event_number: int) -> None:
        """See SegmentStore."""
        request = _block_request(writer_id, events, last_event_number)
        await self._append_once(name, writer_id, last_event_number, request, is_block=True)

    async def append_large_event(self, name: str, writer_id: UUID, event: bytes, event_number: int) -> None:
        """See SegmentStore."""
        token = await self._append_token(name)
        setup = appends.SetupAppend(next_request_id(), writer_id, name, token)
        # The merge changes the writer's last number without its set-up: the next block needs a new one.
        self._last_blocks.pop(writer_id, None)
        channel = await self._channel_for(setup, name)
        last = (await self._send_expecting(channel, setup, name, appends.AppendSetup)).last_event_number
        if last >= event_number:
            return
        try:
            source = await self._store_apart(channel, name, token, event)
            number = AttributeUpdate(writer_id, segments.REPLACE_IF_EQUALS, event_number, last)
            merge = segments.MergeSegments(next_request_id(), name, source, token, (number,))
            await self._send_expecting(channel, merge, name, segments.SegmentsMerged)
        except errors.SegmentMissing as lost:
            # If this very segment is missing, the next attempt's set-up says so.
            raise errors.TryLater(lost.operation, name, lost.host, lost.detail, lost.reply) from lost

    async def _store_apart(self, channel: RequestChannel, name: str, token: str, event: bytes) -> str:
        """A segment that holds only this event; only on this connection it is certain to be there (7.4)."""
        writer_id, data = uuid4(), frame_event(event)
        create = segments.CreateTransientSegment(next_request_id(), writer_id, name, token)
        source = (await self._send_expecting(channel, create, name, segments.SegmentCreated)).segment
        setup = appends.SetupAppend(next_request_id(), writer_id, source, token)
        await self._send_expecting(channel, setup, name, appends.AppendSetup)
        for number, at in enumerate(range(0, len(data), MAX_EVENT_BYTES), 1):
            part = data[at : at + MAX_EVENT_BYTES]
            block = appends.AppendBlockEnd(writer_id, len(part), part, 1, number, next_request_id())
            await self._send_expecting(channel, block, name, appends.DataAppended)
        return source

    async def _append_once(
        self,
        name: str,
        writer_id: UUID,
        event_number: int,
        request: appends.ConditionalAppend | appends.AppendBlockEnd,
        *,
        is_block: bool = False,
    ) -> appends.DataAppended | None:
        """Sends an append; None if what it appends is there already.

        A writer of blocks needs no other set-up on the connection by which its last block was stored.
        """
        setup = appends.SetupAppend(next_request_id(), writer_id, name, await self._append_token(name))
        if writer_id in self._appending:
            errors.check(setup, Failure.WRITER_BUSY, name)
        self._appending.add(writer_id)
        last = self._last_blocks.pop(writer_id, None)
        try:
            channel = await self._channel_for(setup, name)
            if last is None or last.channel is not channel or last.number >= event_number:
                stored = await self._send_expecting(channel, setup, name, appends.AppendSetup)
                if stored.last_event_number >= event_number:
                    return None
            appended = await self._send_expecting(channel, request, name, appends.DataAppended)
            if is_block:
                self._remember(writer_id, _Block(channel, event_number))
            return appended
        finally:
            self._appending.discard(writer_id)

    def _remember(self, writer_id: UUID, block: "_Block") -> None:
        if len(self._last_blocks) >= _MAX_WRITERS:
            self._last_blocks.clear()
        self._last_blocks[writer_id] = block

    async def attribute(self, name: str, attribute_id: UUID) -> int | None:
        """See SegmentStore."""
        request = segments.GetSegmentAttribute(next_request_id(), name, attribute_id, await self._token(name))
        value = (await self._request_reply(request, name, segments.SegmentAttribute)).value
        return None if value == segments.NULL_ATTRIBUTE_VALUE else value

    async def update_attribute(self, name: str, attribute_id: UUID, value: int, expected: int | None) -> bool:
        """See SegmentStore."""
        present = segments.NULL_ATTRIBUTE_VALUE if expected is None else expected
        request = segments.UpdateSegmentAttribute(
            next_request_id(), name, attribute_id, value, present, await self._token(name)
        )
        return (await self._request_reply(request, name, segments.SegmentAttributeUpdated)).success

    async def create_table_segment(self, name: str, key_length: int, rollover_size_bytes: int = 0) -> None:
        """See SegmentStore."""
        request = tables.CreateTableSegment(
            next_request_id(),
            name,
            await self._token(name),
            key_length=key_length,
            rollover_size_bytes=rollover_size_bytes,
        )
        await self._send(request, name)

    async def delete_table_segment(self, name: str, must_be_empty: bool = False) -> None:
        """See SegmentStore."""
        await self._send(
            tables.DeleteTableSegment(next_request_id(), name, must_be_empty, await self._token(name)), name
        )

    async def table_info(self, name: str) -> TableInfo:
        """See SegmentStore."""
        request = tables.GetTableSegmentInfo(next_request_id(), name, await self._token(name))
        reply = await self._request_reply(request, name, tables.TableSegmentInfo)
        return TableInfo(reply.length, reply.start_offset, reply.entry_count, reply.key_length)

    async def update_table_entries(self, name: str, entries: Sequence[TableEntry]) -> list[int]:
        """See SegmentStore."""
        request = tables.UpdateTableEntries(next_request_id(), name, await self._token(name), tuple(entries))
        return list((await self._request_reply(request, name, tables.TableEntriesUpdated)).versions)

    async def read_table(self, name: str, keys: Sequence[bytes]) -> list[TableEntry]:
        """See SegmentStore."""
        request = tables.ReadTable(
            next_request_id(), name, await self._token(name), tuple(TableKey(key) for key in keys)
        )
        return list((await self._request_reply(request, name, tables.TableRead)).entries)

    async def read_table_entries(self, name: str, count: int, from_key: bytes = b"") -> list[TableEntry]:
        """See SegmentStore."""
        request = tables.ReadTableEntries(next_request_id(), name, await self._token(name), count, from_key=from_key)
        return list((await self._request_reply(request, name, tables.TableEntriesRead)).entries)

    async def read_table_page(self, name: str, count: int, continuation: bytes = b"") -> TablePage:
        """See SegmentStore."""
        request = tables.ReadTableEntries(next_request_id(), name, await self._token(name), count, continuation)
        reply = await self._request_reply(request, name, tables.TableEntriesRead)
        return TablePage(reply.entries, reply.continuation)

    async def remove_table_keys(self, name: str, keys: Sequence[TableKey]) -> None:
        """See SegmentStore."""
        await self._send(tables.RemoveTableKeys(next_request_id(), name, await self._token(name), tuple(keys)), name)

    async def _channel_for(self, request: Numbered, segment: str) -> RequestChannel:
        try:
            return await self._channel(segment)
        except ConnectionFailure as failure:
            errors.check(cast(Command, request), failure.failure, segment, "", failure.detail)
            raise

    async def _exchange(
        self, channel: RequestChannel, request: Numbered, segment: str, timeout_s: float | None = None
    ) -> Command:
        """Sends the request and returns the reply if it means done or already done."""
        host = getattr(channel, "host", "")
        command = cast(Command, request)
        try:
            reply = await channel.call(request, timeout_s or self._call_timeout_s)
        except ConnectionFailure as failure:
            errors.check(command, failure.failure, segment, host, failure.detail)
            raise
        errors.check(command, reply, segment, host)
        return reply

    async def _send(self, request: Numbered, segment: str) -> Command:
        return await self._exchange(await self._channel_for(request, segment), request, segment)

    async def _request_reply(self, request: Numbered, segment: str, expected: type[_R]) -> _R:
        return await self._send_expecting(await self._channel_for(request, segment), request, segment, expected)

    async def _send_expecting(self, channel: RequestChannel, request: Numbered, segment: str, expected: type[_R]) -> _R:
        """Sends a request to which only one type of reply is an answer."""
        reply = await self._exchange(channel, request, segment)
        if not isinstance(reply, expected):
            raise errors.UnexpectedReply(type(request).__name__, segment, "", repr(reply), reply)
        return reply


def _append_request(
    writer_id: UUID, event: bytes, event_number: int, expected_offset: int | None
) -> appends.ConditionalAppend | appends.AppendBlockEnd:
    if expected_offset is not None:
        return appends.ConditionalAppend(writer_id, event_number, expected_offset, event, next_request_id())
    return _block_request(writer_id, (event,), event_number)


def _block_request(writer_id: UUID, events: Sequence[bytes], last_event_number: int) -> appends.AppendBlockEnd:
    data = frame_events(events)
    return appends.AppendBlockEnd(writer_id, len(data), data, len(events), last_event_number, next_request_id())
