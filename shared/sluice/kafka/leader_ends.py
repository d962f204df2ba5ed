"""Where some partitions of a topic end, requested in one question on a connection of its own, in a thread of its own.

One question is outstanding at a time; who comes meanwhile shares the next one.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from sluice.engine.ports import Ends, EndsUnknownError
from sluice.exceptions import in_words
from sluice.kafka_config import clients
from sluice.service_context import as_this_service

log = logging.getLogger(__name__)

PAUSE_S = 0.1
"""Before the next question behind one that failed."""

RequestT = TypeVar("RequestT")


class LeaderEnds(Generic[RequestT]):
    """Those of `partitions`, which have one leader if that is known: without one of their leaders no one is answered.

    `answered(requests, ends)` or `failed(self, requests, reason)` is called on the loop for those of a question.
    """

    def __init__(
        self,
        client: dict[str, Any],
        topic: str,
        partitions: frozenset[int],
        timeout_s: float,
        answered: Callable[[list[RequestT], Ends], None],
        failed: "Callable[[LeaderEnds[RequestT], list[RequestT], str], None]",
    ) -> None:
        self.partitions = partitions
        self._client = client
        self._question = [TopicPartition(topic, p, OFFSET_END) for p in sorted(partitions)]
        self._timeout_s = timeout_s
        self._answered = answered
        self._failed = failed
        self._waiting: list[RequestT] = []
        self._lock = threading.Condition()
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=as_this_service(self._run), name="read-barrier", daemon=True)
        self._thread.start()

    @property
    def has_failed(self) -> bool:
        """Whether the thread has ended by itself."""
        return not self._thread.is_alive() and not self._stopping

    def add(self, request: RequestT) -> None:
        """Have it answered by a question that begins after this call."""
        with self._lock:
            self._waiting.append(request)
            self._lock.notify()

    def stop(self) -> list[RequestT]:
        """Begin no more questions; those that wait for one. What the present one brings is reported still."""
        with self._lock:
            self._stopping = True
            waiting, self._waiting = self._waiting, []
            self._lock.notify()
        return waiting

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
                self._loop.call_soon_threadsafe(self._failed, self, waiting, in_words(error))
                with self._lock:
                    # Those that wait may go to another leader meanwhile, in place of failing here, too.
                    self._lock.wait_for(lambda: self._stopping, PAUSE_S)
            else:
                self._loop.call_soon_threadsafe(self._answered, waiting, ends)
