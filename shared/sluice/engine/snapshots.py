"""Snapshots: the whole state of a journal partition behind a marker, in a store beside the journal.

A snapshot is a run of chunks, which together hold the parts of the state as one sequence of bytes, and behind them a
manifest, which says what belongs to it. It may be used once a second run, which folded the same records by itself, has
come to the same bytes and has read them back from the store: its note is the confirmation. What differs, is incomplete,
damaged or of another format is refused with the reason, and the snapshot before it is taken.

A loader follows the journal from the marker itself, and goes on only if the record there is the one that the manifest
names (`sluice.engine.loading`).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from sluice.engine.capture import CaptureInvalidError, Part
from sluice.engine.ports import RecordFacts, SnapshotReader, SnapshotStore

FORMAT = 1
"""Of what a snapshot holds. It grows with every change of what is captured, how, or of the fold (`markers`)."""

READABLE = frozenset((FORMAT,))
"""What this release loads: its own format, and that of the release before, whose journal is trimmed."""

CHUNK_BYTES = 1024 * 1024

_LENGTH_BYTES = 4


class SnapshotRefusedError(Exception):
    """The snapshot cannot be used: why, in words."""


class SnapshotManifest(msgspec.Struct, frozen=True, tag=True):
    """A snapshot that is complete. `marker` is the id of the record at `offset`, behind which the state was captured.

    `at` is when the log took that record, in epoch ms; `by` is who wrote the snapshot. Its chunks stand between the
    offsets `first_chunk` and `last_chunk` of the store, maybe with those of others between them. `chunks` has the
    SHA-256 of each, `checksum` that of those together; `bytes` is their length, `parts` counts the parts by kind.
    """

    id: str
    format: int
    partition: int
    offset: int
    marker: str
    at: int
    by: str
    outcome_hash: str
    parts: dict[str, int]
    bytes: int
    first_chunk: int
    last_chunk: int
    chunks: list[str]
    checksum: str


class SnapshotConfirmation(msgspec.Struct, frozen=True, tag=True):
    """What a second run by `by` came to; `differs` names the first part that it has otherwise, None if it has none."""

    snapshot: str
    by: str
    at: int
    checksum: str
    differs: str | None = None


class SnapshotChunk(msgspec.Struct, frozen=True, array_like=True):
    """Number `number` of a snapshot, from 0."""

    snapshot: str
    number: int
    data: bytes


class Snapshot(msgspec.Struct):
    """A snapshot as the notes have it; `note` is the offset of its manifest."""

    manifest: SnapshotManifest
    note: int
    confirmations: list[SnapshotConfirmation] = []

    @property
    def difference(self) -> SnapshotConfirmation | None:
        """The second run that came to something else, if there was one."""
        return next((c for c in self.confirmations if c.differs is not None), None)

    @property
    def is_confirmed(self) -> bool:
        return bool(self.confirmations) and self.difference is None

    @property
    def problem(self) -> str | None:
        """Why no follower may load it, None if it may."""
        if self.manifest.format not in READABLE:
            return f"it is of format {self.manifest.format}, this is {FORMAT}"
        if (differing := self.difference) is not None:
            return f"the run of {differing.by} came to another state: {differing.differs}"
        return None if self.confirmations else "no second run has confirmed it"


class _Head(msgspec.Struct):
    """What a note of any format has; `format` is missing in a confirmation."""

    type: str
    format: int = FORMAT


_encode_note = msgspec.json.Encoder().encode
_decode_note = msgspec.json.Decoder(SnapshotManifest | SnapshotConfirmation).decode
_decode_head = msgspec.json.Decoder(_Head).decode
_encode = msgspec.msgpack.Encoder().encode
_decode_chunk = msgspec.msgpack.Decoder(SnapshotChunk).decode
_decode_part = msgspec.msgpack.Decoder(Part).decode


# The bytes of a state.


def sliced(parts: Iterable[Part], counts: dict[str, int], size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The parts as one sequence of bytes, in slices of `size`; each part has its length before it.

    `counts` gets how many parts of each kind there were.
    """
    buffer = bytearray()
    for part in parts:
        counts[part.kind.value] = counts.get(part.kind.value, 0) + 1
        encoded = _encode(part)
        buffer += len(encoded).to_bytes(_LENGTH_BYTES, "big")
        buffer += encoded
        while len(buffer) >= size:
            yield bytes(buffer[:size])
            del buffer[:size]
    if buffer:
        yield bytes(buffer)


