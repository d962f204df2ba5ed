"""The files of a back-up: one of parts for each partition of the journal, and the manifest, which is written last.

So a back-up without a manifest is one that was cut off. A file of parts has for each part its length in four bytes, the
highest first, and its msgpack (`sluice.engine.capture`). The manifest is JSON: which offset each partition was taken
at, and what its file must hold, down to the checksum.
"""

import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from sluice.backup.target import BackupError, Target
from sluice.engine.capture import Part

FORMAT = 1
MANIFEST = "manifest.json"
_LENGTH_BYTES = 4

_encode_part = msgspec.msgpack.Encoder().encode
_decode_part = msgspec.msgpack.Decoder(Part).decode


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


class _Checked:
    """Counts and hashes what passes."""

    def __init__(self) -> None:
        self.parts = 0
        self.bytes = 0
        self._hash = hashlib.sha256()

    def passed(self, chunk: bytes) -> bytes:
        self.bytes += len(chunk)
        self._hash.update(chunk)
        return chunk

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def write_partition(target: Target, partition: int, end: int, at: int, parts: Iterable[Part]) -> PartitionFile:
    """Write the parts of one partition's view. Raises BackupError."""
    name, checked = f"partition-{partition:05}.parts", _Checked()

    def chunks() -> Iterator[bytes]:
        for part in parts:
            value = _encode_part(part)
            checked.parts += 1
            yield checked.passed(len(value).to_bytes(_LENGTH_BYTES, "big") + value)

    target.write(name, chunks())
    return PartitionFile(name, end, at, checked.parts, checked.bytes, checked.sha256)


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
    checked = _Checked()
    with target.open(described.file) as file:
        while length := checked.passed(file.read(_LENGTH_BYTES)):
            size = int.from_bytes(length, "big")
            value = checked.passed(file.read(size)) if len(length) == _LENGTH_BYTES else b""
            if not value or len(value) < size:
                raise BackupError(f"{described.file} is cut off after {checked.bytes} bytes")
            checked.parts += 1
            try:
                yield _decode_part(value)
            except msgspec.MsgspecError as error:
                raise BackupError(f"{described.file} is damaged: part {checked.parts}: {error}") from error
    if (checked.parts, checked.bytes, checked.sha256) != (described.parts, described.bytes, described.sha256):
        raise BackupError(f"{described.file} is not as it was written: its checksum differs")
