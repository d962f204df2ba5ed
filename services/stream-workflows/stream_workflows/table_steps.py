"""What the workflows of key-value tables do on the segment stores.

Rules: background-and-other-workflows 5.
"""

from sluice.domain import table as tables
from sluice.domain.segment_id import kvt_segment_name
from sluice.domain.table import Table
from sluice.workflows.steps import all_done
from stream_workflows.tools import StreamTools


def _names(table: Table) -> list[str]:
    return [kvt_segment_name(table.scope, table.name, s.id) for s in table.segments]


async def create_segments(tools: StreamTools, table: Table) -> None:
    config = table.config
    key_length = config.primary_key_length + config.secondary_key_length
    await all_done(
        tools.store.create_table_segment(name, key_length, config.rollover_size_bytes) for name in _names(table)
    )


async def delete_segments(tools: StreamTools, table: Table) -> None:
    await all_done(tools.store.delete_table_segment(name) for name in _names(table))


async def release_name(tools: StreamTools, table: Table) -> None:
    await tools.release((tables.release(table),))
