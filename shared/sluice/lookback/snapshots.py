"""Snapshots of the journal as a source of records has them: what there is, and where a fold may begin.

A fold of a partition whose first records are trimmed begins from the newest snapshot up to the moment it is folded to,
and says so in the log.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from sluice.domain.model import DomainModel, decode_record
from sluice.engine.fold import PartitionView
from sluice.engine.ports import SnapshotReader
from sluice.engine.snapshots import Snapshot, SnapshotManifest, SnapshotRefusedError, newest, slices_of, snapshots_of
from sluice.kafka.topics import JOURNAL, SNAPSHOT_CHUNKS, SNAPSHOTS
from sluice.lookback.errors import LookbackError
from sluice.lookback.source import KafkaRecord, Source, Span
from sluice.lookback.times import show_time

log = logging.getLogger(__name__)


class SourceSnapshots:
    """See SnapshotReader."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def notes(self, partitions: Collection[int]) -> dict[int, list[tuple[int, bytes]]]:
        """See SnapshotReader."""
        found: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in partitions}
        for record in self._read(self._source.spans([SNAPSHOTS.name], partitions=partitions)):
            found[record.partition].append((record.offset, record.value or b""))
        return found

    async def chunks(self, partition: int, first: int, last: int) -> list[bytes]:
        """See SnapshotReader."""
        (whole,) = self._source.spans([SNAPSHOT_CHUNKS.name], partitions=[partition])
        span = Span(whole.topic, partition, max(first, whole.start), min(last + 1, whole.end))
        return [record.value or b"" for record in self._read([span])]

    def with_marker(self, manifests: Sequence[SnapshotManifest], spans: Mapping[int, Span]) -> list[SnapshotManifest]:
        """Those of them, one of a partition, that are of this journal, of which these spans are there."""
        at = {m.partition: m for m in manifests if spans[m.partition].start <= m.offset < spans[m.partition].end}
        markers = [Span(spans[p].topic, p, m.offset, m.offset + 1) for p, m in at.items()]
        found = {r.partition: decode_record(r.value or b"").id for r in self._read(markers)}
        return [m for p, m in at.items() if found.get(p) == m.marker]

    def _read(self, spans: Sequence[Span]) -> Iterator[KafkaRecord]:
        return (item for item in self._source.read(spans) if isinstance(item, KafkaRecord))


def restore(
    source: Source,
    spans: Sequence[Span],
    views: Mapping[int, PartitionView],
    fits: Callable[[SnapshotManifest], bool],
) -> dict[int, SnapshotManifest]:
    """Restore views by the newest snapshots that fit and may be used; which were taken, by partition.

    `spans` are what the journal has of these partitions: a snapshot has its marker there.
    """
    reader = SourceSnapshots(source)

    async def restored() -> dict[int, SnapshotManifest]:
        notes, taken = await reader.notes([span.partition for span in spans]), dict[int, SnapshotManifest]()
        for span in spans:
            partition = span.partition
            fitting = [
                snapshot
                for snapshot in snapshots_of(notes[partition])[0]
                if fits(snapshot.manifest) and reader.with_marker([snapshot.manifest], {partition: span})
            ]
            found = await newest(reader, fitting, views[partition].restore, lambda *_: None)
            if found is not None:
                taken[partition] = found
        return taken

    return asyncio.run(restored())


def begin(
    source: Source, spans: Sequence[Span], views: Mapping[int, PartitionView], until_ms: int | None = None
) -> tuple[list[Span], dict[int, SnapshotManifest]]:
    """Restore the views whose first records are trimmed: what is left to fold, and which snapshots were taken.

    Raises LookbackError for a partition without a fitting one.
    """
    trimmed = [span for span in spans if span.start > views[span.partition].next_offset]
    if not trimmed:
        return list(spans), {}
    taken = restore(source, trimmed, views, lambda manifest: until_ms is None or manifest.at <= until_ms)
    for span in trimmed:
        manifest = taken.get(span.partition)
        if manifest is None:
            raise LookbackError(
                f"partition {span.partition} of the journal lacks its records before offset {span.start}: "
                "they were trimmed",
                "no snapshot is as old as what you ask for (`sluice snapshot list`), and no archive has them: "
                "SLUICE_ARCHIVE, or the context, says where it is",
            )
        log.info(
            "Partition %s of the journal is trimmed: it is folded from the snapshot at %s (%s) on.",
            span.partition,
            manifest.offset,
            show_time(manifest.at),
        )
    left = [
        msgspec.structs.replace(s, start=max(s.start, taken[s.partition].offset + 1)) if s.partition in taken else s
        for s in spans
    ]
    return left, taken