def joined(slices: Iterable[bytes]) -> Iterator[Part]:
    """The parts of slices. Raises SnapshotRefusedError."""
    buffer = bytearray()
    for piece in slices:
        buffer += piece
        at = 0
        while len(buffer) - at >= _LENGTH_BYTES:
            end = at + _LENGTH_BYTES + int.from_bytes(buffer[at : at + _LENGTH_BYTES], "big")
            if end > len(buffer):
                break
            try:
                yield _decode_part(memoryview(buffer)[at + _LENGTH_BYTES : end])
            except (msgspec.MsgspecError, ValueError) as error:
                raise SnapshotRefusedError(f"a part cannot be decoded: {error}") from error
            at = end
        del buffer[:at]
    if buffer:
        raise SnapshotRefusedError(f"its last part is cut off: {len(buffer)} bytes are left")


# What is in the store.


def snapshots_of(notes: Iterable[tuple[int, bytes]]) -> tuple[list[Snapshot], list[str]]:
    """The snapshots that the notes of a partition tell of, oldest first; and why a note was left aside."""
    found: dict[str, Snapshot] = {}
    refused = []
    for offset, value in notes:
        try:
            note = _decode_note(value)
        except (msgspec.MsgspecError, ValueError) as error:
            refused.append(f"the note at {offset} {_foreign(value) or f'cannot be decoded: {error}'}")
            continue
        if isinstance(note, SnapshotManifest):
            found[note.id] = Snapshot(note, offset, [])
        elif note.snapshot in found:
            found[note.snapshot].confirmations.append(note)
    return sorted(found.values(), key=lambda s: (s.manifest.offset, s.note)), refused


def _foreign(value: bytes) -> str | None:
    """What a note of another format says of itself."""
    try:
        head = _decode_head(value)
    except (msgspec.MsgspecError, ValueError):
        return None
    return f"is of format {head.format}, this is {FORMAT}" if head.format != FORMAT else None


async def slices_of(store: SnapshotReader, manifest: SnapshotManifest) -> list[bytes]:
    """The bytes of a snapshot, whole and as they were written. Raises SnapshotRefusedError and SnapshotStoreError."""
    if _together(manifest.chunks) != manifest.checksum:
        raise SnapshotRefusedError("its manifest is damaged: its chunks have another checksum together")
    found: list[bytes] = []
    for value in await store.chunks(manifest.partition, manifest.first_chunk, manifest.last_chunk):
        try:
            chunk = _decode_chunk(value)
        except (msgspec.MsgspecError, ValueError) as error:
            raise SnapshotRefusedError(f"a chunk behind chunk {len(found)} cannot be decoded: {error}") from error
        if chunk.snapshot != manifest.id:
            continue
        if chunk.number != len(found) or chunk.number >= len(manifest.chunks):
            raise SnapshotRefusedError(f"it is incomplete: chunk {chunk.number} follows {len(found) - 1}")
        if _checksum(chunk.data) != manifest.chunks[chunk.number]:
            raise SnapshotRefusedError(f"it is damaged: chunk {chunk.number} has another checksum")
        found.append(chunk.data)
    if len(found) != len(manifest.chunks):
        raise SnapshotRefusedError(f"it is incomplete: {len(found)} of {len(manifest.chunks)} chunks are there")
    return found


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _together(checksums: Iterable[str]) -> str:
    """The checksum of a whole snapshot: that of its chunks' checksums, so that no byte is gone through twice."""
    return _checksum("".join(checksums).encode())


