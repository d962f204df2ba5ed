"""The key-value table aggregate: partitions with fixed key lengths, each a table segment.

Rules: controller-grpc-api 5.9, background-and-other-workflows 5.
"""

from enum import Enum

import msgspec

from sluice.domain.config import TableConfig
from sluice.domain.decision import Reader
from sluice.domain.errors import IllegalStateError
from sluice.domain.ids import TableId
from sluice.domain.segment import Segment, number_of
from sluice.domain.workflow import Workflow


class TableState(Enum):
    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    DELETING = "DELETING"


class Table(msgspec.Struct, array_like=True):
    id: TableId
    creation_id: str
    state: TableState
    config: TableConfig
    created_at: int
    segments: tuple[Segment, ...]
    workflow: Workflow | None = None

    @property
    def next_number(self) -> int:
        return max(number_of(s.id) for s in self.segments) + 1


class DeletedTable(msgspec.Struct, frozen=True, array_like=True):
    """What is left of a deleted table: where the numbers of its successor begin."""

    next_number: int


def find_table(reader: Reader, id: TableId) -> Table | None:
    state = reader.get(id.aggregate)
    return state if isinstance(state, Table) else None


def current_segments(table: Table) -> tuple[Segment, ...]:
    """The partitions by key range. Raises IllegalStateError while the table is being created."""
    if table.state is TableState.CREATING:
        raise IllegalStateError(f"{table.id} is being created")
    return table.segments
