"""The records that Pravega's readers write into the state stream of their group (admin-rest-api 10), for tests.

Segments are "scope/stream/number.#epoch.epoch"; offsets and positions do not matter here and are 0.
"""

import struct
from collections.abc import Iterable, Mapping
from uuid import UUID

Ids = Iterable[int]


def compact_int(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    if number < 0x4000:
        return (number | 0x8000).to_bytes(2, "big")
    return (number | 0xC0000000).to_bytes(4, "big")


def int64(number: int) -> bytes:
    return struct.pack(">q", number)


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack(">H", len(raw)) + raw


def array(value: bytes) -> bytes:
    return compact_int(len(value)) + value


def items(encoded: Iterable[bytes]) -> bytes:
    all_of_them = list(encoded)
    return compact_int(len(all_of_them)) + b"".join(all_of_them)


def segments(names: Iterable[str]) -> bytes:
    """A map of segments to offsets."""
    return items(text(name) + int64(0) for name in names)


def _revisions(*contents: bytes) -> bytes:
    parts = (bytes((id,)) + struct.pack(">i", len(content)) + content for id, content in enumerate(contents))
    return bytes((0, len(contents))) + b"".join(parts)


def single(*contents: bytes) -> bytes:
    return b"\0" + _revisions(*contents)


def record(kind: int, *contents: bytes) -> bytes:
    return bytes((0, kind)) + _revisions(*contents)


def config(streams: Iterable[str], id: str, generation: int, *, old: bool = False) -> bytes:
    """A configuration; what an old client writes has no id and no generation."""
    names = list(streams)
    cuts = items(text(name) + array(b"") for name in names)
    first = int64(30_000) + int64(3_000) + cuts + cuts
    second = first + struct.pack(">i", 3)
    if old:
        return single(first, second)
    return single(first, second, compact_int(0) + int64(generation) + UUID(id).bytes)


def _ranged(names: Iterable[str]) -> bytes:
    return items(text(name) + struct.pack(">dd", 0.0, 1.0) + int64(0) for name in names)


def initial(configuration: bytes, starts: Iterable[str]) -> bytes:
    """The entry that a group begins with."""
    names = list(starts)
    content = array(configuration) + segments(names) + segments(())
    return struct.pack(">i", 1) + record(0, content, _ranged(names), b"\0")


def compacted(
    configuration: bytes,
    assigned: Mapping[str, Iterable[str]],
    unassigned: Iterable[str],
    future: Mapping[str, Ids] | None = None,
) -> bytes:
    """The entry that takes the place of everything before it."""
    checkpoints = b""
    distances = items(text(reader) + int64(0) for reader in assigned)
    waiting = items(text(name) + items(map(int64, ids)) for name, ids in (future or {}).items())
    held = items(text(reader) + segments(names) for reader, names in assigned.items())
    content = array(configuration) + array(checkpoints) + distances + waiting + held
    content += segments(unassigned) + segments(())
    return struct.pack(">i", 1) + record(1, content, segments(()) + items(()), b"\0")


def updates(*records: bytes) -> bytes:
    """An entry that changes the state."""
    return struct.pack(">i", 2) + b"".join(struct.pack(">i", len(one)) + one for one in records)


def add_reader(reader: str) -> bytes:
    return record(2, text(reader))


def remove_reader(reader: str) -> bytes:
    return record(3, text(reader) + segments(()))


def release(reader: str, segment: str) -> bytes:
    return record(4, text(reader) + text(segment) + int64(0))


def acquire(reader: str, segment: str) -> bytes:
    return record(5, text(reader) + text(segment))


def complete(reader: str, segment: str, successors: Mapping[str, Ids]) -> bytes:
    content = text(reader) + text(segment) + items(text(s) + items(map(int64, ids)) for s, ids in successors.items())
    ranges = items(text(s) + struct.pack(">dd", 0.0, 1.0) for s in successors)
    return record(7, content, ranges)


def create_checkpoint(name: str) -> bytes:
    return record(9, text(name))
