"""Snapshots of the journal: markers, the helper processes that write and confirm, and trimming behind them.

cluster-manager does it, because no caller waits for it, and one of its instances is active for the whole journal. So
one helper runs at a time. What is due and why is in `sluice.engine.snapshot_keeper`, what a helper does in
`sluice.snapshotter`. Belongs to the event loop.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial

from cluster_manager.settings import ClusterManagerSettings
from sluice.child_process import ChildProcess
from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.engine.ports import SnapshotStore
from sluice.engine.snapshot_keeper import HelperFailedError, SnapshotKeeper, SnapshotRules
from sluice.kafka.archive_progress import trimmable_offsets
from sluice.runtime import Runtime


def start_snapshots(
    runtime: Runtime, settings: ClusterManagerSettings, store: SnapshotStore, is_active: Callable[[], bool]
) -> SnapshotKeeper:
    """Keep snapshots for as long as the runtime lives; what is wrong with them shows in its health."""
    helper = Helper(runtime.source, settings)

    def members() -> set[str]:
        cluster = cluster_of(runtime.journal.reader(CLUSTER))
        alike = {f"{m.service}/{m.instance}" for m in cluster.members.values() if m.service == runtime.name}
        return alike | {runtime.source}

    rules = SnapshotRules(
        records=settings.snapshot_records,
        min_records=settings.snapshot_min_records,
        interval_ms=round(settings.snapshot_interval_s * 1000),
        keep_ms=round(settings.journal_keep.total_seconds() * 1000),
    )
    trimmable = partial(trimmable_offsets, settings.kafka_client()) if settings.archive else None
    keeper = SnapshotKeeper(runtime.journal, store, rules, is_active, members, helper.run, trimmable)
    runtime.checks["snapshots"] = lambda: keeper.difference
    runtime.degraded["snapshot helper"] = lambda: keeper.failure
    runtime.degraded["archive"] = lambda: archive_problem(keeper)
    runtime.spawn(keeper.run(settings.snapshot_look_s), "snapshot keeper")
    return keeper


def archive_problem(keeper: SnapshotKeeper) -> str | None:
    """Where the journal is not trimmed because the archive does not have it, in words."""
    held = ", ".join(f"partition {partition} behind {offset}" for partition, offset in sorted(keeper.held.items()))
    return f"the journal is not trimmed, for it is not archived: {held}" if held else None


class Helper:
    """Starts helper processes for `source`, with the settings of this process."""

    def __init__(self, source: str, settings: ClusterManagerSettings) -> None:
        self._source = source
        self._timeout_s = settings.snapshot_timeout_s
        self._environment = {**os.environ, "SLUICE_INSTANCE": settings.instance}

    async def run(self, partition: int, offset: int) -> None:
        """Raises HelperFailedError. Cancelled, it ends the process."""
        command = (sys.executable, "-m", "sluice.snapshotter", str(partition), str(offset), self._source)
        try:
            process = await ChildProcess.start(command, self._environment)
        except OSError as error:
            raise HelperFailedError(f"cannot be started: {error}") from error
        try:
            async with asyncio.timeout(self._timeout_s):
                output = await process.output.read()
                status = await process.wait()
        except TimeoutError:
            raise HelperFailedError(f"not done within {self._timeout_s:g} s") from None
        finally:
            process.kill()
            await process.wait()
        if status != 0:
            reason = output.decode(errors="replace").strip()
            raise HelperFailedError(reason or f"ended with status {status}")
