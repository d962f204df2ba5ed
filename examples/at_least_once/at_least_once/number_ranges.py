"""A set of numbers that lie close together, held as ranges: it takes as much room as it has gaps."""

from bisect import bisect_right


class NumberRanges:
    """Numbers that were added."""

    def __init__(self) -> None:
        # Of range number i: the first number in it, and the one behind its last. Ranges never touch.
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, number: int) -> bool:
        """Adds a number; False if it was there already."""
        at = bisect_right(self._starts, number)
        if at > 0 and number < self._ends[at - 1]:
            return False
        after = at > 0 and number == self._ends[at - 1]
        before = at < len(self._starts) and number + 1 == self._starts[at]
        if after and before:
            self._ends[at - 1] = self._ends.pop(at)
            del self._starts[at]
        elif after:
            self._ends[at - 1] += 1
        elif before:
            self._starts[at] -= 1
        else:
            self._starts.insert(at, number)
            self._ends.insert(at, number + 1)
        return True

    @property
    def gaps(self) -> int:
        """How many numbers between the smallest and the largest are not there."""
        return sum(start - end for start, end in zip(self._starts[1:], self._ends, strict=False))

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._starts)
