"""What happened to a stream behind the back-up that it was restored from: found out of the segment stores, and settled.

Which segments to ask for, and what is made of the answers, is in `domain.stream.restore`. Nothing here is decided that
another attempt would not find alike: no one scales, seals or truncates the stream meanwhile, and what is created has
names of its own. Of what is asked for most is not there, a refusal that a segment store logs.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress

from sluice.domain.encoding import decode_state, encode_state
from sluice.domain.segment import epoch_of, number_of, segment_id, segment_name
from sluice.domain.stream import cuts
from sluice.domain.stream.events import StreamRestored
from sluice.domain.stream.queries import head
from sluice.domain.stream.restore import (
    MAX_NUMBERS_APART,
    Outcome,
    arranged,
    candidates,
    evolve_restored,
    last_segments,
    next_segments,
    repeated_numbers,
    was_changing,
)
from sluice.domain.stream.state import Stream
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction_ids import epoch_of as epoch_of_transaction
from sluice.engine.step import all_done
from sluice.pravega.errors import SegmentMissing
from sluice.pravega.store import SegmentInfo
from sluice.workflows import segments
from sluice.workflows.step_context import StepContext

AT_ONCE = 64
"""So many questions of one stream are on their way at a time."""

Infos = Mapping[int, SegmentInfo | None]
"""What the stores said of segments; None of those that are not there."""


async def end_truncation(context: StepContext, stream: Stream) -> None:
    """Bring what was under way at the back-up to its end; what is not there any more was truncated further since."""
    reached = [(segment_name(*stream.id, s), at) for s, at in stream.cut.items() if at > 0]
    await all_done(_truncate(context, name, at) for name, at in reached)
    passed = segments.segment_names(stream, stream.workflow.deletes if stream.workflow is not None else ())
    await all_done(context.store.delete_segment(name) for name in passed)


async def _truncate(context: StepContext, name: str, at: int) -> None:
    with suppress(SegmentMissing):
        await context.store.truncate_segment(name, at)


async def find_out(context: StepContext, stream: Stream) -> Outcome:
    """What happened to the stream, with the epoch that writers go on in created, and all before it sealed."""
    state = decode_state(encode_state(stream))
    assert isinstance(state, Stream)
    live = transactions_of(context.reader(stream.id.key), stream.id)
    transactions = (*live.open, *live.committing, *live.aborting, *live.ranges)
    repeated = repeated_numbers(state, map(epoch_of_transaction, transactions))
    stores = _Stores(context, state)
    known = await stores.ask(last_segments(state))
    if not was_changing(state) and all(info is not None and not info.sealed for info in known.values()):
        # Those of the back-up: an update may have been under way, or have come since.
        await segments.set_policies(context, state)
        return await _with_head(stores, state, Outcome())
    found = await _search(stores, state, repeated)
    creates = next_segments(state)
    is_sealed = not found and not was_changing(state) and all(i is not None and i.sealed for i in known.values())
    # An attempt before may have sealed them, behind the creation of the next ones.
    if is_sealed and not await stores.there(s.id for s in creates):
        return await _with_head(stores, state, Outcome(sealed=True))
    await segments.create_segments(context.store, state, [s.id for s in creates])
    there = [s for s in (*known, *found) if s in found or known[s] is not None]
    sizes = await segments.seal_and_measure(context.store, state, there)
    stores.forget()
    return await _with_head(stores, state, Outcome(arranged(state, found), creates, sizes))


class _Stores:
    """Asks for the segments of a stream, for each once."""

    def __init__(self, context: StepContext, stream: Stream) -> None:
        self._store = context.store
        self._stream = stream
        self._infos: dict[int, SegmentInfo | None] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def ask(self, ids: Iterable[int]) -> Infos:
        wanted = list(dict.fromkeys(ids))
        await all_done(self._ask(s) for s in wanted if s not in self._infos)
        return {s: self._infos[s] for s in wanted}

    async def there(self, ids: Iterable[int]) -> list[int]:
        """Those of the segments that are there."""
        return [s for s, info in (await self.ask(ids)).items() if info is not None]

    def forget(self) -> None:
        """They have changed."""
        self._infos.clear()

    async def _ask(self, segment: int) -> None:
        async with self._slots:
            try:
                self._infos[segment] = await self._store.segment_info(segment_name(*self._stream.id, segment))
            except SegmentMissing:
                self._infos[segment] = None


async def _search(stores: _Stores, stream: Stream, repeated: Iterable[int]) -> list[int]:
    """The segments that came behind the back-up, by id, life by life of the system: in each numbers went on higher."""
    workflow, next_epoch = stream.workflow, stream.history.count
    unknown_from = workflow.unknown_from if workflow is not None else stream.next_number
    columns = set(repeated)
    found: set[int] = set()
    for first in (workflow.lives if workflow is not None else ()) or (next_epoch,):
        number = unknown_from if first == next_epoch else max(unknown_from, first)
        new = await _of_life(stores, columns, first - 1, number)
        columns.update(map(number_of, new))
        found.update(new)
    return sorted(found)


async def _of_life(stores: _Stores, repeated: Iterable[int], before: int, number: int) -> set[int]:
    """Those of the epochs behind that one: of this number and later ones, and of numbers that rolls repeated."""
    found: set[int] = set()
    epoch = before
    while new := await _next_ones(stores, number, epoch, before):
        found.update(new)
        epoch, number = max(map(epoch_of, found)), max(map(number_of, found)) + 1
    columns = {*repeated, *map(number_of, found)}
    reached = before
    while new := [s for s in await stores.there(candidates(columns, reached)) if epoch_of(s) > reached]:
        found.update(new)
        reached = max(map(epoch_of, new))
    return found


async def _next_ones(stores: _Stores, number: int, epoch: int, before: int) -> list[int]:
    """Segments of this number or a later one, created in this epoch or a later one; none if there are none.

    Nearly always the very next one is there. Where it is not, it and those behind it may have been deleted.
    """
    if epoch > before and (new := await stores.there([segment_id(epoch, number)])):
        return new
    for numbers in ([number], range(number, number + MAX_NUMBERS_APART)):
        if new := await stores.there(candidates(numbers, max(before, epoch - 1))):
            return new
    return []


async def _with_head(stores: _Stores, stream: Stream, outcome: Outcome) -> Outcome:
    """The same, with the head where the stores have it: a truncation behind the back-up is found by what is missing."""
    restored = StreamRestored(
        *stream.id,
        at=stream.history.created_at(stream.history.count - 1) + 1,
        found=outcome.found,
        creates=outcome.creates,
        sealed_sizes=outcome.sealed_sizes,
        sealed=outcome.sealed,
    )
    after = evolve_restored(stream, restored)
    cut = await _head(stores, after)
    return Outcome(outcome.found, outcome.creates, outcome.sealed_sizes, outcome.sealed, cut)


async def _head(stores: _Stores, stream: Stream) -> dict[int, int]:
    """Where reading begins by what the stores have; empty if that is where it was."""
    before = head(stream)
    reached = await _frontier(stores, before, stream)
    there = {s: info for s, info in reached.items() if info is not None}
    index = cuts.RangeIndex(map(stream.history.segment, there))

    def begin(segment: int, info: SegmentInfo) -> int:
        """-1 for one that reading has not come to: it is as it was created, behind an older one that is there."""
        own = stream.history.segment(segment)
        if not info.start_offset and any(older.id < segment for older in index.overlapping(own.low, own.high)):
            return -1
        return max(before.get(segment, 0), info.start_offset, 0)

    cut = {s: begin(s, info) for s, info in there.items()}
    if cut == before or not cut:
        return {}
    return cut if cuts.is_valid(stream, cut) else await _whole_epoch(stores, stream, max(map(epoch_of, reached)))


async def _frontier(stores: _Stores, before: Mapping[int, int], stream: Stream) -> Infos:
    """The first segments that are there over all keys; those that are missing gave way to their successors."""
    passed: set[int] = set()
    ahead = set(before)
    while True:
        infos = await stores.ask(sorted(ahead))
        missing = {s for s, info in infos.items() if info is None}
        passed |= missing
        following = {f.id for s in missing for f in cuts.successors(stream, s)} - passed
        if not following - ahead:
            return infos
        ahead = ahead - missing | following


async def _whole_epoch(stores: _Stores, stream: Stream, epoch: int) -> dict[int, int]:
    """The first epoch from this one on that is there as a whole: where no cut is known to be right, this one is."""
    for number in stream.history.numbers(epoch, stream.active):
        infos = await stores.ask(stream.history.epoch(number).segments)
        if all(info is not None for info in infos.values()):
            return {s: info.start_offset for s, info in infos.items() if info is not None}
    return dict.fromkeys(stream.active_epoch.segments, 0)
