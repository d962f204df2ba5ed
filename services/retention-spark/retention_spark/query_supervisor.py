"""Keeps the queries running: one thread each, which starts its query again when it has failed.

A query fails when Kafka is away for longer than Spark is patient, or when its sink could not write. Where it fails
again and again, something else is to be done before it starts once more. A stop waits for the batch that runs.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable

from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from retention_spark import metrics
from sluice.engine.retry import delays
from sluice.exceptions import in_words

log = logging.getLogger(__name__)

POLL_S = 0.02
LOOK_S = 1
"""How soon it is seen that the query may run, or may not."""
MAX_FAILURES = 3
"""In one term and without a batch that ended, before something else is done."""


class QueryRunner:
    """`start` starts the query, `release` ends the waiting of its batch. It runs only while `may_run` says so.

    `ends_batches` says whether a batch has ended since the last start. `mend` is given the text of the last of
    MAX_FAILURES without; the query is started again if it may run after that.

    The runner belongs to its thread; `stop`, `problem` and `is_failing` are for any.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], StreamingQuery],
        release: Callable[[], None],
        may_run: Callable[[], bool],
        ends_batches: Callable[[], bool],
        mend: Callable[[str], None],
    ) -> None:
        self.name = name
        self._start = start
        self._release = release
        self._may_run = may_run
        self._ends_batches = ends_batches
        self._mend = mend
        self._failures = 0
        self._failure = ""
        self._stopping = threading.Event()
        self._pause = threading.Event()
        self._query: StreamingQuery | None = None
        self._problem: str | None = "starting"
        self._thread = threading.Thread(target=self._run, name=f"query-{name}", daemon=True)
        metrics.FAILURES.labels(name)  # Exposed as 0 from now on: a rate sees no increase in a first sample.

    def start(self) -> None:
        self._thread.start()

    def problem(self) -> str | None:
        """What keeps the query from running; None if nothing does."""
        if not self._thread.is_alive() and not self._stopping.is_set():
            return "ended"
        return self._problem

    def is_failing(self) -> bool:
        """Whether it has failed in this term, and has ended no batch since its last start."""
        return self._failure != "" and not self._ends_batches()

    def stop(self, drain_s: float) -> None:
        """End the query between two batches, or in one that takes longer than this; blocking.

        What an interrupted batch has not saved is decided again by who leads next, as after a kill.
        """
        self._stopping.set()
        self._release()
        end = time.monotonic() + drain_s
        query = self._query
        if query is not None:
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < end:
                self._pause.wait(POLL_S)
            query.stop()
        self._thread.join(drain_s)

    def _run(self) -> None:
        waits = delays(max_s=10.0)
        while not self._stopping.is_set():
            if not self._may_run():
                self._problem = None
                self._failures, self._failure = 0, ""
                self._stopping.wait(LOOK_S)
                continue
            try:
                if self._failures >= MAX_FAILURES:
                    self._failures = 0
                    self._mend(self._failure)
                    continue
                self._query = self._start()
                self._problem = None
                while not self._query.awaitTermination(LOOK_S):
                    if not self._may_run():
                        self._release()
                        self._query.stop()
            except Exception as error:  # noqa: BLE001 - whatever ended the query, it is started again and says why
                if self._ends_batches():
                    waits = delays(max_s=10.0)
                    self._failures = 0
                self._failed(error)
            self._stopping.wait(next(waits))

    def _failed(self, error: Exception) -> None:
        if self._stopping.is_set():
            return
        if isinstance(error, Py4JJavaError):
            # What it says itself is which call has failed.
            text = error.java_exception.toString()
        else:
            said = error.getMessage() if isinstance(error, StreamingQueryException) else None
            text = said or in_words(error)
        self._failures += 1
        self._failure = text
        self._problem = f"failed, will start again: {text.splitlines()[0]}"
        metrics.FAILURES.labels(self.name).inc()
        log.warning("query failed", extra={"query": self.name, "error": text})


def if_all_fail(runners: Iterable[QueryRunner], do: Callable[[], None]) -> Callable[[str], None]:
    """A `mend` that leaves a query alone which fails while another one of the runners' is well."""

    def mend(_failure: str) -> None:
        if all(runner.is_failing() for runner in runners):
            do()

    return mend
