"""Who decides: the leader, which has the one partition of the cluster's requests in a group of its own.

Kafka's group sees to it that there is one, and that another, which stood by, takes over when it is gone. An instance
may be late to learn that it does not lead any more, for it may have been frozen. So before it sends anything, a batch
commits in that group how far its query is: Kafka refuses that from one that is no member any more. What gets past that
in a race harms no one, since a request says what it rests on (`sluice.domain.policy.requests`).

A term is the time in which an instance leads; what was begun in one is not gone on with in another. What is in the
partition is for others, and passed over.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from sluice.engine.ports import NotLeaderError
from sluice.exceptions import in_words
from sluice.kafka.poll_thread import PollThread
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.kafka_config import clients

log = logging.getLogger(__name__)

GROUP = "retention-spark"
COMMIT_S = 30.0
AWAY_S = 10.0
"""Time enough for another instance to lead."""
_CALL_S = 10.0


class Leadership:
    """Of one instance. `client` is the common librdkafka configuration, `session_s` how soon it is missed.

    `away_s` is for how long it is no member once it has stepped down.

    Made on the event loop; `term`, `commit`, `positions` and `step_down` are for any thread.
    """

    def __init__(self, client: dict[str, Any], session_s: float, away_s: float = AWAY_S) -> None:
        membership = clients.membership(max(session_s, clients.DEFAULT_SESSION_S))
        config = clients.consumer(client, GROUP, {**membership, "auto.offset.reset": "latest"})
        self._away_s = away_s
        self._terms = 0
        self._term = 0
        self._is_member = False
        self._loop = asyncio.get_running_loop()
        self._poll = PollThread("leadership", config, self._attach, _pass_over, is_member=True)

    @property
    def term(self) -> int:
        """The number of this instance's term; 0 while it does not lead."""
        return self._term

    def problem(self) -> str | None:
        """Why it is not known whether it leads."""
        if self._poll.failure is not None:
            return in_words(self._poll.failure)
        return None if self._is_member else "joining its group"

    def start(self) -> None:
        self._poll.start()

    async def stop(self) -> None:
        """Leave the group: another instance leads at once."""
        await self._poll.stop()

    def step_down(self) -> None:
        """Leave the group for a while: another instance leads, if there is one."""
        if self._term:
            self._end_term()
            self._is_member = False
            self._poll.submit(lambda consumer: consumer.unsubscribe())
            self._loop.call_soon_threadsafe(self._loop.call_later, self._away_s, self._poll.submit, self._attach)

    def positions(self, topic: str, partitions: int) -> dict[int, int]:
        """Up to where the reports of the topic are in what is remembered, as far as that was committed; blocking.

        Raises NotLeaderError.
        """
        partition_offsets = [TopicPartition(topic, partition) for partition in range(partitions)]
        found = self._do(lambda consumer: consumer.committed(partition_offsets, timeout=_CALL_S))
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def commit(self, term: int, topic: str, positions: Mapping[int, int]) -> None:
        """Say how far the query of a topic is; blocking. Raises NotLeaderError unless the term lasts."""
        offsets = [TopicPartition(topic, partition, at) for partition, at in positions.items()]

        def commit(consumer: Consumer) -> list[TopicPartition]:
            if not term or term != self._term:
                raise NotLeaderError("another instance leads by now")
            return consumer.commit(offsets=offsets, asynchronous=False) or []

        self._do(commit)

    async def read_positions(self, topic: str, partitions: int) -> dict[int, int]:
        """See `positions`."""
        return await asyncio.to_thread(self.positions, topic, partitions)

    async def save_positions(self, term: int, topic: str, positions: Mapping[int, int]) -> None:
        """See `commit`."""
        await asyncio.to_thread(self.commit, term, topic, positions)

    def _do(self, call: Callable[[Consumer], Sequence[TopicPartition]]) -> Sequence[TopicPartition]:
        """What a call gives that only the thread of the consumer may make."""
        done: Future[Sequence[TopicPartition]] = Future()

        def job(consumer: Consumer) -> None:
            try:
                found = call(consumer)
                for one in found:
                    if one.error is not None:
                        raise KafkaException(one.error)
                done.set_result(found)
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                done.set_exception(error)

        self._poll.submit(job)
        try:
            return done.result(COMMIT_S)
        except (KafkaException, TimeoutError) as error:
            raise NotLeaderError(in_words(error)) from error

    def _attach(self, consumer: Consumer) -> None:
        def assigned(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
            if partitions:
                self._terms += 1
                self._term = self._terms
                log.info("leads", extra={"term": self._term})
            self._is_member = True

        def revoked(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
            if partitions:
                self._end_term()

        def lost(_consumer: Consumer, _partitions: list[TopicPartition]) -> None:
            self._is_member = False
            self._end_term()

        consumer.subscribe([REQUESTS_CLUSTER.name], on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def _end_term(self) -> None:
        if self._term:
            self._term = 0
            log.info("does not lead any more")


def _pass_over(_messages: Sequence[object]) -> None:
    """Heartbeats are for others."""
