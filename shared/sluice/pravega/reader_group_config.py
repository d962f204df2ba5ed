"""The configuration of a reader group, as clients keep it in the group's state.

Rules: reader-groups 2.3. Pure functions.
"""

from enum import IntEnum
from typing import Self
from uuid import UUID

import msgspec

from sluice.pravega.envelope import (
    MalformedPayload,
    PayloadReader,
    byte_array,
    collection,
    compact_int,
    envelope,
    int32,
    int64,
    text,
)
from sluice.pravega.stream_cut import StreamCut

NO_ID = UUID(int=0)


class Retention(IntEnum):
    """Who says what a group needs no more of its streams."""

    NONE = 0
    MANUAL = 1
    """A user, by cuts."""
    AUTOMATIC = 2
    """The readers, by the last checkpoint."""


class GroupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a group reads and how; `starts` and `ends` are by `scope/stream`, None: no bound.

    `id` and `generation` are the controller's; NO_ID and -1: it gives them. Times of 0 or below: never.
    """

    starts: dict[str, StreamCut | None]
    ends: dict[str, StreamCut | None] = {}
    automatic_checkpoint_ms: int = 30_000
    refresh_ms: int = 3_000
    max_outstanding: int = 3
    """How many checkpoints may wait for readers at a time."""
    retention: Retention = Retention.NONE
    generation: int = -1
    id: UUID = NO_ID

    def means_the_same(self, other: "GroupConfig") -> bool:
        """Whether they differ in generation and id at most."""
        return msgspec.structs.replace(other, generation=self.generation, id=self.id) == self

    def encoded(self) -> bytes:
        """The bytes of the Java client's `ReaderGroupConfig`."""
        first = int64(self.automatic_checkpoint_ms) + int64(self.refresh_ms) + _cuts(self.starts) + _cuts(self.ends)
        third = compact_int(self.retention) + int64(self.generation) + self.id.bytes
        return envelope(first, first + int32(self.max_outstanding), third)

    @classmethod
    def decoded(cls, raw: bytes) -> Self:
        """The configuration of bytes; what an old client leaves out has its default. Raises MalformedPayload."""
        revisions = PayloadReader(raw).envelope()
        data = revisions[min(1, len(revisions) - 1)]
        config = cls(
            automatic_checkpoint_ms=data.int64(),
            refresh_ms=data.int64(),
            starts=data.mapping(PayloadReader.text, _read_cut),
            ends=data.mapping(PayloadReader.text, _read_cut),
            max_outstanding=data.int32() if len(revisions) > 1 else 3,
        )
        if len(revisions) < 3:
            return config
        try:
            retention = Retention(revisions[2].compact_int())
        except ValueError as error:
            raise MalformedPayload(str(error)) from error
        return msgspec.structs.replace(
            config, retention=retention, generation=revisions[2].int64(), id=revisions[2].uuid()
        )


def _cuts(cuts: dict[str, StreamCut | None]) -> bytes:
    return collection(text(name) + byte_array(cut.to_bytes() if cut else b"") for name, cut in cuts.items())


def _read_cut(data: PayloadReader) -> StreamCut | None:
    raw = data.byte_array()
    return StreamCut.from_bytes(raw) if raw else None
