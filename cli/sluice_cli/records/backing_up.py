"""Back-ups from the topics, and back into them.

A back-up asks Kafka for the ends of all partitions of the journal by one question, and folds every partition up to
there. So it needs nothing of the services, and they do not notice it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sluice.backup.files import FORMAT, Manifest, PartitionFile, read_manifest, write_manifest, write_partition
from sluice.backup.restoring import restoration
from sluice.backup.states import BackedUp, read_states
from sluice.backup.target import BackupError, Target
from sluice.domain.model import encode_record
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.restoring.base import BaseUnfitError
from sluice.domain.scope.state import Scope
from sluice.domain.stream.state import Stream
from sluice.domain.table.state import Table
from sluice.domain.transaction.state import Transaction
from sluice.engine.fold import PartitionView
from sluice.engine.record import record_kind
from sluice.kafka.headers import Headers, cloud_event_headers
from sluice.kafka.topics import JOURNAL, TOPICS
from sluice.lookback.as_of import all_past_of
from sluice.lookback.progress import Progress
from sluice.lookback.snapshots import lost_ends
from sluice.lookback.source import Source
from sluice_cli.errors import CommandError, RefusedError

BY = "sluice/backup"

COUNTS = ("scopes", "streams", "internalStreams", "readerGroups", "tables", "transactions")
"""What is counted of a back-up, for users; of transactions those that have not ended."""

_NAMES: dict[type, str] = {Scope: "scopes", ReaderGroup: "readerGroups", Table: "tables", Transaction: "transactions"}


class Topics(Protocol):
    """The topics of a system that is being restored. All methods raise CommandError."""

    def create(self, partitions: int, replication: int) -> None:
        """Make those that are missing, and wait until they can be written to."""
        ...

    def append(self, topic: str, partition: int, key: str, value: bytes, headers: Headers) -> None:
        """Append to a partition, in the order of the calls; it may take effect later."""
        ...

    def flush(self) -> Mapping[int, int]:
        """Return when everything is acknowledged by all replicas; by partition the offset behind the last record."""
        ...


def create(
    source: Source, target: Target, clock: Callable[[], int], progress: Progress, partitions: int | None = None
) -> dict[str, Any]:
    """Back up the journal as it is now, or the first `partitions` of it; what was backed up. Raises CommandError.

    `fromSnapshots` are the partitions that have lost their end: of them the newest snapshot is taken.
    """
    try:
        if any(True for _ in target.names()):
            raise RefusedError(f"{target} is not empty", "a back-up is written into a folder of its own")
        began_at = clock()
        views, lost = present_views(source, progress, partitions)
        files = _write(views, target, progress)
        write_manifest(target, Manifest(FORMAT, began_at, clock(), JOURNAL.name, tuple(files)))
    except BackupError as error:
        raise CommandError(str(error)) from error
    return {**verify(target), "fromSnapshots": lost}


def present_views(
    source: Source, progress: Progress, partitions: int | None = None
) -> tuple[list[PartitionView], list[int]]:
    """The views of the journal's partitions as they are now, and those that have lost their end.

    Of these it is that of the newest snapshot. Raises CommandError if the journal is not whole.
    """
    past = all_past_of(source, frozenset(), None, progress, partitions)
    lost = lost_ends(source)
    views = [lost.get(one.partition, one.view) for one in past]
    if any(view.next_offset < view.whole_at for view in views):
        raise CommandError("the journal itself is held, or half restored: there is nothing in it yet")
    return views, sorted(lost)


def _write(views: Sequence[PartitionView], target: Target, progress: Progress) -> list[PartitionFile]:
    files = []
    with progress("writing", len(views)) as advance:
        for partition, view in enumerate(views):
            files.append(write_partition(target, partition, view.next_offset, view.last_ms, view.capture()))
            advance(1)
    return files


def verify(target: Target) -> dict[str, Any]:
    """Read all of a back-up as a restore does; what it has. Raises CommandError."""
    try:
        manifest = read_manifest(target)
        found = read_states(target, manifest)
        return document(manifest, found)
    except BackupError as error:
        raise CommandError(str(error), "it cannot be restored") from error


def _counted_as(state: object) -> str:
    """One of `COUNTS`; empty for what is not counted."""
    if isinstance(state, Stream):
        return "internalStreams" if state.id.name.startswith("_") else "streams"
    return _NAMES.get(type(state), "")


def document(manifest: Manifest, found: BackedUp) -> dict[str, Any]:
    """What a back-up has, for users."""
    return {
        "format": manifest.format,
        "at": manifest.began_at,
        "partitions": len(manifest.partitions),
        "records": sum(one.end for one in manifest.partitions),
        "bytes": sum(one.bytes for one in manifest.partitions),
        **counted(found),
    }


def counted(found: BackedUp) -> dict[str, int]:
    """How many there are of what is counted."""
    counts = Counter(map(_counted_as, found.states.values()))
    return {name: counts[name] for name in COUNTS}


def check_empty(source: Source) -> None:
    """Raise RefusedError unless no record was ever appended to any topic of Sluice's."""
    names = {topic.name for topic in TOPICS}
    present = [facts.name for facts in source.topics() if facts.name in names]
    used = sorted({span.topic for span in source.spans(present) if span.end > 0})
    if used:
        raise RefusedError(
            f"these topics hold records, or did: {', '.join(used)}",
            "stop all services and delete the topics first: a back-up is restored into an empty system",
        )


def restore(
    source: Source,
    topics: Topics,
    target: Target,
    partitions: int,
    replication: int,
    now_ms: int,
    progress: Progress,
    earlier: Sequence[int] = (),
) -> dict[str, Any]:
    """Bring a back-up into empty topics of so many partitions, 0 for as many as it is of; what was brought.

    `earlier` are the bases of restores that were made behind the back-up. Raises CommandError.
    """
    check_empty(source)
    try:
        manifest = read_manifest(target)
        backed_up = read_states(target, manifest)
        described = document(manifest, backed_up)
        count = partitions or len(manifest.partitions)
        made = restoration(backed_up, count, now_ms, BY, earlier)
    except (BackupError, BaseUnfitError) as error:
        raise CommandError(str(error)) from error
    topics.create(count, replication)
    appended: Counter[int] = Counter()
    with progress("restoring", None) as advance:
        for found in made.records:
            record = found.record
            headers = cloud_event_headers(record_kind(record), record.id, record.by, record.at, found.key)
            topics.append(JOURNAL.name, found.partition, found.key, encode_record(record), headers)
            appended[found.partition] += 1
            advance(1)
        if topics.flush() != appended:
            raise CommandError(
                f"another process has written to {JOURNAL.name} meanwhile: a service was started too early",
                "stop all services, delete the topics and restore once more",
            )
    return {**described, "partitions": count, "base": made.base, "repairs": made.repairs}
