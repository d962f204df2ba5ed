"""The retention set of a stream: cuts over its tail as they were sampled, few enough to be stored for ever.

When there are too many, one is left of each cell of a grid over what the policy measures, time or bytes; the cells'
width is a power of two, and the oldest cut of a cell stays. So which ones are left depends on what was sampled and
not on the order of the reports, and a cut chosen from the set is off by about a five-hundredth of what is held
(up to `MAX_SAMPLES`; streams so wide that `MAX_OFFSETS` comes first get a coarser grid). The newest cut always stays.
"""

from bisect import bisect_right
from itertools import pairwise

import msgspec

from sluice.domain.config import RetentionType

MAX_SAMPLES = 1000
MAX_OFFSETS = 100_000
MIN_SAMPLES = 16
"""How many cuts are stored at least, however wide they are."""


class Sample(msgspec.Struct, frozen=True):
    """A cut over the tail as it was at `at` (epoch ms); `size` bytes had been written before it since the beginning."""

    at: int
    size: int
    cut: dict[int, int]


class RetentionSet(msgspec.Struct, frozen=True):
    """`samples` by time, one for each cell of 2^`level` ms or bytes; `last` is the newest one ever reported."""

    samples: tuple[Sample, ...] = ()
    last: Sample | None = None
    level: int = 0

    def references(self) -> tuple[Sample, ...]:
        """All that may be truncated to, by time."""
        if self.last is None or (self.samples and self.samples[-1].at >= self.last.at):
            return self.samples
        return (*self.samples, self.last)


def added(known: RetentionSet, sample: Sample, by: RetentionType) -> RetentionSet:
    """The set with the sample in it, if it is new and the grid has room for it."""
    samples, level = known.samples, known.level
    last = sample if known.last is None else max(known.last, sample, key=_order)
    at, cell = bisect_right(samples, _order(sample), key=_order), _key(sample, by) >> level
    if at == 0 or _key(samples[at - 1], by) >> level != cell:
        takes_place = at < len(samples) and _key(samples[at], by) >> level == cell
        samples = (*samples[:at], sample, *samples[at + takes_place :])
    limit = _limit(samples)
    if len(samples) > limit:
        keys = [_key(s, by) for s in samples]
        # Neighbours share a cell from the level on that is the length of what differs in their keys.
        level = sorted(((a ^ b).bit_length() for a, b in pairwise(keys)), reverse=True)[limit - 1]
        samples = _thinned(samples, level, by)
    return RetentionSet(samples, last, level)


def beyond(known: RetentionSet, size: int) -> RetentionSet:
    """The set without the cuts that have no more than `size` bytes before them.

    Once it is rather empty the grid is the finest again: it gets as coarse as it must with what is added.
    """
    left = tuple(s for s in known.samples if s.size > size)
    last = known.last if known.last is None or known.last.size > size else None
    if len(left) == len(known.samples) and last is known.last:
        return known
    sparse = known.level > 0 and len(left) <= _limit(left) // 4
    return RetentionSet(left, last, 0 if sparse else known.level)


def _order(sample: Sample) -> tuple[int, int]:
    return sample.at, sample.size


def _key(sample: Sample, by: RetentionType) -> int:
    return sample.at if by is RetentionType.TIME else sample.size


def _thinned(samples: tuple[Sample, ...], level: int, by: RetentionType) -> tuple[Sample, ...]:
    left: list[Sample] = []
    cell = None
    for sample in samples:
        its_cell = _key(sample, by) >> level
        if its_cell != cell:
            left.append(sample)
            cell = its_cell
    return tuple(left)


def _limit(samples: tuple[Sample, ...]) -> int:
    if len(samples) <= MIN_SAMPLES:
        return MIN_SAMPLES
    widest = max(len(s.cut) for s in samples)
    return max(MIN_SAMPLES, min(MAX_SAMPLES, MAX_OFFSETS // max(widest, 1)))
