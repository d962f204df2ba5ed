"""What the workflows of key-value tables do on the segment stores.

Rules: background-and-other-workflows 5.
"""

from sluice.domain.segment import kvt_segment_name
from sluice.domain.table.state import Table
from sluice.engine.step import all_done
from stream_workflows.step_context import StreamStepContext


def _names(table: Table) -> list[str]:
    return [kvt_segment_name(*table.id, s.id) for s in table.segments]


async def create_segments(context: StreamStepContext, table: Table) -> None:
    config = table.config
    key_length = config.primary_key_length + config.secondary_key_length
    await all_done(
        context.store.create_table_segment(name, key_length, config.rollover_size_bytes) for name in _names(table)
    )


async def delete_segments(context: StreamStepContext, table: Table) -> None:
    await all_done(context.store.delete_table_segment(name) for name in _names(table))
