"""A key-value table as it is shown, of now or of a moment of the past."""

from sluice.domain.segment import kvt_segment_name
from sluice.domain.table.state import Table
from sluice.insight.placement import Placement, Unreachable
from sluice.insight.shown import Allowed, Moment, Shown, text
from sluice.insight.workflows import RunningWorkflow, workflow_shown


class TableConfiguration(Shown):
    """The configuration of a key-value table as it is stored."""

    partition_count: int = text("How many partitions it has.", examples=[4])
    primary_key_length: int = text("Bytes of a primary key.", examples=[16])
    secondary_key_length: int = text("Bytes of a secondary key; 0: there is none.")
    rollover_size_bytes: int = text("Of parts of segments; 0: as stores do.")


class TablePartition(Shown):
    """A partition of a table: a table segment."""

    id: int
    low: float
    high: float


class TableDescription(Moment):
    """A key-value table."""

    scope: str
    name: str
    state: str = text("CREATING, ACTIVE or DELETING.")
    created_at: int = text("When it was created, epoch ms.")
    config: TableConfiguration
    segments: list[TablePartition] = text("Its partitions, by key range.")
    unreachable: Unreachable | None = text(
        "Partitions that can be neither written nor read; left out if all can.", default=None
    )
    workflow: RunningWorkflow | None = text("What changes it at the moment.", default=None)
    allowed: list[Allowed] | None = text(
        "Left out of the past. What the caller may do with it: delete; retry and cancel of its workflow.", default=None
    )


class TableItem(Shown):
    """A key-value table in a list."""

    name: str = text(examples=["settings"])
    state: str
    partition_count: int
    unreachable: int | None = text(
        "How many of them can be neither written nor read; left out if all can.", default=None
    )


def table_shown(table: Table, placement: Placement) -> TableDescription:
    config = table.config
    return TableDescription(
        scope=table.id.scope,
        name=table.id.name,
        state=table.state.value,
        created_at=table.created_at,
        config=TableConfiguration(
            partition_count=config.partitions,
            primary_key_length=config.primary_key_length,
            secondary_key_length=config.secondary_key_length,
            rollover_size_bytes=config.rollover_size_bytes,
        ),
        segments=[TablePartition(id=s.id, low=s.low, high=s.high) for s in table.segments],
        unreachable=_unreachable(table, placement),
        workflow=workflow_shown(table.workflow),
    )


def table_item(table: Table, placement: Placement) -> TableItem:
    unreachable = _unreachable(table, placement)
    return TableItem(
        name=table.id.name,
        state=table.state.value,
        partition_count=table.config.partitions,
        unreachable=unreachable.segments if unreachable is not None else None,
    )


def _unreachable(table: Table, placement: Placement) -> Unreachable | None:
    return placement.unreachable(kvt_segment_name(*table.id, segment.id) for segment in table.segments)
