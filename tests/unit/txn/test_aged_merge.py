"""Merging into streams that scale by load: what a store counts follows from the open, not from the preparation."""

from collections.abc import Mapping

import pytest

from sluice.pravega.memory import InMemorySegmentStore, Moment
from sluice.pravega.store import CREATION_TIME_ATTRIBUTE
from txn_manager.aged_merge import AgedMerge, creation_time
from txn_manager.early_answers import EarlyAnswers

TARGET = "sc/st/0.#epoch.0"
NOW_MS = 100_000


class Scene:
    """A target, and a store that tells of what was merged when that was created, as it does to its own statistics."""

    def __init__(self) -> None:
        self.store = InMemorySegmentStore(self._look, lambda: self.now_ms)
        self.now_ms = 0
        self.merged: dict[str, int] = {}
        self.updates = 0

    def _look(self, moment: Moment, request: str, _segment: str) -> None:
        self.updates += moment == "before" and request == "UpdateSegmentAttribute"
        if moment == "before" and request == "MergeSegmentsBatch":
            sources = self.store.segments.items()
            self.merged = {name: s.attributes[CREATION_TIME_ATTRIBUTE] for name, s in sources if name != TARGET}

    async def create(self, created: Mapping[str, int]) -> None:
        for name, self.now_ms in {TARGET: 0, **created}.items():
            await self.store.create_segment(name, 0, 0)
            self.store.segments[name].data = name.encode() if name != TARGET else b""

    async def merge(self, opened: Mapping[str, int]) -> list[int]:
        times = EarlyAnswers(lambda name: creation_time(self.store, name))
        return await AgedMerge(self.store, opened, times, lambda: NOW_MS)(TARGET, list(opened))


async def test_what_was_prepared_is_merged_as_old_as_its_open() -> None:
    scene = Scene()
    await scene.create({"a": 70_000, "bb": 80_000})
    assert await scene.merge({"a": 98_000, "bb": 90_000}) == [1, 3]
    assert scene.merged == {"a": 98_000, "bb": 90_000}
    assert scene.store.segments[TARGET].data == b"abb"


@pytest.mark.parametrize(
    ("created", "opened"),
    [
        pytest.param(96_000, 98_000, id="counted as a whole as it is"),
        pytest.param(80_000, 79_990, id="not prepared"),
    ],
)
async def test_what_is_counted_rightly_costs_no_write(created: int, opened: int) -> None:
    scene = Scene()
    await scene.create({"a": created})
    await scene.merge({"a": opened})
    assert scene.merged == {"a": created} and not scene.updates


async def test_what_is_sealed_or_merged_already_is_merged_as_it_is() -> None:
    scene = Scene()
    await scene.create({"sealed": 70_000})
    scene.store.segments["sealed"].sealed = True
    assert await scene.merge({"sealed": 98_000, "gone": 98_000}) == [6, 6]
    assert scene.store.segments[TARGET].data == b"sealed"
