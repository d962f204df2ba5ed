"""The files of a back-up: one of parts for each partition of the journal, and the manifest, which is written last.

So a back-up without a manifest is one that was cut off. A file of parts has the bytes of a snapshot's chunks together
(`sluice.engine.snapshots`). The manifest is JSON: which offset each partition was taken at, and what its file must
hold, down to the checksum.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec

from sluice.backup.target import BackupError, Target
from sluice.engine.capture import Part
from sluice.engine.snapshots import CHUNK_BYTES, SnapshotRefusedError, joined, sliced

FORMAT = 1
MANIFEST = "manifest.json"


class PartitionFile(msgspec.Struct, frozen=True):
    """One partition: all records before offset `end` are in it. `at` is when the log took the last one, epoch ms."""

    file: str
    end: int
    at: int
    parts: int
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """`began_at` is when the ends of all partitions were requested, `ended_at` when all was written; epoch ms."""

    format: int
    began_at: int
    ended_at: int
    journal: str
    partitions: tuple[PartitionFile, ...]


class _Format(msgspec.Struct):
    format: int


def write_partition(target: Target, partition: int, end: int, at: int, parts: Iterable[Part]) -> PartitionFile:
    """Write the parts of one partition's view. Raises BackupError."""
    name, digest, counts = f"partition-{partition:05}.parts", hashlib.sha256(), dict[str, int]()
    size = 0

    def chunks() -> Iterator[bytes]:
        nonlocal size
        for chunk in sliced(parts, counts):
            digest.update(chunk)
            size += len(chunk)
            yield chunk

    target.write(name, chunks())
    return PartitionFile(name, end, at, sum(counts.values()), size, digest.hexdigest())


def write_manifest(target: Target, manifest: Manifest) -> None:
    """Say that the back-up is whole. Raises BackupError."""
    target.write(MANIFEST, [msgspec.json.format(msgspec.json.encode(manifest), indent=2), b"\n"])


def read_manifest(target: Target) -> Manifest:
    """Raises BackupError if there is none, or one of another format."""
    if MANIFEST not in target.names():
        raise BackupError(f"{target} has no {MANIFEST}: it is no back-up, or one that was not finished")
    with target.open(MANIFEST) as file:
        value = file.read()
    try:
        found = msgspec.json.decode(value, type=_Format).format
        if found != FORMAT:
            raise BackupError(f"the back-up is of format {found}; this release reads format {FORMAT}")
        return msgspec.json.decode(value, type=Manifest)
    except msgspec.MsgspecError as error:
        raise BackupError(f"{MANIFEST} cannot be read: {error}") from error


def read_partition(target: Target, described: PartitionFile) -> Iterator[Part]:
    """The parts of a partition, in order. Raises BackupError, at the end at the latest, if the file is not as written.

    So nothing of it may be relied on before its end.
    """
    digest = hashlib.sha256()

    def chunks(file: BinaryIO) -> Iterator[bytes]:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            yield chunk

    with target.open(described.file) as file:
        try:
            yield from joined(chunks(file))
        except SnapshotRefusedError as error:
            raise BackupError(f"{described.file} is damaged: {error}") from error
    if digest.hexdigest() != described.sha256:
        raise BackupError(f"{described.file} is not as it was written: its checksum differs")
