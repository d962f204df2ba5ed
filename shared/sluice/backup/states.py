"""What a back-up says, as states of aggregates; and whether all of it can be read.

Floors, decided sources and fences stay behind: they are about topics that a restore does not bring back.
"""

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

import msgspec

from sluice.backup.files import Manifest, PartitionFile, read_partition
from sluice.backup.target import BackupError, Target
from sluice.domain.model import DomainModel
from sluice.domain.names import key_of
from sluice.domain.scope.fences import ScopeFences
from sluice.domain.stream.state import Stream
from sluice.domain.transaction.index import StreamTransactions
from sluice.engine.capture import CaptureInvalidError
from sluice.engine.fold import PartitionView
from sluice.engine.partition import partition_of

MODEL = DomainModel()


class EncodedStates(MutableMapping[str, Any]):
    """States that are bytes until they are looked at, for a back-up may have millions: what is changed is set anew."""

    def __init__(self) -> None:
        self._encoded: dict[str, bytes] = {}

    def __getitem__(self, name: str) -> Any:
        return MODEL.decode_state(self._encoded[name])

    def __setitem__(self, name: str, state: Any) -> None:
        self._encoded[name] = MODEL.encode_state(state)

    def __delitem__(self, name: str) -> None:
        del self._encoded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._encoded

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)

    def encoded(self, name: str) -> bytes:
        """The state as it is encoded."""
        return self._encoded[name]


class BackedUp(msgspec.Struct):
    """The states of all partitions by aggregate, in no order, and the indexes of transactions by stream.

    `highest` is the highest epoch that a stream may have; `base` where epochs went on at the last restore.
    """

    states: EncodedStates
    transactions: dict[str, StreamTransactions]
    highest: int
    base: int


def read_views(target: Target, manifest: Manifest) -> Iterator[PartitionView]:
    """The view of each partition as it was captured. Raises BackupError."""
    for partition, described in enumerate(manifest.partitions):
        yield _view(target, described, partition, len(manifest.partitions))


def _view(target: Target, described: PartitionFile, partition: int, partitions: int) -> PartitionView:
    view = PartitionView(MODEL)
    try:
        view.restore(read_partition(target, described))
        names = [name for name, _ in view.aggregates()]
    except (CaptureInvalidError, msgspec.MsgspecError, ValueError) as error:
        raise BackupError(f"{described.file} holds no state of a partition: {error}") from error
    if view.next_offset != described.end:
        raise BackupError(f"{described.file} was taken at offset {view.next_offset}, not at {described.end}")
    for name in names:
        if partition_of(key_of(name), partitions) != partition:
            raise BackupError(f"{described.file} has {name}, which belongs to another partition")
    return view


def read_states(target: Target, manifest: Manifest) -> BackedUp:
    """All states, as they were. Raises BackupError."""
    return states_of(read_views(target, manifest))


def states_of(views: Iterable[PartitionView]) -> BackedUp:
    """The states of all partitions."""
    found = BackedUp(EncodedStates(), {}, -1, 0)
    for view in views:
        for name, state in view.aggregates():
            if isinstance(state, Stream):
                # Behind the newest epoch there may be those of a scale, or the two of a roll.
                found.highest = max(found.highest, state.history.count + 1)
            if isinstance(state, ScopeFences):
                found.base = max(found.base, state.base)
            else:
                found.states[name] = state
        transactions = ((name, index) for name, index in view.projections() if isinstance(index, StreamTransactions))
        found.transactions.update(transactions)
    return found
