"""A page of a long listing costs what is on it, not what is in the scope."""

import time
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any

from unit.gateway.support import PLAIN, creation_started
from unit.gateway.system import PARTITIONS

from api_gateway.edge.reads import Reads, streams_after, streams_with_tag
from api_gateway.settings import GatewaySettings
from sluice.domain.config import StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry, JournalRecord, encode_record
from sluice.domain.scope import events as ev
from sluice.engine.partition import partition_of
from sluice.engine.record import Entry, Record
from sluice.kafka.topics import JOURNAL
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.runtime import Runtime

STREAMS = 100_000
PAGE = 1000
MAX_S = 0.005
TAGGED = StreamConfig(tags=("red",))


def fill(broker: MemoryBroker) -> None:
    """A scope of a hundred thousand streams; every other one has a tag."""
    entries: dict[int, list[JournalEntry]] = {partition: [] for partition in range(PARTITIONS)}
    created = ev.ScopeCreated(scope="sc", creation_id="c", at=0)
    entries[partition_of("sc", PARTITIONS)].append(Entry(events=(created,)))
    for number in range(STREAMS):
        name = f"stream-{number:06}"
        begun = creation_started(name, PLAIN if number % 2 else TAGGED)
        entries[partition_of(StreamId("sc", name).key, PARTITIONS)].append(Entry(events=(begun,)))
    for partition, own in entries.items():
        record: JournalRecord = Record(id="all", at=0, by="test", entries=tuple(own))
        broker.land_in(JOURNAL.name, partition, "", encode_record(record))


async def least_cpu_s(page: Callable[[], Awaitable[list[Any]]]) -> float:
    """What a page costs this thread, the best of several."""
    found = []
    for _ in range(7):
        began = time.thread_time()
        assert len(await page()) == PAGE
        found.append(time.thread_time() - began)
    return min(found)


async def test_a_page_of_many_streams_is_cheap() -> None:
    broker = MemoryBroker(PARTITIONS)
    fill(broker)
    runtime = Runtime("api-gateway", GatewaySettings(instance="test"), MemoryConnections(MemoryGroups(broker)))
    runtime.journal.start()
    await runtime.journal.loaded.wait()
    reads = Reads(runtime.journal)
    for after in ("", "stream-050000"):

        async def names(after: str = after) -> list[Any]:
            return list(islice(await reads.names_in("sc", streams_after(after)) or (), PAGE))

        async def tagged(after: str = after) -> list[Any]:
            return list(islice(await reads.names_in("sc", streams_with_tag("red", after, internal=False)) or (), PAGE))

        async def states(after: str = after) -> list[Any]:
            return list(islice(await reads.streams_in("sc", streams_after(after, internal=False)) or (), PAGE))

        for page in (names, tagged, states):
            assert await least_cpu_s(page) < MAX_S, (page.__name__, after)
    await runtime.journal.stop()
