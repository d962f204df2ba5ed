"""What happened to a stream behind the back-up that it was restored from: found out of the segment stores, and settled.

Which segments to ask for, and what is made of the answers, is in `domain.stream.restore`. Nothing here is decided that
another attempt would not find alike: no one scales, seals or truncates the stream meanwhile, and what is created has
names of its own. Of what is asked for most is not there, a refusal that a segment store logs.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from sluice.domain.encoding import decode_state, encode_state
from sluice.domain.segment import epoch_of, number_of, segment_name
from sluice.domain.stream import cuts
from sluice.domain.stream.events import StreamRestored
from sluice.domain.stream.queries import head
from sluice.domain.stream.restore import (
    MAX_NUMBERS_APART,
    bases_of,
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


async def find_out(context: StepContext, stream: Stream) -> StreamRestored:
    """What happened to the stream, with the epoch that writers go on in created, and all before it sealed."""
    state = decode_state(encode_state(stream))
    assert isinstance(state, Stream)
    live = transactions_of(context.reader(stream.id.key), stream.id)
    transactions = (*live.open, *live.committing, *live.aborting, *live.ranges)
    repeated = repeated_numbers(stream, map(epoch_of_transaction, transactions))
    stores, base = _Stores(context, state), bases_of(state)[-1]
    known = await stores.ask(last_segments(state))
    if not was_changing(state) and all(info is not None and not info.sealed for info in known.values()):
        # Those of the back-up: an update may have been under way, or have come since.
        await segments.set_policies(context, state)
        return await _with_head(stores, state, StreamRestored(*state.id, at=0, base=base))
    found = await _search(stores, state, repeated)
    creates = next_segments(state, found)
    is_sealed = not found and not was_changing(state) and all(i is not None and i.sealed for i in known.values())
    # An attempt before may have sealed them, behind the creation of the next ones.
    if is_sealed and not await stores.there(s.id for s in creates):
        return await _with_head(stores, state, StreamRestored(*state.id, at=0, base=base, sealed=True))
    await segments.create_segments(context.store, state, [s.id for s in creates])
    there = [s for s in (*known, *found) if s in found or known[s] is not None]
    sizes = await segments.seal_and_measure(context.store, state, there)
    stores.forget()
    restored = StreamRestored(*state.id, at=0, base=base, found=tuple(found), creates=creates, sealed_sizes=sizes)
    return await _with_head(stores, state, restored)


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
    """The segments that came behind the back-up, by id: of the numbers that rolls repeat, and of those that come next.

    Whatever is found, more is looked for behind it, and by the next numbers in the epochs that were found, too; and
    behind each restore that came since.
    """
    numbers, found = set(repeated), set[int]()
    for base in (0, *bases_of(stream)[:-1]):
        first = last = base or stream.history.count
        while True:
            number = max(stream.next_number, base, max(numbers) + 1)
            wanted = candidates({*numbers, *range(number, number + MAX_NUMBERS_APART)}, first, last)
            new = set(await stores.there(wanted)) - found
            if not new:
                break
            found |= new
            numbers.update(map(number_of, new))
            last = max(last, *map(epoch_of, new))
    return sorted(found)


async def _with_head(stores: _Stores, stream: Stream, restored: StreamRestored) -> StreamRestored:
    """The same, with the head where the stores have it: a truncation behind the back-up is found by what is missing."""
    at = stream.history.created_at(stream.history.count - 1) + 1
    after = evolve_restored(stream, msgspec.structs.replace(restored, at=at))
    return msgspec.structs.replace(restored, cut=await _head(stores, after))


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
