"""Merging a batch: what has data is merged in order, what is sealed and empty is skipped, and nothing else."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest
from support.stream_log import STREAM
from support.txn_log import TxnLog

from sluice.domain.segment import segment_id, segment_name
from sluice.domain.transaction.batch import Merged
from sluice.domain.transaction.state import segment_names
from sluice.pravega.memory import InMemorySegmentStore, Moment
from txn_manager import early_answers
from txn_manager.early_answers import EarlyAnswers
from txn_manager.merging import RESTS_MS, StillUnsealed, merge_into


class Scene:
    """A stream of some segments, transactions with what is in their segments, and a store that counts its requests."""

    def __init__(self, segments: int, *contents: Mapping[int, bytes]) -> None:
        self.log = TxnLog(segments)
        self.ids = tuple(self.log.open(f"{i}") for i in range(len(contents)))
        self.contents = contents
        self.store = InMemorySegmentStore(self._count)
        self.lengths = EarlyAnswers(self.store.segment_info)
        self.requests: Counter[str] = Counter()
        self.measured: Callable[[str], None] = lambda _name: None
        self.opened_ago_ms = (0,) * len(contents)
        self.now_ms = self.merging_takes_ms = 0

    def _count(self, moment: Moment, request: str, segment: str) -> None:
        if moment == "before":
            self.requests[request] += 1
        elif request == "GetStreamSegmentInfo":
            self.measured(segment)

    async def create(self) -> None:
        for target in self.targets.values():
            await self.store.create_segment(segment_name(*STREAM, target), 0, 0)
        for id, content in zip(self.ids, self.contents, strict=True):
            for number, name in segment_names(self.log.stream, id).items():
                await self.store.create_segment(name, 0, 0)
                self.store.segments[name].data = content.get(number, b"")
        self.requests.clear()

    @property
    def targets(self) -> dict[int, int]:
        return {number: number for number in range(len(self.log.stream.active_epoch.segments))}

    def name(self, transaction: int, number: int) -> str:
        return segment_names(self.log.stream, self.ids[transaction])[number]

    def flush_late(self, transaction: int, number: int, data: bytes) -> None:
        """Another writer flushes when the length of the segment was answered, once."""
        name = self.name(transaction, number)

        def flush(measured: str) -> None:
            if measured == name:
                self.measured = lambda _name: None
                self.store.segments[name].data += data

        self.measured = flush

    async def merge(
        self,
        may_skip: bool = True,
        needs_positions: bool = True,
        targets: Mapping[int, int] | None = None,
    ) -> Merged:
        async def merge(target: str, sources: Sequence[str]) -> list[int]:
            self.now_ms += self.merging_takes_ms
            return await self.store.merge_batch(target, sources)

        opened_at = {
            name: self.now_ms - ago_ms
            for id, ago_ms in zip(self.ids, self.opened_ago_ms, strict=True)
            for name in segment_names(self.log.stream, id).values()
        }
        return await merge_into(
            self.store,
            merge,
            self.log.stream,
            self.ids,
            targets or self.targets,
            may_skip,
            needs_positions,
            self.lengths,
            opened_at,
            lambda: self.now_ms,
        )

    def data(self) -> list[bytes]:
        return [self.store.segments[segment_name(*STREAM, target)].data for target in self.targets.values()]


async def test_what_has_data_is_merged_and_what_is_empty_only_sealed() -> None:
    scene = Scene(4, {2: b"event"})
    await scene.create()
    merged = await scene.merge()
    assert scene.data() == [b"", b"", b"event", b""]
    assert merged.skipped == {scene.ids[0]: (0, 1, 3)}
    assert merged.positions == {scene.ids[0]: {0: 0, 1: 0, 2: 5, 3: 0}}
    assert (scene.requests["MergeSegmentsBatch"], scene.requests["SealSegment"]) == (1, 3)
    assert all(scene.store.segments[scene.name(0, number)].sealed for number in (0, 1, 3))


async def test_nothing_is_merged_in_one_request_behind_what_may_have_rested() -> None:
    scene = Scene(1, {0: b"a"}, {0: b"b"}, {0: b"c"}, {0: b"d"}, {0: b"e"})
    scene.opened_ago_ms = (RESTS_MS, RESTS_MS + 1, RESTS_MS + 1, 0, 0)
    await scene.create()
    merged = await scene.merge()
    assert scene.data() == [b"abcde"]
    assert [at for of in merged.positions.values() for at in of.values()] == [1, 2, 3, 4, 5]
    assert scene.requests["MergeSegmentsBatch"] == 3


async def test_what_comes_to_rest_while_others_are_merged_has_nothing_behind_it_either() -> None:
    scene = Scene(1, {0: b"a"}, {0: b"b"}, {0: b"c"}, {0: b"d"})
    scene.opened_ago_ms, scene.merging_takes_ms = (RESTS_MS + 1, RESTS_MS - 1, 0, 0), 2
    await scene.create()
    await scene.merge()
    assert scene.data() == [b"abcd"]
    assert scene.requests["MergeSegmentsBatch"] == 3


async def test_lengths_that_were_asked_before_are_used_once() -> None:
    scene = Scene(2, {0: b"a", 1: b"b"})
    await scene.create()
    scene.lengths.request(segment_names(scene.log.stream, scene.ids[0]).values())
    await scene.merge()
    assert (scene.requests["GetStreamSegmentInfo"], scene.requests["MergeSegmentsBatch"]) == (2, 2)
    await scene.merge()
    assert scene.requests["GetStreamSegmentInfo"] == 4, "an attempt that follows asks anew"


async def test_what_is_flushed_behind_an_early_length_of_zero_is_merged() -> None:
    scene = Scene(1, {})
    await scene.create()
    scene.flush_late(0, 0, b"late")
    scene.lengths.request([scene.name(0, 0)])
    assert (await scene.merge()).skipped == {}
    assert scene.data() == [b"late"]


async def test_an_early_question_that_failed_is_asked_once_more() -> None:
    scene = Scene(1, {0: b"a"})
    await scene.create()
    scene.lengths.request([scene.name(0, 0), scene.name(0, 0) + "x"])
    assert await scene.lengths.answer(scene.name(0, 0) + "x") is None
    await scene.merge()
    assert scene.data() == [b"a"]


async def test_answers_that_no_one_uses_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_answers, "MAX_UNUSED", 2)
    scene = Scene(4, dict.fromkeys(range(4), b"a"))
    await scene.create()
    scene.lengths.request(scene.name(0, n) for n in range(4))
    await scene.merge()
    assert scene.requests["GetStreamSegmentInfo"] == 4, "those that made room were not sent yet"


async def test_a_target_whose_sources_all_have_data_costs_no_seal() -> None:
    scene = Scene(2, {0: b"a", 1: b"b"}, {0: b"c", 1: b"d"})
    await scene.create()
    merged = await scene.merge()
    assert scene.data() == [b"ac", b"bd"] and not merged.skipped
    assert scene.requests == {"GetStreamSegmentInfo": 4, "MergeSegmentsBatch": 2}


async def test_what_another_writer_flushes_after_the_length_is_merged_in_its_place() -> None:
    scene = Scene(1, {0: b"a"}, {}, {0: b"c"})
    await scene.create()
    scene.flush_late(1, 0, b"late")
    merged = await scene.merge()
    assert scene.data() == [b"alatec"] and not merged.skipped


async def test_positions_of_what_was_skipped_are_those_of_its_neighbours() -> None:
    scene = Scene(1, {}, {0: b"aa"}, {}, {0: b"bbb"}, {})
    await scene.create()
    merged = await scene.merge()
    assert [merged.positions[id][0] for id in scene.ids] == [2, 2, 2, 5, 5]
    assert list(merged.skipped) == [scene.ids[0], scene.ids[2], scene.ids[4]]


async def test_where_nothing_is_merged_the_position_is_the_length_of_the_target() -> None:
    scene = Scene(1, {})
    await scene.create()
    scene.store.segments[segment_name(*STREAM, 0)].data = b"before"
    assert (await scene.merge()).positions == {scene.ids[0]: {0: 6}}


async def test_without_a_writers_time_no_target_is_measured() -> None:
    scene = Scene(3, {1: b"event"})
    await scene.create()
    merged = await scene.merge(needs_positions=False)
    assert merged.positions == {scene.ids[0]: {1: 5}}
    assert scene.requests["GetStreamSegmentInfo"] == 5, "each source once, and what is empty once more when sealed"


async def test_a_second_attempt_finds_what_the_first_has_done() -> None:
    scene = Scene(2, {0: b"a"}, {1: b"b"})
    await scene.create()
    first = await scene.merge()
    second = await scene.merge()
    assert scene.data() == [b"a", b"b"]
    assert second.skipped == first.skipped == {scene.ids[0]: (1,), scene.ids[1]: (0,)}
    assert second.positions == first.positions


async def test_a_seal_that_cannot_be_seen_proves_nothing() -> None:
    """It is not durable yet, or the store that answers has lost the container."""
    scene = Scene(1, {}, {0: b"b"})
    await scene.create()

    def lose_the_seal(name: str) -> None:
        scene.store.segments[name].sealed = False

    def sealed_elsewhere(moment: Moment, request: str, segment: str) -> None:
        if moment == "after" and request == "SealSegment":
            lose_the_seal(segment)

    scene.store.fault = sealed_elsewhere
    with pytest.raises(StillUnsealed):
        await scene.merge()
    assert scene.data() == [b""], "what comes behind it in the same target is not merged either"
    scene.store.fault = None
    await scene.merge()
    assert scene.data() == [b"b"]


async def test_a_batch_that_may_not_skip_is_merged_as_it_is() -> None:
    scene = Scene(2, {0: b"a"})
    await scene.create()
    merged = await scene.merge(may_skip=False)
    assert scene.data() == [b"a", b""] and not merged.skipped
    assert scene.requests == {"MergeSegmentsBatch": 2}


async def test_empty_segments_are_skipped_for_duplicates_too() -> None:
    scene = Scene(2, {1: b"b"})
    await scene.create()
    targets = {number: segment_id(2, number) for number in (0, 1)}
    for target in targets.values():
        await scene.store.create_segment(segment_name(*STREAM, target), 0, 0)
    merged = await scene.merge(targets=targets)
    assert merged.skipped == {scene.ids[0]: (0,)}
    assert merged.positions == {scene.ids[0]: {targets[0]: 0, targets[1]: 1}}
    assert scene.store.segments[segment_name(*STREAM, targets[1])].data == b"b"
