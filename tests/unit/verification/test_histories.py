"""Whatever becomes of a stream by itself, the segment stores have what is expected of it."""

import asyncio
from random import Random

import pytest
from support.effort import effort
from support.histories import replaced, segments_of
from unit.verification.world import KEY, STREAM, World

from sluice.domain.segment import segment_name
from sluice.domain.stream import cuts
from sluice.domain.stream.commands import ScaleStream
from sluice.domain.transaction.index import transactions_of

SEEDS = effort(60, 30)
CHANGES = 25


class Life:
    """Changes that follow from a seed, and what of the stream's segments were ever given out."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World()

    async def live(self) -> None:
        await self.world.create(self.random.randint(1, 3))
        changes = (self._write, self._scale, self._scale, self._truncate, self._commit, self._abort, self._prepare)
        for _ in range(CHANGES):
            await self.random.choice(changes)()
        if self.random.random() < 0.3:
            for transaction in list(transactions_of(self.world.history.view(KEY), STREAM).open):
                await self.world.abort(STREAM.transaction(transaction))
            await self.world.seal()

    async def _write(self) -> None:
        for segment in self.world.stream.active_epoch.segments:
            self.world.write(segment, self.random.randint(0, 50))

    async def _scale(self) -> None:
        active = sorted(self.world.stream.active_segments(), key=lambda s: s.low)
        merges = len(active) > self.world.stream.config.scaling.min_segments and self.random.random() < 0.5
        seals, ranges = replaced(active, self.random.randrange(len(active) - merges), merges)
        await self.world.do(ScaleStream(*STREAM, seals, ranges, at=1))

    async def _truncate(self) -> None:
        """To where a reader of all segments may be, if that is not behind the head."""
        stream, random = self.world.stream, self.random
        number = random.randint(cuts.first_epoch(stream, stream.cut), stream.active)
        at = {s.id for s in stream.history.segments_of(number)}
        for _ in range(random.randint(0, 4)):
            passed = stream.history.segment(random.choice(sorted(at)))
            new = cuts.successors(stream, passed.id)
            old = [s for s in map(stream.history.segment, at) if any(n.low < s.high and s.low < n.high for n in new)]
            if new and all(n.low >= min(o.low for o in old) and n.high <= max(o.high for o in old) for n in new):
                at = at - {o.id for o in old} | {n.id for n in new}
        cut = {s: random.randint(stream.cut.get(s, 0), self._length(s)) for s in at if self._length(s) >= 0}
        if len(cut) < len(at) or not cuts.is_valid(stream, cut):
            return
        if not stream.cut or cuts.is_equal_or_after(stream, cut, stream.cut):
            await self.world.truncate(cut)

    def _length(self, segment: int) -> int:
        found = self.world.store.segments.get(segment_name(*STREAM, segment))
        return found.length if found is not None else -1

    async def _commit(self) -> None:
        opened = await self.world.open()
        for name in self.world.names(opened):
            self.world.store.segments[name].data = b"x" * self.random.randint(0, 3)
        await self.world.commit(opened)

    async def _abort(self) -> None:
        await self.world.abort(await self.world.open())

    async def _prepare(self) -> None:
        first = await self.world.prepare(3)
        if self.random.random() < 0.5:
            await self.world.open()
        if self.random.random() < 0.5:
            await self.world.discard(first)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_stream_left_to_itself_gives_no_finding(seed: int) -> None:
    life = Life(seed)
    asyncio.run(life.live())
    found = asyncio.run(life.world.verify())
    assert not found.findings and not found.not_answered
    assert found.summary.segments >= len(segments_of(life.world.stream))


def test_damage_of_any_segment_is_found() -> None:
    """Each segment in turn is lost, sealed, opened or put back."""
    life = Life(7)
    asyncio.run(life.live())
    world = life.world
    asyncio.run(world.delete_skipped())
    for name in sorted(world.store.segments):
        kept = world.store.segments.pop(name)
        assert [f.segment for f in asyncio.run(world.verify()).findings] == [name]
        world.store.segments[name] = kept
    for segment in segments_of(world.stream):
        name = segment_name(*STREAM, segment)
        if name not in world.store.segments:
            asyncio.run(world.store.create_segment(name, 0, 0))
            assert [f.segment for f in asyncio.run(world.verify()).findings] == [name]
            world.lose(name)
        else:
            world.segment(segment).sealed ^= True
            assert name in {f.segment for f in asyncio.run(world.verify()).findings}
            world.segment(segment).sealed ^= True
