"""What the owner of a timer wheel knows of it: what it has put in, what has changed since, and what Redis said last.

A wheel is one key in Redis, of one owner and one fill, under a name that is used once. So it has one writer: what comes
late, of a process that was frozen or of a server that was slow, meets a key that is read no more. What the owner has
put in is there as long as the marker is, which is a member of the same set and has the run of the server.

Pure. Times are epoch ms of the instance's clock; Redis gets delays.
"""

from itertools import islice
from math import inf

from txn_manager.wheel.errors import WheelLostError
from txn_manager.wheel.timer_redis import MAX_BATCH, Turn

CLOCK_STEP_MS = 5_000
"""Redis's clock may fall so far behind ours unnoticed: a timer is late by no more than that."""


REST_MS = 10_000
"""How often a wheel without timers gets a turn, so that it does not expire and an outage is noticed."""


class Wheel:
    """`former` is the wheel in whose place this one is; `run` is empty until it has begun.

    `pending` has the time at which a timer is due, None for one to be taken out. It has no bound of its own: it names
    nothing but what is open and what is in the wheel.
    """

    def __init__(self, key: str, former: str) -> None:
        self.key = key
        self.former = former
        self.run = ""
        self.is_filled = False
        self.pending: dict[str, int | None] = {}
        self._placed: dict[str, int] = {}
        self._turned_ms = 0
        self._ahead_ms = -inf

    def lease(self, timer: str, due_ms: int) -> None:
        """A lease began or moved. One that became longer stays where it is, and is put at its end once it is due."""
        known = self.pending.get(timer, self._placed.get(timer))
        if known is None or due_ms < known:
            self.pending[timer] = due_ms

    def end(self, timer: str) -> None:
        """A lease ended. Of one that is not in the wheel yet Redis learns nothing."""
        if timer in self._placed:
            self.pending[timer] = None
        else:
            self.pending.pop(timer, None)

    def rests(self, now_ms: int) -> bool:
        """Whether it needs no turn: it is empty, and Redis was there a moment ago."""
        return not self.pending and not self._placed and 0 <= now_ms - self._turned_ms < REST_MS

    def put(self, looks_ms: dict[str, int | None]) -> None:
        """Move timers that were returned, None takes one out. What has changed meanwhile counts more."""
        for timer, due_ms in looks_ms.items():
            self.pending.setdefault(timer, due_ms)

    def take(self, now_ms: int) -> dict[str, int | None]:
        """Hand over what is pending, as delays from now: at most MAX_BATCH, and nothing before the wheel has begun."""
        if not self.run:
            return {}
        taken = dict(islice(self.pending.items(), MAX_BATCH))
        for timer, due_ms in taken.items():
            del self.pending[timer]
            if due_ms is None:
                self._placed.pop(timer, None)
            else:
                self._placed[timer] = due_ms
        return {timer: None if due_ms is None else due_ms - now_ms for timer, due_ms in taken.items()}

    def turned(self, turn: Turn, now_ms: int) -> None:
        """Redis has answered what was sent at that time. Raises WheelLostError."""
        ahead_ms = turn.at_ms - now_ms
        if ahead_ms < self._ahead_ms - CLOCK_STEP_MS:
            raise WheelLostError("redis clock set back")
        self._ahead_ms = max(self._ahead_ms, ahead_ms)
        self._turned_ms = now_ms
        self.run = turn.run
