"""What a restore writes into an empty journal."""

import msgspec

from sluice.domain.names import fences_aggregate


class EpochsMoved(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """What is created in the partition of `partition_key` from here on has its first epoch at `base`."""

    partition_key: str
    base: int

    @property
    def aggregate(self) -> str:
        return fences_aggregate(self.partition_key)


class PieceRestored(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """The next piece of a state that is too large for one record; `AggregateRestored` has the last one."""

    aggregate: str
    piece: bytes


class AggregateRestored(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """A back-up knew the aggregate; `state` is what it goes on with, encoded as `domain.encoding` has it.

    Of a state that comes in pieces it is the last one.
    """

    aggregate: str
    state: bytes


Event = EpochsMoved | PieceRestored | AggregateRestored
