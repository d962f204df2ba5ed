"""What becomes of queries that fail: each is started again, and where none is well something else is done."""

import threading
from typing import Any

from harness import eventually
from retention_spark.query_supervisor import MAX_FAILURES, QueryRunner, if_all_fail


class Query:
    """As one of Spark's, which fails when it is told to. It ends a batch at once when it is started, or none."""

    isActive = True  # noqa: N815 - Spark's name
    status = {"isTriggerActive": False}  # noqa: RUF012

    def __init__(self, *, ends_batches: bool) -> None:
        self.ends_batches = ends_batches
        self.fails, self.starts, self._stopped = threading.Event(), 0, False

    def start(self) -> Any:
        self.starts += 1
        return self

    def awaitTermination(self, timeout: int) -> bool:  # noqa: N802
        if self.fails.wait(timeout) and not self._stopped:
            raise OSError("no room")
        return self._stopped

    def stop(self) -> None:
        self._stopped = True
        self.fails.set()

    def is_started_often(self) -> bool:
        return self.starts > 2 * MAX_FAILURES


def test_the_leader_steps_down_when_no_query_is_well_not_when_one_fails() -> None:
    queries = {"scale": Query(ends_batches=False), "retention": Query(ends_batches=True)}
    stepped_down, runners = threading.Event(), list[QueryRunner]()
    mend = if_all_fail(runners, stepped_down.set)
    for name, query in queries.items():
        ends_batches = lambda query=query: query.ends_batches  # noqa: E731
        runners.append(QueryRunner(name, query.start, lambda: None, lambda: True, ends_batches, mend))
    for runner in runners:
        runner.start()
    queries["scale"].fails.set()
    eventually(queries["scale"].is_started_often, 60, "it is started again and again")
    assert not stepped_down.is_set() and queries["retention"].starts == 1
    queries["retention"].ends_batches = False
    queries["retention"].fails.set()
    eventually(stepped_down.is_set, 60, "none is well")
    for runner in runners:
        runner.stop(5.0)


def test_a_query_that_ends_a_batch_before_each_failure_needs_no_mending() -> None:
    def mend(failure: str) -> None:
        mended.append(failure)

    mended: list[str] = []
    query = Query(ends_batches=True)
    runner = QueryRunner("scale", query.start, lambda: None, lambda: True, lambda: query.ends_batches, mend)
    query.fails.set()
    runner.start()
    eventually(query.is_started_often, 60, "it is started again and again")
    assert not mended and not runner.is_failing()
    query.ends_batches = False
    eventually(lambda: mended, 60, "it is mended once it ends no batch any more")
    runner.stop(5.0)
