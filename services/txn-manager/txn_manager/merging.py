"""How a batch gets into its targets: what has data is merged, what is sealed and empty is skipped.

A store merges a segment with data by one durable write. For an empty one it takes several, one after the other: it
seals it and, once that is durable, deletes it. So the lengths are requested first, and what looks empty is only sealed,
beside the merges into other targets. Mostly the lengths are there already: they were requested with the commit.

That a segment looks empty proves nothing: a store that has lost the container may answer for it, and another writer
may still flush. *Sealed, and of length 0* proves it, whichever store answers, and for ever: a store knows of a seal
only if it had the container then, and the length it knows with it is the last one. A length above 0 is one that the
segment had, and a missing segment was merged by an attempt before. So what is skipped was never merged with data.

Within a target the order of the batch holds: it is merged into only when each of its sources that looked empty is known
to be empty, or found to have data. A list of sources never holds an empty one, for a store merges that out of order.
Nor does a source stand in it behind one that may have rested: that a store has to load, and merges it only then.
Rules: segment-store-wire-protocol 4.5, 4.8 and 4.9, segment-store-cluster B9; docs/commits.md.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from sluice.domain.segment import segment_name
from sluice.domain.stream.state import Stream
from sluice.domain.transaction.batch import Merged
from sluice.domain.transaction.state import segment_names
from sluice.engine.step import all_done
from sluice.pravega.errors import SegmentMissing, SegmentSealed, TryLater
from sluice.pravega.store import SegmentInfo, SegmentStore
from txn_manager.early_answers import EarlyAnswers, unless_missing

MAX_CALLS = 4_000
"""Sources of one batch at a time, each by two calls at most. A connection to a segment store, of which each container
has one, has room for 9,216.
"""

RESTS_MS = 45_000
"""What was used so recently a store has in its memory: what rests is put out after 60 s."""

Merge = Callable[[str, Sequence[str]], Awaitable[list[int]]]
"""Merges sources into a target, as `SegmentStore.merge_batch` does."""


class StillUnsealed(TryLater):
    """The segment was sealed, but looks unsealed: its seal is not durable yet, or a store has lost the container."""


class _Target(msgspec.Struct, frozen=True):
    """How far the target reaches behind each source, if that is known; which of them, by their places, were skipped."""

    ends: list[int]
    skipped: frozenset[int] = frozenset()


async def merge_into(
    store: SegmentStore,
    merge_active: Merge,
    stream: Stream,
    transactions: tuple[str, ...],
    targets: Mapping[int, int],
    may_skip: bool,
    needs_positions: bool,
    lengths: EarlyAnswers[SegmentInfo],
    opened_at: Mapping[str, int],
    now_ms: Callable[[], int],
) -> Merged:
    """Append the transactions to their targets, side by side, each in this order. `targets` has their ids by number.

    `opened_at` has the times of opens, in epoch ms, by segment: each was written to behind that at least.
    `merge_active` merges into active segments. A position behind nothing that was merged takes a call: it is left out
    unless the batch `needs_positions`.
    Raises SegmentStoreError; whatever was done by then is found done by the next attempt.
    """
    names = [segment_names(stream, transaction) for transaction in transactions]
    active = set(stream.active_epoch.segments)

    def merge_target(number: int, segment: int) -> Awaitable[_Target]:
        merge = _OrderedMerge(merge_active if segment in active else _DuplicateMerge(store), opened_at, now_ms)
        target, sources = segment_name(*stream.id, segment), [of[number] for of in names]
        if not may_skip:
            return _merge_all(merge, target, sources)
        return _skip_and_merge(store, merge, target, sources, needs_positions, lengths)

    at_once = max(1, MAX_CALLS // len(transactions))
    found = await all_done((merge_target(*target) for target in targets.items()), at_once)
    reached = dict(zip(targets.items(), found, strict=True))
    skipped = {
        transaction: numbers
        for i, transaction in enumerate(transactions)
        if (numbers := tuple(number for (number, _), target in reached.items() if i in target.skipped))
    }
    positions = {
        transaction: {segment: target.ends[i] for (_, segment), target in reached.items() if target.ends}
        for i, transaction in enumerate(transactions)
    }
    return Merged(positions, skipped)


async def _merge_all(merge: Merge, target: str, sources: Sequence[str]) -> _Target:
    return _Target(await merge(target, sources))


async def _skip_and_merge(
    store: SegmentStore,
    merge: Merge,
    target: str,
    sources: Sequence[str],
    needs_positions: bool,
    lengths: EarlyAnswers[SegmentInfo],
) -> _Target:
    found = await all_done(map(lengths.answer, sources))
    empty = [i for i, one in enumerate(found) if one is not None and not one.length]
    if not empty:
        return await _merge_all(merge, target, sources)
    await all_done(_seal(store, sources[i]) for i in empty)
    sealed = await all_done(_sealed(store, sources[i]) for i in empty)
    skipped = frozenset(i for i, one in zip(empty, sealed, strict=True) if one is not None and not one.length)
    left = [i for i in range(len(sources)) if i not in skipped]
    if left:
        ends = dict(zip(left, await merge(target, [sources[i] for i in left]), strict=True))
        return _Target(_reached(len(sources), ends), skipped)
    length = [(await store.segment_info(target)).length] if needs_positions else []
    return _Target(length * len(sources), skipped)


def _reached(count: int, ends: Mapping[int, int]) -> list[int]:
    """A length of the target at or after each source: of one that was skipped that of its neighbour."""
    reached = ends[min(ends)]
    return [reached := ends.get(i, reached) for i in range(count)]


async def _sealed(store: SegmentStore, name: str) -> SegmentInfo | None:
    """That of a sealed segment; None if it is missing: merged by an attempt before. Raises StillUnsealed."""
    found = await unless_missing(store.segment_info, name)
    if found is not None and not found.sealed:
        raise StillUnsealed("SealSegment", name, "")
    return found


async def _seal(store: SegmentStore, name: str) -> None:
    try:
        await store.seal_segment(name)
    except SegmentMissing:
        return


class _OrderedMerge:
    """Merges in so many requests that no source stands behind one that may rest when its request is sent."""

    def __init__(self, merge: Merge, opened_at: Mapping[str, int], now_ms: Callable[[], int]) -> None:
        self._merge = merge
        self._opened_at = opened_at
        self._now_ms = now_ms

    async def __call__(self, target: str, sources: Sequence[str]) -> list[int]:
        lengths: list[int] = []
        while left := sources[len(lengths) :]:
            rests_before = self._now_ms() - RESTS_MS
            rests = (end for end, source in enumerate(left, 1) if self._opened_at.get(source, 0) < rests_before)
            lengths += await self._merge(target, left[: next(rests, len(left))])
        return lengths


class _DuplicateMerge:
    """Merges into a duplicate, which is sealed only once everything is merged into all of them.

    What there is of its sources then is empty, created late by an open that was handled again. It counts as merged:
    each up to the end, behind which nothing comes.
    """

    def __init__(self, store: SegmentStore) -> None:
        self._store = store

    async def __call__(self, duplicate: str, sources: Sequence[str]) -> list[int]:
        try:
            return await self._store.merge_batch(duplicate, sources)
        except SegmentSealed:
            found = await self._store.segment_info(duplicate)
            if not found.sealed:
                raise
            return [found.length] * len(sources)
