"""An original that was imported, as the views of the journal have it."""

from typing import Any

from support.originals import SCOPE, MemoryOriginal, T

from sluice.backup.restoring import records
from sluice.domain.ids import StreamId
from sluice.domain.model import DomainModel, decode_record, encode_record
from sluice.domain.stream.state import Stream
from sluice.domain.transaction.index import transactions_of
from sluice.engine.fold import GuardedReader, Outcome, PartitionView
from sluice.engine.partition import partition_keys, partition_of
from sluice_cli.migration import model
from sluice_cli.migration.to_states import Taken, take

NOW = T + 10**9
ST = StreamId(SCOPE, "st")


class Imported:
    """The views of a journal into which an original was imported."""

    def __init__(self, taken: Taken, partitions: int = 1) -> None:
        self.remarks = taken.remarks
        self.views = [PartitionView(DomainModel(), key) for key in partition_keys(partitions)]
        for found in records(taken.backed_up, partitions, "imported", 0, NOW, "test"):
            view = self.views[found.partition]
            outcomes = view.fold(decode_record(encode_record(found.record)), view.next_offset, NOW)
            assert set(outcomes) == {Outcome.COUNTED}

    def reader(self, key: str = ST.key) -> GuardedReader:
        return GuardedReader(self.views[partition_of(key, len(self.views))])

    def __getitem__(self, id: Any) -> Any:
        return self.reader(id.key).get(id.aggregate)

    @property
    def stream(self) -> Stream:
        found = self[ST]
        assert isinstance(found, Stream)
        return found


def imported(*things: model.Thing, left_out: tuple[str, ...] = (), **cluster: Any) -> Imported:
    return Imported(take(MemoryOriginal(*things, **cluster), NOW, left_out))


def uuids(stream: Imported, which: str) -> list[str]:
    return list(getattr(transactions_of(stream.reader(), ST), which))
