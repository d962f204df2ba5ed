"""A seed says everything: the same run in another process leaves the same documents, byte by byte."""

from simulation.coordination import test_lock, test_task_board
from support.seeds import World, digests, digests_elsewhere


def board(seed: int) -> list[str]:
    return test_task_board.run(seed).world.server.written


def lock(seed: int) -> list[str]:
    plan = [("kill", 8.0, 0, 0.0), ("freeze", 20.0, 1, 15.0), ("away", 30.0, 0, 9.0)]
    return test_lock.run(seed, plan, 0.05, 0.3, 0.3).world.server.written


WORLDS: dict[str, World] = {"board": (board, range(1)), "lock": (lock, range(2))}


def test_a_seed_says_everything() -> None:
    assert digests_elsewhere("simulation.coordination.test_seeds") == digests(WORLDS)


def test_another_seed_says_something_else() -> None:
    assert lock(1) != lock(2)
