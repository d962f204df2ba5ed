"""A seed says everything: the same run in another process leaves the same record, byte by byte, ids and times too."""

from simulation import test_crossing
from simulation.scopes import run as scopes_run
from simulation.txn import run
from support.seeds import World, digests, digests_elsewhere

from sluice.memory.broker import MemoryBroker


def crossing(seed: int) -> list[str]:
    return test_crossing.run_seed(seed)


def transactions(seed: int) -> list[str]:
    return _landed(run.run_seed(seed).plant.broker)


def scopes(seed: int) -> list[str]:
    return _landed(scopes_run.run_seed(seed).broker)


def _landed(broker: MemoryBroker) -> list[str]:
    logs = broker.all_logs()
    return [f"{message.timestamp()[1]} {message.value().decode()}" for log in logs for message in log]


WORLDS: dict[str, World] = {
    "crossing": (crossing, range(4)),
    "transactions": (transactions, range(6)),
    "scopes": (scopes, range(6)),
}


def test_a_seed_says_everything() -> None:
    assert digests_elsewhere("simulation.test_seeds") == digests(WORLDS)


def test_another_seed_says_something_else() -> None:
    for left in (crossing, transactions, scopes):
        assert left(1) != left(2)
