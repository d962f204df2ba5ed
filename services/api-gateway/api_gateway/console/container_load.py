"""What is written to each segment container, a second, as the lengths of its segments say that grow meanwhile.

Segments are chosen at random where there are more than can be measured: shares of the load are what is wanted, and many
small streams say those as well as all would.
"""

import asyncio
import random

from api_gateway.console.lengths import MAX_MEASURED, lengths_of
from api_gateway.edge.reads import Reads
from sluice.domain.segment import segment_name
from sluice.pravega.routing import container_of
from sluice.pravega.store import SegmentStore

MEASURED_S = 3.0


async def container_load(reads: Reads, store: SegmentStore, count: int) -> dict[int, int]:
    """Bytes a second of each of the containers 0..count-1 to which something is written."""
    loop, segments = asyncio.get_running_loop(), await _some_segments(reads)
    before, began_s = await lengths_of(store, segments), loop.time()
    await asyncio.sleep(MEASURED_S)
    after, passed_s = await lengths_of(store, segments), loop.time() - began_s
    load: dict[int, int] = {}
    for segment in before.keys() & after.keys():
        grown = round((after[segment] - before[segment]) / passed_s)
        if grown > 0:
            container = container_of(segment, count)
            load[container] = load.get(container, 0) + grown
    return dict(sorted(load.items()))


async def _some_segments(reads: Reads) -> list[str]:
    """The names of segments that are written to: of all, or of so many, each as likely as the other."""
    chosen: list[str] = []
    seen = 0
    for scope in await reads.scope_names():
        async for stream in reads.all_streams(scope):
            for segment in stream.active_segments():
                seen += 1
                at = len(chosen) if seen <= MAX_MEASURED else random.randrange(seen)
                if at < MAX_MEASURED:
                    chosen[at : at + 1] = [segment_name(*stream.id, segment.id)]
    return chosen
