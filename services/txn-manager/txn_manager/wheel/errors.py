"""What a call on the timer wheel can end with, beside its answer."""

from collections.abc import Iterable


class WheelError(Exception):
    """A call on the timer wheel failed."""


class WheelUnavailableError(WheelError):
    """Redis is away, too slow, or refuses; whether it has carried out the request is unknown."""


class SlotLostError(WheelError):
    """Slots in Redis that do not hold all timers of their partitions: they have to be filled from the journal."""

    def __init__(self, partitions: Iterable[int]) -> None:
        self.partitions = tuple(partitions)
        super().__init__(f"timers of partitions {', '.join(map(str, self.partitions))} are not complete in Redis")
