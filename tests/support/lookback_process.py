"""A helper process whose jobs need no topics: it counts, waits until it is cancelled, fails, and ends itself.

`python -m support.lookback_process FILE`: each line of the file is something that happened in it.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from sluice.lookback.errors import NotFoundError
from sluice.lookback.folded import FoldedPartitions
from sluice.lookback.helper import JOBS_AT_ONCE, Helper, Worker
from sluice.lookback.jobs import Job, JobContext


class Number(msgspec.Struct, frozen=True):
    """A number, and for those that write one the file that they write to."""

    value: int
    file: str = ""


def _double(_context: JobContext, number: Number) -> Number:
    return Number(2 * number.value)


def _wait(context: JobContext, number: Number) -> Number:
    """Until it is cancelled, or the limit of jobs."""
    note(number.file, "begun")
    try:
        while True:
            context.source.spans([])
            time.sleep(0.005)
    finally:
        note(number.file, "ended")


def _miss(_context: JobContext, _number: Number) -> Number:
    raise NotFoundError("there was none", "look elsewhere")


def _fail(_context: JobContext, _number: Number) -> Number:
    raise KeyError("a defect")


def _die(_context: JobContext, _number: Number) -> Number:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def note(file: str, what: str) -> None:
    with Path(file).open("a") as notes:
        notes.write(f"{what}\n")


DOUBLE = Job("double", Number, Number, _double)
WAIT = Job("wait", Number, Number, _wait)
MISS = Job("miss", Number, Number, _miss)
FAIL = Job("fail", Number, Number, _fail)
DIE = Job("die", Number, Number, _die)


class NoTopics:
    """See Source and Reading, as far as these jobs need them."""

    def for_a_job(self) -> Any:
        """See Reading."""
        return self

    def drop(self) -> None:
        """See Reading."""

    def spans(self, *_which: object) -> list[Any]:
        """See Source."""
        return []


def main() -> None:
    jobs = {job.name: job for job in (DOUBLE, WAIT, MISS, FAIL, DIE)}
    workers = [Worker(NoTopics(), FoldedPartitions(), jobs) for _ in range(JOBS_AT_ONCE)]
    note(sys.argv[1], f"pid {os.getpid()}")
    Helper(sys.stdin.buffer, sys.stdout.buffer, workers).run()
    note(sys.argv[1], "no more questions")
    os._exit(0)


if __name__ == "__main__":
    main()
