"""The signs of life of a service: heartbeats for cluster-manager, and whether Kafka answers it.

A heartbeat is sent when it says something new, and every HEARTBEAT_S. In the other seconds the service only asks Kafka
where the journal ends. So it does while a heartbeat waits for its acknowledgement: without a broker that is missed but
not given up yet Kafka appends nothing, and can be read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from sluice.domain.cluster.commands import HEARTBEAT_S, Heartbeat
from sluice.engine.ports import Clock, EndsUnknownError, SendError
from sluice.exceptions import in_words
from sluice.kafka.sending import RequestSender

log = logging.getLogger(__name__)

LOOK_S = 1.0
SILENCE_S = 6.0
"""A question for all ends takes up to 4 s where a broker is away, and a look up to 5."""
LEAVES_S = 2.0


class Heartbeats:
    """Those of one service, one at a time; `describe` is what the next one says.

    `ends` reads where the journal ends. `on_answered` is called each second in which Kafka answers; while
    `needs_appends` says so, that is an acknowledged heartbeat.
    """

    def __init__(
        self,
        describe: Callable[[], Heartbeat],
        sender: RequestSender,
        clock: Clock,
        ends: Callable[[], Awaitable[object]],
    ) -> None:
        self.on_answered: list[Callable[[], None]] = []
        self.needs_appends: Callable[[], bool] = lambda: False
        self._describe = describe
        self._sender = sender
        self._clock = clock
        self._ends = ends
        self._answered: float | None = None
        self._under_way: tuple[object, asyncio.Future[None]] | None = None
        self._sent: object = None
        self._due = 0.0

    def problem(self) -> str | None:
        """Why this service cannot go on: Kafka is silent."""
        silent_s = 0.0 if self._answered is None else asyncio.get_running_loop().time() - self._answered
        return f"has answered nothing for {silent_s:.0f} s" if silent_s > SILENCE_S else None

    async def run(self) -> None:
        """Send them for ever."""
        loop = asyncio.get_running_loop()
        self._answered = loop.time()
        while True:
            try:
                is_appended = await self._send_if_due()
                if not is_appended:
                    await self._ends()
                self._answered = loop.time()
                if is_appended or not self.needs_appends():
                    for listener in self.on_answered:
                        listener()
            except EndsUnknownError as error:
                log.warning("Kafka does not answer", extra={"error": str(error)})
            await self._pause()

    async def leave(self) -> None:
        """Say that this instance ends; without that it is a member until its heartbeats are missed."""
        leaving = msgspec.structs.replace(self._describe(), leaving=True)
        try:
            await asyncio.wait_for(self.append(leaving), LEAVES_S)
        except (SendError, TimeoutError) as error:
            log.warning("not said that this instance leaves", extra={"error": in_words(error)})

    def append(self, beat: Heartbeat) -> asyncio.Future[None]:
        """Done when it is in its topic; fails with SendError."""
        return self._sender.send(f"{beat.instance}-{self._clock.now_ms()}", beat)

    async def _send_if_due(self) -> bool:
        """Whether a heartbeat is acknowledged that was not before."""
        loop, wait_s = asyncio.get_running_loop(), 0.0
        if self._under_way is None:
            beat = self._describe()
            news = _news(beat)
            if news == self._sent and loop.time() < self._due and not self.needs_appends():
                return False
            # Whatever becomes of it, the next one is sent unless this one is acknowledged.
            self._sent = None
            self._under_way, wait_s = (news, self.append(beat)), LOOK_S
        news, sending = self._under_way
        done, _ = await asyncio.wait((sending,), timeout=wait_s)
        if not done:
            return False
        self._under_way = None
        if (error := sending.exception()) is not None:
            log.warning("heartbeat not acknowledged", extra={"error": str(error)})
            return False
        self._sent, self._due = news, loop.time() + HEARTBEAT_S
        return True

    async def _pause(self) -> None:
        """Return after LOOK_S, or as soon as the one that is under way is acknowledged or has failed."""
        if self._under_way is None:
            await asyncio.sleep(LOOK_S)
        else:
            await asyncio.wait((self._under_way[1],), timeout=LOOK_S)


def _news(beat: Heartbeat) -> object:
    """What of a heartbeat others must know at once. The words of a problem are not: they say for how long."""
    return beat.endpoints, beat.problems.keys(), beat.unresponsive
