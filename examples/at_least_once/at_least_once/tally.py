"""What the sinks count: whether every event came, whether it was whole, and how often it came."""

import msgspec

from at_least_once.events import BadEvent, Event
from at_least_once.number_ranges import NumberRanges


class Summary(msgspec.Struct, frozen=True):
    """`missing` are the numbers between the smallest and the largest of their source that did not come.

    If it is known how many must come, all that did not are missing, the first and the last ones of a source, too.

    `events` counts all that came, `different` each only once, `repeated` the rest of those that were whole; `bad` were
    not.
    """

    events: int
    different: int
    repeated: int
    bad: int
    missing: int
    sources: int


class Tally:
    """Counts events. `expected` different ones must come; 0: as many as do."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._seen: dict[str, NumberRanges] = {}
        self.different = 0
        self.events = 0
        self.bad = 0

    def add(self, data: bytes) -> str:
        """Counts an event, and says about it what there is to say."""
        self.events += 1
        try:
            event = Event.decode(data)
        except BadEvent as error:
            self.bad += 1
            return f"BAD: {error}"
        if not self._seen.setdefault(event.source, NumberRanges()).add(event.sequence):
            return f"{event.source} {event.sequence} {event.text} (again)"
        self.different += 1
        return f"{event.source} {event.sequence} {event.text}"

    @property
    def complete(self) -> bool:
        """Whether all expected ones came."""
        return self.different >= self._expected

    def summary(self) -> Summary:
        """What was counted so far."""
        gaps = sum(numbers.gaps for numbers in self._seen.values())
        repeated = self.events - self.bad - self.different
        missing = max(gaps, self._expected - self.different)
        return Summary(self.events, self.different, repeated, self.bad, missing, len(self._seen))
