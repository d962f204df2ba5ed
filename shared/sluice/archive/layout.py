"""Where the archive's files are, and which of their rows count. Pure.

    TARGET/<topic>/id=<topic id>/day=<YYYY-MM-DD>/<partition>-<start>-<end>.parquet

A file holds records of one partition that the broker appended on one day (UTC), and its name says which: all offsets in
[start, end). So names alone tell what is archived. Writing a batch anew, joining files and beginning anew with a lost
checkpoint can leave two files with the same offsets, but never two different records under one offset. `pieces` is the
rule by which each record is read once. A topic that is made anew has another id, and so another folder.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

_NAME = re.compile(r"(\d{5,})-(\d{20})-(\d{20})\.parquet")


class ArchiveFile(msgspec.Struct, frozen=True, order=True):
    """The offsets [start, end) of a partition that were appended on a day, `YYYY-MM-DD`."""

    partition: int
    start: int
    end: int
    day: str

    @property
    def name(self) -> str:
        return f"{self.partition:05}-{self.start:020}-{self.end:020}.parquet"

    @property
    def path(self) -> str:
        """Below the folder of its topic's id."""
        return f"day={self.day}/{self.name}"

    def holds(self, other: "ArchiveFile") -> bool:
        """Whether every record of the other one is in this one, too."""
        return self.partition == other.partition and self.start <= other.start and other.end <= self.end

    def precedes(self, other: "ArchiveFile") -> bool:
        """Whether the other one begins where this one ends."""
        return (self.partition, self.end) == (other.partition, other.start)


class Piece(msgspec.Struct, frozen=True):
    """What to read of a file: the records at [start, end)."""

    file: ArchiveFile
    start: int
    end: int


def topic_folder(target: str, topic: str) -> str:
    return f"{target.rstrip('/')}/{topic}"


def id_folder(target: str, topic: str, id: str) -> str:
    return f"{topic_folder(target, topic)}/id={id}"


def day_of(at_ms: int) -> str:
    """The day of a time in epoch ms, in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}"


def file_of(day: str, name: str) -> ArchiveFile | None:
    """The file of that name in the folder of a day; None for one that is not of the archive, or not finished."""
    found = _NAME.fullmatch(name)
    return ArchiveFile(int(found[1]), int(found[2]), int(found[3]), day) if found is not None else None


def pieces(files: Iterable[ArchiveFile], start: int, end: int) -> Iterator[Piece]:
    """What to read, in order, for each archived record of one partition at [start, end) to come once."""
    following = start
    for file in sorted(files, key=lambda one: (one.start, -one.end)):
        if max(file.start, following) >= end:
            return
        if file.end > following:
            piece = Piece(file, max(file.start, following), min(file.end, end))
            following = piece.end
            yield piece
