"""Trimming as the service wires it: with an archive, not beyond what that has; without one, by snapshots alone."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from support import virtual_time
from support.snapshots import SnapshotWorld, count

from cluster_manager import snapshots
from cluster_manager.settings import ClusterManagerSettings
from cluster_manager.snapshots import Helper, start_snapshots
from sluice.engine.journal import Journal
from sluice.engine.snapshot_keeper import HELD_S, SnapshotKeeper

JOURNAL = "sluice.journal"


class Runtime:
    """What keeping snapshots takes of a process; the test looks in place of its task."""

    name = "cluster-manager"
    source = "cluster-manager/a"

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.checks: dict[str, Callable[[], str | None]] = {}
        self.degraded: dict[str, Callable[[], str | None]] = {}

    def spawn(self, task: Any, _name: str) -> None:
        task.close()


def run(
    monkeypatch: pytest.MonkeyPatch,
    archive: str,
    scene: Callable[[SnapshotWorld, Runtime, SnapshotKeeper], Awaitable[None]],
) -> None:
    """Two confirmed snapshots of a journal, of which the archive has the first four records."""

    async def archived(_client: Any) -> dict[int, int]:
        return {0: 4}

    async def prepared() -> None:
        world = SnapshotWorld()
        runtime: Any = Runtime(await world.loaded(Runtime.source))
        monkeypatch.setattr(Helper, "run", lambda _self, _partition, offset: world.help(offset, Runtime.source))
        monkeypatch.setattr(snapshots, "trimmable_offsets", archived)
        settings = ClusterManagerSettings(archive=archive, snapshot_records=10, journal_keep=timedelta(0))
        keeper = start_snapshots(runtime, settings, world.store, lambda: True)
        for _ in range(2):
            await count(runtime.journal, 10)
            await asyncio.sleep(1)
            await keeper.look()
            await keeper.look()
        await scene(world, runtime, keeper)
        await world.stop()

    virtual_time.run(prepared())


def test_nothing_is_trimmed_before_it_is_archived_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(world: SnapshotWorld, runtime: Runtime, keeper: SnapshotKeeper) -> None:
        assert world.broker.begin(JOURNAL, 0) == 4 and runtime.degraded["archive"]() is None
        await asyncio.sleep(HELD_S)
        await keeper.look()
        found = runtime.degraded["archive"]()
        assert found == "the journal is not trimmed, for it is not archived: partition 0 behind 4"

    run(monkeypatch, "/archive", scene)


def test_without_an_archive_the_journal_is_trimmed_behind_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(world: SnapshotWorld, runtime: Runtime, keeper: SnapshotKeeper) -> None:
        first = (await world.snapshots())[0].manifest.offset
        assert first >= 10 and world.broker.begin(JOURNAL, 0) == first
        assert runtime.degraded["archive"]() is None

    run(monkeypatch, "", scene)
