"""The read barrier: where the journal ends, requested once for all readers that wait.

So a read sees all that was acknowledged before it began, on any instance, for one short question. One is enough for
all partitions as long as it is answered. One that fails leaves open which of the brokers is to blame: from then on its
partitions have a question for each leader, so that a broker that dies keeps no one waiting for the others.
Everything here belongs to the event loop.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka.admin import AdminClient

from sluice.engine.ports import Ends, EndsUnknownError
from sluice.exceptions import in_words
from sluice.kafka.leader_ends import LeaderEnds
from sluice.kafka_config import clients

log = logging.getLogger(__name__)

AGAIN_S = 0.1
"""The pause between two looks for leaders, and so between two questions for what no leader answers."""

LATE_S = 0.5
"""How long the leaders have that are known only once the time of a request is over."""

LEADERS_TIMEOUT_S = 2.0

_STOPPED = "the journal is not followed any more"


class _Request:
    """One that waits for the answers of so many leaders. What a leader fails to answer is repeated `until` then.

    That is the loop's time. Once it `is_late`, it is given what there is.
    """

    __slots__ = ("answer", "ends", "is_late", "partitions", "until", "waits")

    def __init__(self, partitions: Collection[int], answer: asyncio.Future[Ends], until: float) -> None:
        self.partitions = partitions
        self.answer = answer
        self.until = until
        self.waits = 0
        self.is_late = False
        self.ends: Ends = {}

    def settle(self, reason: str = "") -> None:
        """Give what is known once nothing more will come; of one that is late, as soon as anything is."""
        if self.answer.done():
            return
        if self.ends and (self.is_late or not self.waits):
            self.answer.set_result(self.ends)
        elif not self.waits:
            self.fail(reason) if self.partitions else self.answer.set_result({})

    def be_late(self) -> None:
        """What some leaders have answered is kept back no longer by those that do not."""
        self.is_late = True
        self.settle()

    def fail(self, reason: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(EndsUnknownError(reason))


_Leader = LeaderEnds[_Request]


class EndOffsets:
    """Requests the end offsets of a topic's partitions; a leader may take `timeout_s` for its answer.

    Threads and connections begin with the first request.
    """

    def __init__(self, client: dict[str, Any], topic: str, partitions: int, timeout_s: float) -> None:
        self._client = client
        self._topic = topic
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._everywhere = frozenset(range(partitions))
        self._is_stopped = False
        self._unanswered: list[tuple[_Leader, _Request, str]] = []
        self._looking: asyncio.Task[None] | None = None
        # Its own: all threads of the loop may be waiting for the broker that is away.
        self._looks = ThreadPoolExecutor(1, thread_name_prefix="leaders")
        self._leader_of: dict[int, _Leader] = {}

    @property
    def failure(self) -> str | None:
        """Why no request is answered any more, for operators; None while they are, and before the first one."""
        ended = any(leader.has_failed for leader in self._leaders())
        return "the thread that reads where the journal ends has ended" if ended else None

    def stop(self) -> None:
        """Who waits, and who comes after this, learns that there will be no answer."""
        self._is_stopped = True
        if self._looking is not None:
            self._looking.cancel()
        self._looks.shutdown(wait=False)
        unanswered, self._unanswered = self._unanswered, []
        for request in (*(r for _, r, _ in unanswered), *(r for leader in self._leaders() for r in leader.stop())):
            request.fail(_STOPPED)

    def request(self, partitions: Collection[int] | None = None) -> asyncio.Future[Ends]:
        """The end offset of each of these partitions, of all if none are given, at some time after this call.

        Those that do not answer are missing; fails with EndsUnknownError if none does.
        """
        wanted = self._everywhere if partitions is None else partitions
        request = _Request(wanted, self._loop.create_future(), self._loop.time() + self._timeout_s)
        if self._is_stopped:
            request.fail(_STOPPED)
            return request.answer
        if not self._leader_of:
            self._begin(self._everywhere)
        self._ask(request, wanted)
        request.settle()
        return request.answer

    def _ask(self, request: _Request, partitions: Iterable[int]) -> None:
        for leader in {self._leader_of[partition] for partition in partitions}:
            request.waits += 1
            leader.add(request)
        if request.waits > 1:
            self._loop.call_at(max(request.until, self._loop.time() + LATE_S), request.be_late)

    def _answered(self, requests: list[_Request], ends: Ends) -> None:
        for request in requests:
            request.ends = {**request.ends, **ends} if request.ends else ends
            request.waits -= 1
            request.settle()

    def _failed(self, leader: _Leader, requests: list[_Request], reason: str) -> None:
        log.warning("end of journal unknown", extra={"partitions": sorted(leader.partitions), "error": reason})
        if self._is_stopped:
            for request in requests:
                request.fail(_STOPPED)
            return
        self._unanswered.extend((leader, request, reason) for request in requests)
        if self._looking is None or self._looking.done():
            self._looking = self._loop.create_task(self._look_for_leaders())

    async def _look_for_leaders(self) -> None:
        while self._unanswered:
            await self._regroup()
            leaders, now = self._leaders(), self._loop.time()
            unanswered, self._unanswered = self._unanswered, []
            for leader, request, reason in unanswered:
                request.waits -= 1
                if leader in leaders and request.until <= now:
                    request.settle(reason)
                    continue
                self._ask(request, leader.partitions.intersection(request.partitions))
                if leader not in leaders:
                    # What others took is not its leader's time, and the first question there has to connect as well.
                    request.until = now + 2 * self._timeout_s
            await asyncio.sleep(AGAIN_S)

    async def _regroup(self) -> None:
        """Have what failed requested of each leader by itself, as the brokers know them now.

        What is answered stays as it is: a leader does not answer at once for partitions that have just moved to it.
        """
        try:
            found = await self._loop.run_in_executor(self._looks, self._look)
        except Exception as error:  # noqa: BLE001 - whatever it is, those that wait are to be answered
            log.warning("leaders of the journal unknown", extra={"error": in_words(error)})
            return
        failed = self._leaders().intersection(leader for leader, _, _ in self._unanswered)
        groups: defaultdict[int, set[int]] = defaultdict(set)
        for partition in frozenset[int]().union(*(leader.partitions for leader in failed)):
            groups[found.get(partition, -1)].add(partition)
        wanted = set(map(frozenset, groups.values()))
        for partitions in wanted.difference(leader.partitions for leader in failed):
            self._begin(partitions)
        for leader in failed - self._leaders():
            for request in leader.stop():
                request.waits -= 1
                self._ask(request, leader.partitions.intersection(request.partitions))

    def _look(self) -> dict[int, int]:
        """The leader of each partition, negative for those without. Raises KafkaException, KeyError if it is not there.

        A client that is new requests it of a broker that answers, an older one perhaps of one that has gone without a
        word.
        """
        admin = AdminClient(clients.admin(self._client))
        try:
            # Of all topics: a question for one of them makes it, where brokers make topics by themselves.
            topic = admin.list_topics(timeout=LEADERS_TIMEOUT_S).topics[self._topic]
        finally:
            # Its end takes a while, and the traceback of an error would take it along to the loop.
            del admin
        return {partition: found.leader for partition, found in topic.partitions.items()}

    def _begin(self, partitions: frozenset[int]) -> None:
        leader = _Leader(self._client, self._topic, partitions, self._timeout_s, self._answered, self._failed)
        self._leader_of.update(dict.fromkeys(partitions, leader))

    def _leaders(self) -> set[_Leader]:
        return set(self._leader_of.values())
