"""Jobs by key: one after the other for a key, side by side for several."""

import asyncio

from sluice.engine.executor import Job, KeyedExecutor


class Jobs:
    """Jobs that say when they begin and end, and wait for `go` in between."""

    def __init__(self) -> None:
        self.executor = KeyedExecutor()
        self.log: list[str] = []
        self.go = asyncio.Event()

    def job(self, name: str) -> Job:
        async def job() -> None:
            self.log.append(f"{name} begins")
            await self.go.wait()
            self.log.append(f"{name} ends")

        return job

    async def settle(self) -> None:
        await asyncio.sleep(0.001)


async def test_keys_run_side_by_side_and_jobs_of_one_key_in_their_order() -> None:
    jobs = Jobs()
    for queue, name in (("a", "a1"), ("a", "a2"), ("b", "b1")):
        jobs.executor.run(0, queue, jobs.job(name))
    await jobs.settle()
    assert jobs.log == ["a1 begins", "b1 begins"]
    jobs.go.set()
    await jobs.settle()
    assert jobs.log[2:] == ["a1 ends", "a2 begins", "a2 ends", "b1 ends"] and jobs.executor.keys_at_work == 0


async def test_what_is_dropped_ends_and_what_waits_behind_it_never_begins() -> None:
    jobs = Jobs()
    jobs.executor.run(0, "a", jobs.job("a"))
    jobs.executor.run(0, "a", jobs.job("behind"))
    await jobs.settle()
    jobs.executor.drop([0])
    jobs.executor.run(0, "a", jobs.job("next"))
    jobs.go.set()
    await jobs.settle()
    assert jobs.log == ["a begins", "next begins", "next ends"] and jobs.executor.keys_at_work == 0


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
    async def fail() -> None:
        raise ValueError("a defect")

    jobs = Jobs()
    jobs.executor.run(0, "a", fail)
    jobs.executor.run(0, "a", jobs.job("a"))
    jobs.go.set()
    await jobs.settle()
    assert jobs.log == ["a begins", "a ends"] and jobs.executor.keys_at_work == 0
