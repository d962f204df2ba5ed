"""The client against real segment stores, which are killed and have their containers taken away."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import cast
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from kazoo.client import KazooClient
from support.segments import content
from support.txn_log import TxnLog
from unit.pravega.suite import SegmentStoreSuite

from harness import System, eventually, eventually_async
from sluice.domain.ids import StreamId
from sluice.domain.segment import TRANSACTION_INFIX, segment_name, transaction_segment_name
from sluice.domain.transaction.state import segment_names
from sluice.pravega import (
    ConnectionLimits,
    Host,
    RouteStale,
    SegmentInfo,
    SegmentMissing,
    SegmentStoreClient,
    SegmentStoreError,
    TryLater,
    container_of,
)
from sluice.pravega.container_map import (
    CONTAINER_MAP_NODE,
    HOSTS_NODE,
    decode_host,
    encode_container_map,
)
from sluice.pravega.event_frames import frame_event
from sluice_local.settings import LocalSettings
from txn_manager.early_answers import EarlyAnswers
from txn_manager.merging import merge_into

pytestmark = pytest.mark.integration

ROOT = "/pravega/pravega-cluster/"
CONTAINERS = LocalSettings().container_count
SETTLED_S = 60.0
PATIENT_S = 120.0
RACES = 200


class DataPlane:
    """Two segment stores and the container map, which has no other writer."""

    def __init__(self, system: System, zookeeper: KazooClient) -> None:
        self.system = system
        self.zookeeper = zookeeper
        self.hosts = [Host(*split(address)) for address in system.segment_store_addresses]
        self.routes: dict[int, Host] = {}

    def assign(self, containers: Mapping[Host, set[int]]) -> None:
        """Says which store has which containers."""
        self.routes = {container: host for host, ids in containers.items() for container in ids}
        self.zookeeper.set(ROOT + CONTAINER_MAP_NODE, encode_container_map(containers))

    def registered(self) -> set[Host]:
        """The stores that are registered, from the payloads of their nodes."""
        if not self.zookeeper.exists(ROOT + HOSTS_NODE):
            return set()
        names = self.zookeeper.get_children(ROOT + HOSTS_NODE)
        return {decode_host(self.zookeeper.get(f"{ROOT}{HOSTS_NODE}/{name}")[0]) for name in names}

    def halves(self) -> None:
        """Two containers for each store: where every test begins."""
        first, second = self.hosts
        self.assign({first: {0, 1}, second: {2, 3}})

    def client(self, timeout_s: float = 30.0) -> SegmentStoreClient:
        limits = ConnectionLimits(connect_timeout_s=timeout_s, silence_limit_s=timeout_s)
        return SegmentStoreClient(lambda c: self.routes.get(c), CONTAINERS, call_timeout_s=timeout_s, limits=limits)


def split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


@pytest.fixture(scope="module")
def plane(platform: System) -> Iterator[DataPlane]:
    # Other tests have killed the bookie, and BookKeeper's client in a store that has begun meanwhile may never find it.
    for name in (name for name in platform.names if name.startswith("segment-store-")):
        platform.restart(name)
    zookeeper = KazooClient(platform.zookeeper)
    zookeeper.start()
    try:
        zookeeper.ensure_path(ROOT + CONTAINER_MAP_NODE)
        plane = DataPlane(platform, zookeeper)
        eventually(lambda: plane.registered() == set(plane.hosts), SETTLED_S, "both stores are registered")
        yield plane
    finally:
        zookeeper.stop()
        zookeeper.close()


@pytest_asyncio.fixture
async def store(plane: DataPlane) -> AsyncIterator[SegmentStoreClient]:
    plane.halves()
    client = plane.client()
    await settles(lambda: all_serve(client), "all containers run")
    yield client
    await client.close()


@pytest.fixture
def scope() -> str:
    return f"scope{uuid4().hex}"


def name_in(container: int, scope: str = "probe") -> str:
    """The name of a segment that lives in a container."""
    names = (segment_name(scope, "st", number) for number in range(10_000))
    return next(name for name in names if container_of(name, CONTAINERS) == container)


async def settles(condition: Callable[[], Awaitable[object]], message: str) -> None:
    await eventually_async(cast(Callable[[], object], condition), SETTLED_S, message)


async def all_serve(client: SegmentStoreClient) -> bool:
    await asyncio.gather(*(client.create_segment(name_in(container), 0, 0) for container in range(CONTAINERS)))
    return True


class TestRealSegmentStore(SegmentStoreSuite):
    """The suite, over real segment stores."""


async def test_the_stores_route_names_as_the_routing_does(
    plane: DataPlane, store: SegmentStoreClient, scope: str
) -> None:
    """Every name is accepted by the store that has its container and refused by the other."""
    names = [segment_name(scope, f"stream-{n}", n % 7) for n in range(200)] + [f"s/t/{n}.#epoch.0" for n in range(16)]
    await asyncio.gather(*(store.create_segment(name, 0, 0) for name in names))
    first, second = plane.hosts
    wrong = SegmentStoreClient(lambda container: second if container < 2 else first, CONTAINERS)
    outcomes = await asyncio.gather(*(wrong.segment_info(name) for name in names), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [RouteStale] * len(names)
    await wrong.close()


async def test_a_container_that_moves_is_found_on_its_new_store(
    plane: DataPlane, store: SegmentStoreClient, scope: str
) -> None:
    name = name_in(0, scope)
    await store.create_segment(name, 0, 0)
    await store.append(name, UUID(int=1), b"kept")
    first, second = plane.hosts
    stale = SegmentStoreClient(lambda _: first, CONTAINERS)
    plane.assign({first: {1}, second: {0, 2, 3}})
    await settles(lambda: raises(RouteStale, stale, name), "the old store gives the container up")
    await settles(lambda: store.segment_info(name), "the new store has it")
    assert (await store.read_segment(name, 0, 100)).data == frame_event(b"kept")
    await stale.close()


async def raises(expected: type[SegmentStoreError], client: SegmentStoreClient, name: str) -> bool:
    try:
        await client.segment_info(name)
    except expected:
        return True
    return False


async def test_a_killed_store_ends_calls_at_once_and_serves_again_when_it_is_back(
    plane: DataPlane, store: SegmentStoreClient, scope: str
) -> None:
    """At once: long before any time-out of the client that is used."""
    name, patient = name_in(0, scope), plane.client(timeout_s=PATIENT_S)
    await store.create_segment(name, 0, 0)
    await patient.segment_info(name)
    await store.append(name, UUID(int=1), b"kept")
    system = plane.system
    await asyncio.to_thread(system.kill, "segment-store-0")
    began = time.monotonic()
    with pytest.raises(TryLater):
        await patient.segment_info(name)
    with pytest.raises(RouteStale):
        await patient.segment_info(name)
    assert time.monotonic() - began < PATIENT_S / 2
    await patient.close()
    await asyncio.to_thread(system.start, "segment-store-0")
    await settles(lambda: store.segment_info(name), "the container runs again")
    assert await store.append(name, UUID(int=1), b"kept") == len(frame_event(b"kept"))


async def test_what_is_made_anew_after_its_merge_is_missing(
    plane: DataPlane, store: SegmentStoreClient, scope: str
) -> None:
    """So a late attempt does not take it for an empty segment, and never deletes what was merged a moment ago."""
    target, source = segment_name(scope, "st", 0), transaction_segment_name(scope, "st", 0, 0, 1)
    for name in (target, source):
        await store.create_segment(name, 0, 0)
    await store.append(source, UUID(int=1), b"merged")
    await store.merge_batch(target, [source])
    await store.create_segment(source, 0, 0)
    with pytest.raises(SegmentMissing):
        await store.segment_info(source)
    length = len(frame_event(b"merged"))
    assert await store.merge_batch(target, [source]) == [length]


class FlushingStore(SegmentStoreClient):
    """Another writer of the transactions flushes to a segment whenever its length was answered as 0, unsealed."""

    async def segment_info(self, name: str) -> SegmentInfo:
        """See SegmentStore."""
        info = await super().segment_info(name)
        if TRANSACTION_INFIX in name and not info.length and not info.sealed:
            await self.append(name, uuid4(), b"late")
        return info


async def test_a_batch_holds_what_is_flushed_after_its_lengths_in_order(
    plane: DataPlane, store: SegmentStoreClient
) -> None:
    log = TxnLog(segments=4)
    first, second = log.open("first"), log.open("second")
    log.stream.id = id = StreamId(f"scope{uuid4().hex}", "st")
    goals = {number: number for number in range(4)}
    names = {t: segment_names(log.stream, t) for t in (first, second)}
    created = [*(segment_name(*id, goal) for goal in goals), *names[first].values(), *names[second].values()]
    await asyncio.gather(*(store.create_segment(name, 0, 0) for name in created))
    for number in (0, 1):
        await store.append(names[second][number], UUID(int=2), b"second")
    await store.append(names[first][1], UUID(int=1), b"first")
    late = FlushingStore(lambda container: plane.routes.get(container), CONTAINERS)
    lengths = EarlyAnswers(late.segment_info)
    opened_at = {name: 0 for of in names.values() for name in of.values()}
    merge, both = late.merge_batch, (first, second)
    await merge_into(late, merge, log.stream, both, goals, True, True, lengths, opened_at, lambda: 0)
    await late.close()
    found = [await content(store, segment_name(*id, goal)) for goal in goals]
    early, later, other = (frame_event(event) for event in (b"late", b"second", b"first"))
    assert found == [early + later, other + later, early + early, early + early]


async def test_a_deleted_segment_stays_away_though_a_client_is_about_to_use_it(
    plane: DataPlane, store: SegmentStoreClient, scope: str
) -> None:
    names = [transaction_segment_name(scope, "st", number, 0, number) for number in range(RACES)]
    await asyncio.gather(*(store.create_segment(name, 0, 0) for name in names))
    late = plane.client()
    await asyncio.gather(*(delete_while_used(store, late, name) for name in names))
    await late.close()
    found = await asyncio.gather(*(store.segment_info(name) for name in names), return_exceptions=True)
    assert [type(info) for info in found] == [SegmentMissing] * len(names)


async def delete_while_used(store: SegmentStoreClient, late: SegmentStoreClient, name: str) -> None:
    """Another client begins to append behind the request to delete, again and again until that is answered."""
    deletion = asyncio.ensure_future(store.delete_segment(name))
    await asyncio.sleep(0)
    while not deletion.done():
        with suppress(SegmentStoreError):
            await late.append(name, uuid4(), b"late")
    await deletion
