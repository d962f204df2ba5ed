"""When each instance of our services sent its last heartbeat.

The journal knows who is a member and since when, but not the time of each heartbeat; those pass through the cluster's
topic, which is followed here from its present end. Belongs to the event loop.
"""

from collections.abc import Sequence

import msgspec
from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from sluice.domain.cluster.commands import Heartbeat
from sluice.engine.ports import Message
from sluice.kafka.poll_thread import PollThread
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.kafka_config import clients
from sluice.runtime import Runtime

REMEMBERED_MS = 3600 * 1000


class LastHeartbeats:
    """The times, in epoch ms as the broker counts them, by instance; of those with a heartbeat in the last hour."""

    def __init__(self) -> None:
        self._last_at: dict[str, int] = {}
        self._pruned_at = 0

    def last(self, instance: str) -> int | None:
        """None if no heartbeat came since this process began to listen."""
        return self._last_at.get(instance)

    def observe(self, batch: Sequence[Message]) -> None:
        """Take in records of the topic. What is no heartbeat is cluster-manager's to report."""
        for message in batch:
            if message.error() is not None:
                continue
            at = message.timestamp()[1]
            try:
                command = decode_request(message.value() or b"").command
            except msgspec.DecodeError:
                continue
            if isinstance(command, Heartbeat):
                self._last_at[command.instance] = at
                self._prune(at)

    def _prune(self, now: int) -> None:
        if now - self._pruned_at > REMEMBERED_MS:
            self._pruned_at = now
            self._last_at = {i: at for i, at in self._last_at.items() if at > now - REMEMBERED_MS}


def follow_heartbeats(runtime: Runtime) -> LastHeartbeats:
    """Listens as long as the service lives."""
    signs = LastHeartbeats()

    def attach(consumer: Consumer) -> None:
        consumer.assign([TopicPartition(REQUESTS_CLUSTER.name, 0, OFFSET_END)])

    config = clients.consumer(runtime.settings.kafka_client(), "sluice-signs-of-life", {"auto.offset.reset": "latest"})
    poll = PollThread("signs-of-life", config, attach, signs.observe)
    poll.start()
    runtime.degraded["signs of life"] = lambda: repr(poll.failure) if poll.failure else None
    runtime.stack.push_async_callback(poll.stop)
    return signs
