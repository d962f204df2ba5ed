"""Jobs by key: one after the other for a key, side by side for several, and no more at once than there are permits."""

import asyncio

import pytest

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


async def test_no_more_jobs_run_than_there_are_permits() -> None:
    jobs = Jobs(max_running=2)
    for key in "abc":
        jobs.executor.run(0, key, jobs.job(key))
    await jobs.settle()
    assert jobs.log == ["a begins", "b begins"] and jobs.executor.has_work("c")
    jobs.go.set()
    await jobs.settle()
    assert jobs.log[-1] == "c ends"


async def test_a_limit_of_its_own_lets_a_queue_run_beside_the_others() -> None:
    jobs = Jobs(max_running=1)
    jobs.executor.run(0, "a", jobs.job("a"))
    jobs.executor.run(0, "control", jobs.job("control"), asyncio.Semaphore(1))
    await jobs.settle()
    assert jobs.log == ["a begins", "control begins"]
    jobs.executor.cancel()


@pytest.mark.parametrize("is_waiting", [False, True])
async def test_what_is_dropped_gives_its_permit_back(is_waiting: bool) -> None:
    jobs = Jobs(max_running=1)
    jobs.executor.run(0, "a", jobs.waiting("a") if is_waiting else jobs.job("a"))
    await jobs.settle()
    jobs.executor.drop([0])
    jobs.executor.run(0, "a", jobs.job("next"))
    jobs.go.set()
    await jobs.settle()
    assert jobs.log[1:] == ["next begins", "next ends"] and jobs.executor.keys_at_work == 0


async def test_what_is_dropped_before_it_began_takes_no_permit() -> None:
    jobs = Jobs(max_running=1)
    jobs.executor.run(0, "a", jobs.job("a"))
    jobs.executor.run(1, "b", jobs.job("b"))
    await jobs.settle()
    jobs.executor.drop([1])
    jobs.executor.run(2, "c", jobs.job("c"))
    jobs.go.set()
    await jobs.settle()
    assert jobs.log == ["a begins", "a ends", "c begins", "c ends"]


async def test_a_key_that_came_back_is_not_touched_by_its_dropped_task() -> None:
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


async def test_a_job_that_fails_does_not_lose_those_behind_it() -> None:
    async def fail(_permit: Permit) -> None:
        raise ValueError("a defect")

    jobs = Jobs(max_running=1)
    jobs.executor.run(0, "a", fail)
    jobs.executor.run(0, "a", jobs.job("a"))
    jobs.go.set()
    await jobs.settle()
    assert jobs.log == ["a begins", "a ends"] and jobs.executor.keys_at_work == 0


async def test_a_job_that_is_cancelled_while_it_wants_its_permit_back_has_none_to_give() -> None:
    jobs = Jobs(max_running=1)
    jobs.executor.run(0, "waits", jobs.waiting("waits"))
    await jobs.settle()
    jobs.executor.run(1, "a", blocked(jobs, "a"))
    await jobs.settle()
    jobs.go.set()
    await jobs.settle()
    assert jobs.log == ["waits waits", "a begins"], "it waits for the permit that `a` has"
    jobs.executor.drop({0})
    await jobs.settle()
    jobs.executor.run(1, "b", jobs.job("b"))
    await jobs.settle()
    assert jobs.log == ["waits waits", "a begins"], "there is one permit, not two"
    jobs.executor.cancel()


def blocked(jobs: Jobs, name: str) -> Job:
    async def job(_permit: Permit) -> None:
        jobs.log.append(f"{name} begins")
        await asyncio.Event().wait()

    return job