class CapturedAt(msgspec.Struct, frozen=True):
    """What a snapshot is of: see SnapshotManifest."""

    partition: int
    offset: int
    marker: str
    at: int
    outcome_hash: str


async def write(store: SnapshotStore, id: str, by: str, origin: CapturedAt, parts: Iterable[Part]) -> SnapshotManifest:
    """Write the chunks and, once all are stored, the manifest. Raises SnapshotStoreError."""
    counts = dict[str, int]()
    checksums: list[str] = []
    offsets: list[int] = []
    length = 0
    for number, data in enumerate(sliced(parts, counts)):
        facts = RecordFacts("SnapshotChunk", f"{id}-{number}", by, origin.at)
        offsets.append(await store.append_chunk(origin.partition, _encode(SnapshotChunk(id, number, data)), facts))
        checksums.append(_checksum(data))
        length += len(data)
    manifest = SnapshotManifest(
        id=id,
        format=FORMAT,
        by=by,
        parts=counts,
        bytes=length,
        first_chunk=offsets[0],
        last_chunk=offsets[-1],
        chunks=checksums,
        checksum=_together(checksums),
        **msgspec.structs.asdict(origin),
    )
    await store.append_note(
        origin.partition, _encode_note(manifest), RecordFacts("SnapshotManifest", id, by, origin.at)
    )
    return manifest


async def compare(
    store: SnapshotStore, manifest: SnapshotManifest, by: str, at: int, parts: Iterable[Part]
) -> SnapshotConfirmation:
    """Compare what is stored with what a second run came to, and store the outcome.

    Raises SnapshotRefusedError if what is stored is no whole snapshot, and SnapshotStoreError.
    """
    stored = await slices_of(store, manifest)
    own = list(sliced(parts, {}))
    differs = None if own == stored else first_difference(joined(stored), joined(own))
    whole = _together(map(_checksum, own))
    note = SnapshotConfirmation(manifest.id, by, at, whole, differs)
    facts = RecordFacts("SnapshotConfirmation", f"{manifest.id}-{by}", by, at)
    await store.append_note(manifest.partition, _encode_note(note), facts)
    return note


def first_difference(theirs: Iterator[Part], ours: Iterator[Part]) -> str:
    """Names the first part that is not alike in both."""
    while True:
        one, other = next(theirs, None), next(ours, None)
        if one == other:
            if one is None:
                return "the bytes"
            continue
        if one is None or other is None or (one.kind, one.name) != (other.kind, other.name):
            alone = min((p for p in (one, other) if p is not None), key=lambda p: (p.kind.value, p.name))
            return f"{_named(alone)} is only in {'the snapshot' if alone is one else 'the second run'}"
        if one.version != other.version:
            return f"{_named(one)} has version {one.version}, in the second run {other.version}"
        return f"{_named(one)} has another value"


def _named(part: Part) -> str:
    return f"{part.kind.value} {part.name}".strip()


async def newest(
    store: SnapshotReader,
    candidates: Iterable[Snapshot],
    restore: Callable[[Iterator[Part]], Any],
    refuse: Callable[[Snapshot, str], None],
) -> SnapshotManifest | None:
    """Restore the newest of the snapshots that may be used.

    `restore(parts)` may raise CaptureInvalidError; `refuse(snapshot, reason)` is called for each one that is newer.
    Raises SnapshotStoreError.
    """
    for snapshot in sorted(candidates, key=lambda s: (s.manifest.offset, s.note), reverse=True):
        manifest = snapshot.manifest
        problem = snapshot.problem
        if problem is None:
            try:
                restore(joined(await slices_of(store, manifest)))
            except (SnapshotRefusedError, CaptureInvalidError) as error:
                problem = str(error)
            else:
                return manifest
        refuse(snapshot, problem)
    return None
