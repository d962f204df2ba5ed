"""The records that Pravega's readers write into the state stream of their group (admin-rest-api 10), for tests.

Segments are "scope/stream/number.#epoch.epoch". Where no offset is given it is 0.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from sluice.pravega.envelope import (
    byte_array,
    collection,
    compact_int,
    double,
    envelope,
    int32,
    int64,
    text,
    typed_envelope,
)

Ids = Iterable[int]


def segments(names: Iterable[str] | Mapping[str, int]) -> bytes:
    """A map of segments to offsets."""
    offsets = names if isinstance(names, Mapping) else dict.fromkeys(names, 0)
    return collection(text(name) + int64(at) for name, at in offsets.items())


def config(streams: Iterable[str], id: str, generation: int, *, old: bool = False) -> bytes:
    """A configuration; what an old client writes has no id and no generation."""
    names = list(streams)
    cuts = collection(text(name) + byte_array(b"") for name in names)
    first = int64(30_000) + int64(3_000) + cuts + cuts
    second = first + int32(3)
    if old:
        return envelope(first, second)
    return envelope(first, second, compact_int(0) + int64(generation) + UUID(id).bytes)


def _ranged(names: Iterable[str]) -> bytes:
    return collection(text(name) + double(0.0) + double(1.0) + int64(0) for name in names)


def initial(configuration: bytes, starts: Iterable[str]) -> bytes:
    """The entry that a group begins with."""
    names = list(starts)
    content = byte_array(configuration) + segments(names) + segments(())
    return int32(1) + typed_envelope(0, content, _ranged(names), b"\0")


def compacted(
    configuration: bytes,
    assigned: Mapping[str, Iterable[str]],
    unassigned: Iterable[str],
    future: Mapping[str, Ids] | None = None,
) -> bytes:
    """The entry that takes the place of everything before it."""
    checkpoints = envelope(collection(()) * 4, b"\1")
    distances = collection(text(reader) + int64(0) for reader in assigned)
    waiting = _predecessors(future or {})
    held = collection(text(reader) + segments(names) for reader, names in assigned.items())
    content = byte_array(configuration) + byte_array(checkpoints) + distances + waiting + held
    content += segments(unassigned) + segments(())
    return int32(1) + typed_envelope(1, content, segments(()) + collection(()), b"\0")


def _predecessors(successors: Mapping[str, Ids]) -> bytes:
    return collection(text(name) + collection(map(int64, ids)) for name, ids in successors.items())


def updates(*records: bytes) -> bytes:
    """An entry that changes the state."""
    return int32(2) + b"".join(int32(len(one)) + one for one in records)


def add_reader(reader: str) -> bytes:
    return typed_envelope(2, text(reader))


def remove_reader(reader: str, positions: Mapping[str, int] | None = None) -> bytes:
    return typed_envelope(3, text(reader) + segments(positions or {}))


def release(reader: str, segment: str, offset: int = 0) -> bytes:
    return typed_envelope(4, text(reader) + text(segment) + int64(offset))


def last_read(reader: str, positions: Mapping[str, int]) -> bytes:
    ranged = collection(text(s) + double(0.0) + double(1.0) + int64(at) for s, at in positions.items())
    return typed_envelope(6, text(reader) + int64(30_000), ranged)


def checkpoint(name: str, reader: str, positions: Mapping[str, int]) -> bytes:
    return typed_envelope(8, text(name) + text(reader) + segments(positions))


def acquire(reader: str, segment: str) -> bytes:
    return typed_envelope(5, text(reader) + text(segment))


def complete(reader: str, segment: str, successors: Mapping[str, Ids]) -> bytes:
    ranges = collection(text(s) + double(0.0) + double(1.0) for s in successors)
    return typed_envelope(7, text(reader) + text(segment) + _predecessors(successors), ranges)


def create_checkpoint(name: str) -> bytes:
    return typed_envelope(9, text(name))
