"""A stream with one segment whose entries have revisions, so that one can append on condition that no other client did.

What is on the wire and in the segment is what the Java client's `RevisionedStreamClient` has there
(segment-store-wire-protocol 7.6), so both may use one stream.

An append is stored once, however often its answer is lost: it carries the writer's id and a number that rises with each
append, the segment remembers the last number of each writer together with the data, and an attempt that finds its own
number there has been stored. A number whose append was abandoned is not used again. That is also what makes the answer
to a conditional append certain: the segment store looks at the number before it looks at the offset (2.5).

Concurrency: any number of calls side by side on one event loop; appends of one object go one after the other, and the
wait for the lock is part of the time of an append.
"""

import itertools
from collections.abc import AsyncGenerator
from uuid import uuid4

from sluice.pravega import NULL_ATTRIBUTE_VALUE, LengthDiffers, SegmentData, SegmentInfo, SegmentStore, TryLater
from sluice.pravega.store import MARK_ATTRIBUTE
from sluice_client.attempts import Patience, answered
from sluice_client.call_lock import CallLock
from sluice_client.entries import EntryReader, stored_bytes
from sluice_client.errors import RevisionAhead, RevisionTruncated, StreamSealed
from sluice_client.revision import Revision

_READ_BYTES = 1024 * 1024
_DEFAULT_PATIENCE = Patience()


class RevisionedStream:
    """A sequence of entries of up to 8 MiB each; made by `Client.revisioned_stream`, or for a segment of a store.

    Every method may raise StreamMissing, Unavailable after the deadline of `patience`, ClientClosed, and Refused; those
    that read send several requests, and each has that deadline.
    """

    def __init__(self, store: SegmentStore, segment: str, patience: Patience = _DEFAULT_PATIENCE) -> None:
        self.segment = segment
        """The stream's one segment, named as the segment stores know it."""
        self.patience = patience
        """How long requests go on trying."""
        self._store = store
        self._writer = uuid4()
        self._numbers = itertools.count(1)
        self._call_lock = CallLock(f"appends to {segment}")

    async def head(self) -> Revision:
        """The oldest revision that can be read from."""
        return Revision(self.segment, (await self._info()).start_offset)

    async def tail(self) -> Revision:
        """Where the next entry will be."""
        return Revision(self.segment, (await self._info()).length)

    async def read(self, start: Revision) -> AsyncGenerator[tuple[Revision, bytes], None]:
        """The entries from `start` on, each with the revision after it; ends at the tail as of the first step.

        Raises RevisionTruncated, also half-way; RevisionAhead; EntryMalformed.
        """
        info = await self._info()
        offset, end = self._offset(start, info), info.length
        if offset < info.start_offset:
            raise RevisionTruncated(str(start), info.start_offset)
        entries = EntryReader(self.segment, offset)
        while offset < end:
            data = await self._read(offset, min(_READ_BYTES, end - offset))
            offset += len(data)
            for after, entry in entries.feed(data):
                yield Revision(self.segment, after), entry
        entries.finish()

    async def append(self, data: bytes) -> Revision:
        """Appends an entry, once, and returns a revision at or after its end: others may have appended behind it.

        Raises EntryTooLarge, StreamSealed, NotSent. After any other Unavailable, or if it is cancelled, it may or may
        not be stored.
        """
        stored_bytes(data)
        return Revision(self.segment, await self._append(data, None))

    async def append_if(self, data: bytes, revision: Revision) -> Revision | None:
        """Appends an entry, once, if `revision` is the tail; returns the revision after it, None if it is not.

        Raises EntryTooLarge, StreamSealed, NotSent. After any other Unavailable, or if it is cancelled, it may or may
        not be stored.
        """
        size, offset = stored_bytes(data), self._offset(revision)
        try:
            await self._append(data, offset)
        except LengthDiffers:
            return None
        return Revision(self.segment, offset + size)

    async def truncate(self, revision: Revision) -> None:
        """Drops what lies before a revision; done already if the stream begins there or later.

        Raises RevisionAhead.
        """
        offset = self._offset(revision, await self._info())
        await answered(lambda: self._store.truncate_segment(self.segment, offset), self.patience)

    async def mark(self) -> Revision | None:
        """The revision that was stored with the stream, None if there is none, or a sealed one has lost it."""
        offset = await self._mark_at_hand()
        if offset is None and not await self._is_unmarked():
            offset = await self._mark_at_hand()
        return None if offset is None else Revision(self.segment, offset)

    async def set_mark(self, new: Revision | None, expected: Revision | None) -> bool:
        """Notes a revision with the stream, or none, if the mark is the expected one; says whether it did.

        If an answer was lost, whether the mark is `new` afterwards. Raises StreamSealed.
        """
        value = NULL_ATTRIBUTE_VALUE if new is None else self._offset(new)
        present = None if expected is None else self._offset(expected)
        attempts = 0

        async def attempt() -> bool:
            nonlocal attempts
            attempts += 1
            return await self._store.update_attribute(self.segment, MARK_ATTRIBUTE, value, present)

        done = await answered(attempt, self.patience)
        return done or (attempts > 1 and await self.mark() == new)

    async def _mark_at_hand(self) -> int | None:
        """The mark if the segment store has it in memory; it forgets what was not used for a minute (4.10)."""
        return await answered(lambda: self._store.attribute(self.segment, MARK_ATTRIBUTE), self.patience)

    async def _is_unmarked(self) -> bool:
        """Whether there is no mark; if there is one, the segment store has it in memory now.

        Only for a change does it look further, so no mark is changed into no mark. A sealed stream takes no change.
        """
        try:
            return await answered(
                lambda: self._store.update_attribute(self.segment, MARK_ATTRIBUTE, NULL_ATTRIBUTE_VALUE, None),
                self.patience,
            )
        except StreamSealed:
            return True

    async def _info(self) -> SegmentInfo:
        return await answered(lambda: self._store.segment_info(self.segment), self.patience)

    async def _read(self, offset: int, length: int) -> bytes:
        async def attempt() -> SegmentData:
            read = await self._store.read_segment(self.segment, offset, length)
            if not read.data:
                # A container that is about to move may answer a read with nothing (3.2).
                raise TryLater("ReadSegment", self.segment, "", f"no bytes at {offset}, which is before the tail")
            return read

        return (await answered(attempt, self.patience)).data

    async def _append(self, data: bytes, offset: int | None) -> int:
        async with self._call_lock.acquired(self.patience.deadline_s) as left_s:
            number = next(self._numbers)
            return await answered(
                lambda: self._store.append(
                    self.segment, self._writer, data, event_number=number, expected_offset=offset
                ),
                self.patience,
                left_s,
            )

    def _offset(self, revision: Revision, info: SegmentInfo | None = None) -> int:
        if revision.segment != self.segment:
            raise ValueError(f"{revision} is not a revision of {self.segment}")
        if info is not None and revision.offset > info.length:
            raise RevisionAhead(f"{revision}, the tail is at {info.length}")
        return revision.offset
