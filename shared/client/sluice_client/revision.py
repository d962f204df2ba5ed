"""A point of a revisioned stream. Values, without any concurrency."""

import msgspec


class Revision(msgspec.Struct, frozen=True):
    """A point between two entries: `offset` in bytes in the stream's one segment, named as the segment stores know it.

    Revisions of one stream are ordered; comparing those of different streams raises ValueError. The text form is that
    of the Java client's `Revision`.
    """

    segment: str
    offset: int

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise ValueError(f"no revision has the offset {self.offset}")

    @classmethod
    def from_text(cls, text: str) -> "Revision":
        """The revision that `str` gave this text for. Raises ValueError."""
        segment, _, rest = text.partition(":")
        offset, _, event = rest.partition(":")
        if not segment or event != "0" or not (offset.isascii() and offset.isdigit()):
            raise ValueError(f"not a revision: {text!r}")
        return cls(segment, int(offset))

    def __str__(self) -> str:
        return f"{self.segment}:{self.offset}:0"

    def __lt__(self, other: "Revision") -> bool:
        self._check(other)
        return self.offset < other.offset

    def __le__(self, other: "Revision") -> bool:
        self._check(other)
        return self.offset <= other.offset

    def _check(self, other: "Revision") -> None:
        if self.segment != other.segment:
            raise ValueError(f"revisions of two streams: {self} and {other}")
