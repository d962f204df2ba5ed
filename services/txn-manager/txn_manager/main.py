"""Where txn-manager is put together."""

import asyncio
from typing import Any

from sluice.insight.statistics import TransactionCounter
from sluice.runtime import Runtime, Service
from sluice.settings import settings_of
from sluice.workflows.data_plane import open_data_plane
from sluice.workflows.statistics import StatisticsReporter
from txn_manager.service import TxnService
from txn_manager.settings import TxnSettings
from txn_manager.statistics.supervisor import StatisticsProcess
from txn_manager.wheel.redis_access import redis_access
from txn_manager.wheel.timer_redis import TimerClients


async def start(runtime: Runtime, settings: TxnSettings, redis: TimerClients) -> TxnService:
    """Serve until what it returns is stopped."""
    store = open_data_plane(runtime, settings.store_timeout_s)
    service = TxnService(runtime, settings, store, redis)
    runtime.checks.update(service.checks())
    runtime.degraded.update(service.degraded())
    await service.start()
    reporter = StatisticsReporter(runtime, TransactionCounter(), lambda: service.commits.partitions, progress=True)
    runtime.spawn(reporter.run(settings.statistics_s), "statistics reports")
    return service


def service(**given: Any) -> Service:
    """With the settings of the environment, behind those that are given."""
    settings = settings_of(TxnSettings, **given)

    async def begin(runtime: Runtime) -> None:
        redis = redis_access(settings.redis_url.get_secret_value(), settings.redis_password_file)
        runtime.watch(*redis.watched)
        service = await start(runtime, settings, redis)
        if not settings.statistics_max_windows:
            runtime.stack.push_async_callback(service.stop)
            return
        statistics = StatisticsProcess(settings)

        async def begin_statistics() -> None:
            await runtime.until_ready()
            runtime.degraded["statistics"] = statistics.problem
            statistics.start()

        async def stop() -> None:
            """Side by side: no partition waits for the end of the Faust app before another instance owns it."""
            await asyncio.gather(service.stop(), statistics.stop())

        runtime.stack.push_async_callback(stop)
        runtime.spawn(begin_statistics(), "start of the statistics")

    return Service("txn-manager", settings, begin)