def lost_ends(source: Source) -> dict[int, PartitionView]:
    """What the newest snapshot has of each partition that has lost its end.

    Services follow such a partition no further (`sluice.engine.loading`). Raises LookbackError if no snapshot of
    one can be read.
    """
    if SNAPSHOTS.name not in {topic.name for topic in source.topics()}:
        return {}
    reader = SourceSnapshots(source)

    async def restored() -> dict[int, PartitionView]:
        notes = await reader.notes(range(source.partitions(SNAPSHOTS.name)))
        # Looked for behind the notes: none of them is of a marker that was appended since.
        spans = {span.partition: span for span in source.spans([JOURNAL.name], partitions=notes)}
        usable = {p: [s for s in snapshots_of(found)[0] if s.problem is None] for p, found in notes.items()}
        last = {p: snapshots[-1].manifest for p, snapshots in usable.items() if snapshots}
        kept = [manifest for p, manifest in last.items() if manifest.offset >= spans[p].start]
        lost = {m.partition for m in kept} - {m.partition for m in reader.with_marker(kept, spans)}
        views = {partition: PartitionView(DomainModel()) for partition in sorted(lost)}
        for partition, view in views.items():
            if await newest(reader, usable[partition], view.restore, lambda *_: None) is None:
                raise LookbackError(
                    f"partition {partition} of the journal has lost its end, and none of its snapshots can be read",
                    "`sluice snapshot list --check` says why; a back-up from before has it",
                )
        return views

    return asyncio.run(restored())


def oldest_snapshots(source: Source, spans: Sequence[Span]) -> dict[int, SnapshotManifest]:
    """By partition its oldest snapshot that may be used, where there is one; none is read.

    The markers of all partitions are read side by side, for every reading takes a while to begin.
    """
    if not spans:
        return {}
    reader, found = SourceSnapshots(source), dict[int, SnapshotManifest]()
    notes = asyncio.run(reader.notes([span.partition for span in spans]))
    of = {span.partition: span for span in spans}
    usable = {p: [s.manifest for s in snapshots_of(notes[p])[0] if s.problem is None] for p in of}
    left = {p: sorted(manifests, key=lambda m: m.offset, reverse=True) for p, manifests in usable.items()}
    while tried := [manifests.pop() for p, manifests in left.items() if manifests and p not in found]:
        found |= {m.partition: m for m in reader.with_marker(tried, of)}
    return found


def snapshot_documents(source: Source, *, check: bool) -> list[dict[str, Any]]:
    """All snapshots there are, newest first in each partition, each with why it may not be used; `check` reads all."""
    partitions = range(source.partitions(SNAPSHOTS.name))
    ends = {span.partition: span.end for span in source.spans([JOURNAL.name], partitions=partitions)}
    return asyncio.run(_documents(SourceSnapshots(source), partitions, ends, check=check))


async def _documents(
    reader: SnapshotReader, partitions: Sequence[int], ends: Mapping[int, int], *, check: bool
) -> list[dict[str, Any]]:
    found = []
    notes = await reader.notes(partitions)
    for partition in partitions:
        snapshots, refused = snapshots_of(notes[partition])
        for snapshot in reversed(snapshots):
            problem = await _problem(reader, snapshot, ends[partition], check=check)
            found.append(_document(snapshot, problem))
        found += [{"partition": partition, "problem": reason} for reason in refused]
    return found


async def _problem(reader: SnapshotReader, snapshot: Snapshot, end: int, *, check: bool) -> str | None:
    if snapshot.problem is not None:
        return snapshot.problem
    if snapshot.manifest.offset >= end:
        return f"it is ahead of the journal, which ends at {end}"
    if check:
        try:
            await slices_of(reader, snapshot.manifest)
        except SnapshotRefusedError as error:
            return str(error)
    return None


def _document(snapshot: Snapshot, problem: str | None) -> dict[str, Any]:
    manifest = snapshot.manifest
    return {
        "partition": manifest.partition,
        "id": manifest.id,
        "offset": manifest.offset,
        "at": manifest.at,
        "by": manifest.by,
        "confirmedBy": [c.by for c in snapshot.confirmations if c.differs is None],
        "parts": manifest.parts,
        "bytes": manifest.bytes,
        "chunks": len(manifest.chunks),
        "checksum": manifest.checksum,
        "problem": problem,
    }
