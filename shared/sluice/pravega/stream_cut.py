"""A place in a stream, in the bytes and the text in which Java's clients keep cuts and exchange them.

Rules: reader-groups 2.5, stream-and-transaction-semantics 10.2. Values, no concurrency.
"""

import gzip
import zlib
from base64 import b64decode, b64encode
from typing import Self

import msgspec

from sluice.domain.segment import epoch_of, number_of, parse_segment_name, segment_id, segment_name
from sluice.pravega.envelope import (
    MalformedPayload,
    PayloadReader,
    collection,
    compact_long,
    compact_signed_long,
    envelope,
    text,
)

Offsets = dict[str, int]
"""Segments by their qualified names, with the offset in bytes of the next event in each."""

_TEXT_VERSION = "0"


class StreamCut(msgspec.Struct, frozen=True):
    """For each of some segments that follow no other of them, an offset.

    -1: the segment was read to its end; or, of the head of a stream: it is only reached through others.
    """

    scope: str
    stream: str
    offsets: Offsets

    def to_bytes(self) -> bytes:
        """What Java's `toBytes` gives."""
        cut = collection(compact_long(id) + compact_signed_long(at) for id, at in self.by_id().items())
        return envelope(text(f"{self.scope}/{self.stream}") + cut, version=1)

    @classmethod
    def read(cls, data: PayloadReader) -> Self:
        """The cut that stands next in some bytes. Raises MalformedPayload."""
        version, revisions = data.versioned_envelope()
        if version > 1:
            raise MalformedPayload(f"a stream cut of version {version}")
        offset = PayloadReader.compact_signed_long if version else PayloadReader.compact_long
        scope, _, stream = revisions[0].text().partition("/")
        ids = revisions[0].mapping(PayloadReader.compact_long, offset)
        return cls(scope, stream, {segment_name(scope, stream, id): at for id, at in ids.items()})

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """The cut that `to_bytes` of a cut gave, or Java's. Raises MalformedPayload."""
        return cls.read(PayloadReader(raw))

    @property
    def text(self) -> str:
        """What Java's `asText` gives."""
        ids = list(self.by_id())
        lists = (map(number_of, ids), map(epoch_of, ids), self.offsets.values())
        fields = [_TEXT_VERSION, f"{self.scope}/{self.stream}", *(",".join(map(str, items)) for items in lists)]
        return b64encode(gzip.compress(":".join(fields).encode(), mtime=0)).decode()

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The cut that `text` of a cut gave, or `asText` of Java's. Raises ValueError."""
        try:
            version, name, *lists = gzip.decompress(b64decode(text, validate=True)).decode().split(":")
            if version != _TEXT_VERSION:
                raise ValueError(f"version {version}")
            scope, stream = name.split("/")
            numbers, epochs, offsets = (map(int, items.split(",")) for items in lists)
            names = [segment_name(scope, stream, id) for id in map(segment_id, epochs, numbers)]
            return cls(scope, stream, dict(zip(names, offsets, strict=True)))
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise ValueError(f"not the text of a stream cut: {text[:100]!r}") from error

    def by_id(self) -> dict[int, int]:
        """Offsets by the ids of segments, as controllers have them."""
        return {parse_segment_name(name)[2]: offset for name, offset in self.offsets.items()}


def cuts_of(positions: Offsets) -> dict[str, StreamCut]:
    """Positions as one cut for each stream, by `scope/stream`."""
    found: dict[str, StreamCut] = {}
    for segment, offset in positions.items():
        name = segment.rpartition("/")[0]
        scope, _, stream = name.partition("/")
        found.setdefault(name, StreamCut(scope, stream, {})).offsets[segment] = offset
    return found
