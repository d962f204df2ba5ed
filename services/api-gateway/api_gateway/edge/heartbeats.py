"""When each instance of our services sent its last heartbeat, and what it said of itself.

The journal knows who is a member and since when, but not each heartbeat; those pass through the cluster's topic, which
is followed here from its latest records on. Belongs to the event loop.
"""

from collections.abc import Sequence

import msgspec

from api_gateway.edge.following import follow
from sluice.domain.cluster.commands import HEARTBEAT_S, Heartbeat
from sluice.engine.ports import Message
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.runtime import Runtime

REMEMBERED_MS = 3600 * 1000
CURRENT_MS = round(1500 * HEARTBEAT_S)
"""What an instance said longer than that before the newest heartbeat of all says nothing about the present."""

LATEST = -2000 - 1000
"""The offset of the thousandth record before the end, as librdkafka counts (`RD_KAFKA_OFFSET_TAIL`)."""


class LastHeartbeats:
    """The times, in epoch ms as the broker counts them, by instance; of those with a heartbeat in the last hour."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, Heartbeat]] = {}
        self._newest_at = 0
        self._pruned_at = 0

    def last(self, instance: str) -> int | None:
        """None if its heartbeat is not among the latest of all."""
        found = self._last.get(instance)
        return found[0] if found is not None else None

    def problems(self, instance: str) -> dict[str, str]:
        """What the instance does without, by check, in words; empty if nothing or not known at present."""
        at, beat = self._last.get(instance, (0, None))
        return dict(beat.problems) if beat is not None and self._is_current(at) else {}

    def is_missed(self, instance: str) -> bool:
        """Whether the instance has sent none for long, while others have."""
        at = self.last(instance)
        return at is not None and not self._is_current(at)

    def _is_current(self, at: int) -> bool:
        return self._newest_at - at <= CURRENT_MS

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
                self._last[command.instance] = at, command
                self._newest_at = max(self._newest_at, at)
                self._prune(at)

    def _prune(self, now: int) -> None:
        if now - self._pruned_at > REMEMBERED_MS:
            self._pruned_at = now
            self._last = {i: (at, beat) for i, (at, beat) in self._last.items() if at > now - REMEMBERED_MS}


def follow_heartbeats(runtime: Runtime) -> LastHeartbeats:
    """Listens as long as the service lives."""
    heartbeats = LastHeartbeats()
    follow(runtime, "signs of life", REQUESTS_CLUSTER.name, {0: LATEST}, heartbeats.observe)
    return heartbeats
