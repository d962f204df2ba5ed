"""The helper process that does jobs for a service: it alone reads the past, and the service's event loop never does.

`python -m sluice.lookback.helper`: questions come on standard input, answers go to standard output, both as
`sluice.lookback.frames` has them. Settings come from the environment, as for any service. It gives way to every other
process of the machine, and ends when standard input does: so never after the service.

The main thread reads questions. `JOBS_AT_ONCE` other threads do jobs, each with topics of its own; each question waits
its turn, and the gateway bounds how many do.
"""

import gc
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, BinaryIO, Protocol

import msgspec

from sluice.exceptions import in_words
from sluice.kafka_config.conf import KafkaConfError
from sluice.lookback import errors
from sluice.lookback.all_jobs import JOBS
from sluice.lookback.folded import FoldedPartitions
from sluice.lookback.frames import LENGTH_BYTES, Cancel, Done, Failed, Submit, frame, length_of, question_of
from sluice.lookback.jobs import Job, JobContext, JobLimit
from sluice.lookback.kafka import KafkaSource
from sluice.lookback.source import FollowedSource, Source
from sluice.settings import ServiceSettings, settings_of
from sluice.telemetry.logs import set_up_logs

log = logging.getLogger(__name__)

NAME = "lookback"
NICENESS = 10
JOBS_AT_ONCE = 2
COLLECTOR_THRESHOLDS = (50_000, 20, 100)
"""What is folded has no cycles and is kept: so Python's collector looks less often than usual."""


_FETCHING = {"queued.max.messages.kbytes": 16 * 1024, "fetch.max.bytes": 8 * 1024 * 1024}
"""What is fetched ahead is memory, too."""


class Reading(Protocol):
    """Topics as one thread reads them."""

    def for_a_job(self) -> Source:
        """The topics, with what the archive has now; kept until `drop`. Raises LookbackError."""
        ...

    def drop(self) -> None:
        """Connect anew the next time."""
        ...


class KafkaReading:
    """See Reading: Kafka's topics, and behind them those of the archive where there is one."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._kafka: KafkaSource | None = None

    def for_a_job(self) -> Source:
        """See Reading."""
        if self._kafka is None:
            settings = self._settings
            self._kafka = KafkaSource(settings.kafka_bootstrap, settings.kafka_client(), f"sluice-{NAME}", _FETCHING)
        return _with_archive(self._kafka, self._settings.archive)

    def drop(self) -> None:
        """See Reading."""
        kafka, self._kafka = self._kafka, None
        if kafka is not None:
            kafka.__exit__()


def _with_archive(kafka: FollowedSource, target: str) -> Source:
    if not target:
        return kafka
    try:
        from sluice.lookback.archived import ArchivedSource
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        log.warning("the archive is not read, for pyarrow is not installed", extra={"archive": target})
        return kafka
    return ArchivedSource(kafka, target)


class Worker:
    """Does one job after the other; belongs to its thread."""

    def __init__(self, reading: Reading, folded: FoldedPartitions, jobs: Mapping[str, Job[Any, Any]] = JOBS) -> None:
        self._reading = reading
        self._folded = folded
        self._jobs = jobs

    def answer(self, question: Submit, is_cancelled: Callable[[], bool]) -> Done | Failed | None:
        """What came of it; None if nothing waits for it any more."""
        try:
            return Done(question.id, self._result(question, is_cancelled))
        except errors.JobCancelledError:
            return None
        except errors.LookbackError as error:
            if isinstance(error, errors.UnreachableError):
                self._reading.drop()
            return Failed(question.id, type(error).__name__, str(error), error.hint)
        except Exception as error:
            # This is the boundary: the other jobs go on.
            log.exception("a job failed", extra={"job": question.job})
            self._reading.drop()
            return Failed(question.id, errors.JobDefectError.__name__, f"{question.job}: {in_words(error)}", "")

    def _result(self, question: Submit, is_cancelled: Callable[[], bool]) -> bytes:
        job, limit = self._jobs[question.job], JobLimit(is_cancelled)
        limit.check()
        arguments = msgspec.msgpack.decode(question.arguments, type=job.arguments)
        context = JobContext(self._reading.for_a_job(), self._folded, time.time_ns() // 1_000_000, limit)
        return msgspec.msgpack.encode(job.run(context, arguments))


class Helper:
    """Reads questions until there are no more; `workers` answer them, each in a thread of its own."""

    def __init__(self, questions: BinaryIO, answers: BinaryIO, workers: list[Worker]) -> None:
        self._questions = questions
        self._answers = answers
        self._workers = workers
        self._turn = threading.Lock()
        self._waiting: queue.SimpleQueue[Submit] = queue.SimpleQueue()
        self._open: set[int] = set()

    def run(self) -> None:
        """Until standard input ends; jobs that are being done then are left as they are."""
        for worker in self._workers:
            threading.Thread(target=self._work, args=(worker,), daemon=True).start()
        while (question := self._next()) is not None:
            if isinstance(question, Cancel):
                self._open.discard(question.id)
            else:
                self._open.add(question.id)
                self._waiting.put(question)

    def _is_cancelled(self, id: int) -> bool:
        return id not in self._open

    def _next(self) -> Submit | Cancel | None:
        prefix = self._questions.read(LENGTH_BYTES)
        if len(prefix) < LENGTH_BYTES:
            return None
        question: Submit | Cancel = question_of(self._questions.read(length_of(prefix)))
        return question

    def _work(self, worker: Worker) -> None:
        while True:
            question = self._waiting.get()
            answer = worker.answer(question, partial(self._is_cancelled, question.id))
            self._open.discard(question.id)
            if answer is not None:
                with self._turn:
                    self._answers.write(frame(answer))
                    self._answers.flush()


def main() -> int:
    os.nice(NICENESS)
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    settings = settings_of(ServiceSettings)
    set_up_logs(NAME, settings.instance, settings.log_level)
    try:
        settings.kafka_client()
    except KafkaConfError as error:
        log.critical("cannot start", extra={"error": str(error)})
        return 2
    folded = FoldedPartitions()
    workers = [Worker(KafkaReading(settings), folded) for _ in range(JOBS_AT_ONCE)]
    Helper(sys.stdin.buffer, os.fdopen(_own_output(), "wb"), workers).run()
    return 0


def _own_output() -> int:
    """Standard output for answers alone: what any library writes there goes to standard error from now on."""
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


if __name__ == "__main__":
    # Threads in the middle of a job, and Kafka's, have nothing that must be finished.
    code = main()
    logging.shutdown()
    os._exit(code)
