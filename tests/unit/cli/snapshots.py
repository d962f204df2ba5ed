"""Snapshots in the topics that the command line reads, written as cluster-manager does."""

from typing import Any

import msgspec
from unit.cli.memory import PARTITIONS, History, MemorySource

from sluice.domain.model import encode_record
from sluice.engine.partition import partition_of
from sluice.engine.ports import RecordFacts
from sluice.engine.record import Marker, Record
from sluice.engine.snapshots import CapturedAt, SnapshotConfirmation, SnapshotManifest, write
from sluice.kafka import topics


class SourceStore:
    """What writing a snapshot takes of a SnapshotStore."""

    def __init__(self, source: MemorySource) -> None:
        self._source = source

    async def append_note(self, partition: int, value: bytes, _facts: RecordFacts) -> None:
        self._source.append(topics.SNAPSHOTS.name, str(partition), value, partition=partition)

    async def append_chunk(self, partition: int, value: bytes, _facts: RecordFacts) -> int:
        return self._source.append(topics.SNAPSHOT_CHUNKS.name, str(partition), value, partition=partition).offset


async def snapshot_of(history: History, key: str, *, confirmed: bool = True) -> SnapshotManifest:
    """A snapshot of the key's partition behind a marker."""
    source, partition = history.source, partition_of(key, PARTITIONS)
    store: Any = SourceStore(source)
    view = history.views[partition]
    record: Record[Any, Any] = Record(f"marker-{history.now}", history.now, "cluster-manager/a", marker=Marker(1))
    message = source.append(topics.JOURNAL.name, key, encode_record(record))
    view.fold(record, message.offset, message.at)
    origin = CapturedAt(partition, message.offset, record.id, message.at, "0")
    manifest = await write(store, record.id, "cluster-manager/a", origin, view.capture())
    if confirmed:
        note = SnapshotConfirmation(manifest.id, "cluster-manager/b", history.now, manifest.checksum)
        source.append(topics.SNAPSHOTS.name, "", msgspec.json.encode(note), partition=partition)
    return manifest
