"""Examples of notes on snapshots: that one was written, and that a second run came to the same."""

import hashlib

import msgspec

from sluice.catalog.examples import names as n
from sluice.catalog.examples.example import Example, example
from sluice.engine.snapshots import FORMAT, SnapshotChunk, SnapshotConfirmation, SnapshotManifest
from sluice.kafka.headers import MESSAGE_PACK
from sluice.kafka.topics import SNAPSHOT_CHUNKS, SNAPSHOTS

_BY = "cluster-manager/cluster-manager-0"
_OTHER = "cluster-manager/cluster-manager-1"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def snapshot_examples() -> list[Example]:
    """A snapshot of partition 5 in two chunks, and its confirmation."""
    manifest = SnapshotManifest(
        id="5-104200-9f2c41d07b",
        format=FORMAT,
        partition=5,
        offset=104_200,
        marker="3be0a7c512-1f",
        at=n.at(120),
        by=_BY,
        outcome_hash="8b1f6a0c2d94e377",
        parts={"head": 1, "aggregate": 2210, "projection": 3},
        bytes=1_482_113,
        first_chunk=61,
        last_chunk=62,
        chunks=[_checksum("0"), _checksum("1")],
        checksum=_checksum("01"),
    )
    confirmation = SnapshotConfirmation(manifest.id, _OTHER, n.at(124), manifest.checksum)
    notes: list[tuple[str, int, SnapshotManifest | SnapshotConfirmation]] = [
        (manifest.id, manifest.at, manifest),
        (f"{manifest.id}-{_OTHER}", confirmation.at, confirmation),
    ]
    chunk = SnapshotChunk(manifest.id, 0, bytes(24))
    value = msgspec.msgpack.encode(chunk)
    id = f"{manifest.id}-0"
    return [
        example(SNAPSHOT_CHUNKS.name, "5", type(chunk).__name__, id, _BY, manifest.at, value, MESSAGE_PACK),
        *(
            example(SNAPSHOTS.name, "5", type(note).__name__, id, note.by, at, msgspec.json.encode(note))
            for id, at, note in notes
        ),
    ]
