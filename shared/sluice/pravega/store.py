"""What the workflows need of the segment stores, as an interface: the client and its in-memory twin both have it.

Every method is one attempt: it raises a `SegmentStoreError` (`errors.py`) that says whether another makes sense, and
the owner of the operation retries it. What a lost attempt has done already counts as done the next time
(segment-store-wire-protocol 8.1). Offsets and lengths are bytes. Methods may run side by side.
"""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from sluice.pravega.wire.fields import TableEntry, TableKey

MARK_ATTRIBUTE = UUID("7df9a874-246c-c9d6-9397-cdd19ead68c5")
"""The attribute of a stream's one segment in which clients say from where on it need be read: an offset.

Revisioned streams have it, the states of reader groups among them, and streams of watermarks.
"""

CREATION_TIME_ATTRIBUTE = UUID("80000000-0000-0000-0000-000000000000")
"""The attribute with the time of a segment's creation, epoch ms.

A store takes what is merged for load of the time since then, and counts of it what is of the last five seconds.
"""

EVENT_COUNT_ATTRIBUTE = UUID("80000000-0000-0000-0000-000000000001")
"""The attribute in which segment stores count the events of a segment; not set before the first one."""


class SegmentInfo(msgspec.Struct, frozen=True):
    """The state of a segment; it holds the bytes from `start_offset` up to `length`."""

    length: int
    start_offset: int
    sealed: bool
    last_modified_ms: int


class TableInfo(msgspec.Struct, frozen=True):
    """The state of a table segment; `key_length` 0 means keys of any length.

    `entry_count` is the store's own count and lags behind the writes; with a fixed key length until they are flushed.
    """

    length: int
    start_offset: int
    entry_count: int
    key_length: int


class TablePage(msgspec.Struct, frozen=True):
    """Some entries of a table, and what gives those behind them."""

    entries: tuple[TableEntry, ...]
    continuation: bytes


class SegmentData(msgspec.Struct, frozen=True):
    """What was read: no bytes and not at the end means that there is nothing to read yet."""

    offset: int
    data: bytes
    end_of_segment: bool


class SegmentStore(Protocol):
    """The data plane of one cluster."""

    async def create_segment(self, name: str, scale_type: int, target_rate: int, rollover_size_bytes: int = 0) -> None:
        """Creates a stream or transaction segment; done already if it exists.

        `scale_type` is the code of a ScaleType, in whose unit the rate is.
        """

    async def update_policy(self, name: str, scale_type: int, target_rate: int) -> None:
        """Sets scale type and rate. Raises SegmentMissing, SegmentSealed."""

    async def seal_segment(self, name: str) -> None:
        """Ends a segment; done already if sealed. Raises SegmentMissing."""

    async def truncate_segment(self, name: str, offset: int) -> None:
        """Drops what lies before `offset`; done already if it begins there or later. Raises SegmentMissing.

        An offset past the end changes nothing and counts as done, as it does for the original controller (4.6).
        """

    async def delete_segment(self, name: str) -> None:
        """Deletes a segment, for good, whatever clients do meanwhile; done already if there is none."""

    async def delete_unused_segment(self, name: str) -> None:
        """The same of one that no client is about to use: none was told of it, or it was sealed a moment ago.

        It is one request less.
        """

    async def merge_batch(self, target: str, sources: Sequence[str]) -> list[int]:
        """Appends the sources to the target in this order and deletes them; a missing source counts as merged.

        Returns for each source a length of the target at or after its merge (4.8). Raises SegmentMissing or
        SegmentSealed, both about the target.
        """

    async def segment_info(self, name: str) -> SegmentInfo:
        """The present state of a segment. Raises SegmentMissing."""

    async def read_segment(self, name: str, offset: int, length: int) -> SegmentData:
        """Up to `length` bytes from `offset`, without waiting for more to be written.

        Raises SegmentMissing, SegmentTruncated.
        """

    async def read_or_wait(self, name: str, offset: int, length: int, wait_s: float) -> SegmentData:
        """Up to about `length` bytes from `offset`, at the end of an unsealed segment as soon as there are any.

        No bytes and not at the end means that the store stopped waiting. Raises SegmentMissing, SegmentTruncated;
        TryLater, too, when nothing came within `wait_s` (3.2).
        """

    async def append(
        self, name: str, writer_id: UUID, event: bytes, *, event_number: int = 1, expected_offset: int | None = None
    ) -> int:
        """Appends one event, header included, once, and returns a length of the segment at or after the event.

        `writer_id` and `event_number`, at least 1 and rising for one writer, must name this very event: the segment
        remembers the last number of each writer, and what is not above it is not stored again. With `expected_offset`
        the event is stored only at that offset. Raises SegmentMissing, SegmentSealed, LengthDiffers (3.6, 2.5, 2.6).
        """

    async def append_events(self, name: str, writer_id: UUID, events: Sequence[bytes], last_event_number: int) -> None:
        """Appends at least one event, headers included, all together and once.

        `writer_id` and `last_event_number`, the number of the last one, must name these very events, as in `append`:
        what is not above the last number of the writer is not stored again. Raises SegmentMissing, SegmentSealed (2.4).
        """

    async def append_large_event(self, name: str, writer_id: UUID, event: bytes, event_number: int) -> None:
        """Appends one event, header included, once, as `append_events` does: of more than 8 MiB, and up to 2 GiB.

        It is written to a segment of its own, which the store deletes if it is not merged. Raises as `append_events`;
        Unsupported by old stores.
        """

    async def attribute(self, name: str, attribute_id: UUID) -> int | None:
        """The value of an attribute, None if it is not set. Raises SegmentMissing."""

    async def update_attribute(self, name: str, attribute_id: UUID, value: int, expected: int | None) -> bool:
        """Sets an attribute if it has the expected value, None for not set; says whether it did.

        Raises SegmentMissing, SegmentSealed.
        """

    async def create_table_segment(self, name: str, key_length: int, rollover_size_bytes: int = 0) -> None:
        """Creates a table segment; done already if it exists."""

    async def delete_table_segment(self, name: str, must_be_empty: bool = False) -> None:
        """Deletes a table segment; done already if there is none. Raises TableNotEmpty, Unsupported (5.3)."""

    async def table_info(self, name: str) -> TableInfo:
        """The present state of a table segment. Raises SegmentMissing."""

    async def update_table_entries(self, name: str, entries: Sequence[TableEntry]) -> list[int]:
        """Writes entries and returns their versions; all or none if any key demands a version (5.4).

        Raises SegmentMissing, KeyMissing, KeyVersionDiffers.
        """

    async def read_table(self, name: str, keys: Sequence[bytes]) -> list[TableEntry]:
        """One entry for each key; an absent one has version NOT_EXISTS (5.5). Raises SegmentMissing."""

    async def read_table_entries(self, name: str, count: int, from_key: bytes = b"") -> list[TableEntry]:
        """About `count` entries of a table of a fixed key length, in the order of their keys; none: there are no more.

        They begin at `from_key` or the next one after it, without it at the first (5.6). Raises SegmentMissing;
        IllegalRequest if keys of the table have any length and `from_key` is given.
        """

    async def read_table_page(self, name: str, count: int, continuation: bytes = b"") -> TablePage:
        """About `count` entries of any table, behind the page that gave `continuation`; none: there are no more (5.6).

        Raises SegmentMissing.
        """

    async def remove_table_keys(self, name: str, keys: Sequence[TableKey]) -> None:
        """Removes keys; done already if absent. Raises SegmentMissing, KeyVersionDiffers."""
