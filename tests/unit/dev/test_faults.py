"""Faults on purpose, in virtual time."""

import asyncio
from itertools import groupby
from random import Random

from support.virtual_time import run

from sluice.domain.segment import segment_name
from sluice.pravega import InMemorySegmentStore, RouteStale, container_of
from sluice_dev.faults import Faults
from sluice_dev.options import DevOptions

CONTAINERS = 4
MOVING_S = 2.0
LOOKS = 4_000
LOOK_S = 0.05


def test_each_container_is_away_at_times_and_never_for_longer_than_asked() -> None:
    names = {container_of(name, CONTAINERS): name for name in (segment_name("s", "t", n) for n in range(50))}

    seen: list[frozenset[int]] = []

    async def scene() -> None:
        store = InMemorySegmentStore()
        for name in names.values():
            await store.create_segment(name, 0, 0)
        store.fault = Faults(Random(1), CONTAINERS, DevOptions(moving_s=MOVING_S))
        for _ in range(LOOKS):
            away = set()
            for container, name in names.items():
                try:
                    await store.segment_info(name)
                except RouteStale:
                    away.add(container)
            seen.append(frozenset(away))
            await asyncio.sleep(LOOK_S)

    run(scene())
    assert set(seen) == {frozenset(), *(frozenset({container}) for container in range(CONTAINERS))}
    longest = max(len(list(looks)) for away, looks in groupby(seen) if away)
    assert MOVING_S / 2 < longest * LOOK_S <= MOVING_S + LOOK_S
