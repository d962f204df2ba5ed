"""The thread that owns a Kafka consumer.

librdkafka serialises a Consumer over threads, so commit, pause or assignment from elsewhere would hang behind the
poll: all of them are jobs handed to this thread. It polls, takes what is there already, and hands whole batches to
the event loop; when the loop is `MAX_WAITING` batches behind it waits, so memory stays bounded. A batch for which
`on_batch` returns a future counts as behind until that is done. What ends the thread early stands in `failure`, which
the health of the service looks at.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from sluice.engine.ports import Room
from sluice.service_context import as_this_service

log = logging.getLogger(__name__)

Batch = list[Message]


POLL_S = 0.2
"""How often the thread looks for jobs, and whether it shall end; messages wake it at once.

The client's Python binding wakes in a longer poll as often as that, to look for signals: a longer one saves nothing.
"""


MAX_BATCH = 2_000
MAX_WAITING = 4


class ConsumerReplaced(Exception):
    """Another consumer, with this configuration, takes the place of the one that reported an error."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__("replaced")
        self.config = config


def _ride_out(_error: KafkaError) -> None:
    """What librdkafka reports it also retries."""


class PollThread:
    """Polls a consumer and calls `on_batch(messages)` on the loop; partition-end markers are among the messages.

    `on_error` is called in the thread for each error that the consumer reports. It may raise ConsumerReplaced; any
    other exception ends the thread. `is_member`: the consumer subscribes, so it has a group to leave.
    """

    def __init__(
        self,
        name: str,
        config: Mapping[str, Any],
        attach: Callable[[Consumer], None],
        on_batch: Callable[[Batch], Room],
        on_error: Callable[[KafkaError], None] = _ride_out,
        *,
        is_member: bool = False,
    ) -> None:
        self._config = config
        self._attach = attach
        self._on_batch = on_batch
        self._on_error = on_error
        self._is_member = is_member
        self._slots = threading.Semaphore(MAX_WAITING)
        self._jobs: queue.SimpleQueue[Callable[[Consumer], None]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._loop = asyncio.get_running_loop()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=as_this_service(self._run), name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Callable[[Consumer], None]) -> None:
        """Have the thread run `job(consumer)` between two polls."""
        self._jobs.put(job)

    def end(self) -> None:
        """Have the polling end, and nothing more handed over. The thread closes the consumer after that.

        librdkafka takes up to a second for it.
        """
        self._stopping.set()

    async def stop(self) -> None:
        """The same; return when a member has left its group. Kafka need not know of the end of any other."""
        self.end()
        if self._is_member:
            await asyncio.to_thread(self._thread.join, 10.0)

    def _run(self) -> None:
        config: Mapping[str, Any] | None = self._config
        try:
            while config is not None:
                config = self._poll_with(Consumer(dict(config)))
        except Exception as error:
            self.failure = error
            log.critical("poll thread ended", exc_info=True)

    def _poll_with(self, consumer: Consumer) -> Mapping[str, Any] | None:
        """Poll until stopped, or until another consumer has to do it: return the configuration of that one."""
        try:
            self._attach(consumer)
            while not self._stopping.is_set():
                self._run_jobs(consumer)
                batch = self._take(consumer)
                if batch and not self._stopping.is_set():
                    self._deliver(batch)
            self._run_jobs(consumer)
        except ConsumerReplaced as replaced:
            return replaced.config
        finally:
            consumer.close()
        return None

    def _run_jobs(self, consumer: Consumer) -> None:
        while not self._jobs.empty():
            try:
                self._jobs.get_nowait()(consumer)
            except KafkaException as error:
                log.warning("job on consumer failed", extra={"error": str(error)})

    def _take(self, consumer: Consumer) -> Batch:
        first = consumer.poll(POLL_S)
        if first is None:
            return []
        batch = [first, *consumer.consume(MAX_BATCH - 1, 0)]
        good = []
        for message in batch:
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is its public name
                good.append(message)
            else:
                self._on_error(error)
                log.warning("consumer reported", extra={"error": error.str(), "topic": message.topic()})
        return good

    def _deliver(self, batch: Batch) -> None:
        while not self._slots.acquire(timeout=POLL_S):
            if self._stopping.is_set():
                return
        self._loop.call_soon_threadsafe(self._hand_over, batch)

    def _hand_over(self, batch: Batch) -> None:
        room: Room = None
        try:
            if not self._stopping.is_set():
                room = self._on_batch(batch)
        finally:
            if room is None:
                self._slots.release()
            else:
                room.add_done_callback(lambda _done: self._slots.release())
