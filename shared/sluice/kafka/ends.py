"""The read barrier: where the journal ends, requested once for all partitions and for all readers that wait.

One question is outstanding at a time, on a connection of its own in a thread of its own; readers that come meanwhile
share the next one. So a read sees all that was acknowledged before it began, on any instance, for one short question.
"""

import asyncio
import logging
import threading
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from sluice.engine.ports import Ends, EndsUnknownError
from sluice.kafka_config import clients

log = logging.getLogger(__name__)

_STOPPED = "the journal is not followed any more"


class EndOffsets:
    """Requests the end offsets of a topic's partitions."""

    def __init__(self, client: dict[str, Any], topic: str, partitions: int, timeout_s: float) -> None:
        self._client = client
        self._question = [TopicPartition(topic, p, OFFSET_END) for p in range(partitions)]
        self._timeout_s = timeout_s
        self._waiting: list[asyncio.Future[Ends]] = []
        self._lock = threading.Condition()
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="read-barrier", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def failure(self) -> str | None:
        """Why no request is answered any more, for operators; None while they are, and before the start."""
        ended = self._thread.ident is not None and not self._thread.is_alive() and not self._stopping
        return "the thread that reads where the journal ends has ended" if ended else None

    def stop(self) -> None:
        """Who waits, and who comes after this, learns that there will be no answer."""
        with self._lock:
            self._stopping = True
            waiting, self._waiting = self._waiting, []
            self._lock.notify()
        if waiting:
            _fail(waiting, _STOPPED)

    def request(self) -> asyncio.Future[Ends]:
        """The end offset of each partition at some time after this call; fails with EndsUnknownError."""
        answer: asyncio.Future[Ends] = self._loop.create_future()
        with self._lock:
            if self._stopping:
                answer.set_exception(EndsUnknownError(_STOPPED))
                return answer
            self._waiting.append(answer)
            self._lock.notify()
        return answer

    def _connect(self) -> Consumer:
        """A consumer of nothing: the one client that says in a single call where partitions end."""
        return Consumer(clients.consumer(self._client, "sluice-read-barrier", {"isolation.level": "read_uncommitted"}))

    def _new_client(self) -> Consumer | None:
        """One that connects while there is no request; None if there cannot be one now."""
        try:
            return self._connect()
        except Exception:
            log.exception("no client for the read barrier")
            return None

    def _ask(self, client: Consumer) -> Ends:
        answers = client.offsets_for_times(self._question, timeout=self._timeout_s)
        for answer in answers:
            if answer.error is not None:
                raise KafkaException(answer.error)
            if answer.offset < 0:
                raise EndsUnknownError(f"no answer within {self._timeout_s} s")
        return {answer.partition: answer.offset for answer in answers}

    def _run(self) -> None:
        client = self._new_client()
        while True:
            with self._lock:
                while not self._waiting and not self._stopping:
                    self._lock.wait()
                if self._stopping:
                    return
                waiting, self._waiting = self._waiting, []
            try:
                client = self._connect() if client is None else client
                ends = self._ask(client)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next ones that wait are to be answered
                # A client goes by the leaders it remembers, long after the brokers came back with new ones.
                client = self._new_client()
                self._loop.call_soon_threadsafe(_fail, waiting, str(error))
            else:
                self._loop.call_soon_threadsafe(_answer, waiting, ends)


def _answer(waiting: list[asyncio.Future[Ends]], ends: Ends) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(ends)


def _fail(waiting: list[asyncio.Future[Ends]], reason: str) -> None:
    log.warning("end of journal unknown", extra={"error": reason})
    for future in waiting:
        if not future.done():
            future.set_exception(EndsUnknownError(reason))
