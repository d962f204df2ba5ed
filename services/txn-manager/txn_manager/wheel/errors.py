"""Why a timer wheel cannot be trusted any more."""


class WheelError(Exception):
    """Whether the wheel has all its timers is in doubt: another one is filled from the journal."""


class WheelUnavailableError(WheelError):
    """Redis is away, too slow, or refuses; whether it has carried out the request is unknown."""


class WheelLostError(WheelError):
    """Redis does not have the wheel any more, or its clock was set back."""
