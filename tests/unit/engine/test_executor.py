"""Jobs by key: one after the other for a key, side by side for several, and no more at once than there are permits."""

import asyncio

import pytest
from support.virtual_time import run

from sluice.engine.executor import Job, KeyedExecutor, Permit


class Jobs:
    """Jobs that say when they begin and end, and wait for `go` in between."""

    def __init__(self, max_running: int = 256) -> None:
        self.executor = KeyedExecutor(max_running)
        self.log: list[str] = []
        self.go = asyncio.Event()

    def job(self, name: str) -> Job:
        async def job(_permit: Permit) -> None:
            self.log.append(f"{name} begins")
            await self.go.wait()
            self.log.append(f"{name} ends")

        return job

    def waiting(self, name: str) -> Job:
        """One that gives its permit back while it waits."""

        async def job(permit: Permit) -> None:
            self.log.append(f"{name} waits")
            async with permit.released():
                await self.go.wait()
            self.log.append(f"{name} ends")

        return job

    async def settle(self) -> None:
        await asyncio.sleep(0.001)


def test_jobs_of_one_key_run_in_order_and_those_of_others_beside() -> None:
    async def scene() -> None:
        jobs = Jobs()
        for number in range(3):
            jobs.executor.run(0, "a", jobs.job(f"a{number}"))
        jobs.executor.run(0, "b", jobs.job("b0"))
        await jobs.settle()
        assert jobs.log == ["a0 begins", "b0 begins"] and jobs.executor.keys_at_work == 2
        jobs.go.set()
        await jobs.settle()
        ours = [line for line in jobs.log if line.startswith("a")]
        assert ours == [f"a{n} {what}" for n in range(3) for what in ("begins", "ends")]
        assert jobs.executor.keys_at_work == 0 and not jobs.executor.has_work("a")

    run(scene())


def test_no_more_jobs_run_than_there_are_permits() -> None:
    async def scene() -> None:
        jobs = Jobs(max_running=2)
        for key in "abc":
            jobs.executor.run(0, key, jobs.job(key))
        await jobs.settle()
        assert jobs.log == ["a begins", "b begins"] and jobs.executor.has_work("c")
        jobs.go.set()
        await jobs.settle()
        assert jobs.log[-1] == "c ends"

    run(scene())


def test_a_job_that_waits_leaves_its_permit_to_another_key() -> None:
    async def scene() -> None:
        jobs = Jobs(max_running=1)
        jobs.executor.run(0, "a", jobs.waiting("a"))
        jobs.executor.run(0, "b", jobs.waiting("b"))
        await jobs.settle()
        assert jobs.log == ["a waits", "b waits"]
        jobs.go.set()
        await jobs.settle()
        assert sorted(jobs.log[2:]) == ["a ends", "b ends"]

    run(scene())


def test_a_limit_of_its_own_lets_a_queue_run_beside_the_others() -> None:
    async def scene() -> None:
        jobs = Jobs(max_running=1)
        jobs.executor.run(0, "a", jobs.job("a"))
        jobs.executor.run(0, "control", jobs.job("control"), asyncio.Semaphore(1))
        await jobs.settle()
        assert jobs.log == ["a begins", "control begins"]
        jobs.executor.cancel()

    run(scene())


def test_a_partition_that_is_dropped_loses_what_runs_and_what_waits() -> None:
    async def scene() -> None:
        jobs = Jobs()
        for key, partition in (("a", 0), ("a", 0), ("b", 1)):
            jobs.executor.run(partition, key, jobs.job(key))
        await jobs.settle()
        jobs.executor.drop([0])
        assert not jobs.executor.has_work("a") and jobs.executor.has_work("b")
        jobs.go.set()
        await jobs.settle()
        assert jobs.log == ["a begins", "b begins", "b ends"]

    run(scene())


@pytest.mark.parametrize("is_waiting", [False, True])
def test_what_is_dropped_gives_its_permit_back(is_waiting: bool) -> None:
    async def scene() -> None:
        jobs = Jobs(max_running=1)
        jobs.executor.run(0, "a", jobs.waiting("a") if is_waiting else jobs.job("a"))
        await jobs.settle()
        jobs.executor.drop([0])
        jobs.executor.run(0, "a", jobs.job("next"))
        jobs.go.set()
        await jobs.settle()
        assert jobs.log[1:] == ["next begins", "next ends"] and jobs.executor.keys_at_work == 0

    run(scene())


def test_what_is_dropped_before_it_began_takes_no_permit() -> None:
    async def scene() -> None:
        jobs = Jobs(max_running=1)
        jobs.executor.run(0, "a", jobs.job("a"))
        jobs.executor.run(1, "b", jobs.job("b"))
        await jobs.settle()
        jobs.executor.drop([1])
        jobs.executor.run(2, "c", jobs.job("c"))
        jobs.go.set()
        await jobs.settle()
        assert jobs.log == ["a begins", "a ends", "c begins", "c ends"]

    run(scene())


def test_a_key_that_came_back_is_not_touched_by_its_dropped_task() -> None:
    async def scene() -> None:
        jobs = Jobs()
        jobs.executor.run(0, "a", jobs.job("old"))
        await jobs.settle()
        jobs.executor.drop([0])
        jobs.executor.run(0, "a", jobs.job("new"))
        await jobs.settle()
        assert jobs.executor.has_work("a") and jobs.executor.keys_at_work == 1
        jobs.executor.run(0, "a", jobs.job("behind"))
        await jobs.settle()
        assert jobs.log == ["old begins", "new begins"], "it waits for the new one"
        jobs.executor.cancel()

    run(scene())


def test_a_job_that_fails_does_not_lose_those_behind_it() -> None:
    async def fail(_permit: Permit) -> None:
        raise ValueError("a defect")

    async def scene() -> None:
        jobs = Jobs(max_running=1)
        jobs.executor.run(0, "a", fail)
        jobs.executor.run(0, "a", jobs.job("a"))
        jobs.go.set()
        await jobs.settle()
        assert jobs.log == ["a begins", "a ends"] and jobs.executor.keys_at_work == 0

    run(scene())
