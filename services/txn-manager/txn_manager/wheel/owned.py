"""What an instance knows of one slot it keeps filled: whether its content can be trusted, and what is to be written.

Pure. Belongs to the event loop.
"""

from enum import Enum


class State(Enum):
    """STALE: to be filled from the journal. FILLING: that goes on. FILLED: all but what is pending is there."""

    STALE = "stale"
    FILLING = "filling"
    FILLED = "filled"


class Why(Enum):
    """Why a slot is stale."""

    OWNED = "owned"
    AWAY = "redis away"
    LOST = "lost"
    FOREIGN = "filled by another instance"
    OVERFLOW = "too many changes pending"
    CLOCK = "redis clock set back"
    FAILED = "failed"


class OwnedSlot:
    """One slot. `pending` has the time on the loop's clock in ms at which a timer is due, None for one that ended.

    Changes of a stale slot need not be kept: the fill will be read from a journal that has them.
    """

    def __init__(self) -> None:
        self.state = State.STALE
        self.why = Why.OWNED
        self.pending: dict[str, float | None] = {}
        self.fill = ""
        self.filled_s = 0.0
        self.failure: str | None = None

    def neglect(self, why: Why) -> None:
        """The slot may lack timers from here on."""
        if self.state is not State.STALE:
            self.why = why
        self.state = State.STALE
        self.pending = {}

    def begin(self) -> None:
        """The content of a fill is put together now: changes from here on come after it."""
        self.state = State.FILLING

    def complete(self, fill: str, now_s: float) -> None:
        """The fill is in Redis."""
        self.state = State.FILLED
        self.fill, self.filled_s, self.failure = fill, now_s, None

    def take(self, now_ms: float) -> dict[str, int | None]:
        """Hand over what is pending, as delays from now."""
        taken, self.pending = self.pending, {}
        return {timer: None if due_ms is None else int(due_ms - now_ms) for timer, due_ms in taken.items()}
