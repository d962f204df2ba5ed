"""A back-up made of views, and brought back into views that nothing was folded into; for tests."""

from collections.abc import Sequence
from pathlib import Path

from sluice.backup.files import Manifest, read_manifest, write_manifest, write_partition
from sluice.backup.restoring import Restoration, restoration
from sluice.backup.states import read_states
from sluice.backup.target import Folder
from sluice.domain.model import DomainModel, decode_record, encode_record
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.partition import partition_keys, partition_of

NOW = 1_800_000_000_000
"""A moment of 2027, epoch ms."""


def back_up(folder: Path, views: Sequence[PartitionView]) -> Folder:
    target = Folder(folder)
    files = [write_partition(target, p, v.next_offset, v.last_ms, v.capture()) for p, v in enumerate(views)]
    write_manifest(target, Manifest(1, NOW - 2, NOW - 1, "sluice.journal", tuple(files)))
    return target


class Restored:
    """What a journal of so many partitions holds after a restore. Every entry of it counts."""

    def __init__(self, target: Folder, partitions: int, now: int = NOW) -> None:
        backed_up = read_states(target, read_manifest(target))
        made: Restoration = restoration(backed_up, partitions, now, "sluice/test")
        self.base, self.repairs = made.base, made.repairs
        keys = partition_keys(partitions)
        self.views = [PartitionView(DomainModel(), key, self._of, lambda: self.views) for key in keys]
        for found in made.records:
            view = self.views[found.partition]
            outcomes = view.fold(decode_record(encode_record(found.record)), view.next_offset, now)
            assert set(outcomes) == {Outcome.COUNTED}, found.record

    def _of(self, key: str) -> PartitionView:
        return self.views[partition_of(key, len(self.views))]

    def view(self, key: str) -> PartitionView:
        """The view of the key's partition."""
        return self._of(key)
