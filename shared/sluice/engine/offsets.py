"""Which requests of an owned partition are acknowledged. All below the position is; the position is what is committed.

The position is also the partition's floor: every request below it is decided, or needs no decision.

It is committed with the leader epoch of what is below it. A topic may lose its end and get another before its owner
notices; the owner then commits a position in the new end, of which it has seen nothing. So the next owner's consumer
asks where the requests of that epoch end, and begins there if that is earlier (KIP-320).
"""

from collections import deque

import msgspec

from sluice.engine.record import RequestPosition, Source


class Offsets:
    """`appended` is when the broker appended those that are not acknowledged, in epoch ms."""

    def __init__(self) -> None:
        self.appended: deque[int] = deque()
        self.committable: RequestPosition | None = None
        """The position behind the leader epoch of what is acknowledged; None until the first request came.

        It is one object, for the thread that commits reads it at any time.
        """
        self._waiting: deque[RequestPosition] = deque()
        self._done: set[int] = set()

    def took(self, position: RequestPosition, appended_ms: int) -> None:
        """A request came. They come in the order of their offsets; see `runs_backwards`."""
        if self.committable is None:
            self.committable = position
        self._waiting.append(position)
        self.appended.append(appended_ms)

    @property
    def position(self) -> int | None:
        """The first offset that is not acknowledged; None until the first request came."""
        return self.committable[1] if self.committable is not None else None

    def runs_backwards(self, offset: int) -> bool:
        """Whether a request stands where others were before: the topic has lost its end, or is read a second time."""
        position = self.position
        return position is not None and offset < (self._waiting[-1][1] + 1 if self._waiting else position)

    @property
    def floor(self) -> RequestPosition:
        """Below which all requests are decided, or need no decision."""
        return self.committable or (-1, 0)

    @property
    def behind_first(self) -> int:
        """How many stand at or behind the first that is not acknowledged."""
        return len(self._waiting)

    def acknowledge(self, offset: int) -> bool:
        """Whether it was open."""
        waiting, done = self._waiting, self._done
        if not waiting or not waiting[0][1] <= offset <= waiting[-1][1] or offset in done:
            return False
        done.add(offset)
        while waiting and waiting[0][1] in done:
            epoch, first = waiting.popleft()
            self.appended.popleft()
            done.discard(first)
            self.committable = epoch, first + 1
        return True


class Origin(msgspec.Struct, frozen=True):
    """Where a request comes from, for the rule against duplicates; `offsets` are those that delivered it."""

    source: Source
    offsets: Offsets


class RequestFacts(msgspec.Struct, frozen=True):
    """Of the request that a proposal is made for: its id, by which it gets the reply, and where it comes from.

    `appended_at` is when the broker appended it, epoch ms, 0 if it did not; `principal` whom it was sent for.
    """

    id: str | None = None
    origin: Origin | None = None
    appended_at: int = 0
    principal: str = ""


NO_REQUEST = RequestFacts()
