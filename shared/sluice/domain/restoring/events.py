"""What a restore writes into an empty journal."""

import msgspec

from sluice.domain.names import fences_aggregate


class NumbersMoved(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """What is created in the partition of `partition_key` from here on numbers its segments from `base` on."""

    partition_key: str
    base: int

    @property
    def aggregate(self) -> str:
        return fences_aggregate(self.partition_key)


class AggregateRestored(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """A back-up knew the aggregate; `state` is what it goes on with, encoded as `domain.encoding` has it."""

    aggregate: str
    state: bytes


Event = NumbersMoved | AggregateRestored
