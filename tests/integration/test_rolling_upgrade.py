"""The last release and this one serve the same system side by side, on the way there and on the way back.

Two instances of each service. They are replaced by half, from this release to the last one and up again, so each
release reads what the other one wrote, and takes over what it had begun. Clients go on all the time. Times are printed
(`pytest -s`).
"""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from support.controller import Controller, controller, unique
from support.instances import have_instances
from support.kafka import Groups, read
from support.last_release import imported_from, python_path
from support.scaling import scale_to
from support.transactions import Transactions
from support.txn_traffic import TxnTraffic

from bench.balancer import Balancer
from harness import System, eventually
from sluice.domain.model import decode_record
from sluice.engine.partition import partition_of
from sluice.kafka.topics import ABORT, COMMIT, JOURNAL, REQUESTS_STREAMS, REQUESTS_TRANSACTIONS
from sluice_local.settings import LocalSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SERVICES = ("api-gateway", "stream-workflows", "cluster-manager", "txn-manager")
GROUPS = {REQUESTS_STREAMS.group: "stream-workflows"} | {
    topic.group: "txn-manager" for topic in (REQUESTS_TRANSACTIONS, COMMIT, ABORT)
}
"""The service of each consumer group."""
DECIDING = {f"{service}-{index}" for service in GROUPS.values() for index in range(2)}
DEADLINE_S = 90.0
LONG_LEASE_MS = 300_000
SCALED_EVERY = 4


@pytest.fixture(scope="module")
def present() -> str:
    """The PYTHONPATH of the services of this tree."""
    return os.environ.get("PYTHONPATH", "")


@pytest.fixture(scope="module")
def released() -> str:
    """That of the services of the last release."""
    return python_path(LocalSettings().home / "releases")


@pytest.fixture
def double(disturbed: System, present: str) -> Iterator[System]:
    """Two of each service, all of this release; so it is left."""
    yield have_instances(disturbed, 2, DEADLINE_S)
    for name in (f"{service}-{index}" for service in SERVICES for index in range(2)):
        if disturbed.environment(name).get("PYTHONPATH", present) != present:
            disturbed.stop(name)
            disturbed.configure(name, {"PYTHONPATH": present})


def replace(system: System, index: int, path: str) -> None:
    """Put an instance of each service into the place of another one; return when all share the work."""

    def one(name: str) -> None:
        system.stop(name)
        system.configure(name, {"PYTHONPATH": path})
        system.start(name, deadline_s=DEADLINE_S)

    with ThreadPoolExecutor(len(SERVICES)) as pool:
        list(pool.map(one, [f"{service}-{index}" for service in SERVICES]))
    groups = Groups(system.kafka_bootstrap)

    def shared() -> bool:
        owners = {group: groups.owners(group) for group in GROUPS}
        both = {group: {f"{service}-{n}" for n in range(2)} for group, service in GROUPS.items()}
        return all(owners[group].keys() == both[group] and all(owners[group].values()) for group in GROUPS)

    eventually(shared, DEADLINE_S, "two instances share the partitions of each group")


class Spell:
    """What clients do while the same instances run: it concerns every partition, so it concerns every instance."""

    def __init__(self, gateways: Sequence[Controller], scope: str, number: int, partitions: int) -> None:
        self.gateways = gateways
        self.scope = scope
        self.prefix = f"spell{number}-"
        names = [f"{self.prefix}{n}" for n in range(100 * partitions)]
        self.streams = [
            next(n for n in names if partition_of(f"{scope}/{n}", partitions) == p) for p in range(partitions)
        ]
        self.open: dict[str, str] = {}
        """Transactions that are left open, by stream."""

    def run(self, before: "Spell | None") -> None:
        """Create, scale and commit, and end what is left of the spell before."""
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._live, range(len(self.streams))))
            if before is not None:
                list(pool.map(partial(self._end, before), before.streams))

    def _live(self, number: int) -> None:
        gateway, other = (self.gateways[(number + n) % len(self.gateways)] for n in range(2))
        stream = self.streams[number]
        assert gateway.create_stream(self.scope, stream, 2) == "SUCCESS"
        transactions = Transactions(other, self.scope, stream)
        committed = transactions.open(LONG_LEASE_MS)
        self.open[stream] = transactions.open(LONG_LEASE_MS)
        if number % SCALED_EVERY == 0:
            scale_to(other, self.scope, stream, 3, DEADLINE_S)
        assert transactions.commit(committed) == "SUCCESS"
        transactions.await_state(committed, "COMMITTED", DEADLINE_S)

    def _end(self, before: "Spell", stream: str) -> None:
        """The other release made this stream, and opened the transaction."""
        gateway = self.gateways[partition_of(stream, len(self.gateways))]
        transactions = Transactions(gateway, self.scope, stream)
        assert transactions.commit(before.open[stream]) == "SUCCESS"
        transactions.await_state(before.open[stream], "COMMITTED", DEADLINE_S)
        assert gateway.seal(self.scope, stream) == "SUCCESS"


def writers_of(system: System, spells: Sequence[Spell]) -> dict[str, set[str]]:
    """Which instances wrote to the journal about the streams of each spell."""
    found: dict[str, set[str]] = {spell.prefix: set() for spell in spells}
    scope = spells[0].scope
    for message in read(system.kafka_bootstrap, JOURNAL.name):
        record = decode_record(message.value() or b"")
        names = {event.aggregate for entry in record.entries for event in entry.events}
        for prefix, writers in found.items():
            if any(name.startswith(f"stream:{scope}/{prefix}") or f":{scope}/{prefix}" in name for name in names):
                writers.add(record.by.rpartition("/")[2])
    return found


async def test_either_release_goes_on_from_the_other_while_clients_go_on(
    double: System, present: str, released: str
) -> None:
    assert Path(imported_from(released, "stream_workflows")).is_relative_to(LocalSettings().home / "releases")
    assert not Path(imported_from(present, "stream_workflows")).is_relative_to(LocalSettings().home / "releases")
    steps = ((None, ""), (1, released), (0, released), (1, present), (0, present))
    spells: list[Spell] = []
    with ExitStack() as stack:
        balancer = stack.enter_context(Balancer(double.grpc_addresses))
        gateways = [stack.enter_context(controller(address, DEADLINE_S)) for address in double.grpc_addresses]
        scope = unique("releases")
        assert gateways[0].create_scope(scope) == "SUCCESS"
        traffic = stack.enter_context(TxnTraffic(gateways[0], balancer.address, 1, double.grpc_address))
        for number, (index, path) in enumerate(steps):
            began = time.monotonic()
            if index is not None:
                replace(double, index, path)
            replaced_s = time.monotonic() - began
            spell = Spell(gateways, scope, number, double.settings.partitions)
            spell.run(spells[-1] if spells else None)
            spells.append(spell)
            traffic.goes_on(2)
            worked_s = time.monotonic() - began - replaced_s
            print(f"\nspell {number}: replaced in {replaced_s:.1f} s, worked {worked_s:.1f} s")
        outcomes = await traffic.ends_exactly_once(DEADLINE_S)
        everything = sorted(stream for spell in spells for stream in spell.streams)
        for gateway in gateways:
            assert [name for name in gateway.streams(scope) if not name.startswith("_")] == everything
    assert outcomes["commit"] > 0
    assert all(writers == DECIDING for writers in writers_of(double, spells).values()), "each had its part"
