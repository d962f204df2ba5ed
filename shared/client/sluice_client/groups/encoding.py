"""What programs keep and hand to each other: positions, checkpoints and pointers to events, as the Java client does.

The bytes are those of Java's `toBytes`, so that a program in either language restores what one in the other kept.
Rules: reader-groups 2.5. Pure functions.
"""

import re
from typing import Self

import msgspec

from sluice.pravega.envelope import (
    MAX_COMPACT_LONG,
    PayloadReader,
    collection,
    compact_int,
    compact_long,
    envelope,
    text,
)
from sluice.pravega.reader_group_state import Ranges, ranges_encoded, read_ranges
from sluice.pravega.stream_cut import Offsets, StreamCut

_POINTER = re.compile(r"(.+):([0-9]+)-([0-9]+)")
_COMPLETED = MAX_COMPACT_LONG - 1


class Position(msgspec.Struct, frozen=True):
    """Where a reader is: its segments, each with the offset of the next event; -1: read to its end."""

    offsets: Offsets
    ranges: Ranges = {}

    def to_bytes(self) -> bytes:
        offsets = collection(
            text(name) + compact_long(at if at >= 0 else _COMPLETED) for name, at in self.offsets.items()
        )
        return envelope(offsets, ranges_encoded(self.ranges, self.offsets))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Raises MalformedPayload."""
        revisions = PayloadReader(raw).envelope()
        offsets = revisions[0].mapping(PayloadReader.text, PayloadReader.compact_long)
        return cls(
            {name: -1 if at == _COMPLETED else at for name, at in offsets.items()},
            read_ranges(revisions[1]) if len(revisions) > 1 else {},
        )


class Checkpoint(msgspec.Struct, frozen=True):
    """A point in all streams of a group, at which every reader of it was: cuts by `scope/stream`."""

    name: str
    cuts: dict[str, StreamCut]

    def to_bytes(self) -> bytes:
        cuts = collection(text(stream) + cut.to_bytes() for stream, cut in self.cuts.items())
        return envelope(text(self.name) + cuts)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Raises MalformedPayload."""
        data = PayloadReader(raw).envelope()[0]
        return cls(data.text(), data.mapping(PayloadReader.text, StreamCut.read))


class EventPointer(msgspec.Struct, frozen=True):
    """Where one event lies: the offset of its header, and its length with the header's eight bytes."""

    segment: str
    offset: int
    length: int

    def to_bytes(self) -> bytes:
        return envelope(text(self.segment) + compact_long(self.offset) + compact_int(self.length))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Raises MalformedPayload."""
        data = PayloadReader(raw).envelope()[0]
        return cls(data.text(), data.compact_long(), data.compact_int())

    def __str__(self) -> str:
        return f"{self.segment}:{self.offset}-{self.length}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The pointer that `str` gave this text for. Raises ValueError."""
        found = _POINTER.fullmatch(text)
        if found is None:
            raise ValueError(f"not the text of a pointer: {text!r}")
        return cls(found[1], int(found[2]), int(found[3]))
