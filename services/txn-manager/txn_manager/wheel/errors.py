"""What a call on the timer wheel can end with, beside its answer."""


class WheelError(Exception):
    """A call on the timer wheel failed."""


class WheelUnavailableError(WheelError):
    """Redis is away, too slow, or refuses; whether it has carried out the request is unknown."""


class SlotLostError(WheelError):
    """The slot of a partition in Redis does not hold all its timers: it has to be filled from the journal."""

    def __init__(self, partition: int) -> None:
        super().__init__(f"the timers of partition {partition} are not complete in Redis")
